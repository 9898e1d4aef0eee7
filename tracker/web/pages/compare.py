"""Compare two to five models on one benchmark."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracker.errors import SelectionError, SuffrageError
from tracker.queries.browsing.keys import find_benchmark_label, load_model_keys
from tracker.queries.browsing.prompt_list import describe_prompts
from tracker.queries.comparing.named_pair import select_named_pair
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.selection import Selection
from tracker.recording.pipeline import compute_report
from tracker.web.page import Page
from tracker.web.pages.benchmarks import load_board, make_selection
from tracker.web.pages.prompts import load_statistics
from tracker.web.query import Query

MAX_MODELS = 5
N_RESAMPLES = 200


def show_comparison(query: Query) -> Page:
    """Return differences with intervals, agreement, and the prompts on which the first two models differ."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
        keys = load_model_keys(session)
    selection = make_selection(query, label)
    board, _ = load_board(query, selection)
    ranked = [row.model for row in board.rows]
    names = _choose_models(query, ranked)
    scores, _ = load_statistics(query, selection)
    pairs = [_compare(query, selection, names[0], name) for name in names[1:]]
    flips = _list_flips(scores, names) if len(names) > 1 else []
    page_rows, paging = query.take_page(flips)
    rows = _describe(query, page_rows)
    means = {row.model: row for row in board.rows}
    data = {
        "benchmark": {"id": query.key, "label": label, "metric": board.metric},
        "available": ranked,
        "models": [
            {
                "name": name, "id": keys[name].id if name in keys else None, "mean": means[name].mean,
                "low": means[name].low, "high": means[name].high, "rank": means[name].rank,
            }
            for name in names
        ],
        "pairs": pairs,
        "agreement": _agreement(scores, names),
        "rows": rows,
        "paging": paging,
        "options": dict(query.parameters),
    }  # fmt: skip
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    title = " and ".join(names[:2]) if len(names) == 2 else f"{len(names)} models"
    return Page(title=f"Compare {title} on {label}", template="compare.html", data=data, table="rows", trail=trail)


def _choose_models(query: Query, ranked: list[str]) -> list[str]:
    """Return the models to compare, those of the parameters ``a`` to ``e``; by default the first two.

    Raises:
        SelectionError: a model is not on the leaderboard, or named twice.
    """
    chosen = [name for name in (query.text(letter) for letter in "abcde"[:MAX_MODELS]) if name]
    if not chosen:
        return ranked[:2]
    for name in chosen:
        if name not in ranked:
            raise SelectionError(f"{name} is not on this leaderboard. Choose a model of the list.")
    if len(set(chosen)) < len(chosen):
        raise SelectionError("A model is named twice. Choose different models.")
    return chosen


def _compare(query: Query, selection: Selection, first: str, second: str) -> dict[str, Any]:
    """Return the comparison of two models: its summary, and the metrics that it has."""

    def compute() -> dict[str, Any]:
        with query.session() as session:
            pair, names = select_named_pair(session, selection, (first, second))
        parameters = {"model_a": names[0], "model_b": names[1], "n_resamples": N_RESAMPLES, "seed": 0}
        try:
            report = compute_report(query.engine, "comparison", pair, parameters)
        except SuffrageError as error:
            return {"first": first, "second": second, "problem": str(error), "headline": "", "evidence": []}
        return {
            "first": first,
            "second": second,
            "problem": "",
            "headline": report.summary.headline,
            "evidence": list(report.summary.evidence),
            "caveats": list(report.summary.caveats),
        }

    return query.cache.get(("comparison", selection, first, second), compute)


def _agreement(scores: PerformanceMatrix, names: list[str]) -> list[dict[str, Any]]:
    """Return for each pair of models the share of prompts on which both have the same score."""
    columns = [scores.Q[:, scores.models.index(name)] for name in names if name in scores.models]
    rows = []
    for name, column in zip(names, columns, strict=False):
        shares: dict[str, Any] = {}
        for rival, values in zip(names, columns, strict=False):
            both = ~np.isnan(column) & ~np.isnan(values)
            shares[rival] = float(np.mean(column[both] == values[both])) if both.any() else None
        rows.append({"model": name, "shares": shares})
    return rows


def _list_flips(scores: PerformanceMatrix, names: list[str]) -> list[dict[str, Any]]:
    """Return the prompts on which the first two models have different scores, the largest differences first."""
    if not {names[0], names[1]} <= set(scores.models):
        return []
    Q = scores.Q[:, [scores.models.index(name) for name in names if name in scores.models]]
    difference = Q[:, 0] - Q[:, 1]
    places = np.flatnonzero(~np.isnan(difference) & (difference != 0))
    order = places[np.lexsort((places, -np.abs(difference[places])))]
    return [
        {
            "id": int(scores.prompt_ids[place]),
            "difference": float(difference[place]),
            "scores": [None if np.isnan(value) else float(value) for value in Q[place]],
        }
        for place in order.tolist()
    ]


def _describe(query: Query, flips: Any) -> list[dict[str, Any]]:
    with query.session() as session:
        described = describe_prompts(session, [flip["id"] for flip in flips])
    return [{**described[flip["id"]], **flip} for flip in flips]
