"""Links from MLflow to the pages of `suffrage serve`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tracker.recording.mlflow.run_spec import MAX_TAG_LENGTH, truncate

SERVE_VARIABLE = "SUFFRAGE_SERVE_URL"
DEFAULT_SERVE_URL = "http://127.0.0.1:8000"
"""Address of `suffrage serve` by default."""


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
