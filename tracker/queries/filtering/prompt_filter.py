"""Load a recorded filter: the prompts it keeps, and the reasons for the others."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.queries.findings.staleness import explain_staleness
from tracker.queries.resolution import BenchmarkKey, find_benchmark
from tracker.queries.selected_runs.conditions import MAX_KEY
from tracker.queries.selection import AnalysisInput, ClaimableOption, Selection
from tracker.queries.sql import tables
from tracker.queries.sql.arrow import number_columns, read_arrow, word_column

FILTER_MODELS = "filter_models"
"""Name of the ranking that lists a filter's models."""


@dataclass(frozen=True, kw_only=True)
class ReasonPrompts:
    """The prompts that one reason applies to.

    Attributes:
        prompt_ids: ``(n,)`` int64, ascending.
        retained: ``(n,)`` whether the prompt stays in spite of this reason.
        groups: ``(n,)`` int64 number of its group of similar prompts; -1 = none.
    """

    prompt_ids: NDArray[np.int64]
    retained: NDArray[np.bool_]
    groups: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PromptFilter(AnalysisInput):
    """A recorded filter of a benchmark's prompts.

    An analysis with this input examines a filter, and loads everything else unfiltered.

    Attributes:
        finding_id: key of the finding.
        made_by: name of the analysis, such as ``smart-filtering``.
        benchmark: of the prompts.
        prompt_ids: ``(n,)`` int64, ascending: every prompt it evaluated.
        kept: ``(n,)`` whether the prompt stays.
        reasons: by step, such as ``easy``.
        models: filter models, best first; empty if it used none.
        parameters: its options.
        selection: its data.
        stale: why it should be run again; '' if its scores are still the latest.
    """

    CLAIMED_OPTION: ClassVar[ClaimableOption | None] = "filter"
    CLAIMED_OPTION_HELP: ClassVar[str] = "The filter to examine; default: the benchmark's latest."

    finding_id: int
    made_by: str
    benchmark: str
    prompt_ids: NDArray[np.int64]
    kept: NDArray[np.bool_]
    reasons: Mapping[str, ReasonPrompts]
    models: tuple[str, ...]
    parameters: Mapping[str, Any]
    selection: Mapping[str, Any]
    stale: str = ""

    @classmethod
    def load(cls, session: Session, selection: Selection) -> PromptFilter:
        """Load the filter that a selection names, else the latest of its benchmark; see `load_prompt_filter`."""
        return load_prompt_filter(session, find_benchmark(session, selection.benchmark), selection.filter)

    @property
    def n_kept(self) -> int:
        """Number of kept prompts."""
        return int(self.kept.sum())

    @property
    def digest(self) -> str:
        """SHA-256 of every decision, its reasons and its inputs."""
        sizes = [len(self.prompt_ids), *(len(reason.prompt_ids) for _, reason in sorted(self.reasons.items()))]
        content = (self.models, self.parameters, sorted(self.reasons), sizes)
        hashed = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
        hashed.update(self.prompt_ids.tobytes() + self.kept.tobytes())
        for _, reason in sorted(self.reasons.items()):
            hashed.update(reason.prompt_ids.tobytes() + reason.retained.tobytes() + reason.groups.tobytes())
        return hashed.hexdigest()

    def align(self, prompt_ids: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which of some prompts are kept, and which were evaluated at all.

        Args:
            prompt_ids: ``(m,)`` int64 keys.

        Returns:
            Two ``(m,)`` arrays; a prompt that was never evaluated is not kept.
        """
        is_covered = np.isin(prompt_ids, self.prompt_ids)
        stays = np.isin(prompt_ids, self.prompt_ids[self.kept])
        return stays, is_covered

    def empties(self, metric: str) -> str:
        """Return the message that none of the kept prompts has a score under a metric."""
        return (
            f"No prompt of {self.benchmark} that filter {self.finding_id} keeps has a score under {metric} in the "
            "selected runs and tasks. Choose other tasks or models, or leave --filter out."
        )

    def flagged(self, step: str, prompt_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some prompts a step's reason applies to, ``(m,)``."""
        reason = self.reasons.get(step)
        return np.isin(prompt_ids, reason.prompt_ids) if reason else np.zeros(len(prompt_ids), dtype=np.bool_)

    def removed(self, step: str, prompt_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some prompts a step removes, ``(m,)``."""
        reason = self.reasons.get(step)
        gone = reason.prompt_ids[~reason.retained] if reason else np.empty(0, dtype=np.int64)
        return np.isin(prompt_ids, gone)


def load_prompt_filter(session: Session, benchmark: BenchmarkKey, key: int | None = None) -> PromptFilter:
    """Load a recorded filter.

    Args:
        session: the store; only committed data are visible.
        benchmark: of the prompts.
        key: key of the finding; None for the benchmark's latest filter.

    Raises:
        NotFoundError: the finding does not exist.
        SelectionError: the finding is not a filter, or filters another benchmark; or the benchmark has no filter.
    """
    known = list_filters(session, benchmark) if key is None else []
    if key is None and not known:
        raise SelectionError(f"{benchmark.label} has no filter yet. Create one: {_making(benchmark)}")
    key = known[-1] if key is None else key
    row = None
    if 0 <= key <= MAX_KEY:
        row = session.execute(sa.select(tables.finding).where(tables.finding.c.id == key)).first()
    if row is None:
        known = list_filters(session, benchmark)
        raise NotFoundError("finding with a filter", key, known, "" if known else f"Create one: {_making(benchmark)}")
    if row.benchmark_id != benchmark.id:
        filters = _name_filters(session, benchmark)
        raise SelectionError(
            f"Finding {key} is not about {benchmark.label}. Choose a filter of this benchmark{filters}."
        )
    decided = read_arrow(
        session,
        "SELECT prompt_id, CASE WHEN kept THEN 1 ELSE 0 END FROM filter_decision WHERE finding_id = ?",
        (key,),
    )
    ids, kept = number_columns(decided)
    if not len(ids):
        filters = _name_filters(session, benchmark)
        raise SelectionError(f"Finding {key} ({row.analysis}) is not a filter. Choose another finding{filters}.")
    order = np.argsort(ids)
    ranking, model = tables.ranking.c, tables.model.c
    models = session.scalars(
        sa.select(model.name)
        .join(tables.ranking, ranking.model_id == model.id)
        .where(ranking.finding_id == key, ranking.scheme == FILTER_MODELS)
        .order_by(ranking.rank, model.id)
    ).all()
    return PromptFilter(
        finding_id=key,
        made_by=row.analysis,
        benchmark=benchmark.label,
        prompt_ids=ids[order].astype(np.int64),
        kept=kept[order].astype(np.bool_),
        reasons=_reasons(session, key),
        models=tuple(models),
        parameters=row.parameters or {},
        selection=row.selection or {},
        stale=explain_staleness(session, key),
    )


def load_selected_filter(session: Session, benchmark: BenchmarkKey, selection: Selection) -> PromptFilter | None:
    """Load the filter that a selection names; None if it names none.

    Raises:
        NotFoundError: the finding does not exist.
        SelectionError: the finding is not a filter, filters another benchmark, or keeps no prompts.
    """
    if selection.filter is None:
        return None
    chosen = load_prompt_filter(session, benchmark, selection.filter)
    if not chosen.n_kept:
        raise SelectionError(
            f"Filter {chosen.finding_id} keeps none of the {len(chosen.prompt_ids):,} prompts of {benchmark.label}. "
            "Leave --filter out, or create a filter that removes less."
        )
    return chosen


def make_task_scores_error(benchmark: BenchmarkKey, metric: str) -> SelectionError:
    """Return why scores of whole tasks can be neither filtered nor split."""
    return SelectionError(
        f"{benchmark.label} has scores of whole tasks only under {metric}, so no prompts can be "
        "selected. Leave --filter and --split out."
    )


def _reasons(session: Session, key: int) -> dict[str, ReasonPrompts]:
    flagged: dict[str, list[NDArray[np.int64]]] = {}
    query = (
        "SELECT prompt_id, CASE WHEN retained THEN 1 ELSE 0 END, COALESCE(cluster, -1), step FROM filter_reason "
        "WHERE finding_id = ?"
    )
    for batch in read_arrow(session, query, (key,)).to_batches():
        rows = np.column_stack([np.from_dlpack(batch.column(place)).astype(np.int64) for place in range(3)])
        codes, steps = word_column(batch.column(3))
        for code, step in enumerate(steps):
            flagged.setdefault(step, []).append(rows[codes == code])
    reasons = {}
    for step in sorted(flagged):
        rows = np.concatenate(flagged[step])
        prompt_ids, retained, groups = rows[np.argsort(rows[:, 0])].T
        reasons[step] = ReasonPrompts(
            prompt_ids=prompt_ids.copy(), retained=retained.astype(np.bool_), groups=groups.copy()
        )
    return reasons


def list_filters(session: Session, benchmark: BenchmarkKey) -> list[int]:
    """Return the keys of a benchmark's recorded filters, ascending."""
    decision, analysis = tables.filter_decision.c, tables.finding.c
    has_decisions = sa.select(sa.literal(1)).where(decision.finding_id == analysis.id).exists()
    query = sa.select(analysis.id).where(
        analysis.status == "complete", analysis.benchmark_id == benchmark.id, has_decisions
    )
    return list(session.scalars(query.order_by(analysis.id)))


def _name_filters(session: Session, benchmark: BenchmarkKey) -> str:
    """Return the list of a benchmark's filters as the end of a sentence, else how to create one."""
    if known := list_filters(session, benchmark):
        return f": {', '.join(map(str, known))}"
    return f", or create one: {_making(benchmark)}"


def _making(benchmark: BenchmarkKey) -> str:
    return f"suffrage analyze smart-filtering {shlex.quote(benchmark.label)}"
