"""Detect findings whose runs have changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys
from tracker.name_lists import join_names
from tracker.queries.run_choice import Coverage, choose_runs, measure_coverage
from tracker.queries.selected_runs.conditions import has_scores
from tracker.queries.splits.names import UNKNOWN
from tracker.queries.sql import tables

MAX_NAMES = 3

STATUS_CHANGES = {"hidden": "hidden since", "superseded": "superseded since", "partial": "only partial now"}
"""Description of a run's status if it differs from the status when it was read."""


def explain_staleness(session: Session, key: int) -> str:
    """Return why a finding is stale; '' if its data are still the latest, or the finding does not exist."""
    return list_stale_findings(session, [key]).get(key, "")


def list_stale_findings(session: Session, keys: Collection[int] | None = None) -> dict[int, str]:
    """Return why findings are stale, by key; findings that are up to date are left out.

    A run may have been changed, hidden, superseded or deleted. Its model may have a later run that is at least as
    complete under the same metric, in the splits that the finding names, else in those of the run, unless runs or a
    date were chosen explicitly. A finding with a filter or weights is stale if a run of those was changed or excluded,
    but not if it merely is not the latest.

    Args:
        session: the store.
        keys: keys of the findings; None means all.
    """
    findings = {key: _FindingData(*rest) for key, *rest in _analyses(session, keys)}
    _weigh(session, findings)
    for key in sorted(findings):  # a filter and weights are recorded before the findings that use them
        finding = findings[key]
        for noun, used in (
            ("filter", findings.get(finding.filter_id or -1)),
            ("weights", findings.get(finding.weights_id or -1)),
        ):
            if used is not None and used.withdrawn and not finding.withdrawn:
                used_id = finding.filter_id if noun == "filter" else finding.weights_id
                finding.withdrawn.append(f"its {noun}, finding {used_id}: {'; '.join(used.withdrawn)}")
    selected = findings if keys is None else set(keys) & set(findings)
    return {key: reason for key in sorted(selected) if (reason := findings[key].reason)}


def compare_staleness(before: Mapping[int, str], after: Mapping[int, str]) -> tuple[dict[int, str], tuple[int, ...]]:
    """Compare the stale findings before and after a change.

    Args:
        before, after: from `list_stale_findings`.

    Returns:
        The findings that became stale, or are stale for another reason, with the reason; and those no longer stale.
    """
    stale = {key: why for key, why in after.items() if before.get(key) != why}
    return stale, tuple(key for key in before if key not in after)


@dataclass
class _FindingData:
    """A finding with its selection, and the changes of its data.

    Attributes:
        selection: its selection.
        filter_id, weights_id: the findings it was computed with.
        deleted: note recorded when one of its runs was deleted.
        withdrawn: why it is invalid.
        later: why it is no longer the latest.
    """

    selection: Mapping[str, Any] | None
    filter_id: int | None
    weights_id: int | None
    deleted: str | None
    withdrawn: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.selection = self.selection or {}
        self.withdrawn += [self.deleted] if self.deleted else []

    @property
    def reason(self) -> str:
        return "; ".join([*self.withdrawn, *self.later])

    @property
    def is_pinned(self) -> bool:
        """Whether its runs were chosen explicitly."""
        return bool(self.selection and (self.selection.get("runs") or self.selection.get("as_of")))


def _analyses(session: Session, keys: Collection[int] | None) -> list[Sequence[Any]]:
    """Return key, selection, filter, weights and note of complete findings, and of those they were computed with."""
    finding = tables.finding.c
    columns = sa.select(finding.id, finding.selection, finding.filter_id, finding.weights_id, finding.stale).where(
        finding.status == "complete"
    )
    if keys is None:
        return list(session.execute(columns))
    rows_by_key: dict[int, Sequence[Any]] = {}
    missing = set(keys)
    while missing:
        rows = [
            row for part in split_keys(sorted(missing)) for row in session.execute(columns.where(finding.id.in_(part)))
        ]
        rows_by_key |= {row[0]: row for row in rows}
        missing = {key for row in rows for key in row[2:4] if key is not None} - set(rows_by_key)
    return list(rows_by_key.values())


def _weigh(session: Session, findings: Mapping[int, _FindingData]) -> None:
    """Record the changes of the findings' runs."""
    changed: dict[int, set[int]] = defaultdict(set)
    aside: dict[tuple[int, str], set[str]] = defaultdict(set)
    later: dict[int, dict[int, str]] = defaultdict(dict)
    used: dict[int, set[int]] = defaultdict(set)
    for row in _rests_on(session, findings):
        finding = findings[row.finding_id]
        used[row.finding_id].add(row.run_id)
        if row.checksum != row.checksum_now:
            changed[row.finding_id].add(row.run_id)
        elif row.status_now not in ("complete", row.status):
            by = f" by run {row.superseded_by}" if row.superseded_by else ""
            why = f" ({row.reason})" if row.reason else ""
            aside[row.finding_id, row.status_now].add(f"run {row.run_id}{by}{why}")
        elif not finding.is_pinned:
            later[row.finding_id][row.run_id] = row.model
    for key, keys in changed.items():
        findings[key].withdrawn.append(f"changed since: run {join_names(sorted(keys), MAX_NAMES)}")
    for (key, status), changes in sorted(aside.items()):
        findings[key].withdrawn.append(f"{STATUS_CHANGES[status]}: {join_names(sorted(changes), MAX_NAMES)}")
    newest = _LaterRuns(session, {run for runs in later.values() for run in runs})
    for key, runs in later.items():
        selection = findings[key].selection or {}
        metric, split = selection.get("metric"), tuple(selection.get("split", ()))
        changes = {
            f"{model} (run {new})"
            for run, model in runs.items()
            if (new := newest.of(run, metric, split)) and new not in used[key]
        }
        if changes:
            findings[key].later.append(f"a later run exists of {join_names(sorted(changes), MAX_NAMES)}")


