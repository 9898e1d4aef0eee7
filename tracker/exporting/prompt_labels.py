"""Unique names of a benchmark's prompts that `suffrage ingest` recognizes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.sql import tables


def make_prompt_labels(session: Session, prompt_tasks: Mapping[int, str]) -> dict[int, str]:
    """Return a name for each prompt that is unique in its task.

    It is the name in tables, else that of the first harness. If two prompts of a task would have the same name, those
    named only by a harness get its name as a prefix (``lm_eval:q1``). A prompt without any name is named by its key.

    Args:
        session: the store.
        prompt_tasks: name of the task of each prompt.
    """
    alias = tables.prompt_alias.c
    names: dict[int, tuple[str, str]] = {}
    for prompt_id, namespace, key in session.execute(sa.select(alias.prompt_id, alias.namespace, alias.key)):
        if prompt_id in prompt_tasks:
            alias_name = (namespace, key)  # compared here: engines sort texts differently
            names[prompt_id] = min(names.get(prompt_id, alias_name), alias_name)
    plain = {task: names[task][1] if task in names else str(task) for task in prompt_tasks}
    times = Counter((prompt_tasks[prompt_id], name) for prompt_id, name in plain.items())
    used = set(times)
    for key in sorted(prompt_tasks):
        task, name = prompt_tasks[key], plain[key]
        if times[task, name] == 1 or names.get(key, ("key",))[0] == "":
            continue
        name = f"{names.get(key, ('key',))[0]}:{name}"
        while (task, name) in used:
            name += "'"
        plain[key] = name
        used.add((task, name))
    return plain


def find_shared_prompt_labels(session: Session, benchmark_id: int, prompt_ids: Sequence[int]) -> dict[int, str] | None:
    """Return the names of prompts in the first family of files that names all of them; None without one.

    Args:
        session: the store.
        benchmark_id: benchmark of the prompts.
        prompt_ids: the prompts.
    """
    alias, task = tables.prompt_alias.c, tables.task.c
    query = (
        sa.select(alias.namespace, alias.prompt_id, alias.key)
        .join(tables.task, task.id == alias.task_id)
        .where(task.benchmark_id == benchmark_id)
    )
    selected = set(prompt_ids)
    by_space: dict[str, dict[int, str]] = defaultdict(dict)
    for namespace, prompt_id, key in session.execute(query):
        if prompt_id in selected:
            known = by_space[namespace]
            known[prompt_id] = min(known.get(prompt_id, key), key)
    return next((names for _, names in sorted(by_space.items()) if len(names) == len(selected)), None)
