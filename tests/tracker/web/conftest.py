"""A store of hostile names, and a server of its pages, which all tests here share: none leaves a change in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import sqlalchemy as sa
from web_server import HOSTILE, Get, fill_hostile, serving

from tracker.database import connect
from tracker.queries.selection import Selection
from tracker.recording.pipeline import run_analysis


@pytest.fixture(scope="package")
def hostile_store(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[sa.Engine]:
    """A store of hostile names, with one finding."""
    path = tmp_path_factory.mktemp("hostile") / "store.db"
    shutil.copy(sqlite_template, path)
    engine = connect(f"sqlite:///{path}")
    fill_hostile(engine)
    parameters = {"n_resamples": 50, "seed": 0}
    run_analysis(engine, "rank-intervals", Selection(benchmark=f"{HOSTILE[0]}@1"), parameters)
    yield engine
    engine.dispose()


@pytest.fixture(scope="package")
def site(hostile_store: sa.Engine) -> Iterator[str]:
    """The address of a server of this store."""
    with serving(hostile_store) as address:
        yield address


@pytest.fixture(scope="package")
def get(site: str) -> Iterator[Get]:
    """A function that requests a page of it."""
    with requests.Session() as session:

        def request(path: str, **options: object) -> requests.Response:
            return session.get(site + path, timeout=60, **options)  # type: ignore[arg-type]

        yield request
