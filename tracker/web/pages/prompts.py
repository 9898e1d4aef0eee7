"""Lists of prompts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.queries.browsing.keys import find_benchmark_label
from tracker.queries.browsing.prompt_list import describe_prompts
from tracker.queries.browsing.prompt_statistics import (
    PromptStatistics,
    compute_prompt_statistics,
)
from tracker.queries.browsing.search import find_prompts_with_text
from tracker.queries.filtering.prompt_filter import PromptFilter, list_filters, load_prompt_filter
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.resolution import find_benchmark, select_tasks
from tracker.queries.selection import Selection
from tracker.report.number_format import format_count, format_score
from tracker.web.page import Page
from tracker.web.pages.selections import make_selection
from tracker.web.query import Query

SORT_KEYS = ("prompt", "task", "mean", "spread", "discrimination", "n_models")
DECISIONS = ("", "kept", "removed")
MAX_FILTERS = 5
"""Recorded filters whose decisions a prompt's page has."""


def load_statistics(query: Query, selection: Selection) -> tuple[PerformanceMatrix, PromptStatistics]:
    """Return the scores of a selection, and the statistics of its prompts.

    Raises:
        SuffrageError: as for `load_performance_matrix`.
    """

    def compute() -> tuple[PerformanceMatrix, PromptStatistics]:
        with query.session() as session:
            scores = load_performance_matrix(session, selection)
        return scores, compute_prompt_statistics(scores)

    return query.cache.get(("prompt_statistics", selection), compute)


def show_prompts(query: Query) -> Page:
    """Return the prompts of a benchmark, filtered and sorted."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
        benchmark = find_benchmark(session, label)
        tasks = select_tasks(session, benchmark, Selection(benchmark=label))
        kept = next(iter(load_filters(query, label)), None)
        text = query.text("q").strip()
        matches = find_prompts_with_text(session, list(tasks), text) if text else None
    scores, statistics = load_statistics(query, make_selection(query, label))
    places = _select(statistics, query, matches, kept)
    page_rows, paging = query.take_page(places)
    rows = _describe(query, statistics, np.array(page_rows, dtype=np.intp), kept)
    data = {
        "headline": _describe_prompts(scores, statistics),
        "benchmark": {"id": query.key, "label": label},
        "tasks": sorted(name for name in tasks.values() if name),
        "filter_id": None if kept is None else kept.finding_id,
        "rows": rows,
        "paging": paging,
        "options": dict(query.parameters),
    }
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    return Page(title=f"Prompts of {label}", template="prompts.html", data=data, table="rows", trail=trail)


def _describe_prompts(scores: PerformanceMatrix, statistics: PromptStatistics) -> str:
    """Return how hard the prompts are, and how many better models do worse on."""
    if not len(statistics.mean):
        return "No prompt has a score."
    mean = format_score(float(np.nanmean(statistics.mean)))
    n_equal, n_negative = int((statistics.spread == 0).sum()), int((statistics.discrimination < 0).sum())
    return (
        f"{format_count(len(statistics.mean), 'prompt')}, mean {scores.metric} {mean}. All models have the same score "
        f"on {n_equal:,}; on {n_negative:,} better models do worse."
    )


def load_filters(query: Query, label: str) -> tuple[PromptFilter, ...]:
    """Return the recorded filters of a benchmark, the latest first."""

    def compute() -> tuple[PromptFilter, ...]:
        with query.session() as session:
            benchmark = find_benchmark(session, label)
            keys = list_filters(session, benchmark)[-MAX_FILTERS:]
            return tuple(load_prompt_filter(session, benchmark, key) for key in reversed(keys))

    return query.cache.get(("filters", label), compute)


def _select(
    statistics: PromptStatistics, query: Query, matches: Sequence[int] | None, kept: PromptFilter | None
) -> list[int]:
    """Return the places of the prompts that match, in the order that the reader chose."""
    chosen = np.ones(len(statistics.prompt_ids), dtype=bool)
    if task := query.text("task"):
        chosen &= statistics.tasks == task
    low = query.number("from", -math.inf, low=-math.inf, high=math.inf, kind=float)
    high = query.number("to", math.inf, low=-math.inf, high=math.inf, kind=float)
    if low > -math.inf or high < math.inf:
        chosen &= (statistics.mean >= low) & (statistics.mean <= high)
    if (spread := query.number("disagreement", 0.0, low=0.0, high=math.inf, kind=float)) > 0:
        chosen &= statistics.spread >= spread
    if matches is not None:
        chosen &= np.isin(statistics.prompt_ids, matches)
    if (decision := query.choice("decision", DECISIONS, "")) and kept is not None:
        stays, is_covered = kept.align(statistics.prompt_ids)
        chosen &= stays if decision == "kept" else is_covered & ~stays
    places = np.flatnonzero(chosen)
    key = query.choice("sort", SORT_KEYS, "prompt")
    values = {"prompt": statistics.prompt_ids, "task": statistics.tasks, "n_models": statistics.n_models}
    column = values[key] if key in values else getattr(statistics, key)
    return query.sort_places(places, column)


def _describe(
    query: Query, statistics: PromptStatistics, places: NDArray[np.intp], kept: PromptFilter | None
) -> list[dict[str, Any]]:
    """Return the records of some prompts."""
    keys = statistics.prompt_ids[places]
    with query.session() as session:
        described = describe_prompts(session, keys.tolist())
    decisions = list_decisions(kept, keys)
    return [
        {**described[key], **statistics_record(statistics, place), "decision": decision}
        for key, place, decision in zip(keys.tolist(), places.tolist(), decisions, strict=True)
    ]


def statistics_record(statistics: PromptStatistics, place: int) -> dict[str, Any]:
    """Return the statistics of one prompt; None where undefined."""
    numbers = {name: float(getattr(statistics, name)[place]) for name in ("mean", "spread", "discrimination")}
    finite: dict[str, Any] = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return finite | {"n_models": int(statistics.n_models[place])}


def list_decisions(kept: PromptFilter | None, prompt_ids: NDArray[np.int64]) -> list[str]:
    """Return what the latest filter decided on each prompt: ``kept``, ``removed``, or '' without a decision."""
    if kept is None:
        return [""] * len(prompt_ids)
    stays, is_covered = kept.align(prompt_ids)
    return ["kept" if stay else "removed" if covered else "" for stay, covered in zip(stays, is_covered, strict=True)]
