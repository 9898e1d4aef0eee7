"""Links between MLflow and the pages of `suffrage serve`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import PublishingError
from tracker.queries.sql import tables
from tracker.recording.mlflow.run_spec import MAX_TAG_LENGTH, Kind, truncate
from tracker.recording.mlflow.tracking_store import mlflow_store

SERVE_VARIABLE = "SUFFRAGE_SERVE_URL"
DEFAULT_SERVE_URL = "http://127.0.0.1:8000"
"""Address of `suffrage serve` by default."""
DEFAULT_MLFLOW_URL = "http://127.0.0.1:5000"
"""Address of `suffrage ui` by default."""


def page_address(path: str) -> str:
    """Return the address of a page of `suffrage serve`; '' where there is none."""
    server = os.environ.get(SERVE_VARIABLE, DEFAULT_SERVE_URL).rstrip("/")
    return f"{server}{path}" if server and path else ""


def format_links(links: Sequence[tuple[str, str]]) -> str:
    """Return links in Markdown, without those that have no address."""
    return " · ".join(f"[{name}]({address})" for name, address in links if address)


def add_links(text: str, links: Sequence[tuple[str, str]]) -> str:
    """Return a description in Markdown, followed by links."""
    line = format_links(links)
    return f"{truncate(text, MAX_TAG_LENGTH - len(line) - 2)}\n\n{line}".rstrip()


@dataclass(frozen=True, kw_only=True)
class MlflowLinks:
    """Links to an MLflow store.

    Attributes:
        interface: address of MLflow's interface.
        tracking_uri: of the store, without password.
    """

    interface: str
    tracking_uri: str

    def find_address(self, session: Session, kind: Kind, keys: Collection[int]) -> str:
        """Return the address of the MLflow run that shows the last of some findings or runs; '' for none."""
        published = tables.publication.c
        query = sa.select(published.mlflow_run_id).where(
            published.tracking_uri == self.tracking_uri, published.kind == kind, published.ref_id.in_(keys)
        )
        mlflow_run_id = session.scalar(query.order_by(published.ref_id.desc()).limit(1))
        return f"{self.interface}/#/runs/{mlflow_run_id}" if mlflow_run_id else ""


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
    return MlflowLinks(interface=interface.rstrip("/"), tracking_uri=store.display_uri) if interface else None


def _without_user(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
