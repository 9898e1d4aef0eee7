"""Prompts of a table, each once, with the content in its columns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.files.tabular.cells import Codes, compress_codes, factorize, parse_choices, shorten
from tracker.ingest.files.tabular.table import FileTable, TableProblems
from tracker.ingest.measurement import Prompts, ReadOptions


@dataclass(frozen=True, eq=False)
class TablePrompts:
    """The prompts of a table.

    Attributes:
        rows: ``(n,)`` int64, index of the prompt of each row.
        blocks: prompts of each benchmark, in order of first appearance.
        starts: ``(n_blocks + 1,)`` index of each block's first prompt.
    """

    rows: NDArray[np.int64]
    blocks: Sequence[Prompts]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.starts[-1])

    def name(self, number: int) -> str:
        """Return the name of a prompt in the file."""
        block = int(np.searchsorted(self.starts, number, side="right")) - 1
        return self.blocks[block].keys[number - int(self.starts[block])]


def parse_prompts(
    table: FileTable,
    role: Mapping[str, str],
    options: ReadOptions,
    problems: TableProblems,
    *,
    further: Sequence[str] = (),
) -> TablePrompts:
    """Read the prompts of a table with one or more rows per prompt.

    Args:
        table: the table.
        role: column of each role.
        options: how to read the file.
        problems: collects rows without a prompt and contradictory rows.
        further: columns kept as details.

    Without a column of names, prompts are named by the hash of text and choices.
    """
    keys = _keys(table, role, problems)
    task = factorize(table, role["task"]) if "task" in role else Codes(np.zeros(len(table), dtype=np.int64), [""])
    benchmark = factorize(table, role["benchmark"]) if "benchmark" in role and not options.benchmark else None
    identity = keys.rows + len(keys.names) * task.rows
    size = len(keys.names) * len(task.names)
    if benchmark is not None:
        identity = identity + size * benchmark.rows
        size *= len(benchmark.names)
    rows, first = compress_codes(identity, size)
    block = np.zeros(len(first), dtype=np.int64) if benchmark is None else benchmark.rows[first]
    order = np.lexsort((first, block))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    rows, first, block = rank[rows], first[order], block[order]
    names = keys.names_of(first)

    def column(part: str) -> list[str | None] | None:
        return _unite_rows(table, role[part], part, rows, names, problems) if part in role else None

    everything = Prompts(
        keys=names,
        tasks=task.names_of(first) if "task" in role else None,
        text=column("text"),
        choices=_choices(table, role, column("choices"), first, problems),
        answer=column("answer"),
        split=column("split"),
        details=_details(table, further, first),
        lines=table.lines[first],
    )
    n_blocks = 1 if benchmark is None else len(benchmark.names)
    starts = np.searchsorted(block, np.arange(n_blocks + 1))
    blocks = []
    for number in range(n_blocks):
        part = (
            everything if n_blocks == 1 else select_prompts(everything, np.arange(starts[number], starts[number + 1]))
        )
        label = options.benchmark if benchmark is None else benchmark.names[number] or None
        blocks.append(replace(part, benchmark=label))
    return TablePrompts(rows, blocks, starts.astype(np.int64))


def select_prompts(prompts: Prompts, rows: NDArray[np.int64]) -> Prompts:
    """Return some of the prompts, in the order of ``rows``."""
    row_list = rows.tolist()

    def chosen(column: Sequence[Any] | None) -> list[Any] | None:
        return None if column is None else [column[row] for row in row_list]

    return Prompts(
        keys=chosen(prompts.keys) or [],
        tasks=chosen(prompts.tasks),
        namespace=prompts.namespace,
        text=chosen(prompts.text),
        choices=chosen(prompts.choices),
        answer=chosen(prompts.answer),
        split=chosen(prompts.split),
        details=chosen(prompts.details),
        benchmark=prompts.benchmark,
        lines=None if prompts.lines is None else prompts.lines[rows],
    )


def _keys(table: FileTable, role: Mapping[str, str], problems: TableProblems) -> Codes:
    if "prompt" in role:
        names_of_rows = factorize(table, role["prompt"])
        empty, column = "the prompt has no name", role["prompt"]
    else:
        column = role["text"]
        names_of_rows, empty = factorize(table, column), "the prompt has neither name nor text"
        if "choices" in role:
            options = factorize(table, role["choices"])
            rows, first = compress_codes(
                names_of_rows.rows * len(options.names) + options.rows, len(names_of_rows.names) * len(options.names)
            )
            names = [
                ""
                if not names_of_rows.names[names_of_rows.rows[row]]
                else f"{names_of_rows.names[names_of_rows.rows[row]]}\n{options.names[options.rows[row]]}"
                for row in first
            ]
            names_of_rows = Codes(rows, names)
        names_of_rows = Codes(
            names_of_rows.rows,
            [name and hashlib.sha256(name.encode()).hexdigest()[:16] for name in names_of_rows.names],
        )
    if "" in names_of_rows.names:
        problems.add(np.flatnonzero(names_of_rows.rows == names_of_rows.names.index("")), column, [empty])
    return names_of_rows


def _unite_rows(
    table: FileTable, column: str, part: str, rows: NDArray[np.int64], names: Sequence[str], problems: TableProblems
) -> list[str | None]:
    """Return the value of each prompt in a column; empty rows are ignored."""
    coded = factorize(table, column)
    empty = coded.names.index("") if "" in coded.names else -1
    filled = np.flatnonzero(coded.rows != empty)
    first = np.full(len(names), -1, dtype=np.int64)
    first[rows[filled[::-1]]] = filled[::-1]
    wrong = filled[coded.rows[filled] != coded.rows[first[rows[filled]]]]
    if len(wrong):
        words = [
            f"the {part} of prompt {names[rows[row]]!r} is {shorten(coded.names[coded.rows[row]], 40)!r} here "
            f"and {shorten(coded.names[coded.rows[first[rows[row]]]], 40)!r} in {table.place(first[rows[row]])}"
            for row in wrong[: BadInputError.MAX_LISTED]
        ]
        problems.add(wrong, column, words)
    return [coded.names[coded.rows[row]] if row >= 0 else None for row in first.tolist()]


def _choices(
    table: FileTable,
    role: Mapping[str, str],
    cells: Sequence[str | None] | None,
    first: NDArray[np.int64],
    problems: TableProblems,
) -> list[list[str] | None] | None:
    if cells is None:
        return None
    choices = [None if cell is None else parse_choices(cell) for cell in cells]
    wrong = [first[at] for at, cell in enumerate(cells) if cell is not None and choices[at] is None]
    if wrong:
        problems.add(wrong, role["choices"], ['write the options as a JSON list of texts, such as ["Paris", "Rome"]'])
    return [options or None for options in choices]


def _details(table: FileTable, names: Sequence[str], first: NDArray[np.int64]) -> list[Mapping[str, Any] | None] | None:
    if not names:
        return None
    columns = {name: table.arrow[name].take(first).to_pylist() for name in names}
    plain = (str, int, float, bool, list, dict)
    rows = (
        {
            name: cells[row] if isinstance(cells[row], plain) else str(cells[row])
            for name, cells in columns.items()
            if cells[row] is not None
        }
        for row in range(len(first))
    )
    return [row or None for row in rows]
