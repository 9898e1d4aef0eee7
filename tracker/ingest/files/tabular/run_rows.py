"""Rows of a long table as blocks of runs and prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.files.tabular.cells import compress_codes, factorize, parse_condition, parse_whole_numbers, shorten
from tracker.ingest.files.tabular.prompt_columns import TablePrompts, select_prompts
from tracker.ingest.files.tabular.table import FileTable, TableProblems
from tracker.ingest.measurement import Prompts, ReadOptions, RunDescription
from tracker.schema.measurements import CONDITIONS


@dataclass(frozen=True)
class TableRuns:
    """The runs of a long table.

    Attributes:
        rows: ``(n,)`` int64, index of the run of each row.
        described: descriptions of the runs.
    """

    rows: NDArray[np.int64]
    described: list[RunDescription]


def parse_runs(table: FileTable, role: Mapping[str, str], options: ReadOptions, problems: TableProblems) -> TableRuns:
    """Return the run of each row: benchmark, model, condition, variant, run name and few-shot examples."""
    parts = [part for part in ("benchmark", "model", "condition", "variant", "run", "few_shot") if part in role]
    if options.benchmark and "benchmark" in parts:
        parts.remove("benchmark")
    columns = {part: factorize(table, role[part]) for part in parts}
    rows, size = np.zeros(len(table), dtype=np.int64), 1
    first = np.zeros(1, dtype=np.int64)
    for column in columns.values():
        rows, first = compress_codes(rows * len(column.names) + column.rows, size * len(column.names))
        size = len(first)
    if "model" in columns:
        names = columns["model"].names
        if "" in names:
            problems.add(
                np.flatnonzero(columns["model"].rows == names.index("")), role["model"], ["the model has no name"]
            )
        if options.model and len(names) > 1:
            text = f"holds {len(names)} models; --model applies to files with a single model."
            raise BadInputError(table.path, text)
    if "condition" in columns:
        column = columns["condition"]
        for code, name in enumerate(column.names):
            if parse_condition(name) is None:
                unknown = f"unknown condition {shorten(name)!r}; choose from: {', '.join(CONDITIONS)}"
                problems.add(np.flatnonzero(column.rows == code), role["condition"], [unknown])
    few_shot = (
        parse_whole_numbers(table, role["few_shot"], problems, noun="number of few-shot examples")
        if "few_shot" in role
        else None
    )
    default_condition = options.condition_of_runs
    described = []
    for row in first.tolist():
        values = {part: column.names[column.rows[row]] for part, column in columns.items()}
        described.append(
            RunDescription(
                model=options.model or values["model"],
                benchmark=options.benchmark or values.get("benchmark") or None,
                condition=(parse_condition(values["condition"]) or default_condition)
                if values.get("condition")
                else default_condition,
                variant=values.get("variant", ""),
                label=values.get("run", ""),
                few_shot=None if few_shot is None or few_shot[row] < 0 else int(few_shot[row]),
            )
        )
    return TableRuns(rows, described)


class RowGrouper:
    """Groups rows of a long table into blocks by run, kind of value and trial."""

    def __init__(
        self,
        table: FileTable,
        prompts: TablePrompts,
        runs: TableRuns,
        trials: NDArray[np.int64],
        problems: TableProblems,
    ) -> None:
        self.table, self.prompts, self.runs, self.trials, self.problems = table, prompts, runs, trials, problems
        self._subsets: dict[tuple[int, bytes], Prompts] = {}

    def blocks(
        self,
        rows: NDArray[np.int64],
        kinds: NDArray[np.int64],
        n_kinds: int,
        differ: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]],
        noun: str,
        column: str,
    ) -> Iterator[tuple[int, RunDescription, int, NDArray[np.int64], Prompts, NDArray[np.int64]]]:
        """Yield rows grouped by run, kind and trial, each prompt once.

        Args:
            rows: rows that hold a value.
            kinds: ``(len(rows),)`` kind of each value, such as the metric, below ``n_kinds``.
            differ: returns whether pairs of rows contradict each other.
            noun: kind of value, for messages.
            column: column of the values, for messages.

        Yields:
            Kind, run, trial, rows, their prompts, and the index of each row's prompt.
        """
        n_trials = int(self.trials.max(initial=0)) + 1
        code = (self.runs.rows[rows] * n_kinds + kinds) * n_trials + self.trials[rows]
        groups, first = compress_codes(code, len(self.runs.described) * n_kinds * n_trials)
        cell = groups * len(self.prompts) + self.prompts.rows[rows]
        order = np.argsort(cell, kind="stable")
        cell, rows, groups = cell[order], rows[order], groups[order]
        again = np.concatenate([[False], cell[1:] == cell[:-1]])
        if again.any():
            self._check_repeats(rows, again, differ, noun, column)
            rows, groups = rows[~again], groups[~again]
        bounds = np.searchsorted(groups, np.arange(len(first) + 1))
        sources = np.asarray(code[first])
        for group, source in enumerate(sources.tolist()):
            kind = source // n_trials % n_kinds
            run = self.runs.described[source // n_trials // n_kinds]
            part = rows[bounds[group] : bounds[group + 1]]
            prompts, places = self._prompts_of(part)
            yield kind, run, source % n_trials, part, prompts, places

    def _check_repeats(
        self,
        rows: NDArray[np.int64],
        again: NDArray[np.bool_],
        differ: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]],
        noun: str,
        column: str,
    ) -> None:
        starts = np.flatnonzero(~again)
        earlier = rows[starts[np.cumsum(~again) - 1]][again]
        wrong = np.flatnonzero(differ(rows[again], earlier))
        if len(wrong):
            later, earlier = rows[again][wrong], earlier[wrong]
            texts = [
                f"another {noun} for prompt {self.prompts.name(int(self.prompts.rows[row]))!r} of "
                f"{self.runs.described[self.runs.rows[row]].model!r} than in {self.table.place(before)}"
                for row, before in zip(later[: BadInputError.MAX_LISTED], earlier, strict=False)
            ]
            self.problems.add(later, column, texts)

    def _prompts_of(self, rows: NDArray[np.int64]) -> tuple[Prompts, NDArray[np.int64]]:
        """Return the prompts of a benchmark (all if at least half occur in the rows), and the indices of the rows in
        them.
        """
        numbers = self.prompts.rows[rows]
        starts = self.prompts.starts
        block = int(np.searchsorted(starts, numbers[0], side="right")) - 1
        everything, places = self.prompts.blocks[block], numbers - starts[block]
        if 2 * len(rows) >= len(everything):
            return everything, places
        identity = (block, places.tobytes())
        if identity not in self._subsets:
            self._subsets[identity] = select_prompts(everything, places)
        return self._subsets[identity], np.arange(len(rows))
