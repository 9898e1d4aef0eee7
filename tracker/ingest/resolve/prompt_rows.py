"""Resolution of rows to stored prompts, for files that must not add new ones."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import AmbiguousError
from tracker.ingest.files.tabular.table import TableProblems
from tracker.ingest.resolve.catalogue_resolver import task_aliases
from tracker.ingest.resolve.prompt_index import ALIAS, TASK, PromptIndex
from tracker.ingest.resolve.prompt_texts import make_storable


def find_prompt_rows(
    session: Session,
    benchmark_id: int,
    benchmark: str,
    keys: Sequence[str | None],
    tasks: Sequence[str] | None,
    problems: TableProblems,
) -> NDArray[np.int64]:
    """Return the ``(n,)`` int64 key of each row's prompt; -1 if there is none.

    Args:
        session: the store.
        benchmark_id: key of the benchmark.
        benchmark: its name, for messages.
        keys: name of each row's prompt; None if missing.
        tasks: task of each row; None if the file has no tasks.
        problems: collects rows of unknown prompts and duplicate rows.

    Raises:
        AmbiguousError: a name means prompts of several tasks, and the file has no tasks.
    """
    stored = session.execute(sa.select(TASK.c.name, TASK.c.id).where(TASK.c.benchmark_id == benchmark_id))
    known: dict[str, int] = {row.name: row.id for row in stored} | task_aliases(session, benchmark_id)
    index = PromptIndex(session, benchmark_id)
    spaces = session.scalars(
        sa.select(ALIAS.c.namespace).join(TASK, TASK.c.id == ALIAS.c.task_id).where(TASK.c.benchmark_id == benchmark_id)
        .distinct().order_by(ALIAS.c.namespace)
    ).all()  # fmt: skip
    table = problems.table
    labels = [None if key is None else make_storable(key) for key in keys]
    of_task = None if tasks is None else [known.get(make_storable(task), -1) for task in tasks]
    prompts: list[int | None] = [None] * len(keys)
    for space in spaces:  # one namespace names all of them, or none
        candidates = _look_up(index.load_names(space), labels, of_task, problems)
        if sum(key is not None for key in candidates) > sum(key is not None for key in prompts):
            prompts = candidates
    unknown = [row for row, key in enumerate(prompts) if key is None and keys[row] is not None]
    in_task = [""] * len(prompts) if tasks is None else [f" in the task {task!r}" for task in tasks]
    problems.add(unknown, None, [f"{benchmark} has no prompt {keys[row]!r}{in_task[row]}" for row in unknown])
    first: dict[int, int] = {}
    repeated = [row for row, key in enumerate(prompts) if key is not None and first.setdefault(key, row) != row]
    texts = [f"duplicate prompt {keys[row]!r}, also in {table.place(first[prompts[row] or 0])}" for row in repeated]
    problems.add(repeated, None, texts)
    return np.array([-1 if key is None else key for key in prompts], dtype=np.int64)


def advise_on_names(benchmark: str) -> str:
    """Return the advice for unknown prompts."""
    quoted = shlex.quote(benchmark)
    return f"Use the prompt names of the ingested files. To ingest one: suffrage ingest … --benchmark {quoted}"


def _look_up(
    names: dict[tuple[int, str], int], keys: Sequence[str | None], tasks: Sequence[int] | None, problems: TableProblems
) -> list[int | None]:
    if tasks is not None:
        return [None if key is None else names.get((task, key)) for task, key in zip(tasks, keys, strict=True)]
    by_key: dict[str | None, list[int]] = defaultdict(list)
    for (_, key), prompt in names.items():
        by_key[key].append(prompt)
    unclear = next((key for key in keys if len(set(by_key.get(key, ()))) > 1), None)
    if unclear is not None:
        raise AmbiguousError(
            f"{problems.table.path}: {unclear!r} is a prompt of {len(by_key[unclear])} tasks. Add a column task to "
            "the file."
        )
    return [by_key[key][0] if key in by_key else None for key in keys]
