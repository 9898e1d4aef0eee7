"""External weights of prompts: a table of prompt_id, weight and, optionally, task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import BadInputError
from tracker.ingest.files.tabular.cells import is_missing, parse_numbers, read_names
from tracker.ingest.files.tabular.headings import assign_roles, normalize_heading
from tracker.ingest.files.tabular.json_lines import read_json_lines
from tracker.ingest.files.tabular.table import FileTable, TableProblems, read_table
from tracker.ingest.resolve.prompt_rows import advise_on_names, find_prompt_rows

WEIGHT = ("weight", "weights")
JSON_LINES = ".jsonl"


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightsInFile:
    """Weights of prompts in the store.

    Attributes:
        prompt_ids: ``(n,)`` int64, strictly increasing.
        values: ``(n,)`` float64, finite, nonnegative, at least one positive.
    """

    prompt_ids: NDArray[np.int64]
    values: NDArray[np.float64]


def read_weights(session: Session, path: Path, benchmark_id: int, benchmark: str) -> WeightsInFile:
    """Read weights from CSV, Parquet or JSON Lines.

    Args:
        session: the store.
        path: the file.
        benchmark_id: key of the benchmark.
        benchmark: its name, for messages.

    Raises:
        BadInputError: the file is unreadable, lacks a column, names an unknown or duplicate prompt, has an invalid
            weight, or all weights are 0.
        AmbiguousError: a name means prompts of several tasks, and the file has no tasks.
    """
    is_json = path.name.removesuffix(".gz").endswith(JSON_LINES)
    table = read_json_lines(path) if is_json else read_table(path)
    role = assign_roles(table.names)
    weight = next((name for name in table.names if normalize_heading(name) in WEIGHT), None)
    if "prompt" not in role or weight is None:
        lacking = "prompt_id" if "prompt" not in role else "weight"
        raise BadInputError(path, f"no column {lacking}. Its columns: {', '.join(table.names) or 'none'}.")
    problems = TableProblems(table)
    keys = read_names(table, role["prompt"]).to_pylist()
    problems.add([row for row, key in enumerate(keys) if key is None], role["prompt"], ["does not name a prompt"])
    tasks = [task or "" for task in read_names(table, role["task"]).to_pylist()] if "task" in role else None
    values = _weights(table, weight, problems)
    prompt_ids = find_prompt_rows(session, benchmark_id, benchmark, keys, tasks, problems)
    problems.check(advise_on_names(benchmark) if (prompt_ids < 0).any() else "")
    if not values.any():
        raise BadInputError(path, "all weights are 0. Give at least one prompt a positive weight.")
    order = np.argsort(prompt_ids)
    return WeightsInFile(prompt_ids=prompt_ids[order], values=values[order])


def _weights(table: FileTable, name: str, problems: TableProblems) -> NDArray[np.float64]:
    values = parse_numbers(table, name, problems)
    cells = table.arrow[name].to_pylist()
    empty = [row for row, cell in enumerate(cells) if cell is None or (isinstance(cell, str) and is_missing(cell))]
    problems.add(empty, name, ["no weight; write 0, or delete the row"])
    negative = np.flatnonzero(values < 0)
    problems.add(negative, name, [f"the weight {values[row]:g} is negative" for row in negative])
    return values + 0.0  # -0.0 becomes 0.0
