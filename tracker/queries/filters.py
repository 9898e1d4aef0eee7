"""Which prompts a recorded filter keeps, and why it singled out the others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlmodel import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.queries import tables
from tracker.queries.arrow import number_columns, read_arrow
from tracker.queries.findings import staleness
from tracker.queries.resolution import BenchmarkKey, find_benchmark
from tracker.queries.selection import Selection

FILTER_MODELS = "filter_models"
"""Name of the ranking that lists the models by whose answers a filter was made."""
LARGEST_KEY = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class FilterReason:
    """The prompts that one reason applies to.

    Attributes:
        prompt_ids: ``(n,)`` int64, ascending.
        retained: ``(n,)`` whether it stays in spite of this reason.
        groups: ``(n,)`` int64 number of the group of like prompts it is in; -1 = in none.
    """

    prompt_ids: NDArray[np.int64]
    retained: NDArray[np.bool_]
    groups: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PromptFilter:
    """A recorded filter of a benchmark's prompts.

    A question that takes one as an input looks at a filter, and loads everything else unfiltered.

    Attributes:
        analysis_id: the finding that holds it.
        made_by: name of the question, such as ``smart-filtering``.
        benchmark: whose prompts.
        prompt_ids: ``(n,)`` int64, ascending: every prompt it judged.
        kept: ``(n,)`` whether the prompt stays.
        reasons: by step, such as ``easy``.
        models: by whose answers it was made, the best first; empty where it looked at none.
        parameters: the options it was made with.
        selection: the data it was made of.
        stale: why it should be made anew; '' where the scores it was made of are still the latest.
    """

    CLAIMS: ClassVar[str] = "filter"
    HELP: ClassVar[str] = "The filter that is looked at; else the benchmark's latest."

    analysis_id: int
    made_by: str
    benchmark: str
    prompt_ids: NDArray[np.int64]
    kept: NDArray[np.bool_]
    reasons: Mapping[str, FilterReason]
    models: tuple[str, ...]
    parameters: Mapping[str, Any]
    selection: Mapping[str, Any]
    stale: str = ""

    @classmethod
    def load(cls, session: Session, selection: Selection) -> PromptFilter:
        """The filter that a selection names, else the latest of its benchmark; see `prompt_filter`."""
        return prompt_filter(session, find_benchmark(session, selection.benchmark), selection.filter)

    @property
    def n_kept(self) -> int:
        """Number of prompts that stay."""
        return int(self.kept.sum())

    @property
    def digest(self) -> str:
        """SHA-256 of every decision, its reasons and how they were come by."""
        told = (self.models, self.parameters, sorted(self.reasons))
        hashed = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
        hashed.update(self.prompt_ids.tobytes() + self.kept.tobytes())
        for _, reason in sorted(self.reasons.items()):
            hashed.update(reason.prompt_ids.tobytes() + reason.retained.tobytes() + reason.groups.tobytes())
        return hashed.hexdigest()

    def of(self, prompt_ids: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which of some prompts stay, and which were judged at all.

        Args:
            prompt_ids: ``(m,)`` int64 keys.

        Returns:
            Two ``(m,)`` arrays; a prompt that was never judged does not stay.
        """
        judged = np.isin(prompt_ids, self.prompt_ids)
        stays = np.isin(prompt_ids, self.prompt_ids[self.kept])
        return stays, judged

    def flagged(self, step: str, prompt_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """``(m,)`` which of some prompts a step's reason applies to; none where the step has no reason."""
        reason = self.reasons.get(step)
        return np.isin(prompt_ids, reason.prompt_ids) if reason else np.zeros(len(prompt_ids), dtype=np.bool_)

    def removed(self, step: str, prompt_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """``(m,)`` which of some prompts a step removes."""
        reason = self.reasons.get(step)
        gone = reason.prompt_ids[~reason.retained] if reason else np.empty(0, dtype=np.int64)
        return np.isin(prompt_ids, gone)


def prompt_filter(session: Session, benchmark: BenchmarkKey, key: int | None = None) -> PromptFilter:
    """A recorded filter.

    Args:
        session: the store.
        benchmark: whose prompts.
        key: of the finding that holds it; None takes the benchmark's latest.

    Raises:
        NotFoundError: there is no such finding.
        SelectionError: it filters no prompts, or those of another benchmark; or the benchmark has no filter.
    """
    key = _latest(session, benchmark) if key is None else key
    row = None
    if key <= LARGEST_KEY:
        row = session.execute(sa.select(tables.analysis).where(tables.analysis.c.id == key)).first()
    if row is None:
        raise NotFoundError("finding with a filter", key, _filters(session, None))
    if row.benchmark_id != benchmark.id:
        raise SelectionError(f"Finding {key} is not about {benchmark.label}. Choose a filter of its own prompts.")
    decided = read_arrow(
        session,
        "SELECT prompt_id, CASE WHEN kept THEN 1 ELSE 0 END FROM filter_decision WHERE analysis_id = ?",
        (key,),
    )
    ids, kept = number_columns(decided)
    if not len(ids):
        raise SelectionError(
            f"Finding {key} ({row.name}) filters no prompts. One that does: suffrage analyze smart-filtering …"
        )
    order = np.argsort(ids)
    ranking, model = tables.ranking.c, tables.model.c
    models = session.scalars(
        sa.select(model.name)
        .join(tables.ranking, ranking.model_id == model.id)
        .where(ranking.analysis_id == key, ranking.scheme == FILTER_MODELS)
        .order_by(ranking.rank, model.name)
    ).all()
    return PromptFilter(
        analysis_id=key,
        made_by=row.name,
        benchmark=benchmark.label,
        prompt_ids=ids[order].astype(np.int64),
        kept=kept[order].astype(np.bool_),
        reasons=_reasons(session, key),
        models=tuple(models),
        parameters=row.parameters or {},
        selection=row.selection or {},
        stale=staleness(session, key),
    )


def _reasons(session: Session, key: int) -> dict[str, FilterReason]:
    reason = tables.filter_reason.c
    rows: dict[str, list[tuple[int, bool, int]]] = {}
    found = session.execute(
        sa.select(reason.step, reason.prompt_id, reason.retained, reason.cluster)
        .where(reason.analysis_id == key)
        .order_by(reason.prompt_id)
    )
    for step, prompt_id, retained, cluster in found:
        rows.setdefault(step, []).append((prompt_id, retained, -1 if cluster is None else cluster))
    reasons = {}
    for step in sorted(rows):
        prompt_ids, retained, groups = zip(*rows[step], strict=True)
        reasons[step] = FilterReason(
            prompt_ids=np.array(prompt_ids, dtype=np.int64),
            retained=np.array(retained, dtype=np.bool_),
            groups=np.array(groups, dtype=np.int64),
        )
    return reasons


def _filters(session: Session, benchmark: BenchmarkKey | None) -> list[int]:
    """Keys of the findings that hold a filter, ascending."""
    decision, analysis = tables.filter_decision.c, tables.analysis.c
    there = sa.select(sa.literal(1)).where(decision.analysis_id == analysis.id).exists()
    query = sa.select(analysis.id).where(analysis.status == "complete", there).order_by(analysis.id)
    if benchmark is not None:
        query = query.where(analysis.benchmark_id == benchmark.id)
    return list(session.scalars(query))


def _latest(session: Session, benchmark: BenchmarkKey) -> int:
    found = _filters(session, benchmark)
    if not found:
        raise SelectionError(
            f"{benchmark.label} has no filter yet. Make one: suffrage analyze smart-filtering {benchmark.label}"
        )
    return found[-1]


def chosen_filter(session: Session, benchmark: BenchmarkKey, selection: Selection) -> PromptFilter | None:
    """The filter that a selection names; None where it names none."""
    return None if selection.filter is None else prompt_filter(session, benchmark, selection.filter)


def filter_notes(chosen: PromptFilter, prompt_ids: NDArray[np.int64]) -> tuple[str, ...]:
    """What a reader should know of numbers that rest on the kept prompts only.

    Args:
        chosen: the filter.
        prompt_ids: ``(n,)`` every prompt that would have been looked at without it.
    """
    stays, judged = chosen.of(prompt_ids)
    notes = [f"Only the {int(stays.sum()):,} of {len(stays):,} prompts that filter {chosen.analysis_id} keeps."]
    if unjudged := int((~judged).sum()):
        notes.append(
            f"{unjudged:,} prompts came later than filter {chosen.analysis_id}, which never judged them; they are left "
            f"out. Make the filter anew: suffrage analyze {chosen.made_by} {chosen.benchmark}"
        )
    if chosen.stale:
        notes.append(f"Filter {chosen.analysis_id} was made of scores that are no longer the latest ({chosen.stale}).")
    return tuple(notes)
