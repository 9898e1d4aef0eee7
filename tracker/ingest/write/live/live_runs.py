"""The only writer of a run that is being made: a model is asked, and its answers are stored a portion at a time.

Each portion is one exclusive transaction of the caller, so that a kill leaves the portions before it and nothing of the
next. Nothing is reserved: where two processes evaluate the same run, their portions take turns, what is stored is not
stored again, and the one that comes to something else is refused. A process that was killed leaves nothing to clean up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session
from sqlmodel import select

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
    """A run that is being evaluated, or that was evaluated before.

    Attributes:
        id: its key.
        label: what tells it from other runs of the model.
        status: ``partial`` while prompts are missing, else ``complete_run``.
        is_new: whether it was added just now.
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
    """Find the run of an evaluation, or make it.

    A run of the same model, benchmark, condition and variant is the same evaluation if its identity is the same. An
    unfinished one is continued; a complete one is returned as it is. Runs that were hidden or superseded are not.

    Args:
        session: an exclusive transaction that writes.
        benchmark_id: what is asked.
        model: who answers, by name or another name; made where it is new.
        fields: how the model is run; the label and the start are set here. Of the settings, ``n_prompts`` says how many
            prompts are answered, ``command`` how to go on; both are shown where the run is found unfinished.
        identity: SHA-256, 64 hexadecimal digits, of everything that decides the answers.
        again: make a new run where a complete one is there.
        model_facts: organization, parameters, ...; only what the store lacks is filled in.

    Raises:
        ValueError: the identity is no SHA-256.
    """
    if not SHA256.fullmatch(identity):
        raise ValueError(f"an identity has 64 hexadecimal digits, not {identity!r}")
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
    """The runs of a model on a benchmark under one condition and variant, the latest first."""
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
    """The prompts that have scores in a run, and how many trials of each do.

    All scores of an answer are stored in one transaction, so that a trial with one of them has them all. An answer
    without a score, such as a failure, does not count: it is requested again.
    """
    score = metadata.tables["score"].c
    query = (
        sa.select(score.prompt_id, sa.func.count(sa.distinct(score.trial)))
        .where(score.run_id == run_id)
        .group_by(score.prompt_id)
    )
    return {prompt: n_trials for prompt, n_trials in fetch_raw_rows(session, query)}  # noqa: C416


def complete_run(
    session: Session, run_id: int, unanswered: Mapping[str, int] | None = None, reason: str | None = None
) -> None:
    """End a run: from now on everything takes it. A run that has ended stays as it is.

    It counts as ingested at this moment: queries as of an earlier day do not see it.

    Args:
        session: an exclusive transaction that writes.
        run_id: a run that `open_run` returned.
        unanswered: why prompts have no answer, and how many; kept in the settings.
        reason: what is to be said of the run; None says nothing.

    Raises:
        NotFoundError: the run was deleted.
        ConflictError: it came from a file.
    """
    run = get_live_run(session, run_id)
    if run.status != "partial":
        return
    run.status, run.reason, run.ingested = "complete", reason, now()
    if missing := {why: n for why, n in (unanswered or {}).items() if n}:
        run.settings = {**(run.settings or {}), SKIPPED: make_storable_json(missing)}
    session.flush()
