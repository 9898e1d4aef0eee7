"""CSV or Parquet table with one row per model and task: task scores with standard errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.files.mismatch import first_missing
from tracker.ingest.files.tabular.cells import (
    Codes,
    check_bounds,
    compress_codes,
    factorize,
    parse_numbers,
    parse_whole_numbers,
)
from tracker.ingest.files.tabular.headings import assign_roles, is_row_number
from tracker.ingest.files.tabular.run_rows import parse_runs
from tracker.ingest.files.tabular.table import TableProblems, read_table
from tracker.ingest.files.tabular.table_head import read_head
from tracker.ingest.measurement import Measurement, ReadOptions, TaskScores, metric_description

SPECIFICITY = 25
RECOGNIZED_BY = "columns for model, task and score, none for prompts"


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a table of task scores."""
    top = read_head(path)
    return top if isinstance(top, str) else _lacks(assign_roles(top.names), options)


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield a block per run and metric."""
    table = read_table(path)
    role = assign_roles(table.names)
    if lack := _lacks(role, options):
        raise BadInputError(path, f"{lack}.")
    problems = TableProblems(table)
    runs = parse_runs(table, role, options, problems)
    tasks = factorize(table, role["task"])
    if "" in tasks.names:
        problems.add(np.flatnonzero(tasks.rows == tasks.names.index("")), role["task"], ["the task has no name"])
    metric_codes = (
        factorize(table, role["metric"]) if "metric" in role else Codes(np.zeros(len(table), dtype=np.int64), [""])
    )
    metrics = [metric_description(name or options.metric or "score", options) for name in metric_codes.names]
    values = parse_numbers(table, role["score"], problems)
    for code, metric in enumerate(metrics):
        chosen = np.flatnonzero(metric_codes.rows == code)
        check_bounds(values[chosen], metric, role["score"], problems, chosen)
    errors = parse_numbers(table, role["stderr"], problems) if "stderr" in role else np.full(len(table), np.nan)
    counts = (
        parse_whole_numbers(table, role["n_prompts"], problems, noun="number of prompts")
        if "n_prompts" in role
        else None
    )
    groups, first = compress_codes(runs.rows * len(metrics) + metric_codes.rows, len(runs.described) * len(metrics))
    measured = ~np.isnan(values)
    blocks = []
    for group, start in enumerate(first.tolist()):
        rows = np.flatnonzero((groups == group) & measured)
        _, kept = np.unique(tasks.rows[rows], return_index=True)
        kept = rows[np.sort(kept)]
        value_of = dict(zip(tasks.rows[kept].tolist(), values[kept].tolist(), strict=True))
        wrong = [row for row in rows.tolist() if values[row] != value_of[int(tasks.rows[row])]]
        problems.add(wrong, role["score"], ["the task has a different score in an earlier row"])
        if len(kept):
            blocks.append(
                TaskScores(
                    run=runs.described[runs.rows[start]],
                    metric=metrics[metric_codes.rows[start]],
                    tasks=[tasks.names[code] for code in tasks.rows[kept]],
                    values=values[kept],
                    stderr=errors[kept],
                    n_prompts=None
                    if counts is None
                    else [count if count >= 0 else None for count in counts[kept].tolist()],
                )
            )
    problems.check()
    yield from blocks
    if ignored := [name for name in table.names if name not in role.values() and not is_row_number(name)]:
        yield f"skipped unknown columns: {', '.join(ignored)}"


def _lacks(role: Mapping[str, str], options: ReadOptions) -> str | None:
    if "prompt" in role or "text" in role:
        return f"the column {role.get('prompt') or role['text']!r} identifies prompts"
    return first_missing(
        [
            ("model" in role or bool(options.model), "no column model"),
            ("task" in role, "no column task"),
            ("score" in role, "no column score"),
        ]
    )
