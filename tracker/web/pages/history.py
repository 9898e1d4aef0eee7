"""How scores changed: from run to run by date, or from checkpoint to checkpoint by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tracker.errors import SelectionError
from tracker.queries.browsing.checkpoints import group_checkpoints
from tracker.queries.browsing.keys import find_benchmark_label, load_model_keys
from tracker.queries.ranking.history import RunHistory
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.ranking.leaderboard_result import Leaderboard
from tracker.queries.selection import Selection
from tracker.recording.pipeline import compute_report
from tracker.report.number_format import format_minute, format_score
from tracker.web.line_chart import Series, draw_lines
from tracker.web.page import Page
from tracker.web.pages.selections import load_board, make_selection
from tracker.web.query import Query

DATE, STEP = "date", "step"
ANALYSIS = "drift"
MAX_LINES = 6
"""Lines in the chart; the table has every run."""


def show_history(query: Query) -> Page:
    """Return the means of runs over time, or of checkpoints over steps, with a test of each change."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
        models = load_model_keys(session)
    selection = make_selection(query, label)
    board, _ = load_board(query, selection)
    trainings = group_checkpoints(row.model for row in board.rows)
    history = _load_history(query, selection)
    has_repeats = any(len(columns) > 1 for columns in history.columns_by_model.values()) if history else False
    by = query.choice("by", (DATE, STEP), STEP if trainings and not has_repeats else DATE)
    part = query.text("model").casefold()
    if by == STEP:
        runs = _list_checkpoints(board, trainings, part)
        outcome = None
    else:
        outcome = query.background.request(("drift", selection), partial(_compute_drift, query, selection, history))
        runs = _list_runs(query, selection, history, outcome.value, part)
    rows = [{**row, "model_id": models[row["model"]].id if row["model"] in models else None} for row in runs]
    page_rows, paging = query.take_page(rows)
    data = {
        "benchmark": {"id": query.key, "label": label, "metric": board.metric},
        "headline": _describe(rows, by, outcome.value if outcome else None),
        "by": by,
        "has_steps": bool(trainings),
        "chart": _draw(rows, by),
        "evidence": list(outcome.value["evidence"]) if outcome and outcome.value else [],
        "rows": page_rows,
        "paging": paging,
        "options": dict(query.parameters),
        **(outcome.as_record() if outcome else {"state": "ready", "problem": "", "step": "", "seconds": 0}),
    }
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    return Page(title=f"History of {label}", template="history.html", data=data, table="rows", trail=trail)


def _load_history(query: Query, selection: Selection) -> RunHistory | None:
    """Return all runs of a selection in their order; None for scores of whole tasks."""

    def compute() -> tuple[RunHistory | None]:
        try:
            with query.session() as session:
                return (RunHistory.load(session, selection),)
        except SelectionError:
            return (None,)

    return query.cache.get(("history", selection), compute)[0]


def _compute_drift(
    query: Query, selection: Selection, history: RunHistory | None, report: Callable[[str], None]
) -> dict[str, Any]:
    """Return the tests of all changes, as `suffrage history` has them; no rows if no model has two runs."""
    if history is None or all(len(columns) < 2 for columns in history.columns_by_model.values()):
        return {"headline": "", "evidence": (), "rows": []}
    report(f"testing the changes between {len(history.runs)} runs")
    drift = compute_report(query.engine, ANALYSIS, selection)
    return {
        "headline": drift.summary.headline,
        "evidence": drift.summary.evidence,
        "rows": drift.tables["runs"].to_pylist(),
    }


