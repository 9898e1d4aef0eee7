"""The rule that chooses one of several runs of a model.

The run that covers most of the benchmark under the metric is chosen; among equal ones, the latest. So a limited or
incomplete run never replaces a complete one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys
from tracker.queries.notices import add_notice
from tracker.queries.selection import restricts_split
from tracker.queries.splits.names import split_condition
from tracker.queries.sql import tables

MAX_NAMES = 5

Key = TypeVar("Key", bound=Hashable)
RunRow = sa.Row[int, str, str]
"""Key, model and condition of a run."""


@dataclass(frozen=True, order=True, kw_only=True)
class Coverage:
    """How much of a benchmark a run covers under a metric; larger is more.

    Attributes:
        share: number of prompts; if scores of whole tasks count too, number of tasks, where a task with scores of
            some prompts counts as a fraction.
        n_prompts: prompts with a score.
    """

    share: float = 0.0
    n_prompts: int = 0

    def describe(self) -> str:
        """Return the number of prompts, or of tasks if no prompt has a score."""
        n, noun = (self.n_prompts, "prompt") if self.n_prompts else (round(self.share), "task")
        return f"{n:,} {noun}{'s' * (n != 1)}"


def choose_runs(runs: Mapping[Key, Sequence[int]], coverage: Mapping[int, Coverage]) -> dict[Key, int]:
    """Return the run of each model, or of any other group, that is used.

    Args:
        runs: keys of the runs of each group.
        coverage: of every run of a group with several.
    """
    none = Coverage()
    return {
        name: keys[0] if len(keys) == 1 else max(keys, key=lambda key: (coverage.get(key, none), key))
        for name, keys in runs.items()
    }


def measure_coverage(
    session: Session, metric_id: int, run_ids: Collection[int], *, by_task: bool = False, split: Sequence[str] = ()
) -> dict[int, Coverage]:
    """Return the coverage of some runs under a metric.

    Args:
        session: the store.
        metric_id: key of the metric.
        run_ids: keys of the runs; the most prompts that one of them has in a task are the whole task.
        by_task: whether scores of whole tasks count too.
        split: splits of the prompts that count; none means all.
    """
    prompts: dict[int, dict[int, int]] = defaultdict(dict)
    published: dict[int, set[int]] = defaultdict(set)
    score, prompt, task_score = tables.score.c, tables.prompt.c, tables.task_score.c
    count = sa.func.count(score.prompt_id.distinct())
    query: sa.Select[Any] = sa.select(score.run_id, sa.literal(0), count).group_by(score.run_id)
    if by_task:
        query = sa.select(score.run_id, prompt.task_id, count).join(tables.prompt, prompt.id == score.prompt_id)
        query = query.group_by(score.run_id, prompt.task_id)
    if restricts_split(split):
        of_split = sa.select(prompt.id).where(split_condition(split))
        query = query.where(score.prompt_id.in_(of_split))
    ordered = sorted(run_ids)
    for part in split_keys(ordered):
        of_part = score.run_id.in_(part), in_partitions_of_runs(session, tables.score, part)
        for run, task, n in session.execute(query.where(score.metric_id == metric_id, *of_part)):
            prompts[run][task] = n
        if by_task:
            whole = sa.select(task_score.run_id, task_score.task_id).where(task_score.metric_id == metric_id)
            for run, task in session.execute(whole.where(task_score.run_id.in_(part))):
                published[run].add(task)
    return {run: _combine(run, prompts, published, by_task=by_task) for run in ordered}


def _combine(
    run: int, prompts: Mapping[int, Mapping[int, int]], published: Mapping[int, Collection[int]], *, by_task: bool
) -> Coverage:
    known = prompts.get(run, {})
    n_prompts = sum(known.values())
    if not by_task:
        return Coverage(share=float(n_prompts), n_prompts=n_prompts)
    whole = published.get(run, ())
    most = {task: max(counts.get(task, 0) for counts in prompts.values()) for task in known}
    parts = [n / most[task] for task, n in sorted(known.items()) if task not in whole]
    return Coverage(share=fsum([len(whole), *parts]), n_prompts=n_prompts)


def choose_latest(
    session: Session, metric_id: int, rows: Sequence[RunRow], *, by_task: bool, split: Sequence[str] = ()
) -> list[RunRow]:
    """Return the row of each model's run that is used, and add a notice about later runs that are not.

    Args:
        session: the store.
        metric_id: key of the metric.
        rows: the runs, by ascending key.
        by_task: whether scores of whole tasks count too.
        split: splits of the prompts that count; none means all.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for key, name, _ in rows:
        groups[name].append(key)
    several = [key for keys in groups.values() if len(keys) > 1 for key in keys]
    coverage = measure_coverage(session, metric_id, several, by_task=by_task, split=split) if several else {}
    chosen = choose_runs(groups, coverage)
    passed_over = {name: max(keys) for name, keys in groups.items() if max(keys) != chosen[name]}
    if passed_over:
        add_notice(session, _describe_choice(chosen, passed_over, coverage))
    by_id = {row[0]: row for row in rows}
    return [by_id[key] for key in chosen.values()]


def _describe_choice(
    chosen: Mapping[str, int], passed_over: Mapping[str, int], coverage: Mapping[int, Coverage]
) -> str:
    runs = [
        f"{name}: run {chosen[name]} with {coverage[chosen[name]].describe()}, not run {later} with "
        f"{coverage[later].describe()}"
        for name, later in passed_over.items()
    ]
    first = next(iter(passed_over))
    return (
        f"A later run with fewer scores does not replace a more complete one. {'; '.join(runs[:MAX_NAMES])}"
        f"{f'; and {len(runs) - MAX_NAMES} more' if len(runs) > MAX_NAMES else ''}. To use a later run, name the runs "
        f"with --runs, or hide the earlier run: suffrage runs hide {chosen[first]}"
    )
