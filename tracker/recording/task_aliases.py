"""Give tasks other names, under which files have them, and remove these names again.

Aliases are recorded like an import, so they are undone in the same way.
"""

from __future__ import annotations

import shlex
from collections import defaultdict

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import ConflictError, NotFoundError, SelectionError
from tracker.ingest.resolve.catalogue_resolver import task_aliases
from tracker.ingest.resolve.prompt_texts import make_storable
from tracker.ingest.write.undo_log import recorded_import
from tracker.name_lists import join_names
from tracker.queries.resolution import BenchmarkKey, find_benchmark
from tracker.queries.sql import tables
from tracker.recording.undo.dependents import runs_with_prompts
from tracker.recording.undo.imports import ALIAS, ImportRow, list_imports, load_log
from tracker.recording.undo.removal import undo_import
from tracker.schema import TaskAlias

ANY = "*"
"""Stands for the name of a task in patterns."""
MAX_SOURCES = 5


def add_task_aliases(session: Session, benchmark: str, name: str, task: str) -> dict[str, str]:
    """Give a task another name; later imports that have the name mean the task.

    Args:
        session: an exclusive write transaction.
        benchmark: name of the benchmark.
        name: the other name. With ``*`` in it and as the task, every task gets a name, in which ``*`` is its own.
        task: the task, or ``*``.

    Returns:
        The task of each new name.

    Raises:
        NotFoundError: the benchmark has no such task.
        ConflictError: a name is that of a task with scores, or of another task.
        SelectionError: only one of name and task has a ``*``.
    """
    kept = find_benchmark(session, benchmark)
    stored = _tasks(session, kept)
    if (ANY in name) != (task == ANY) or name.count(ANY) > 1 or not name.strip() or name == ANY:
        raise SelectionError("A pattern names all tasks: NAME has one *, and TASK is *, such as 'mmlu_pro_*' '*'.")
    aliases = task_aliases(session, kept.id)
    if task == ANY:
        tasks = [known for known in stored if known and known not in aliases]
        new_names = {make_storable(name.replace(ANY, known)): known for known in tasks}
        new_names = {new: known for new, known in new_names.items() if aliases.get(new) != stored[known]}
    else:
        if task not in stored:
            raise NotFoundError("task", task, sorted(stored))
        new_names = {make_storable(name): task}
    for new, known in new_names.items():
        _check_name(session, kept, new, known, stored, aliases)
    with recorded_import(session, shlex.join([*ALIAS, kept.label, name, task])):
        session.add_all(
            TaskAlias(benchmark_id=kept.id, name=new, task_id=stored[known]) for new, known in new_names.items()
        )
    return new_names


def remove_task_aliases(session: Session, benchmark: str, name: str) -> int:
    """Remove what all calls of `add_task_aliases` with a name added; return the number of removed names.

    Scores that were imported under the name since stay with the task.

    Args:
        session: an exclusive write transaction.
        benchmark: name of the benchmark.
        name: the other name, or the pattern, with which it was called.

    Raises:
        NotFoundError: the benchmark has no such name.
        ConflictError: the name was added with others, by a pattern.
    """
    kept = find_benchmark(session, benchmark)
    records = [(row, row.task_alias) for row in list_imports(session) if row.task_alias is not None]
    by_name: dict[str, list[ImportRow]] = defaultdict(list)
    for row, (label, added) in records:
        if label == kept.label:
            by_name[added].append(row)
    chosen = by_name.get(name, [])
    if not chosen and name in task_aliases(session, kept.id):
        raise ConflictError(f"The name {name!r} was added with others.{_removal_advice(session, kept, name)}")
    if not chosen:
        raise NotFoundError("alias", name, sorted(by_name))
    return sum(undo_import(session, row).removed.get("task_alias", 0) for row in chosen)


def _removal_advice(session: Session, benchmark: BenchmarkKey, name: str) -> str:
    """Return a line with the command that removes an other name; '' if its import is not recorded."""
    for row in list_imports(session):
        if load_log(session, row.id).is_added("task_alias", benchmark.id, name):
            return f"\nTo remove it: {row.undo_command}"
    return ""


def _tasks(session: Session, benchmark: BenchmarkKey) -> dict[str, int]:
    task = tables.task.c
    rows = session.execute(sa.select(task.name, task.id).where(task.benchmark_id == benchmark.id))
    return {name: key for name, key in rows}  # noqa: C416


def _check_name(
    session: Session,
    benchmark: BenchmarkKey,
    name: str,
    task: str,
    stored: dict[str, int],
    aliases: dict[str, int],
) -> None:
    """Check that a name is free.

    Raises:
        ConflictError: it is not.
    """
    if name in aliases:
        raise ConflictError(
            f"{name!r} is another name of a task of {benchmark.label} already."
            f"{_removal_advice(session, benchmark, name)}"
        )
    if name == task:
        raise ConflictError(f"The task is already named {task!r}. Choose another name.")
    if task in aliases:
        raise ConflictError(f"{task!r} is itself the other name. List the tasks of {benchmark.label}: suffrage tasks")
    if name in stored and (runs := _runs_of_task(session, benchmark.id, stored[name])):
        linked = tables.run_source.c
        sources = session.scalars(
            sa.select(linked.source_id).where(linked.run_id.in_(runs)).distinct().order_by(linked.source_id.desc())
        ).all()
        commands = [f"suffrage undo --source {source}" for source in sources] or [f"suffrage runs delete {runs[0]}"]
        raise ConflictError(
            f"The task {name!r} of {benchmark.label} has scores of {len(runs)} run{'s' * (len(runs) != 1)}.\n"
            f"Undo their imports, add the name, and import the files again: {join_names(commands, MAX_SOURCES)}"
        )


def _runs_of_task(session: Session, benchmark_id: int, task_id: int) -> list[int]:
    """Return the runs with scores or answers of a task."""
    prompt, whole = tables.prompt.c, tables.task_score.c
    keys = session.scalars(sa.select(prompt.id).where(prompt.task_id == task_id).order_by(prompt.id)).all()
    ranges: list[tuple[int, int]] = []
    for key in keys:
        ranges[-1:] = [(ranges[-1][0], key)] if ranges and key == ranges[-1][1] + 1 else [*ranges[-1:], (key, key)]
    runs = set(runs_with_prompts(session, ranges, [benchmark_id])) if ranges else set()
    return sorted(runs | set(session.scalars(sa.select(whole.run_id).where(whole.task_id == task_id).distinct())))
