"""One name for each prompt of a benchmark, such that files which name prompts so can be taken in again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlmodel import Session

from tracker.queries import tables


def prompt_labels(session: Session, prompt_tasks: Mapping[int, str]) -> dict[int, str]:
    """Name of each prompt, the only one of that name in its task.

    It is what tables call it, else what the first harness does. Where that would name two prompts of a task, those that
    only a harness names so get its name in front (``lm_eval:q1``), and a prompt that nothing names goes by its key.

    Args:
        session: the store.
        prompt_tasks: name of the task of each prompt.
    """
    alias = tables.prompt_alias.c
    names: dict[int, tuple[str, str]] = {}
    for prompt_id, namespace, key in session.execute(sa.select(alias.prompt_id, alias.namespace, alias.key)):
        if prompt_id in prompt_tasks:
            told = (namespace, key)  # compared here: engines differ in how they sort texts
            names[prompt_id] = min(names.get(prompt_id, told), told)
    plain = {task: names[task][1] if task in names else str(task) for task in prompt_tasks}
    times = Counter((prompt_tasks[one], name) for one, name in plain.items())
    taken = set(times)
    for one in sorted(prompt_tasks):
        task, name = prompt_tasks[one], plain[one]
        if times[task, name] == 1 or names.get(one, ("key",))[0] == "":
            continue
        name = f"{names.get(one, ('key',))[0]}:{name}"
        while (task, name) in taken:
            name += "'"
        plain[one] = name
        taken.add((task, name))
    return plain


def shared_prompt_labels(session: Session, benchmark_id: int, prompt_ids: Sequence[int]) -> dict[int, str] | None:
    """Names of prompts that one family of files gives to all of them; None where none names them all.

    Args:
        session: the store.
        benchmark_id: whose prompts.
        prompt_ids: which.
    """
    alias, task = tables.prompt_alias.c, tables.task.c
    asked = (
        sa.select(alias.namespace, alias.prompt_id, alias.key)
        .join(tables.task, task.id == alias.task_id)
        .where(task.benchmark_id == benchmark_id)
    )
    wanted = set(prompt_ids)
    by_space: dict[str, dict[int, str]] = defaultdict(dict)
    for namespace, prompt_id, key in session.execute(asked):
        if prompt_id in wanted:
            known = by_space[namespace]
            known[prompt_id] = min(known.get(prompt_id, key), key)
    return next((names for _, names in sorted(by_space.items()) if len(names) == len(wanted)), None)
