"""Storage of a run during its evaluation, one portion of responses at a time.

Each portion is one exclusive transaction of the caller, so an interrupted process loses at most its last portion and
leaves nothing to clean up. Commands that evaluate the same run share its prompts by
`tracker.ingest.write.live.leases`. Without leases their portions alternate; stored responses are skipped, and
contradictory ones raise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session
from sqlmodel import select

from tracker.connections.partitions import in_partitions_of_runs
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.resolve.prompt_texts import make_storable, make_storable_json
from tracker.ingest.write.bulk_rows import fetch_raw_rows
from tracker.ingest.write.live.live_portions import ScoredResponse, add_responses, get_live_run
from tracker.ingest.write.stored_runs import make_next_label
from tracker.run_fields import RunFields, run_values
from tracker.run_settings import IDENTITY, SHA256, SKIPPED, USAGE, evaluation_identity
from tracker.schema import Run, metadata
from tracker.schema.table import now

__all__ = ["LiveRun", "ScoredResponse", "add_responses", "complete_run", "count_stored_trials", "open_run"]

UNFINISHED = "its evaluation has not finished"


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveRun:
    """A run in evaluation, or an evaluated one.

    Attributes:
        id: its key.
        label: distinguishes the runs of a model.
        status: ``partial`` while prompts are missing, else ``complete_run``.
        is_new: whether the call added it.
    """

    id: int
    label: str
    status: str
    is_new: bool


def open_run(
    session: Session,
    *,
    benchmark_id: int,
    model: str,
    fields: RunFields,
    identity: str,
    again: bool = False,
    model_facts: Mapping[str, Any] | None = None,
) -> LiveRun:
    """Find or create the run of an evaluation.

    A run of the same model, benchmark, condition, variant and identity is the same evaluation. An incomplete one is
    continued, and a complete one is returned. Hidden and superseded runs do not match.

    Args:
        session: an exclusive write transaction.
        benchmark_id: key of the benchmark.
        model: name or alias of the model, which is added if it is new.
        fields: settings of the run, without label and start. ``n_prompts`` is the number of prompts to evaluate,
            ``command`` the command that continues; both are shown for incomplete runs.
        identity: SHA-256, 64 hexadecimal digits, of everything that decides the responses.
        again: create a new run even if a complete one exists.
        model_facts: organization, parameters, ...; only missing facts are stored.

    Raises:
        ValueError: the identity is not a SHA-256.
    """
    if not SHA256.fullmatch(identity):
        raise ValueError(f"an identity must have 64 hexadecimal digits, got {identity!r}")
    model_id = CatalogueResolver(session, Path(model)).model(model, model_facts or {})
    variant = make_storable(fields.variant)
    stored = _stored_runs(session, benchmark_id, model_id, fields.condition, variant)
    same = {run.status: run for run in reversed(stored) if evaluation_identity(run.settings) == identity}
    known = same.get("partial") or (None if again else same.get("complete"))
    if known is not None:
        assert known.id is not None
        return LiveRun(id=known.id, label=known.label, status=known.status, is_new=False)
    values = run_values(fields) | {
        "variant": variant,
        "label": make_next_label(run.label for run in stored),
        "settings": {**make_storable_json(dict(fields.settings)), IDENTITY: identity, USAGE: {}},
        "started": now(),
    }
    run = Run(benchmark_id=benchmark_id, model_id=model_id, status="partial", reason=UNFINISHED, **values)
    session.add(run)
    session.flush()
    assert run.id is not None
    return LiveRun(id=run.id, label=run.label, status=run.status, is_new=True)


def _stored_runs(session: Session, benchmark_id: int, model_id: int, condition: str, variant: str) -> Sequence[Run]:
    """Return the runs of a model on a benchmark under one condition and variant, latest first."""
    runs: Any = Run
    return session.scalars(
        select(Run)
        .where(
            runs.benchmark_id == benchmark_id,
            runs.model_id == model_id,
            runs.condition == condition,
            runs.variant == variant,
        )
        .order_by(runs.id.desc())
    ).all()


def count_stored_trials(session: Session, run_id: int) -> dict[int, int]:
    """Return the prompts with scores in a run, and the number of trials of each.

    All scores of a response are stored in one transaction, so a trial has either all or none. A response without a
    score, such as a failure, does not count and is requested again.
    """
    score = metadata.tables["score"].c
    query = (
        sa.select(score.prompt_id, sa.func.count(sa.distinct(score.trial)))
        .where(score.run_id == run_id, in_partitions_of_runs(session, metadata.tables["score"], [run_id]))
        .group_by(score.prompt_id)
    )
    return {prompt: n_trials for prompt, n_trials in fetch_raw_rows(session, query)}  # noqa: C416


def complete_run(
    session: Session, run_id: int, unanswered: Mapping[str, int] | None = None, reason: str | None = None
) -> None:
    """Complete a run, so that analyses use it. A completed run does not change.

    The run counts as ingested from this time; queries as of an earlier day do not include it.

    Args:
        session: an exclusive write transaction.
        run_id: key returned by `open_run`.
        unanswered: number of prompts without an answer by reason; stored in the settings.
        reason: reason of the run's status; None for none.

    Raises:
        NotFoundError: the run was deleted.
        ConflictError: the run came from a file.
    """
    run = get_live_run(session, run_id)
    if run.status != "partial":
        return
    run.status, run.reason, run.ingested = "complete", reason, now()
    session.execute(sa.delete(metadata.tables["evaluation_lease"]).where(sa.column("run_id") == run_id))
    if missing := {why: n for why, n in (unanswered or {}).items() if n}:
        run.settings = {**(run.settings or {}), SKIPPED: make_storable_json(missing)}
    session.flush()
