"""Compare two to five models, or runs of models, on one benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import NotFoundError, SelectionError
from tracker.queries.browsing.keys import find_benchmark_label, load_model_keys
from tracker.queries.browsing.prompt_list import describe_prompts
from tracker.queries.browsing.run_responses import load_first_answers
from tracker.queries.catalogue.listing import RunRow, find_run
from tracker.queries.comparing.named_pair import RUN
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.ranking.leaderboard_result import Leaderboard, LeaderboardRow
from tracker.queries.selection import Selection
from tracker.web.page import Page
from tracker.web.pages.pairs import Contestant, describe_pairs, join_tasks, load_pairs
from tracker.web.pages.prompts import load_statistics
from tracker.web.pages.selections import load_board, make_selection
from tracker.web.query import Query

LETTERS = "abcde"
BETTER = ("", "a", "b")


def show_comparison(query: Query) -> Page:
    """Return differences with intervals, by task, agreement, and the prompts on which the models differ."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
        keys = load_model_keys(session)
    selection = make_selection(query, label)
    board, _ = load_board(query, selection)
    chosen = _choose(query, board, label)
    if len(chosen) < 2:
        return _without_rival(query, label, chosen)
    scores = _load_scores(query, selection, chosen)
    means = _load_means(query, selection, board, chosen)
    Q = scores.Q[:, [scores.run_ids.tolist().index(entry.run_id) for entry in chosen]]
    outcome = load_pairs(query, selection, chosen)
    pairs = outcome.value or []
    places, counts = _find_flips(query, Q, scores.higher_is_better)
    page_places, paging = query.take_page(places)
    data = {
        "headline": outcome.problem or describe_pairs(pairs, chosen, means, higher_is_better=board.higher_is_better),
        "benchmark": {"id": query.key, "label": label, "metric": board.metric},
        "available": [row.model for row in board.rows],
        "models": [_contestant_record(entry, means.get(entry.run_id), keys) for entry in chosen],
        "pairs": pairs,
        "tasks": join_tasks(pairs[: len(chosen) - 1]),
        "agreement": _agreement(Q, chosen),
        "counts": counts,
        "rows": _describe_flips(query, scores, Q, chosen, page_places),
        "paging": paging,
        "options": dict(query.parameters),
        **outcome.as_record(),
    }
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    titles = " and ".join(entry.title for entry in chosen) if len(chosen) == 2 else f"{len(chosen)} models"
    return Page(title=f"Compare {titles} on {label}", template="compare.html", data=data, table="rows", trail=trail)


def _choose(query: Query, board: Leaderboard, label: str) -> list[Contestant]:
    """Return what to compare: the parameters ``a`` to ``e``.

    Without any, these are the first two models; a single one is compared with the best model that has another run.
    The result has fewer than two if there is none.

    Raises:
        NotFoundError: a run does not exist, or is of another benchmark.
        SelectionError: a model is not on the leaderboard, or named twice.
    """
    ranked = {row.model: row for row in board.rows}
    names = [name for name in (query.text(letter) for letter in LETTERS) if name]
    chosen = [_find(query, ranked, name, label) for name in names]
    if len(chosen) < 2:
        runs = {entry.run_id for entry in chosen}
        rivals = [name for name, row in ranked.items() if row.run_id not in runs]
        chosen += [_find(query, ranked, name, label) for name in rivals[: 2 - len(chosen)]]
    if len({entry.run_id for entry in chosen}) < len(chosen):
        raise SelectionError("A model is named twice. Choose different models.")
    return chosen


def _without_rival(query: Query, label: str, chosen: Sequence[Contestant]) -> Page:
    """Return the page of a benchmark that has scores of one model alone."""
    names = "".join(entry.title for entry in chosen)
    data = {
        "headline": f"There is nothing to compare: {names or 'no model'} alone has scores on {label}.",
        "benchmark": {"id": query.key, "label": label, "metric": ""},
        "models": [{"name": entry.name, "title": entry.title, "run_id": entry.run_id} for entry in chosen],
        "rows": [],
        "options": dict(query.parameters),
    }
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    return Page(title=f"Compare models on {label}", template="message.html", data=data, table="rows", trail=trail)


def _find(query: Query, ranked: dict[str, LeaderboardRow], name: str, label: str) -> Contestant:
    if name in ranked:
        return Contestant(name=name, title=name, model=name, run_id=ranked[name].run_id)
    match = RUN.fullmatch(name)
    if match is None:
        raise SelectionError(f"{name} is not on this leaderboard. Choose a model of the list, or a run such as run:7.")
    run = _load_run(query, int(match[1]))
    if run.benchmark != label:
        raise NotFoundError(f"run of {label}", match[1], [])
    return Contestant(name=name, title=f"{run.model} (run {run.id})", model=run.model, run_id=run.id)


