"""Bring MLflow up to date: whatever is recorded and not yet shown there, once."""

from __future__ import annotations

import sys

import click

from tracker.cli.options import database_option, tracking_uri_option
from tracker.cli.output import inform


@click.command()
@database_option
@tracking_uri_option
def command(database: str | None, tracking_uri: str) -> None:
    """Bring MLflow up to date.

    Publishes every finding and every run that MLflow does not show as it is now; nothing twice. Runs that
    were hidden, superseded or deleted are taken down, stale findings say so. MLflow can be rebuilt from the
    store: point this at an empty one.
    """
    from tracker.database import connect
    from tracker.recording.mlflow.publishing import publish_missing
    from tracker.recording.mlflow.tracking_store import mlflow_store

    engine = connect(database, create=False)
    store = mlflow_store(tracking_uri, engine)

    def progress(done: int, total: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{done} of {total}", nl=done == total, err=True)

    published = publish_missing(engine, tracking_uri, progress)
    if published.n_deleted:
        inform(f"Taken down, since they are hidden, superseded or deleted: {published.n_deleted} of the runs shown.")
    kinds = [kind for kind, _ in published.mlflow_runs]
    if not kinds:
        inform("Nothing is recorded yet. Take some results in: suffrage ingest PATH")
        return
    findings, runs = kinds.count("finding"), kinds.count("run")
    inform(
        f"{store.display_uri} shows {runs} run{'s' * (runs != 1)} and {findings} finding{'s' * (findings != 1)}; "
        f"{published.n_new or 'none'} of them {'is' if published.n_new == 1 else 'are'} new."
    )
    if published.n_marked:
        inform(f"Findings whose staleness was noted or lifted: {published.n_marked}.")
