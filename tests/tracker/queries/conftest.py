"""Stores for tests that need only one engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from tracker.database import connect


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[sa.Engine]:
    """An empty store on SQLite."""
    engine = connect(sqlite_url)
    yield engine
    engine.dispose()
