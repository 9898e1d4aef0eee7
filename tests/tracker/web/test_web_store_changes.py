"""The store changes while its pages are read: no page mixes two states, and none outlives the store."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
import sqlalchemy as sa
from web_server import HOSTILE, fill_hostile, serving

from tracker.database import connect, create_unchecked_engine, transaction
from tracker.queries.sql import tables
from tracker.web.background import BackgroundTasks
from tracker.web.store_cache import StoreCache

ACCEPT = {"accept": "text/html"}


@pytest.fixture
def written(store_url: str) -> Iterator[sa.Engine]:
    """A store of hostile names, as those see it who write."""
    engine = connect(store_url)
    fill_hostile(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def reader(written: sa.Engine) -> Iterator[sa.Engine]:
    """The same store, as the server sees it."""
    engine = connect(written.url.render_as_string(hide_password=False), create=False)
    yield engine
    engine.dispose()


def test_no_page_mixes_two_states(written: sa.Engine, reader: sa.Engine) -> None:
    """Benchmark, models and tasks are renamed together, over and over: a page has all old names or all new ones."""
    stop, n_changes = threading.Event(), 0

    def rename() -> None:
        nonlocal n_changes
        while not stop.is_set():
            n_changes += 1
            with transaction(written) as session:
                for table, name in ((tables.benchmark, "name"), (tables.model, "name"), (tables.task, "name")):
                    text = sa.literal(f"state {n_changes} ") + sa.cast(table.c.id, sa.Text)
                    session.execute(sa.update(table).values({name: text}))
            time.sleep(0.03)

    thread = threading.Thread(target=rename)
    with serving(reader) as site:
        thread.start()
        try:
            for path in ("/benchmark/1.json", "/benchmark/1/tasks.json", "/prompt/1.json", "/run/1.json") * 2:
                response = requests.get(site + path, timeout=60)
                assert response.status_code == 200, response.text
                states = {part.split('"')[0].split(" ")[0] for part in response.text.split('"state ')[1:]}
                assert len(states) <= 1, (path, response.text)
        finally:
            stop.set()
            thread.join()
        names = {row["model"] for row in requests.get(f"{site}/benchmark/1.json", timeout=60).json()["rows"]}
    assert names == {f"state {n_changes} {key}" for key in range(1, len(HOSTILE) + 1)}


@pytest.mark.tampers
def test_a_transaction_that_ends_late_is_a_change(written: sa.Engine, reader: sa.Engine) -> None:
    if written.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    cache = StoreCache(reader)
    with written.connect() as early:
        early.execute(sa.update(tables.benchmark).values(name="early"))
        with transaction(written) as late:
            late.execute(sa.update(tables.model).where(tables.model.c.id == 1).values(name="late"))
        before = cache.refresh()
        early.commit()
    assert cache.refresh() != before
    cache.close()


def test_values_are_shown_although_other_programs_write_all_the_time(written: sa.Engine, reader: sa.Engine) -> None:
    """On a server with other databases, every state ends before a slow value of it is computed."""
    cache = StoreCache(reader)
    tasks, n_computed = BackgroundTasks(cache), 0

    def compute(_: Callable[[str], None]) -> str:
        nonlocal n_computed
        n_computed += 1
        with transaction(written) as session:
            session.execute(sa.update(tables.benchmark).values(name=f"name {n_computed}"))
        return "value"

    deadline = time.monotonic() + 60
    while (result := tasks.request("key", compute)).is_computing:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert (result.value, n_computed) == ("value", 1)
    cache.close()


def test_a_store_of_a_newer_version_is_explained(written: sa.Engine, reader: sa.Engine) -> None:
    with serving(reader) as site:
        assert requests.get(site, timeout=60).status_code == 200
        with written.begin() as connection:
            connection.exec_driver_sql("UPDATE suffrage_version SET version_num = '9999'")
        response = requests.get(f"{site}/benchmark/1", timeout=60)
        assert (response.status_code, "newer than this program" in response.text) == (503, True), response.text
        with written.begin() as connection:
            connection.exec_driver_sql("UPDATE suffrage_version SET version_num = '0001'")
        response = requests.get(f"{site}/index.json", timeout=60)
        assert (response.status_code, "suffrage db upgrade" in response.json()["problem"]) == (503, True)


class TestFile:
    @pytest.fixture
    def path(self, tmp_path: Path, sqlite_template: Path) -> Path:
        path = tmp_path / "served.db"
        shutil.copy(sqlite_template, path)
        engine = create_unchecked_engine(f"sqlite:///{path}")
        fill_hostile(engine)
        engine.dispose()
        return path

    def test_a_file_that_is_replaced_is_read_anew(self, path: Path, sqlite_template: Path, tmp_path: Path) -> None:
        reader = connect(f"sqlite:///{path}", create=False)
        with serving(reader) as site:
            assert len(requests.get(f"{site}/index.json", timeout=60).json()["benchmarks"]) == 1
            shutil.copy(sqlite_template, tmp_path / "empty.db")
            os.replace(tmp_path / "empty.db", path)
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
            assert requests.get(f"{site}/index.json", timeout=60).json()["benchmarks"] == []
            assert requests.get(f"{site}/benchmark/1", timeout=60).status_code == 404
        reader.dispose()

    def test_a_file_that_is_removed_or_damaged_is_explained(self, path: Path, tmp_path: Path) -> None:
        reader = connect(f"sqlite:///{path}", create=False)
        with serving(reader) as site:
            assert requests.get(site, timeout=60).status_code == 200
            kept = path.rename(tmp_path / "kept.db")
            response = requests.get(f"{site}/benchmark/1", timeout=60)
            assert (response.status_code, "No store at" in response.text) == (503, True), response.text
            assert not path.exists()
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
            path.write_text("no database at all" * 1000)
            response = requests.get(site, timeout=60)
            assert (response.status_code, "not a database" in response.text) == (503, True), response.text
            path.unlink()
            kept.rename(path)
            assert requests.get(f"{site}/benchmark/1", timeout=60).status_code == 200
        reader.dispose()


def test_a_server_that_restarts_is_reached_again(written: sa.Engine, reader: sa.Engine) -> None:
    if written.dialect.name == "sqlite":
        pytest.skip("SQLite has no server")
    with serving(reader) as site:
        assert requests.get(f"{site}/benchmark/1", timeout=60).status_code == 200
        with written.connect() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert requests.get(f"{site}/benchmark/1", timeout=60).status_code == 200
