"""The command `suffrage publish`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, tracking_uri_option
from tracker.cli.output import inform
from tracker.cli.progress import progress


@click.command(cls=Command)
@database_option
@tracking_uri_option
def command(database: str | None, tracking_uri: str) -> None:
    """Publish runs and findings that MLflow lacks.

    Updates MLflow to the state of the store: adds missing runs and findings, deletes hidden, superseded and deleted
    runs, and marks stale findings. Nothing is published twice. An empty tracking store is filled completely.

    Examples:
        suffrage publish
        suffrage publish --tracking-uri sqlite:///mlflow.db
    """
    from tracker.database import connect
    from tracker.recording.mlflow.publishing import publish_missing
    from tracker.recording.mlflow.tracking_store import mlflow_store

    engine = connect(database, create=False)
    store = mlflow_store(tracking_uri, engine)

    with progress("publishing") as advance:
        published = publish_missing(engine, tracking_uri, advance)
    if published.n_deleted:
        inform(f"Deleted from MLflow: {published.n_deleted} hidden, superseded or deleted runs.")
    kinds = [kind for kind, _ in published.mlflow_runs]
    if not kinds:
        inform("The store has no runs or findings. Import results: suffrage ingest PATH")
        return
    findings, runs = kinds.count("finding"), kinds.count("run")
    inform(
        f"{store.display_uri} shows {runs} run{'s' * (runs != 1)} and {findings} finding{'s' * (findings != 1)}; "
        f"{published.n_new or 'none'} of them {'is' if published.n_new == 1 else 'are'} new."
    )
    if published.n_marked:
        inform(f"Updated whether findings are stale: {published.n_marked}.")
