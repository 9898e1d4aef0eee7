"""Every pair of the models that a page compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from tracker.errors import SuffrageError
from tracker.queries.comparing.named_pair import select_named_pair
from tracker.queries.prompts import PromptOutline, load_prompts
from tracker.queries.ranking.leaderboard_result import LeaderboardRow
from tracker.queries.selection import Selection
from tracker.recording.pipeline import compute_report
from tracker.report.number_format import format_count
from tracker.statistics.multiple_testing import holm_values
from tracker.statistics.resampling import ALPHA
from tracker.web.background import Outcome
from tracker.web.query import Query


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A model or a run that is compared.

    Attributes:
        name: as in the address: of a model, or ``run:7``.
        title: for readers.
        model: name of the model.
        run_id: the run behind it.
    """

    name: str
    title: str
    model: str
    run_id: int


def load_pairs(query: Query, selection: Selection, chosen: Sequence[Contestant]) -> Outcome:
    """Return a record for each pair of contestants, those of the first one first; more than one pair take long."""
    if len(chosen) == 2:
        return Outcome(value=_compare_all(query, selection, chosen, lambda _: None))
    key = ("pairs", selection, tuple(entry.name for entry in chosen))
    return query.background.request(key, partial(_compare_all, query, selection, chosen))


def _compare_all(
    query: Query, selection: Selection, chosen: Sequence[Contestant], report: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return a record for each pair, with p-values adjusted for all of them."""
    pairs = []
    for first, second in combinations(chosen, 2):
        report(f"comparing {first.title} and {second.title}")
        pairs.append(_compare(query, selection, first, second))
    pvalues = [pair["metrics"].get("pvalue") for pair in pairs]
    adjusted = holm_values(np.array([np.nan if value is None else value for value in pvalues]))
    return [
        {**pair, "holm": None if np.isnan(value) else float(value)} for pair, value in zip(pairs, adjusted, strict=True)
    ]


def _compare(query: Query, selection: Selection, first: Contestant, second: Contestant) -> dict[str, Any]:
    """Return what `suffrage compare` reports of two contestants."""

    def compute() -> dict[str, Any]:
        record: dict[str, Any] = {"first": first.title, "second": second.title, "names": [first.name, second.name]}
        record |= {
            "problem": "",
            "headline": "",
            "evidence": [],
            "caveats": [],
            "looks": "",
            "tasks": [],
            "metrics": {},
        }
        try:
            with query.session() as session:
                pair, names = select_named_pair(session, selection, (first.name, second.name))
            parameters = {"model_a": names[0], "model_b": names[1]}
            prompts = {"prompts": _load_outline(query, selection)}
            report = compute_report(query.engine, "comparison", pair, parameters, loaded=prompts)
        except SuffrageError as error:
            return record | {"problem": str(error)}
        fields = ("difference", "low", "high", "pvalue")
        return record | {
            "headline": report.summary.headline,
            "evidence": list(report.summary.evidence),
            "caveats": list(report.summary.caveats),
            "looks": report.summary.looks,
            "tasks": report.tables["tasks"].to_pylist(),
            "metrics": {
                name: value if isinstance(value, float) else None
                for name, value in report.finding.metrics.items()
                if name in fields
            },
        }

    return query.cache.get(("comparison", selection, first.name, second.name), compute)


def _load_outline(query: Query, selection: Selection) -> PromptOutline:
    """Return the prompts of all comparisons: a page has the texts of those alone that it lists."""

    def compute() -> PromptOutline:
        with query.session() as session:
            return load_prompts(session, selection).without_contents()

    return query.cache.get(("prompt_outline", selection), compute)


def describe_pairs(
    pairs: Sequence[Mapping[str, Any]],
    chosen: Sequence[Contestant],
    means: Mapping[int, LeaderboardRow],
    *,
    higher_is_better: bool,
) -> str:
    """Return the verdict on a pair; for more, who has the best mean and how many differences are significant."""
    if not pairs:
        n_pairs = len(chosen) * (len(chosen) - 1) // 2
        return f"The {n_pairs} pairs of these {len(chosen)} models are being compared."
    if len(pairs) == 1:
        return str(pairs[0]["headline"] or pairs[0]["problem"])
    sign = 1 if higher_is_better else -1
    ranked = [entry for entry in chosen if entry.run_id in means]
    best = max(ranked, key=lambda entry: sign * means[entry.run_id].mean)
    n_significant = sum(pair["holm"] is not None and pair["holm"] <= ALPHA for pair in pairs)
    verb, differences = "is" if n_significant == 1 else "are", format_count(len(pairs), "difference")
    return (
        f"{best.title} has the best mean of these {len(chosen)}; {n_significant} of {differences} {verb} significant "
        f"at {ALPHA:g} (Holm's correction for these pairs)."
    )


def join_tasks(pairs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the differences of every pair by task; None where a pair has no scores."""
    fields = ("difference", "low", "high", "holm", "n", "mean_a", "mean_b")
    by_task: dict[str, dict[int, Any]] = {}
    for number, pair in enumerate(pairs):
        for row in pair["tasks"]:
            by_task.setdefault(row["task"], {})[number] = {name: row.get(name) for name in fields}
    return [
        {"task": task, "pairs": [rows.get(number) for number in range(len(pairs))]}
        for task, rows in sorted(by_task.items())
    ]
