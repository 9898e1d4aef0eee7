"""Tables of a finding's metrics: plain ones, and statistics with their p-values and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.queries.findings.grouped_metrics import NamedNumber, group_metrics
from tracker.report.number_format import format_number

HEADS = {
    "null_mean": "by chance, mean",
    "permuted_mean": "permuted, mean",
    "null_sd": "by chance, sd",
    "permuted_sd": "permuted, sd",
    "pvalue": "p-value, upper tail",
    "pvalue_two_sided": "p-value, two-sided",
}
"""Headings of the columns beside a statistic."""


@dataclass(frozen=True, kw_only=True)
class NumberTable:
    """A table of metrics.

    Attributes:
        heads: of its columns; the first names the metric, the last is a comment if ``has_reasons``.
        rows: cells of each row, as many as there are headings.
        has_reasons: whether the last column holds comments.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    has_reasons: bool


def build_number_tables(numbers: Sequence[NamedNumber]) -> list[NumberTable]:
    """Return the main metrics of a finding: at most one table of plain ones and one of statistics with p-values."""
    groups = group_metrics(numbers)
    plain = [((metric.name, format_number(metric.value)), metric.reason or "") for metric in groups.plain]
    tested = [
        (
            (
                statistic.number.name,
                format_number(statistic.number.value),
                *(format_number(value) for value in statistic.beside.values()),
            ),
            statistic.reason or ("takes few values: p-values move in steps" if statistic.is_discrete else ""),
        )
        for statistic in groups.statistics
    ]
    heads = ("statistic", "value", *(HEADS[suffix] for suffix in groups.suffixes))
    tables = [_table(("number", "value"), plain, "why undefined"), _table(heads, tested, "remark")]
    return [table for table in tables if table.rows]


def _table(heads: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], str]], reasons_heading: str) -> NumberTable:
    has_reasons = any(reason for _, reason in rows)
    if not has_reasons:
        return NumberTable(heads=heads, rows=tuple(cells for cells, _ in rows), has_reasons=False)
    return NumberTable(
        heads=(*heads, reasons_heading), rows=tuple((*cells, reason) for cells, reason in rows), has_reasons=True
    )
