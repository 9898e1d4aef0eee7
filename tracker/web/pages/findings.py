"""The pages of a finding: summary, metrics, figures and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from tracker.queries.browsing.keys import load_benchmark_keys
from tracker.queries.findings.finding_records import FindingRecord, get_finding, list_findings, load_artifact
from tracker.recording.artifacts import decode_table
from tracker.recording.multiplicity.looks import add_recorded_looks
from tracker.recording.rerun_command import rerun_advice, rerun_command
from tracker.report.images import read_png_title
from tracker.report.number_format import format_count, format_minute
from tracker.web.page import Page
from tracker.web.query import Query
from tracker.web.records import finding_record

TABLE, FIGURE = ".parquet", ".png"
MAX_INLINE = 12
"""Rows of a table on the page of its finding; the page of the table has all."""


def list_all_findings(query: Query) -> Page:
    """Return all findings, or those about a benchmark or of an analysis, the latest first."""

    def compute() -> list[dict[str, Any]]:
        with query.session() as session:
            keys = load_benchmark_keys(session)
            return [
                {**finding_record(row), "benchmark_id": keys.get(row.benchmark or "")} for row in list_findings(session)
            ]

    every = [row for row in query.cache.get("findings", compute) if row["benchmark"] not in query.excluded]
    benchmark, analysis = query.text("benchmark"), query.text("analysis")
    rows = [row for row in every if benchmark in ("", row["benchmark"]) and analysis in ("", row["analysis"])]
    page_rows, paging = query.take_page(rows)
    n_stale = sum(bool(row["stale"]) for row in rows)
    stale = f"; {n_stale} of them stale" if n_stale else ""
    data = {
        "headline": f"{format_count(len(rows), 'finding')}{stale}. The latest: {rows[0]['headline']}" if rows else "",
        "benchmarks": sorted({row["benchmark"] for row in every if row["benchmark"]}),
        "analyses": sorted({row["analysis"] for row in every}),
        "rows": page_rows,
        "paging": paging,
        "options": dict(query.parameters),
    }
    return Page(title="Findings", template="findings.html", data=data, table="rows")


def show_finding(query: Query) -> Page:
    """Return a finding with everything recorded of it."""
    record, benchmark_id = _load(query)
    files = [file.name for file in record.artifacts]
    names = [name.removesuffix(TABLE) for name in files if name.endswith(TABLE)]
    failed = f"The analysis failed: {record.error}" if record.status == "failed" else ""
    data = {
        "headline": failed or record.summary.headline,
        "is_warning": bool(failed),
        "finding": _finding_details(record, benchmark_id),
        "mlflow": query.find_mlflow_run("finding", query.key),
        "figures": _load_figures(query, [name for name in files if name.endswith(FIGURE)]),
        "tables": [_begin_table(query, name) for name in names],
        "metrics": [
            {"name": number.name, "value": number.value, "reason": number.reason, "is_main": number.is_main}
            for number in record.numbers
        ],
    }
    about = f" on {record.benchmark}" if record.benchmark else ""
    return Page(
        title=f"{record.name}{about}, {format_minute(record.recorded)}",
        template="finding.html",
        data=data,
        table="metrics",
        trail=_trail(record, benchmark_id),
    )


def _finding_details(record: FindingRecord, benchmark_id: int | None) -> dict[str, Any]:
    return {
        **finding_record(record),
        "evidence": list(record.summary.evidence),
        "caveats": list(record.summary.caveats),
        "looks": record.summary.looks,
        "warnings": list(record.warnings),
        "error": record.error,
        "advice": rerun_advice(record) if record.stale else "",
        "command": rerun_command(record),
        "benchmark_id": benchmark_id,
        "parameters": record.parameters,
        "selection": record.selection,
        "seed": record.seed,
        "input_digest": record.input_digest,
        "code_version": record.code_version,
        "timings": record.timings,
        "run_ids": list(record.run_ids),
    }


def _load_figures(query: Query, files: Sequence[str]) -> list[dict[str, str]]:
    """Return names and titles of the figures; '' for one without a title in its file."""

    def compute() -> list[dict[str, str]]:
        with query.session() as session:
            return [
                {"name": name.removesuffix(FIGURE), "title": read_png_title(load_artifact(session, query.key, name))}
                for name in files
            ]

    return query.cache.get(("figures", query.key), compute)


def _begin_table(query: Query, name: str) -> dict[str, Any]:
    """Return the first rows of a table of the finding."""
    columns, rows = _load_table(query, name)
    return {"name": name, "columns": columns, "rows": rows[:MAX_INLINE], "n_rows": len(rows)}


def _load_table(query: Query, name: str) -> tuple[list[str], list[dict[str, Any]]]:
    def compute() -> tuple[list[str], list[dict[str, Any]]]:
        with query.session() as session:
            table = decode_table(load_artifact(session, query.key, f"{name}{TABLE}"))
        return table.column_names, table.to_pylist()

    return query.cache.get(("table", query.key, name), compute)


def show_table(query: Query) -> Page:
    """Return one page of a table of a finding."""
    record, benchmark_id = _load(query)
    columns, rows = _load_table(query, query.name)
    ordered = _sort(rows, query.choice("sort", ("", *columns), ""), query.text("order") == "descending")
    page_rows, paging = query.take_page(ordered)
    data = {
        "headline": record.summary.headline,
        "finding": {"id": record.id, "analysis": record.name},
        "name": query.name,
        "columns": columns,
        "rows": page_rows,
        "paging": paging,
        "options": dict(query.parameters),
    }
    trail = [*_trail(record, benchmark_id), (f"{record.name} {record.id}", f"/finding/{record.id}")]
    title = f"{query.name} of finding {record.id}"
    return Page(title=title, template="table.html", data=data, table="rows", trail=trail)


def send_figure(query: Query) -> Response:
    """Return a figure of a finding as PNG."""
    with query.session() as session:
        content = load_artifact(session, query.key, f"{query.name}{FIGURE}")
    return Response(content, media_type="image/png")


def _load(query: Query) -> tuple[FindingRecord, int | None]:
    with query.session() as session:
        [record] = add_recorded_looks(session, [get_finding(session, query.key)])
        return record, load_benchmark_keys(session).get(record.benchmark or "")


def _trail(record: FindingRecord, benchmark_id: int | None) -> list[tuple[str, str]]:
    if benchmark_id is None:
        return [("Findings", "/findings")]
    return [("Benchmarks", "/"), (str(record.benchmark), f"/benchmark/{benchmark_id}")]


def _sort(rows: Sequence[dict[str, Any]], column: str, is_descending: bool) -> Sequence[dict[str, Any]]:
    """Return rows in the order of a column; numbers before texts, empty cells and NaN last."""
    if not column:
        return rows

    def is_empty(value: Any) -> bool:
        return value is None or (isinstance(value, float) and math.isnan(value))

    known = [row for row in rows if not is_empty(row[column])]
    empty = [row for row in rows if is_empty(row[column])]

    def key(row: dict[str, Any]) -> tuple[bool, Any]:
        value = row[column]
        return (False, value) if isinstance(value, int | float) else (True, str(value))

    return sorted(known, key=key, reverse=is_descending) + empty
