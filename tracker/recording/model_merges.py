"""Merge two models that are one, and separate them again.

The runs of the merged model become runs of the other one, and its name becomes an alias. The merge is recorded like an
import, so it is undone in the same way.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session
from sqlmodel import select

from tracker.errors import ConflictError, NotFoundError
from tracker.ingest.resolve.catalogue_resolver import MODEL_FACTS
from tracker.ingest.write.undo_log import recorded_import
from tracker.queries.catalogue.model_names import find_model
from tracker.queries.findings.staleness import compare_staleness, list_stale_findings
from tracker.recording.undo.imports import MERGE, list_imports
from tracker.recording.undo.removal import UndoResult, undo_import
from tracker.schema import Model, ModelAlias, Run


@dataclass(frozen=True, kw_only=True)
class MergedModel:
    """The effects of a merge.

    Attributes:
        name: name of the model that stays.
        alias: name of the merged model, now an alias.
        run_ids: runs that were moved.
        relabeled: moved runs that needed another label, because the model had such a run.
        stale: findings that became stale, or are stale for another reason than before, with the reason.
    """

    name: str
    alias: str
    run_ids: tuple[int, ...]
    relabeled: tuple[int, ...]
    stale: Mapping[int, str]


def merge_models(session: Session, name: str, merged: str) -> MergedModel:
    """Make the runs and names of one model those of another one.

    Facts that the other model lacks are copied; none is overwritten. Recorded findings keep their names.

    Args:
        session: an exclusive write transaction.
        name: name or alias of the model that stays.
        merged: name or alias of the model that is merged into it.

    Raises:
        NotFoundError: a model does not exist.
        ConflictError: both names mean the same model.
    """
    target, source = find_model(session, name), find_model(session, merged)
    if target.id == source.id:
        raise ConflictError(f"{name!r} and {merged!r} are names of the same model, {target.name}.")
    before = list_stale_findings(session)
    path = shlex.join([*MERGE, target.name, source.name])
    with recorded_import(session, path):
        session.add(ModelAlias(name=source.name, model_id=target.id))
        for alias in session.scalars(select(ModelAlias).where(ModelAlias.model_id == source.id)):
            alias.model_id = target.id
        stays, goes = session.get_one(Model, target.id), session.get_one(Model, source.id)
        for fact in MODEL_FACTS:
            if getattr(stays, fact) is None and getattr(goes, fact) is not None:
                setattr(stays, fact, getattr(goes, fact))
        moved, relabeled = _move_runs(session, target.id, goes)
    stale, _ = compare_staleness(before, list_stale_findings(session))
    return MergedModel(
        name=target.name,
        alias=source.name,
        run_ids=moved,
        relabeled=relabeled,
        stale=stale,
    )


def unmerge_models(session: Session, merged: str) -> UndoResult:
    """Separate a merged model again, with the runs and names that it had.

    Runs that were imported under its name since stay with the other model.

    Args:
        session: an exclusive write transaction.
        merged: the name that the model had.

    Raises:
        NotFoundError: no model of that name was merged.
        ConflictError: later imports changed what the merge changed.
    """
    merges = {row.merged_models[1]: row for row in reversed(list_imports(session)) if row.merged_models is not None}
    if merged not in merges:
        raise NotFoundError("merge", merged, sorted(merges))
    return undo_import(session, merges[merged])


def _move_runs(session: Session, target_id: int, goes: Model) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Move all runs of a model; a run that the target already has gets the model's name as its label."""
    moved, relabeled = [], []
    for run in session.scalars(select(Run).where(Run.model_id == goes.id).order_by(sa.text("id"))):
        used_labels = set(
            session.scalars(
                select(Run.label).where(
                    Run.model_id == target_id,
                    Run.benchmark_id == run.benchmark_id,
                    Run.condition == run.condition,
                    Run.variant == run.variant,
                )
            )
        )
        label, number = run.label, 1
        while label in used_labels:
            label = " ".join(filter(None, [run.label, goes.name, str(number) if number > 1 else ""]))
            number += 1
        if label != run.label:
            run.label = label
            relabeled.append(run.id or 0)
        run.model_id = target_id
        session.flush()
        moved.append(run.id or 0)
    return tuple(moved), tuple(relabeled)
