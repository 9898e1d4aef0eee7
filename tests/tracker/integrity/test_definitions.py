"""Changed views, triggers and functions are faults of a store, on both engines."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from tracker.connections.schema_versions import upgrade
from tracker.database import create_unchecked_engine
from tracker.integrity.definitions import read_definitions
from tracker.integrity.verification import find_content_faults, snapshot

FAULT = "the definition of a table, view or trigger differs from what was stored"
SQLITE = {
    "trigger on a table without a checksum": "CREATE TRIGGER t AFTER UPDATE ON suffrage_version BEGIN SELECT 1; END",
    "trigger on the search index": "CREATE TRIGGER t AFTER INSERT ON prompt_search_idx BEGIN DELETE FROM run; END",
    "trigger on a view": "CREATE TRIGGER t INSTEAD OF INSERT ON leaderboard BEGIN SELECT 1; END",
    "dropped trigger": "DROP TRIGGER prompt_indexed",
    "dropped view": "DROP VIEW leaderboard",
    "index": "CREATE INDEX i ON model (name)",
}
FUNCTION = "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; "
POSTGRESQL = {
    "view": "DROP VIEW prompt_weight; CREATE VIEW prompt_weight AS SELECT 1 AS weight",
    "trigger": FUNCTION + "CREATE TRIGGER t BEFORE INSERT ON prompt FOR EACH ROW EXECUTE FUNCTION f()",
    "disabled trigger": "ALTER TABLE prompt DISABLE TRIGGER record_update",
    "dropped trigger": "DROP TRIGGER record_update ON prompt",
    "function": "CREATE OR REPLACE FUNCTION prompt_search_words(content text) RETURNS tsvector LANGUAGE sql AS "
    "'SELECT NULL::tsvector'",
    "rule": "CREATE RULE r AS ON DELETE TO model DO INSTEAD NOTHING",
}


def list_faults(url: str) -> list[str]:
    engine = create_unchecked_engine(url)
    try:
        with snapshot(engine) as connection:
            return [str(fault) for fault in find_content_faults(connection)]
    finally:
        engine.dispose()


def execute(url: str, statement: str) -> None:
    engine = create_unchecked_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.mark.tampers
@pytest.mark.parametrize("statement", SQLITE.values(), ids=SQLITE)
def test_a_change_on_sqlite_is_a_fault(sqlite_url: str, statement: str) -> None:
    assert list_faults(sqlite_url) == []
    execute(sqlite_url, statement)
    assert FAULT in list_faults(sqlite_url)


@pytest.mark.tampers
@pytest.mark.parametrize("statement", POSTGRESQL.values(), ids=POSTGRESQL)
def test_a_change_on_postgresql_is_a_fault(postgres_url: str, statement: str) -> None:
    assert list_faults(postgres_url) == []
    execute(postgres_url, statement)
    assert FAULT in list_faults(postgres_url)


def test_the_search_path_of_a_role_changes_nothing(postgres_url: str) -> None:
    engine = create_unchecked_engine(postgres_url)
    with engine.begin() as connection:
        first = sorted(map(repr, read_definitions(connection)))
        connection.exec_driver_sql("SET LOCAL search_path = pg_catalog, public")
        assert sorted(map(repr, read_definitions(connection))) == first
        assert connection.scalar(sa.text("SELECT current_setting('search_path')")) == "pg_catalog, public"
    engine.dispose()
    assert len(first) > 50


def test_an_upgrade_of_an_upgraded_store_changes_no_definition(store: sa.Engine) -> None:
    with store.connect() as connection:
        before = sorted(map(repr, read_definitions(connection)))
    upgrade(store)
    with store.connect() as connection:
        assert sorted(map(repr, read_definitions(connection))) == before
