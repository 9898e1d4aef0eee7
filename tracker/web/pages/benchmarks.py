"""The pages of a benchmark: leaderboard, verdict, tasks, runs and findings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from tracker.errors import SelectionError
from tracker.queries.browsing.keys import ModelEntry, find_benchmark_label, load_model_keys
from tracker.queries.catalogue.listing import list_runs
from tracker.queries.findings.finding_records import list_findings
from tracker.queries.notices import list_notices
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.ranking.leaderboard_result import Leaderboard, LeaderboardRow
from tracker.queries.resolution import find_benchmark, list_metrics
from tracker.queries.selection import POLICIES, TASK_EFFECTS, Selection
from tracker.queries.task_matrix import load_task_matrix
from tracker.recording.verdict.benchmark_verdict import load_verdict
from tracker.report.leaderboard_rows import compute_axis_limits, describe_intervals
from tracker.web.page import Page
from tracker.web.query import Query
from tracker.web.records import finding_record, run_record

SORT_KEYS = ("rank", "model", "mean", "n", "coverage", "family")
MAX_TASK_MODELS = 40
SELECTION_OPTIONS = ("metric", "split", "task_effects", "missing", "min_coverage")
"""Query parameters that select data; they are on every page of a benchmark."""


def make_selection(query: Query, label: str) -> Selection:
    """Return the selection of a page.

    Raises:
        SelectionError: a parameter has an invalid value.
    """
    split = tuple(part.strip() for part in query.text("split").split(",") if part.strip())
    options: dict[str, Any] = {"metric": query.text("metric") or None, "split": split}
    if effects := query.choice("task_effects", ("", *TASK_EFFECTS), ""):
        options["task_effects"] = effects
    if missing := query.choice("missing", ("", *POLICIES), ""):
        options["missing"] = missing
    coverage = query.number("min_coverage", None, low=0, high=1, kind=float)
    if coverage is not None:
        options["min_coverage"] = coverage
    return Selection(benchmark=label, **options)


def load_board(query: Query, selection: Selection) -> tuple[Leaderboard, tuple[str, ...]]:
    """Return the leaderboard of a selection, with the choices that were made for the reader.

    Raises:
        SuffrageError: as for `load_leaderboard`.
    """

    def compute() -> tuple[Leaderboard, tuple[str, ...]]:
        with query.session() as session:
            board = load_leaderboard(session, selection, n_resamples=0)
            return board, tuple(list_notices(session))

    return query.cache.get(("leaderboard", selection), compute)


def show_benchmark(query: Query) -> Page:
    """Return the leaderboard of a benchmark, with its metrics and latest findings."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
        benchmark = find_benchmark(session, label)
        metrics = [
            metric.name
            for unit in ("prompt", "task")
            for metric in list_metrics(session, benchmark, Selection(benchmark=label), unit)
        ]
        models = load_model_keys(session)
        findings = [finding_record(row) for row in list_findings(session, benchmark=label)]
    selection = make_selection(query, label)
    try:
        board, notices = load_board(query, selection)
    except SelectionError as error:
        return _without_board(query, label, metrics, findings, str(error))
    low, high = compute_axis_limits(board)
    rows = _filter_rows([_row(row, board, models, low, high) for row in board.rows], query)
    page_rows, paging = query.take_page(rows)
    data = {
        "benchmark": {"id": query.key, "label": label, "metric": board.metric, "metrics": list(dict.fromkeys(metrics))},
        "problem": "",
        "headline": board.describe_lead(),
        "higher_is_better": board.higher_is_better,
        "unit": board.unit,
        "n_units": board.n_units,
        "n_tasks": board.n_tasks,
        "n_models": len(board.rows),
        "intervals": describe_intervals(board),
        "notices": [*notices, *board.warnings, *board.cluster_warnings],
        "task_spread": board.describe_task_spread(),
        "axis": {"low": low, "high": high},
        "families": sorted({models[row.model].family for row in board.rows if row.model in models} - {""}),
        "rows": page_rows,
        "paging": paging,
        "findings": findings,
        "options": dict(query.parameters),
    }
    return Page(title=label, template="benchmark.html", data=data, table="rows", trail=[("Benchmarks", "/")])


