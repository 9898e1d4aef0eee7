"""The numbers of a finding as tables for reading: plain ones, then statistics with what belongs beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.queries.findings.grouped_metrics import NamedNumber, grouped
from tracker.report.number_format import number

HEADS = {
    "null_mean": "by chance, mean",
    "permuted_mean": "permuted, mean",
    "null_sd": "by chance, sd",
    "permuted_sd": "permuted, sd",
    "pvalue": "p-value",
}
"""Of the columns of what stands beside a statistic."""


@dataclass(frozen=True, kw_only=True)
class NumberTable:
    """A table of numbers.

    Attributes:
        heads: of its columns; the first names the number, the last is a remark where ``remarked``.
        rows: cells of each row, as many as there are heads.
        remarked: whether the last column holds words.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarked: bool


def number_tables(numbers: Sequence[NamedNumber]) -> list[NumberTable]:
    """The headline numbers of a finding: at most one table of plain ones and one of statistics with p-values."""
    found = grouped(numbers)
    plain = [((one.name, number(one.value)), one.reason or "") for one in found.plain]
    tested = [
        (
            (
                statistic.number.name,
                number(statistic.number.value),
                *(number(value) for value in statistic.beside.values()),
            ),
            statistic.reason or ("takes few values: p moves in jumps" if statistic.is_discrete else ""),
        )
        for statistic in found.statistics
    ]
    heads = ("statistic", "value", *(HEADS[suffix] for suffix in found.suffixes))
    tables = [_table(("number", "value"), plain, "why not"), _table(heads, tested, "remark")]
    return [table for table in tables if table.rows]


def _table(heads: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], str]], remarks: str) -> NumberTable:
    remarked = any(remark for _, remark in rows)
    if not remarked:
        return NumberTable(heads=heads, rows=tuple(cells for cells, _ in rows), remarked=False)
    return NumberTable(heads=(*heads, remarks), rows=tuple((*cells, remark) for cells, remark in rows), remarked=True)
