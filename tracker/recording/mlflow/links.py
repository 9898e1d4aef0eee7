"""Links from the pages of `suffrage serve` to MLflow."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.orm import Session

from tracker.database import make_read_only_uri
from tracker.errors import PublishingError
from tracker.queries.sql import tables
from tracker.recording.mlflow.chart_view import TAG, chart_path
from tracker.recording.mlflow.run_spec import Kind
from tracker.recording.mlflow.tracking_store import mlflow_store

DEFAULT_MLFLOW_URL = "http://127.0.0.1:5000"
"""Address of `suffrage ui` by default."""
CHART_OF_RUN = sa.text(
    "SELECT runs.experiment_id FROM runs JOIN experiment_tags ON experiment_tags.experiment_id = runs.experiment_id "
    "WHERE runs.run_uuid = :run AND experiment_tags.key = :tag"
)
"""Experiment of an MLflow run, in MLflow's database, if the experiment has a saved chart."""


@dataclass(frozen=True, kw_only=True)
class MlflowLinks:
    """Links to an MLflow store.

    Attributes:
        interface: address of MLflow's interface.
        tracking_uri: of the store, without password.
        database: URI of the store's database; '' for a server, whose database is not known.
    """

    interface: str
    tracking_uri: str
    database: str = field(default="", repr=False)

    def find_address(self, session: Session, kind: Kind, keys: Collection[int]) -> str:
        """Return the address of the MLflow run that shows the last of some findings or runs; '' for none."""
        published = tables.publication.c
        query = sa.select(published.mlflow_run_id).where(
            published.tracking_uri == self.tracking_uri, published.kind == kind, published.ref_id.in_(keys)
        )
        mlflow_run_id = session.scalar(query.order_by(published.ref_id.desc()).limit(1))
        return f"{self.interface}/#/runs/{mlflow_run_id}" if mlflow_run_id else ""

    def find_chart(self, address: str) -> str:
        """Return the address of the chart of all models that an MLflow run is in; the run's where there is none.

        Args:
            address: of the MLflow run, from `find_address`.
        """
        experiment = self._find_experiment(address.rpartition("/")[2]) if address and self.database else None
        return address if experiment is None else f"{self.interface}/{chart_path(experiment)}"

    def _find_experiment(self, mlflow_run_id: str) -> str | None:
        """Return the key of the experiment of an MLflow run, if it has a chart. The database is read without MLflow."""
        engine = _open_database(self.database)
        try:
            with engine.connect() as connection:
                key = connection.scalar(CHART_OF_RUN, {"run": mlflow_run_id, "tag": TAG})
        except exc.SQLAlchemyError:  # the store was moved, say
            return None
        finally:
            engine.dispose()
        return None if key is None else str(key)


def _open_database(uri: str) -> sa.Engine:
    """Return an engine that does not create a SQLite file where there is none."""
    url = sa.make_url(uri)
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, poolclass=sa.NullPool)
    file = make_read_only_uri(Path(str(url.database)))
    return sa.create_engine("sqlite://", creator=lambda: sqlite3.connect(file, uri=True), poolclass=sa.NullPool)


def make_links(tracking_uri: str, interface: str | None = None) -> MlflowLinks | None:
    """Return the links to an MLflow store; None if they are switched off, or the tracking URI names no store.

    Args:
        tracking_uri: of MLflow.
        interface: address of its interface; by default that of the server, or of `suffrage ui`; '' for no links.

    Raises:
        ValueError: the address is not one of a web server.
    """
    if interface and not re.match(r"https?://[^/\s]", interface):
        raise ValueError(f"{interface!r} is not the address of a web server. It must begin with http:// or https://.")
    try:
        store = mlflow_store(tracking_uri)
    except PublishingError:
        return None
    if interface is None:
        interface = _without_user(store.uri) if store.uri.startswith("http") else DEFAULT_MLFLOW_URL
    if not interface:
        return None
    database = "" if store.is_server else store.uri
    return MlflowLinks(interface=interface.rstrip("/"), tracking_uri=store.display_uri, database=database)


def _without_user(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
