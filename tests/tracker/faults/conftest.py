"""Operations that tests disturb."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from disturbance import Disturbance, prepare
from operations import Operation


@pytest.fixture
def disturb(
    tmp_path: Path, request: pytest.FixtureRequest, sqlite_template: Path
) -> Iterator[Callable[[Operation, str], Disturbance]]:
    """Prepares an operation on an engine."""
    with ExitStack() as stack:
        yield lambda operation, engine: prepare(operation, engine, tmp_path, request, stack, sqlite_template)