def _list_runs(
    query: Query, selection: Selection, history: RunHistory | None, drift: Mapping[str, Any] | None, part: str
) -> list[dict[str, Any]]:
    """Return a record of each run whose model matches, in the order of its model's runs."""
    if history is None:
        return []

    def compute() -> Leaderboard:
        with query.session() as session:
            runs = Selection(
                benchmark=selection.benchmark, metric=selection.metric, split=selection.split, runs=history.run_ids,
                missing=selection.missing, task_effects=selection.task_effects,
            )  # fmt: skip
            return replace(load_leaderboard(session, runs, with_rank_intervals=False), scores=None)

    board = query.cache.get(("history_means", selection), compute)
    means = {row.run_id: row for row in board.rows}
    changes = {row["run"]: row for row in (drift or {}).get("rows", ())}
    rows = []
    for run in history.runs:
        if part not in run.model.casefold() or run.id not in means:
            continue
        change = changes.get(run.id, {})
        rows.append(
            {
                "model": run.model, "run": run.id, "label": run.label, "when": format_minute(run.when),
                "x": run.when.timestamp(), "is_dated": run.is_dated, "mean": means[run.id].mean,
                "low": means[run.id].low, "high": means[run.id].high, "n": means[run.id].n,
                **{name: change.get(name) for name in ("since", "change", "holm", "n_better", "n_worse")},
                "change_low": change.get("low"), "change_high": change.get("high"),
            }
        )  # fmt: skip
    return rows


def _list_checkpoints(
    board: Leaderboard, trainings: Mapping[str, Sequence[tuple[int, str]]], part: str
) -> list[dict[str, Any]]:
    """Return a record of each checkpoint whose training matches, by step."""
    by_model = {row.model: row for row in board.rows}
    rows = []
    for training, steps in trainings.items():
        if part not in training.casefold() and not any(part in name.casefold() for _, name in steps):
            continue
        before = None
        for number, name in steps:
            row = by_model[name]
            rows.append(
                {
                    "training": training, "model": name, "run": row.run_id, "x": number, "mean": row.mean,
                    "low": row.low, "high": row.high, "n": row.n, "since": None if before is None else before.model,
                    "change": None if before is None else row.mean - before.mean,
                }
            )  # fmt: skip
            before = row
    return rows


def _draw(rows: Sequence[Mapping[str, Any]], by: str) -> dict[str, Any] | None:
    """Return the chart of the lines with most points; None without a line of two points."""
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        lines.setdefault(row["training"] if by == STEP else row["model"], []).append(row)
    longest = sorted((name for name in lines if len(lines[name]) > 1), key=lambda name: (-len(lines[name]), name))
    if not longest:
        return None
    drawn = [lines[name] for name in longest[:MAX_LINES]]
    is_ordered = by == STEP or all(row["is_dated"] for line in drawn for row in line)
    series = [
        Series(
            name=name,
            x=[row["x"] if is_ordered else float(place) for place, row in enumerate(lines[name], start=1)],
            y=[row["mean"] for row in lines[name]],
            low=[row["low"] for row in lines[name]],
            high=[row["high"] for row in lines[name]],
        )
        for name in longest[:MAX_LINES]
    ]
    titles = {row["x"]: row["when"][:10] for line in drawn for row in line} if by == DATE and is_ordered else {}
    axis = "step" if by == STEP else "date" if is_ordered else "run, in the order of import"
    chart = draw_lines(series, label_x=lambda value: titles.get(value, f"{value:,.0f}"))
    n_more = len(longest) - len(drawn)
    return {**chart, "axis": axis, "n_more": n_more}


def _describe(rows: Sequence[Mapping[str, Any]], by: str, drift: Mapping[str, Any] | None) -> str:
    """Return what changed, in one sentence."""
    if by == STEP and rows:
        last = rows[-1]
        training = [row for row in rows if row["training"] == last["training"]]
        best = max(training, key=lambda row: row["mean"])
        return (
            f"{training[-1]['model']}, the last of {len(training)} checkpoints, has mean "
            f"{format_score(training[-1]['mean'])}; the best is {best['model']} with {format_score(best['mean'])}."
        )
    if by == STEP:
        return "No model's name has the step of a checkpoint, such as step-2000."
    if drift is None and rows:
        return ""
    if drift and drift["headline"]:
        return str(drift["headline"])
    return "No model has two runs here, so nothing can have changed."
