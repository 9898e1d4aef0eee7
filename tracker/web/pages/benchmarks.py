"""The page of a benchmark: who is first, the leaderboard, and findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tracker.errors import SelectionError
from tracker.queries.browsing.keys import ModelEntry, find_benchmark_label, load_model_keys
from tracker.queries.findings.finding_records import FindingRow, list_findings
from tracker.queries.findings.relevance import names_another_leader, sort_by_relevance
from tracker.queries.ranking.leaderboard_result import Leaderboard, LeaderboardRow
from tracker.queries.resolution import find_benchmark, list_metrics
from tracker.queries.selection import Selection
from tracker.report.leaderboard_rows import compute_axis_limits, describe_intervals
from tracker.web.page import Page
from tracker.web.pages.selections import describe_choices, load_board, make_selection
from tracker.web.pages.verdicts import describe_recorded_verdict
from tracker.web.query import Query
from tracker.web.records import finding_record

SORT_KEYS = ("rank", "model", "mean", "n", "coverage", "family")
MAX_FINDINGS = 8
"""Findings on the page of a benchmark."""


def show_benchmark(query: Query) -> Page:
    """Return the leaderboard of a benchmark, with its metrics and the findings that matter most."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
        models = load_model_keys(session)
    metrics, stored = _load_metrics_and_findings(query, label)
    selection = make_selection(query, label)
    try:
        board, notices = load_board(query, selection)
    except SelectionError as error:
        return _without_board(query, label, metrics, _list_findings(stored, ()), str(error))
    low, high = compute_axis_limits(board)
    rows = _filter_rows([_row(row, board, models, low, high) for row in board.rows], query)
    page_rows, paging = query.take_page(rows)
    data = {
        "benchmark": {"id": query.key, "label": label, "metric": board.metric, "metrics": metrics},
        "mlflow": query.find_mlflow_chart(label, [row.run_id for row in board.rows]),
        "problem": "",
        "verdict": describe_recorded_verdict(query, selection),
        "headline": board.describe_lead(),
        "higher_is_better": board.higher_is_better,
        "unit": board.unit,
        "n_units": board.n_units,
        "n_tasks": board.n_tasks,
        "n_models": len(board.rows),
        "missing": board.missing,
        "task_effects": board.task_effects,
        "choices": describe_choices(board, selection, query.parameters),
        "intervals": describe_intervals(board),
        "notices": [*notices, *board.warnings, *board.cluster_warnings],
        "task_spread": board.describe_task_spread(),
        "axis": {"low": low, "high": high},
        "families": sorted({models[row.model].family for row in board.rows if row.model in models} - {""}),
        "rows": page_rows,
        "paging": paging,
        "findings": _list_findings(stored, board.leaders),
        "n_findings": len(stored),
        "options": dict(query.parameters),
    }
    return Page(title=label, template="benchmark.html", data=data, table="rows", trail=[("Benchmarks", "/")])


def _load_metrics_and_findings(query: Query, label: str) -> tuple[list[str], list[FindingRow]]:
    """Return the names of a benchmark's metrics, and its findings, the latest first."""

    def compute() -> tuple[list[str], list[FindingRow]]:
        with query.session() as session:
            benchmark, selection = find_benchmark(session, label), Selection(benchmark=label)
            metrics = [
                metric.name
                for unit in ("prompt", "task")
                for metric in list_metrics(session, benchmark, selection, unit)
            ]
            return list(dict.fromkeys(metrics)), list_findings(session, benchmark=label)

    return query.cache.get(("metrics_and_findings", label), compute)


def _list_findings(rows: Sequence[FindingRow], leaders: Sequence[str]) -> list[dict[str, Any]]:
    """Return records of the findings that matter most, in this order."""
    relevant = sort_by_relevance(rows, leaders)[:MAX_FINDINGS]
    return [{**finding_record(row), "other_leader": names_another_leader(row, leaders)} for row in relevant]


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
    places = [
        100 * ((value - low) / span) if value is not None else math.nan for value in (row.low, row.mean, row.high)
    ]
    record["x"] = [round(place, 2) if math.isfinite(place) else None for place in places]
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
        "benchmark": {"id": query.key, "label": label, "metric": "", "metrics": metrics},
        "problem": problem,
        "headline": problem,
        "choices": [],
        "rows": [],
        "findings": findings,
        "n_findings": len(findings),
        "families": [],
        "options": dict(query.parameters),
    }
    return Page(title=label, template="benchmark.html", data=data, table="rows", trail=[("Benchmarks", "/")])
