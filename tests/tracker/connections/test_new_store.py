"""A new store has what the migrations leave, without running them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from postgres_dump import OtherVersionError, dump_schema

from tracker.connections import new_store
from tracker.connections.schema_versions import VERSION_TABLE, current_version, known_versions, upgrade
from tracker.database import create_unchecked_engine, ensure_current
from tracker.errors import DatabaseError
from tracker.integrity.verification import find_content_faults


@pytest.fixture
def empty_postgres(postgres_server: sa.URL) -> Iterator[Callable[[], str]]:
    """Makes PostgreSQL databases without tables, and returns the URL of each."""
    names: list[str] = []
    url = postgres_server.set(drivername="postgresql+psycopg")
    administrator = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)

    def make() -> str:
        names.append(f"new_{uuid.uuid4().hex[:12]}")
        with administrator.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {names[-1]} TEMPLATE template0")
        return postgres_server.set(database=names[-1]).render_as_string(hide_password=False)

    yield make
    with administrator.connect() as connection:
        for name in names:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_new_sqlite_file_equals_a_migrated_one(tmp_path: Path) -> None:
    contents = []
    for number, revision in enumerate(("head", known_versions()[-1])):
        engine = create_unchecked_engine(f"sqlite:///{tmp_path}/{number}.db")
        upgrade(engine, revision)
        with engine.connect() as connection:
            assert list(find_content_faults(connection)) == []
            master = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM main.sqlite_master").all()
            # Alembic's copies of tables have their constraints in no particular order.
            layout = {row[:3]: sorted(line.strip(" ,") for line in (row[3] or "").splitlines()) for row in master}
            names = {name for kind, name, _ in layout if kind == "table"} - {"database", "checksum"}
            rows = {name: set(connection.exec_driver_sql(f'SELECT * FROM "{name}"').all()) for name in names}
        contents.append((layout, rows))
    assert contents[0] == contents[1]


def test_a_new_postgresql_store_equals_a_migrated_one(empty_postgres: Callable[[], str]) -> None:
    contents = []
    for revision in ("head", known_versions()[-1]):
        url = empty_postgres()
        engine = create_unchecked_engine(url)
        upgrade(engine, revision)
        with engine.connect() as connection:
            assert list(find_content_faults(connection)) == []
            counters = connection.exec_driver_sql(
                "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public' ORDER BY 1"
            ).all()
            names = sorted({*sa.inspect(connection).get_table_names()} - {"database", "checksum"})
            rows = {name: connection.exec_driver_sql(f'SELECT * FROM "{name}"').all() for name in names}
        engine.dispose()
        try:
            contents.append((dump_schema(url), counters, rows))
        except OtherVersionError as error:
            pytest.skip(str(error))
    assert contents[0] == contents[1]
    assert contents[0][2][VERSION_TABLE] == [(known_versions()[-1],)]


def make_url(engine: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """The address of a store without tables."""
    return f"sqlite:///{folder}/new.db" if engine == "sqlite" else request.getfixturevalue("empty_postgres")()


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_new_store_needs_no_migrations(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_url(engine, tmp_path, request)
    monkeypatch.setattr("alembic.command.upgrade", lambda *_: pytest.fail("ran the migrations: run `make tables`"))
    store = create_unchecked_engine(url)
    ensure_current(store)
    assert current_version(store) == known_versions()[-1]
    store.dispose()


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_the_migrations_create_a_store_of_a_version_without_a_file(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_url(engine, tmp_path, request)
    monkeypatch.setattr(new_store, "HEADINGS", {engine: "-- Tables of another version "})
    store = create_unchecked_engine(url)
    upgrade(store)
    assert current_version(store) == known_versions()[-1]
    with store.connect() as connection:
        assert list(find_content_faults(connection)) == []
    store.dispose()


def test_a_new_postgresql_store_may_have_a_schema_of_its_own(empty_postgres: Callable[[], str]) -> None:
    url = sa.make_url(empty_postgres())
    public = create_unchecked_engine(url.render_as_string(hide_password=False))
    with public.begin() as connection:
        connection.exec_driver_sql('CREATE SCHEMA "Team A"')
    public.dispose()
    with_path = url.update_query_dict({"options": '-csearch_path="Team\\ A"'})
    engine = create_unchecked_engine(with_path.render_as_string(hide_password=False))
    upgrade(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO benchmark (name, revision) VALUES ('b', '')")
        connection.exec_driver_sql("INSERT INTO prompt_search SELECT 1, prompt_search_words('Ünder')")
        assert set(sa.inspect(connection).get_table_names("Team A")) >= {"score_1", "answer_1", "prompt_search"}
        assert sa.inspect(connection).get_table_names("public") == []
    engine.dispose()


def test_tables_of_another_program_stay_as_they_are(empty_postgres: Callable[[], str]) -> None:
    engine = create_unchecked_engine(empty_postgres())
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE finding (words text)")
        connection.exec_driver_sql("CREATE VIEW leaderboard AS SELECT words FROM finding")
    with pytest.raises(DatabaseError, match="tables of another program"):
        upgrade(engine)
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["finding"]
        assert sa.inspect(connection).get_view_names() == ["leaderboard"]
    engine.dispose()