def show_verdict(query: Query) -> Page:
    """Return the verdict on a benchmark; it is computed in the background, and the page loads itself again."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
    selection = make_selection(query, label)
    verdict, state = query.background.request(("verdict", selection), lambda: load_verdict(query.engine, selection))
    data: dict[str, Any] = {"benchmark": {"id": query.key, "label": label}, "options": dict(query.parameters)}
    if verdict is None:
        data |= {"state": state, "headline": "", "checks": [], "open_questions": [], "looks": ""}
    else:
        data |= {
            "state": "ready",
            "headline": verdict.headline,
            "looks": verdict.looks,
            "checks": [
                {
                    "topic": check.line.topic,
                    "text": check.line.text,
                    "leader_changes": check.line.leader_changes,
                    "command": check.command,
                }
                for check in verdict.checks
            ],
            "open_questions": list(verdict.open_questions),
        }
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    return Page(title=f"Verdict on {label}", template="verdict.html", data=data, table="checks", trail=trail)


def show_tasks(query: Query) -> Page:
    """Return the means of tasks by model, the best models first."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
        models = load_model_keys(session)
    selection = make_selection(query, label)
    board, _ = load_board(query, selection)

    def compute() -> Any:
        with query.session() as session:
            return load_task_matrix(session, selection)

    matrix = query.cache.get(("task_matrix", selection), compute)
    order = [row.model for row in board.rows if row.model in matrix.models]
    names = order[:MAX_TASK_MODELS]
    columns = [matrix.models.index(name) for name in names]
    T = matrix.T[:, columns]
    worst, best = (np.nanmin(T), np.nanmax(T)) if np.isfinite(T).any() else (0.0, 1.0)
    rows = [
        {"task": task or "no task", **{name: _finite(T[i, j]) for j, name in enumerate(names)}}
        for i, task in enumerate(matrix.tasks)
    ]
    page_rows, paging = query.take_page(rows)
    data = {
        "benchmark": {"id": query.key, "label": label, "metric": matrix.metric},
        "models": [{"name": name, "id": models[name].id if name in models else None} for name in names],
        "n_models": len(matrix.models),
        "scale": {"low": float(worst), "high": float(best), "higher_is_better": matrix.higher_is_better},
        "rows": page_rows,
        "paging": paging,
        "options": dict(query.parameters),
    }
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    return Page(title=f"Tasks of {label}", template="tasks.html", data=data, table="rows", trail=trail)


def show_runs(query: Query) -> Page:
    """Return all runs of a benchmark, the latest first."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
        models = load_model_keys(session)

    def compute() -> list[dict[str, Any]]:
        with query.session() as session:
            return [run_record(run, models) for run in list_runs(session, benchmark=label)]

    page_rows, paging = query.take_page(query.cache.get(("runs", label), compute))
    data = {"benchmark": {"id": query.key, "label": label}, "rows": page_rows, "paging": paging}
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    return Page(title=f"Runs of {label}", template="runs.html", data=data, table="rows", trail=trail)


def _row(
    row: LeaderboardRow, board: Leaderboard, models: Mapping[str, ModelEntry], low: float, high: float
) -> dict[str, Any]:
    """Return a row of the leaderboard as a record; ``x`` values are places in the drawing, in percent of its width."""
    interval = board.rank_intervals.get(row.model)
    record = asdict(row) | {
        "model_id": models[row.model].id if row.model in models else None,
        "family": models[row.model].family if row.model in models else "",
        "rank_low": None if interval is None else interval.low,
        "rank_high": None if interval is None else interval.high,
    }
    span = (high - low) or 1.0
    record["x"] = [
        None if value is None or not math.isfinite(value) else round(100 * (value - low) / span, 2)
        for value in (row.low, row.mean, row.high)
    ]
    return record


def _filter_rows(rows: list[dict[str, Any]], query: Query) -> list[dict[str, Any]]:
    """Return the rows whose model and family match, in the order that the reader chose."""
    part, family = query.text("model").casefold(), query.text("family")
    kept = [row for row in rows if part in row["model"].casefold() and family in ("", row["family"])]
    key = query.choice("sort", SORT_KEYS, "rank")
    is_descending = query.choice("order", ("ascending", "descending"), "ascending") == "descending"
    known = [row for row in kept if row[key] is not None]
    missing = [row for row in kept if row[key] is None]
    return sorted(known, key=lambda row: row[key], reverse=is_descending) + missing


def _without_board(query: Query, label: str, metrics: list[str], findings: list[dict[str, Any]], problem: str) -> Page:
    """Return the page of a benchmark that has no leaderboard: nothing to rank, or several metrics."""
    data = {
        "benchmark": {"id": query.key, "label": label, "metric": "", "metrics": list(dict.fromkeys(metrics))},
        "problem": problem,
        "rows": [],
        "findings": findings,
        "families": [],
        "options": dict(query.parameters),
    }
    return Page(title=label, template="benchmark.html", data=data, table="rows", trail=[("Benchmarks", "/")])


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
