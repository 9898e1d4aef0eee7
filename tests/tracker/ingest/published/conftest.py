"""A store that published prompts are taken into."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from tracker.database import connect


@pytest.fixture
def engine(sqlite_url: str) -> Iterator[sa.Engine]:
    created = connect(sqlite_url)
    yield created
    created.dispose()
