"""The numbers of a finding as tables for reading: plain ones, then statistics with what belongs beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.queries.findings import Number
from tracker.reporting.html.wording import number

BESIDE = {
    "null_mean": "by chance, mean",
    "permuted_mean": "permuted, mean",
    "null_sd": "by chance, sd",
    "permuted_sd": "permuted, sd",
    "pvalue": "p-value",
}
"""Suffixes that stand beside the number they belong to, with the heads of their columns.

``hamming.variance.pvalue`` stands beside ``hamming.variance``; a suffix ``discrete`` that is not 0 is a remark.
"""


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


def number_tables(numbers: Sequence[Number]) -> list[NumberTable]:
    """The headline numbers of a finding: at most one table of plain ones and one of statistics with p-values."""
    known = {one.name: one for one in numbers}
    statistics = {one.name for one in numbers if any(f"{one.name}.{suffix}" in known for suffix in BESIDE)}
    stems = [one for one in numbers if one.headline and one.name.rpartition(".")[0] not in statistics]
    plain = [one for one in stems if one.name not in statistics]
    tested = [one for one in stems if one.name in statistics]
    tables = [_table(("number", "value"), [((one.name, number(one.value)), one.reason) for one in plain], "why not")]
    suffixes = [suffix for suffix in BESIDE if any(f"{one.name}.{suffix}" in known for one in tested)]
    rows = []
    for one in tested:
        parts = [known.get(f"{one.name}.{suffix}") for suffix in suffixes]
        remark = one.reason or next((part.reason for part in parts if part and part.reason), "")
        if not remark and (flag := known.get(f"{one.name}.discrete")) is not None and flag.value:
            remark = "takes few values: p moves in jumps"
        cells = [number(part.value if part else None) for part in parts]
        rows.append(((one.name, number(one.value), *cells), remark))
    tables.append(_table(("statistic", "value", *(BESIDE[suffix] for suffix in suffixes)), rows, "remark"))
    return [table for table in tables if table.rows]


def _table(heads: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], str]], remarks: str) -> NumberTable:
    remarked = any(remark for _, remark in rows)
    if not remarked:
        return NumberTable(heads=heads, rows=tuple(cells for cells, _ in rows), remarked=False)
    return NumberTable(heads=(*heads, remarks), rows=tuple((*cells, remark) for cells, remark in rows), remarked=True)
