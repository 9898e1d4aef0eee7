"""Lists of prompts, and one prompt with all responses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError, SuffrageError
from tracker.queries.browsing.keys import find_benchmark_label
from tracker.queries.browsing.prompt_list import describe_prompts
from tracker.queries.browsing.prompt_responses import RunResponses, StoredPrompt, find_prompt, load_responses
from tracker.queries.browsing.prompt_statistics import (
    PromptStatistics,
    compute_cosine_similarity,
    compute_prompt_statistics,
)
from tracker.queries.browsing.search import find_prompts_with_text
from tracker.queries.embeddings import Embeddings, load_embeddings
from tracker.queries.filtering.prompt_filter import PromptFilter, load_prompt_filter
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.resolution import find_benchmark, select_tasks
from tracker.queries.selection import Selection
from tracker.web.page import Page
from tracker.web.pages.selections import make_selection
from tracker.web.query import Query

SORT_KEYS = ("prompt", "task", "mean", "spread", "discrimination", "n_models")
DECISIONS = ("", "kept", "removed")
MAX_SIMILAR = 5


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
        kept = _load_filter(query, label)
        text = query.text("q").strip()
        matches = find_prompts_with_text(session, list(tasks), text) if text else None
    _, statistics = load_statistics(query, make_selection(query, label))
    places = _select(statistics, query, matches, kept)
    page_rows, paging = query.take_page(places)
    rows = _describe(query, statistics, np.array(page_rows, dtype=np.intp), kept)
    data = {
        "benchmark": {"id": query.key, "label": label},
        "tasks": sorted(name for name in tasks.values() if name),
        "filter_id": None if kept is None else kept.finding_id,
        "rows": rows,
        "paging": paging,
        "options": dict(query.parameters),
    }
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    return Page(title=f"Prompts of {label}", template="prompts.html", data=data, table="rows", trail=trail)


def show_prompt(query: Query) -> Page:
    """Return a prompt with the responses of all models, side by side."""
    with query.session() as session:
        prompt = find_prompt(session, query.key)
        responses = load_responses(session, prompt)
    return make_prompt_page(query, prompt, responses)


def make_prompt_page(query: Query, prompt: StoredPrompt, responses: Sequence[RunResponses]) -> Page:
    """Return the page of a prompt that has been read."""
    kept = _load_filter(query, prompt.benchmark)
    try:
        _, statistics = load_statistics(query, Selection(benchmark=prompt.benchmark))
        place = np.flatnonzero(statistics.prompt_ids == prompt.id)
        numbers = _statistics_record(statistics, int(place[0])) if len(place) else {}
    except SuffrageError:  # a benchmark without scores of prompts, or with several metrics
        numbers = {}
    similar = _find_similar(query, prompt)
    data = {
        "prompt": asdict(prompt) | {"details": dict(prompt.details), "choices": list(prompt.choices or ())},
        "statistics": numbers,
        "decision": _explain_decision(kept, prompt.id),
        "filter_id": None if kept is None else kept.finding_id,
        "similar": similar,
        "responses": [record for run in responses for record in _response_records(run)],
    }
    trail = [
        ("Benchmarks", "/"),
        (prompt.benchmark, f"/benchmark/{prompt.benchmark_id}"),
        ("Prompts", f"/benchmark/{prompt.benchmark_id}/prompts"),
    ]
    title = f"Prompt {prompt.name} of {prompt.task or prompt.benchmark}"
    return Page(title=title, template="prompt.html", data=data, table="responses", trail=trail)


def _find_similar(query: Query, prompt: StoredPrompt) -> list[dict[str, Any]]:
    """Return the prompts with the largest cosine similarity; none if the prompt has no vector, or several encoders."""

    def compute() -> Embeddings | str:
        try:
            with query.session() as session:
                return load_embeddings(session, Selection(benchmark=prompt.benchmark))
        except SelectionError as error:
            return str(error)

    vectors = query.cache.get(("embeddings", prompt.benchmark), compute)
    if isinstance(vectors, str) or prompt.id not in vectors.prompt_ids:
        return []
    similarity = compute_cosine_similarity(vectors.E, vectors.align(np.array([prompt.id], dtype=np.int64))[0])
    similarity[vectors.prompt_ids == prompt.id] = -np.inf
    nearest = np.argsort(-similarity, kind="stable")[: min(MAX_SIMILAR, len(similarity) - 1)]
    keys = vectors.prompt_ids[nearest].tolist()
    with query.session() as session:
        described = describe_prompts(session, keys)
    return [
        {**described[key], "similarity": float(similarity[place])} for key, place in zip(keys, nearest, strict=True)
    ]


def _load_filter(query: Query, label: str) -> PromptFilter | None:
    """Return the latest filter of a benchmark; None without one."""

    def compute() -> tuple[PromptFilter | None]:
        try:
            with query.session() as session:
                return (load_prompt_filter(session, find_benchmark(session, label)),)
        except SelectionError:  # there is none
            return (None,)

    return query.cache.get(("filter", label), compute)[0]


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
    decisions = _list_decisions(kept, keys)
    return [
        {**described[key], **_statistics_record(statistics, place), "decision": decision}
        for key, place, decision in zip(keys.tolist(), places.tolist(), decisions, strict=True)
    ]


def _statistics_record(statistics: PromptStatistics, place: int) -> dict[str, Any]:
    numbers = {name: float(getattr(statistics, name)[place]) for name in ("mean", "spread", "discrimination")}
    finite: dict[str, Any] = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return finite | {"n_models": int(statistics.n_models[place])}


def _list_decisions(kept: PromptFilter | None, prompt_ids: NDArray[np.int64]) -> list[str]:
    """Return what the latest filter decided on each prompt: ``kept``, ``removed``, or '' without a decision."""
    if kept is None:
        return [""] * len(prompt_ids)
    stays, is_covered = kept.align(prompt_ids)
    return ["kept" if stay else "removed" if covered else "" for stay, covered in zip(stays, is_covered, strict=True)]


def _explain_decision(kept: PromptFilter | None, key: int) -> Mapping[str, Any]:
    """Return what the latest filter decided on a prompt, and for which reasons."""
    prompt_ids = np.array([key], dtype=np.int64)
    [decision] = _list_decisions(kept, prompt_ids)
    reasons = [step for step in kept.reasons if kept.flagged(step, prompt_ids)[0]] if kept is not None else []
    return {"decision": decision, "reasons": reasons}


def _response_records(run: RunResponses) -> list[dict[str, Any]]:
    """Return a record for each response of a run."""
    fields = ("run_id", "model_id", "model", "condition", "variant")
    common = {name: getattr(run, name) for name in fields}
    return [
        common
        | {
            "trial": trial.trial,
            "answer": trial.answers.get("", next(iter(trial.answers.values()), None)),
            "other_texts": {name: text for name, text in trial.answers.items() if name and text},
            "probability": trial.probability,
            "status": trial.status,
            "scores": dict(sorted(trial.scores.items())),
        }
        for trial in run.trials
    ]
