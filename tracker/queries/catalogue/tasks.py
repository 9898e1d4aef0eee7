"""List the tasks of benchmarks, with their other names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.resolution import benchmark_label, find_benchmark
from tracker.queries.sql import tables


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """A task of a benchmark.

    Attributes:
        benchmark, task: names; the task is '' for prompts without a task.
        aliases: names that files have for it.
        n_prompts: its prompts.
    """

    benchmark: str
    task: str
    aliases: Sequence[str]
    n_prompts: int


def list_tasks(session: Session, benchmark: str | None = None) -> list[TaskRow]:
    """List the tasks of all benchmarks or of one, by name, without those that are other names now.

    Raises:
        NotFoundError: the benchmark does not exist.
    """
    task, kept, prompt, alias = tables.task.c, tables.benchmark.c, tables.prompt.c, tables.task_alias.c
    aliases: dict[int, list[str]] = defaultdict(list)
    replaced: set[tuple[int, str]] = set()
    for key, name, task_id in session.execute(sa.select(alias.benchmark_id, alias.name, alias.task_id)):
        aliases[task_id].append(name)
        replaced.add((key, name))
    query = (
        sa.select(task.id, task.benchmark_id, task.name, kept.name, kept.revision, sa.func.count(prompt.id))
        .join(tables.benchmark, kept.id == task.benchmark_id)
        .join(tables.prompt, prompt.task_id == task.id, isouter=True)
        .group_by(task.id, task.benchmark_id, task.name, kept.name, kept.revision)
    )
    if benchmark is not None:
        query = query.where(task.benchmark_id == find_benchmark(session, benchmark).id)
    rows = [
        TaskRow(benchmark=benchmark_label(of, revision), task=name, aliases=tuple(sorted(aliases[key])), n_prompts=n)
        for key, of_key, name, of, revision, n in session.execute(query)
        if (of_key, name) not in replaced
    ]
    return sorted(rows, key=lambda row: (row.benchmark, row.task))
