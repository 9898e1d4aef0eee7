"""Read and write the table `publication`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.sql import tables
from tracker.recording.mlflow.finding_spec import finding_versions
from tracker.recording.mlflow.model_run_spec import run_versions
from tracker.recording.mlflow.run_spec import Kind
from tracker.schema import Publication


def current_versions(session: Session) -> dict[tuple[Kind, int], str]:
    """Return what an MLflow store should show of this store, with versions: complete runs, and findings."""
    versions: dict[tuple[Kind, int], str] = {("run", key): version for key, version in run_versions(session).items()}
    return versions | {("finding", key): version for key, version in finding_versions(session).items()}


def published_versions(session: Session, tracking_uri: str) -> dict[tuple[Kind, int], str]:
    """Return what an MLflow store showed after the last publishing, with versions.

    Args:
        session: the store.
        tracking_uri: as in ``publication``, without password.
    """
    published = tables.publication.c
    query = sa.select(published.kind, published.ref_id, published.version).where(published.tracking_uri == tracking_uri)
    return {(kind, key): version for kind, key, version in session.execute(query)}


def published_findings(session: Session, tracking_uri: str) -> set[int]:
    """Return the findings that an MLflow store shows."""
    return {key for kind, key in published_versions(session, tracking_uri) if kind == "finding"}


def withdrawn_runs(session: Session, tracking_uri: str) -> list[int]:
    """Return runs that an MLflow store still shows although they are hidden, superseded or deleted."""
    published, run = tables.publication.c, tables.run.c
    complete = sa.select(run.id).where(run.status == "complete")
    query = sa.select(published.ref_id).where(
        published.tracking_uri == tracking_uri, published.kind == "run", published.ref_id.not_in(complete)
    )
    return list(session.scalars(query.order_by(published.ref_id)))


def forget_runs(session: Session, tracking_uri: str, run_ids: Collection[int]) -> None:
    """Record that runs are no longer shown."""
    published = tables.publication
    conditions = (published.c.tracking_uri == tracking_uri, published.c.kind == "run", published.c.ref_id.in_(run_ids))
    session.execute(sa.delete(published).where(*conditions))


def save_publications(
    session: Session,
    tracking_uri: str,
    done: Mapping[tuple[Kind, int], str],
    versions: Mapping[tuple[Kind, int], str],
) -> None:
    """Record what was published.

    Args:
        session: a transaction that writes.
        tracking_uri: of MLflow, without password.
        done: the MLflow run of each published item.
        versions: version of each published item.
    """
    for (kind, key), mlflow_run_id in done.items():
        row = session.get(Publication, (tracking_uri, kind, key))
        version = versions[kind, key]
        if row is None or (row.mlflow_run_id, row.version) != (mlflow_run_id, version):
            session.merge(
                Publication(
                    tracking_uri=tracking_uri, kind=kind, ref_id=key, mlflow_run_id=mlflow_run_id, version=version
                )
            )