def _load_run(query: Query, key: int) -> RunRow:
    def compute() -> RunRow:
        with query.session() as session:
            return find_run(session, key)

    return query.cache.get(("run_row", key), compute)


def _run_selection(selection: Selection, chosen: Sequence[Contestant]) -> Selection | None:
    """Return the selection of the runs; None if all are models with the run of the leaderboard."""
    if not any(RUN.fullmatch(entry.name) for entry in chosen):
        return None
    return replace(selection, runs=tuple(entry.run_id for entry in chosen))


def _load_scores(query: Query, selection: Selection, chosen: Sequence[Contestant]) -> PerformanceMatrix:
    """Return a matrix with a column for each contestant."""
    runs = _run_selection(selection, chosen)
    if runs is None:
        return load_statistics(query, selection)[0]

    def compute() -> PerformanceMatrix:
        with query.session() as session:
            return load_performance_matrix(session, runs)

    return query.cache.get(("run_scores", runs), compute)


def _load_means(
    query: Query, selection: Selection, board: Leaderboard, chosen: Sequence[Contestant]
) -> dict[int, LeaderboardRow]:
    """Return the rows of the contestants by run: of the leaderboard, for single runs without a rank."""
    rows = {row.run_id: row for row in board.rows}
    runs = _run_selection(selection, chosen)
    if runs is None:
        return rows

    def compute() -> Leaderboard:
        with query.session() as session:
            return replace(load_leaderboard(session, runs, with_rank_intervals=False), scores=None)

    of_runs = query.cache.get(("run_means", runs), compute).rows
    return {row.run_id: replace(row, rank=None) for row in of_runs} | rows


def _contestant_record(entry: Contestant, row: LeaderboardRow | None, keys: Any) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "id": keys[entry.model].id if entry.model in keys else None,
        "run_id": entry.run_id,
        **{name: getattr(row, name, None) for name in ("rank", "mean", "low", "high")},
    }


def _agreement(Q: NDArray[np.float64], chosen: Sequence[Contestant]) -> list[dict[str, Any]]:
    """Return for each pair of contestants the share of prompts on which both have the same score."""
    rows = []
    for i, entry in enumerate(chosen):
        shares: dict[str, Any] = {}
        for j, rival in enumerate(chosen):
            both = ~np.isnan(Q[:, i]) & ~np.isnan(Q[:, j])
            shares[rival.name] = float(np.mean(Q[both, i] == Q[both, j])) if both.any() else None
        rows.append({"model": entry.name, "title": entry.title, "shares": shares})
    return rows


def _find_flips(query: Query, Q: NDArray[np.float64], higher_is_better: bool) -> tuple[list[int], dict[str, int]]:
    """Return the places of prompts with different scores, the largest differences first, and how many there are.

    Of two contestants, ``better`` keeps the prompts on which one of them is better.
    """
    better = query.choice("better", BETTER, "")
    known = ~np.isnan(Q)
    high, low = np.where(known, Q, -np.inf).max(axis=1), np.where(known, Q, np.inf).min(axis=1)
    spread = np.where(known.sum(axis=1) > 1, high - low, 0.0)
    chosen = spread > 0
    with np.errstate(invalid="ignore"):
        advantage = (Q[:, 0] - Q[:, 1]) * (1 if higher_is_better else -1)
        counts = {"differ": int(chosen.sum()), "a": int((advantage > 0).sum()), "b": int((advantage < 0).sum())}
        if better:
            chosen &= advantage > 0 if better == "a" else advantage < 0
    places = np.flatnonzero(chosen)
    order = places[np.lexsort((places, -spread[places]))]
    return [int(place) for place in order], counts


def _describe_flips(
    query: Query,
    scores: PerformanceMatrix,
    Q: NDArray[np.float64],
    chosen: Sequence[Contestant],
    places: Sequence[int],
) -> list[dict[str, Any]]:
    """Return the prompts at some places, with the scores and answers of every contestant."""
    keys = scores.prompt_ids[list(places)].tolist()
    with query.session() as session:
        described = describe_prompts(session, keys)
        answers = load_first_answers(session, [entry.run_id for entry in chosen], keys)
    return [
        {
            **described[key],
            "scores": [None if np.isnan(value) else float(value) for value in Q[place]],
            "answers": [answers.get((entry.run_id, key)) for entry in chosen],
        }
        for key, place in zip(keys, places, strict=True)
    ]
