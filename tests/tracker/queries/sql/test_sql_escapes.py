"""Ways out of reading, each tried on a real store: nothing may be written, in it or beside it."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from database_roles import login_role
from filled_stores import add_scores

from tracker.database import connect, create_unchecked_engine
from tracker.errors import SqlError
from tracker.queries.sql.read_only import read_only_sql

SQLITE_ATTEMPTS = [
    "DELETE FROM score",
    "INSERT INTO model (name) VALUES ('x')",
    "INSERT INTO model (name) VALUES ('x') RETURNING id",
    "REPLACE INTO model (id, name) VALUES (1, 'x')",
    "UPDATE model SET name = 'x'",
    "WITH x AS (SELECT 1) INSERT INTO model (name) SELECT 'x' FROM x",
    "WITH x AS (SELECT 1) DELETE FROM model RETURNING id",
    "DROP TABLE score",
    "ALTER TABLE model RENAME TO x",
    "CREATE TABLE x (a)",
    "CREATE TEMP TABLE x (a)",
    "CREATE VIEW x AS SELECT 1",
    "CREATE TRIGGER x AFTER INSERT ON run BEGIN DELETE FROM score; END",
    "CREATE VIRTUAL TABLE x USING fts5(a)",
    "SELECT 1; DELETE FROM score",
    "SELECT 1; PRAGMA query_only = OFF; DELETE FROM score",
    "PRAGMA query_only = OFF",
    "SELECT * FROM pragma_query_only(0)",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA user_version = 7",
    "PRAGMA temp_store_directory = '{folder}'",
    "PRAGMA hard_heap_limit = 1",
    "PRAGMA optimize",
    "ATTACH '{folder}/new.db' AS x",
    "ATTACH 'file:{folder}/new.db?mode=rwc' AS x",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO '{folder}/new.db'",
    "SELECT load_extension('{folder}/x')",
    "SELECT writefile('{folder}/x', 'x')",
    "SELECT readfile('{folder}/x')",
    "SELECT edit('x', 'touch {folder}/x')",
    "SELECT fts3_tokenizer('simple', x'00')",
    "BEGIN IMMEDIATE",
    "SAVEPOINT x",
    "COMMIT",
    "REINDEX",
    "ANALYZE",
    "EXPLAIN DELETE FROM score",
    "SELECT zeroblob(900000000)",
]

POSTGRES_ATTEMPTS = [
    "DELETE FROM score",
    "INSERT INTO model (name) VALUES ('x') RETURNING id",
    "UPDATE model SET name = 'x'",
    "TRUNCATE score",
    "DROP TABLE score",
    "CREATE TABLE x (a int)",
    "CREATE TEMP TABLE x (a int)",
    "CREATE TABLE x AS SELECT 1",
    "SELECT * INTO x FROM model",
    "SELECT * FROM model FOR UPDATE",
    "WITH x AS (INSERT INTO model (name) VALUES ('x') RETURNING id) SELECT * FROM x",
    "WITH x AS (DELETE FROM score RETURNING 1) SELECT count(*) FROM x",
    "SELECT 1; DELETE FROM score",
    "SELECT 1; COMMIT; DELETE FROM score",
    "COMMIT; BEGIN READ WRITE; DELETE FROM score; COMMIT",
    "SELECT 1; COMMIT; BEGIN READ WRITE; DELETE FROM score; COMMIT; SELECT 2",
    "SELECT 1 -- \n; DELETE FROM score",
    "SET TRANSACTION READ WRITE",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SELECT set_config('role', 'none', false), query_to_xml('DELETE FROM score RETURNING 1', true, true, '')",
    "SELECT query_to_xml('DELETE FROM score RETURNING 1', true, true, '')",
    "SELECT query_to_xml('COMMIT', true, true, '')",
    "SELECT query_to_xml($$SELECT lo_export(1, '{folder}/x')$$, true, true, '')",
    "SELECT U&\"set\\005fconfig\"('role', 'none', false), lo_export(1, '{folder}/x')",
    "SELECT nextval('model_id_seq')",
    "SELECT setval('model_id_seq', 999)",
    "SELECT lo_create(4711)",
    "SELECT lo_from_bytea(4711, 'x')",
    "SELECT lo_unlink(1)",
    "SELECT lo_import('/etc/hostname')",
    "SELECT lo_export(1, '{folder}/x')",
    "SELECT pg_read_file('/etc/hostname')",
    "SELECT pg_ls_dir('/')",
    "SELECT pg_reload_conf()",
    "SELECT pg_switch_wal()",
    "SELECT pg_create_restore_point('x')",
    "SELECT pg_create_physical_replication_slot('x', true)",
    "COPY model TO '{folder}/x'",
    "COPY model TO PROGRAM 'cat > {folder}/x'",
    "COPY (SELECT 1) TO PROGRAM 'cat > {folder}/x'",
    "SELECT 1) TO PROGRAM 'cat > {folder}/x'",
    "DO $$ BEGIN DELETE FROM score; END $$",
    "EXPLAIN ANALYZE DELETE FROM score",
    "PREPARE x AS DELETE FROM score",
    "CALL x()",
    "LOCK TABLE score",
    "VACUUM",
    "ALTER SYSTEM SET work_mem = '1MB'",
    "CREATE EXTENSION dblink",
    "SELECT dblink_exec('dbname=postgres', 'CREATE TABLE x (a int)')",
    "SELECT empty_scores()",
    "SELECT empty_scores_as_owner()",
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the server could write to, were it let."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def refused(store: sa.Engine, attempts: list[str], folder: Path) -> list[str]:
    """The attempts that were answered with an error of ours."""
    outcome = []
    for attempt in attempts:
        try:
            with read_only_sql(store, attempt.replace("{folder}", str(folder)), limit_seconds=10) as result:
                list(result.rows)
        except SqlError:
            outcome.append(attempt)
    return outcome


class TestSQLite:
    def test_every_attempt_is_refused_and_changes_nothing(self, sqlite_url: str, folder: Path) -> None:
        store = connect(sqlite_url)
        add_scores(store, np.ones((5, 3)))
        path = Path(store.url.database)
        beside = {p.name for p in path.parent.iterdir()}

        def content() -> tuple[str, str]:
            with sqlite3.connect(path) as raw:
                dump = "\n".join(raw.iterdump()) + str(raw.execute("PRAGMA journal_mode").fetchall())
            raw.close()
            return dump, hashlib.sha256(path.read_bytes()).hexdigest()

        before = content()
        assert refused(store, SQLITE_ATTEMPTS, folder) == SQLITE_ATTEMPTS
        assert content() == before
        assert list(folder.iterdir()) == []
        assert {p.name for p in path.parent.iterdir()} == beside
        store.dispose()


class TestPostgreSQL:
    @pytest.fixture
    def store(self, postgres_url: str) -> Iterator[sa.Engine]:
        """A store with functions that write, and one large object."""
        engine = connect(postgres_url)
        add_scores(engine, np.ones((5, 3)))
        with engine.begin() as connection:
            for name, rights in (("empty_scores", "INVOKER"), ("empty_scores_as_owner", "DEFINER")):
                connection.exec_driver_sql(
                    f"CREATE FUNCTION {name}() RETURNS int LANGUAGE plpgsql SECURITY {rights} "
                    "AS $$ BEGIN DELETE FROM score; RETURN 1; END $$"
                )
            connection.exec_driver_sql("SELECT lo_from_bytea(1, 'secret')")
        yield engine
        engine.dispose()

    @pytest.fixture
    def writer(self, store: sa.Engine) -> Iterator[sa.Engine]:
        """The same store, as an ordinary role that may write."""
        kinds = "ALL TABLES IN SCHEMA public", "ALL SEQUENCES IN SCHEMA public", "SCHEMA public"
        with login_role(store, *(f"ALL ON {kind}" for kind in kinds)) as url:
            engine = create_unchecked_engine(url.render_as_string(hide_password=False))
            yield engine
            engine.dispose()

    @staticmethod
    def content(store: sa.Engine) -> list[object]:
        with store.connect() as connection:
            tables = sa.inspect(connection).get_table_names()
            requested = [f"SELECT count(*) FROM {table}" for table in tables]
            requested += [
                "SELECT array_agg(name ORDER BY name) FROM model",
                "SELECT array_agg(relname::text ORDER BY relname) FROM pg_class WHERE relnamespace = 2200",
                "SELECT last_value FROM model_id_seq",
                "SELECT array_agg(oid) FROM pg_largeobject_metadata",
                "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'x'",
                "SELECT setting FROM pg_settings WHERE name = 'work_mem'",
                "SELECT count(*) FROM pg_extension",
            ]
            return [connection.exec_driver_sql(query).scalar() for query in requested]

    def test_every_attempt_of_a_superuser_is_refused_and_changes_nothing(self, store: sa.Engine, folder: Path) -> None:
        before = self.content(store)
        assert refused(store, POSTGRES_ATTEMPTS, folder) == POSTGRES_ATTEMPTS
        assert self.content(store) == before
        assert list(folder.iterdir()) == []

    def test_every_attempt_of_a_role_that_may_write_is_refused_and_changes_nothing(
        self, store: sa.Engine, writer: sa.Engine, folder: Path
    ) -> None:
        before = self.content(store)
        assert refused(writer, POSTGRES_ATTEMPTS, folder) == POSTGRES_ATTEMPTS
        assert self.content(store) == before
        assert list(folder.iterdir()) == []

    def test_a_role_without_temporary_tables_reads_the_view_without_intervals(
        self, store: sa.Engine, writer: sa.Engine
    ) -> None:
        with read_only_sql(writer, "SELECT * FROM leaderboard") as result:
            assert result.columns[-1] == "rank_high"
            assert result.warnings == ()
        database = store.url.database
        with store.begin() as connection:
            connection.exec_driver_sql(f'REVOKE TEMPORARY ON DATABASE "{database}" FROM PUBLIC')
        with read_only_sql(writer, "SELECT * FROM leaderboard") as result:
            assert result.columns[-1] == "rank"
            assert "need the right to create temporary tables" in result.warnings[0]

    def test_the_attempts_would_work_outside(self, store: sa.Engine, folder: Path) -> None:
        """So that the tests above prove something."""
        with psycopg.connect(store.url.set(drivername="postgresql").render_as_string(hide_password=False)) as raw:
            raw.execute("SELECT empty_scores()")
            raw.execute("SELECT lo_create(4711)")
            assert raw.execute("SELECT count(*) FROM score").fetchone() == (0,)
            raw.rollback()
            raw.execute(f"COPY (SELECT 1) TO PROGRAM 'cat > {folder}/x'")
        assert (folder / "x").exists()

    def test_switching_the_servers_limit_off_does_not_help(self, writer: sa.Engine) -> None:
        statement = "SELECT set_config('statement_timeout', '0', false), pg_sleep(1000)"
        with (
            pytest.raises(SqlError, match="stopped after"),
            read_only_sql(writer, statement, limit_seconds=0.2) as result,
        ):
            list(result.rows)