def _rests_on(session: Session, keys: Collection[int]) -> Iterator[sa.Row[*tuple[Any, ...]]]:
    used, run = tables.finding_run.c, tables.run.c
    query = (
        sa.select(
            used.finding_id,
            used.run_id,
            used.checksum,
            used.status,
            run.checksum.label("checksum_now"),
            run.status.label("status_now"),
            run.superseded_by,
            run.reason,
            tables.model.c.name.label("model"),
        )
        .join(tables.run, run.id == used.run_id)
        .join(tables.model, tables.model.c.id == run.model_id)
        .order_by(used.finding_id, used.run_id)
    )
    for part in split_keys(sorted(keys)):
        yield from session.execute(query.where(used.finding_id.in_(part)))


class _LaterRuns:
    """The run that is used instead of each of some runs, if it is a later one.

    Only complete runs of the same benchmark, model, condition and variant count; see `tracker.queries.run_choice`.
    """

    def __init__(self, session: Session, runs: Collection[int]) -> None:
        run, later = tables.run, tables.run.alias("later")
        same = (later.c[name] == run.c[name] for name in ("benchmark_id", "model_id", "condition", "variant"))
        query = (
            sa.select(run.c.id, later.c.id)
            .join(later, sa.and_(*same, later.c.status == "complete", later.c.id > run.c.id))
            .order_by(later.c.id.desc())
        )
        self._session = session
        self._measured: dict[tuple[int, tuple[str, ...]], Mapping[int, Coverage]] = {}
        self._splits: dict[tuple[int, int], frozenset[str]] = {}
        self._later: dict[int, list[int]] = defaultdict(list)
        for part in split_keys(sorted(runs)):
            for key, new in session.execute(query.where(run.c.id.in_(part))):
                self._later[key].append(new)
        self._metrics: dict[int, dict[str, int]] = defaultdict(dict)
        scored = (
            sa.select(run.c.id, tables.metric.c.name, tables.metric.c.id)
            .select_from(sa.join(tables.metric, run, sa.true()))
            .where(sa.or_(has_scores(session, "prompt"), has_scores(session, "task")))
        )
        for part in split_keys({*self._later, *(new for news in self._later.values() for new in news)}):
            for key, name, metric_id in session.execute(scored.where(run.c.id.in_(part))):
                self._metrics[key][name] = metric_id

    def of(self, run: int, metric: str | None, split: tuple[str, ...] = ()) -> int | None:
        """Return the later run that is used instead of a run, under the metric or under one that both have.

        Args:
            run: key of the run.
            metric: name of the metric; None for any.
            split: splits of the prompts that count; none means those that the run has scores in.
        """
        known = self._metrics[run]
        needed = {metric: known[metric]} if metric in known else known
        if not known:
            return next(iter(self._later[run]), None)
        for key in needed.values():
            later = [new for new in self._later[run] if key in self._metrics[new].values()]
            if later:
                coverage = self._coverage(key, split or self._restrict(key, run, later))
                chosen = choose_runs({run: [run, *later]}, coverage)[run]
                if chosen != run:
                    return chosen
        return None

    def _restrict(self, metric_id: int, run: int, later: Collection[int]) -> tuple[str, ...]:
        """Return the splits in which a run has scores; none if the later runs have scores in no further split."""
        splits = self._splits_of(metric_id, run)
        return tuple(sorted(splits)) if any(self._splits_of(metric_id, new) - splits for new in later) else ()

    def _splits_of(self, metric_id: int, run: int) -> frozenset[str]:
        if (metric_id, run) not in self._splits:
            score, prompt = tables.score.c, tables.prompt.c
            query = sa.select(prompt.split).join(tables.score, score.prompt_id == prompt.id).distinct()
            of_run_and_metric = (
                score.run_id == run,
                score.metric_id == metric_id,
                in_partitions_of_runs(self._session, tables.score, [run]),
            )
            names = self._session.scalars(query.where(*of_run_and_metric))
            self._splits[metric_id, run] = frozenset(UNKNOWN if name is None else name for name in names)
        return self._splits[metric_id, run]

    def _coverage(self, metric_id: int, split: tuple[str, ...]) -> Mapping[int, Coverage]:
        if (metric_id, split) not in self._measured:
            runs = [run for run, metrics in self._metrics.items() if metric_id in metrics.values()]
            self._measured[metric_id, split] = measure_coverage(
                self._session, metric_id, runs, by_task=True, split=split
            )
        return self._measured[metric_id, split]
