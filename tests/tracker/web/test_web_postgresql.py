"""The pages of a PostgreSQL store, read by a role that can only read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
import sqlalchemy as sa
from database_roles import login_role
from web_server import HOSTILE, fill_hostile, serving

from tracker.database import connect

PAGES = (
    "/", "/search?q=question+7", "/benchmark/1", "/benchmark/1/tasks", "/benchmark/1/runs",
    "/benchmark/1/prompts?q=QUESTION&sort=spread", "/prompt/1", "/model/1", "/run/1", "/findings",
    "/sql?statement=select+count(*)+from+score",
)  # fmt: skip


@pytest.fixture
def reader(postgres_url: str) -> Iterator[sa.Engine]:
    """A store of hostile names, as a role that may only read."""
    owner = connect(postgres_url)
    fill_hostile(owner)
    with login_role(owner, "USAGE ON SCHEMA public", "SELECT ON ALL TABLES IN SCHEMA public") as url:
        engine = connect(url.render_as_string(hide_password=False))
        yield engine
        engine.dispose()
    owner.dispose()


def test_a_role_that_can_only_read_sees_every_page(reader: sa.Engine) -> None:
    with serving(reader) as address:
        pages = {path: requests.get(address + path, timeout=60) for path in PAGES}
        rows = requests.get(f"{address}/benchmark/1.json", timeout=60).json()["rows"]
        matches = requests.get(f'{address}/search.json?q="question+7"', timeout=60).json()["rows"]
    assert {path: page.status_code for path, page in pages.items()} == dict.fromkeys(PAGES, 200)
    assert {row["model"] for row in rows} == set(HOSTILE)
    assert [row["id"] for row in matches] == [8]
    assert "720" in pages[PAGES[-1]].text
