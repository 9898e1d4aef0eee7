"""Anybody's SQL: what it returns, what it says when it is wrong, when it is stopped."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores
from sqlalchemy.exc import OperationalError

from tracker.connections.schema_versions import upgrade
from tracker.database import connect, lock_for_writing, transaction
from tracker.errors import DatabaseError, SqlError
from tracker.queries.sql.read_only import read_only_sql
from tracker.recording.mlflow.publish_lock import lock_publishing
from tracker.schema import Model

COUNTING = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
FOREVER = COUNTING + "SELECT count(*) FROM n"


def request(store: sa.Engine | str, statement: str, **options: object) -> list[tuple[object, ...]]:
    with read_only_sql(store, statement, **options) as result:
        return list(result.rows)


class TestReading:
    def test_columns_and_rows_come_as_requested(self, store: sa.Engine) -> None:
        add_scores(store, np.array([[1.0, 0.0]]))
        with read_only_sql(store, "SELECT model, mean AS average FROM leaderboard ORDER BY rank;") as result:
            assert result.columns == ("model", "average")
            assert list(result.rows) == [("m0", 1.0), ("m1", 0.0)]

    def test_columns_of_one_name_are_distinguished(self, store: sa.Engine) -> None:
        add_scores(store, np.array([[1.0, 0.0]]))
        with read_only_sql(store, "SELECT 1 AS id, 2 AS id, 3 AS id_2, 4 AS id") as result:
            assert result.columns == ("id", "id_3", "id_2", "id_4")
            assert list(result.rows) == [(1, 2, 3, 4)]
            assert "id_3, id_4" in result.warnings[-1]

    def test_a_url_will_do(self, store_url: str) -> None:
        assert request(store_url, "SELECT 1") == [(1,)]

    def test_many_rows_are_read_piece_by_piece(self, store: sa.Engine) -> None:
        add_scores(store, np.ones((50, 1)))
        rows = request(store, "SELECT a.id, b.id FROM prompt a CROSS JOIN prompt b ORDER BY a.id, b.id")
        assert len(rows) == len(set(rows)) == 2500
        assert rows == sorted(rows)

    def test_only_as_many_rows_as_wanted_are_read(self, store: sa.Engine) -> None:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
        assert request(store, endless, max_rows=3) == [(1,), (2,), (3,)]

    def test_signs_that_mean_something_elsewhere_mean_nothing_here(self, store: sa.Engine) -> None:
        assert request(store, "VALUES (1, 'a')") == [(1, "a")]
        assert request(store, "WITH one AS (SELECT 1 AS x) SELECT x FROM one -- the end") == [(1,)]
        assert request(store, "SELECT '100%', 'a?b', ':x', '%s', '; DELETE FROM run'") == [
            ("100%", "a?b", ":x", "%s", "; DELETE FROM run")
        ]
        assert request(store, "/* first */ SELECT 'ü'") == [("ü",)]

    def test_lists_in_columns_can_be_used_separate(self, sqlite_url: str) -> None:
        assert request(sqlite_url, "SELECT value FROM json_each('[1, 2]')") == [(1,), (2,)]

    def test_the_shape_of_the_store_can_be_requested(self, sqlite_url: str) -> None:
        assert any(row[1] == "model_id" for row in request(sqlite_url, "PRAGMA table_info(run)"))
        assert request(sqlite_url, "SELECT count(*) FROM pragma_table_info('run')")[0][0] > 10
        assert request(sqlite_url, "EXPLAIN QUERY PLAN SELECT * FROM run")

    def test_a_superuser_is_warned(self, postgres_url: str) -> None:
        with read_only_sql(postgres_url, "SELECT rolsuper FROM pg_roles WHERE rolname = session_user") as result:
            is_superuser = next(result.rows)[0]
            assert bool(result.warnings) == is_superuser


class TestErrors:
    def test_a_missing_table_is_met_with_those_there_are(self, store: sa.Engine) -> None:
        with pytest.raises(SqlError, match=r"leaderbord.*Did you mean 'leaderboard'\?"):
            request(store, "SELECT * FROM leaderbord")
        with pytest.raises(SqlError, match=r"zzz.*Known: .* more\. Tables.*docs/how-to/sql\.md"):
            request(store, "SELECT * FROM zzz")

    def test_a_missing_column_is_named(self, store: sa.Engine) -> None:
        with pytest.raises(SqlError, match="nix"):
            request(store, "SELECT nix FROM run")

    def test_what_is_no_statement_is_refused(self, store: sa.Engine) -> None:
        for statement in ("", "  ", ";", "-- nothing", "SELECT '\0'", "SELECT '\ud800'", "SELEC 1"):
            with pytest.raises(SqlError):
                request(store, statement)

    def test_an_error_in_a_later_row_is_reported_too(self, store: sa.Engine) -> None:
        failing = "json('{')" if store.dialect.name == "sqlite" else "CAST(1 / (i - 1500) AS text)"
        wrong = COUNTING + f"SELECT CASE WHEN i < 1500 THEN '' ELSE {failing} END FROM n"
        with read_only_sql(store, wrong) as result, pytest.raises(SqlError):
            list(result.rows)

    def test_a_store_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(DatabaseError, match=r"none\.db"):
            request(sa.create_engine(f"sqlite:///{tmp_path}/none.db"), "SELECT 1")
        assert list(tmp_path.iterdir()) == []

    def test_a_server_that_is_not_there_is_named_without_its_password(self) -> None:
        with pytest.raises(DatabaseError) as error:
            request("postgresql://me:s3cret@127.0.0.1:1/none", "SELECT 1")
        assert "127.0.0.1" in str(error.value)
        assert "s3cret" not in str(error.value)


class TestTimeLimit:
    def test_a_statement_that_never_ends_is_stopped(self, store: sa.Engine) -> None:
        with pytest.raises(SqlError, match=r"stopped after 0\.2 s"):
            request(store, FOREVER, limit_seconds=0.2)

    def test_so_is_one_that_never_ends_between_two_rows(self, store: sa.Engine) -> None:
        late = COUNTING + "SELECT 1 UNION ALL SELECT count(*) FROM n"
        with read_only_sql(store, late, limit_seconds=0.2) as result, pytest.raises(SqlError, match="stopped after"):
            list(result.rows)

    def test_the_server_is_left_with_nothing_to_do(self, postgres_url: str) -> None:
        with pytest.raises(SqlError, match="stopped after"):
            request(postgres_url, "SELECT pg_sleep(1000), 'marked'", limit_seconds=0.2)
        busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%mar' || 'ked%' AND state = 'active'"
        assert request(postgres_url, busy) == [(0,)]

    def test_time_spent_on_the_rows_does_not_count(self, store: sa.Engine) -> None:
        import time

        add_scores(store, np.ones((40, 1)))
        pairs = "SELECT a.id FROM prompt a CROSS JOIN prompt b"
        with read_only_sql(store, pairs, limit_seconds=0.5) as result:
            next(result.rows)
            time.sleep(0.7)
            assert len(list(result.rows)) == 1599

    @pytest.mark.parametrize("rows", ["SELECT i, length(randomblob(20000000 + i)) FROM n", "SELECT count(*) FROM n"])
    def test_a_limit_of_sqlite_holds_within_expensive_steps(self, sqlite_url: str, rows: str) -> None:
        """The statement of the audit: each step creates 20 MB; without an interrupt this never ends."""
        connect(sqlite_url).dispose()
        late = COUNTING + rows.replace("FROM n", "FROM n WHERE randomblob(20000000 + i) IS NOT NULL")
        with pytest.raises(SqlError, match=r"stopped after 0\.5 s"):
            request(sqlite_url, late, limit_seconds=0.5)


class TestSizeLimit:
    def test_a_result_beyond_the_limit_is_an_error(self, store: sa.Engine) -> None:
        wide = COUNTING + "SELECT '" + "x" * 1000 + "' FROM n"
        with pytest.raises(SqlError, match="larger than 1 MB"):
            request(store, wide, max_bytes=1_000_000)

    def test_a_result_within_it_is_complete(self, store: sa.Engine) -> None:
        rows = request(store, COUNTING + "SELECT i, 'abc' FROM n LIMIT 2500", max_bytes=2500 * 11)
        assert rows == [(i, "abc") for i in range(1, 2501)]

    def test_large_rows_are_not_collected_in_blocks(self, store: sa.Engine) -> None:
        large = (
            "randomblob(4000000 + i)" if store.dialect.name == "sqlite" else "convert_to(repeat('x', 4000000), 'UTF8')"
        )
        with pytest.raises(SqlError, match="larger than 20 MB"):
            request(store, COUNTING + f"SELECT {large} FROM n", max_bytes=20_000_000)


class TestLocks:
    STATEMENTS = ("SELECT pg_advisory_lock(1526692463)", "SELECT pg_advisory_lock(1526692462)")

    def test_no_lock_that_a_reader_can_hold_stops_a_writer(self, postgres_url: str) -> None:
        writer = connect(postgres_url)
        with ExitStack() as readers:
            for statement in self.STATEMENTS:
                list(readers.enter_context(read_only_sql(postgres_url, statement)).rows)
            with transaction(writer, exclusive=True) as session:
                session.execute(sa.text("SET LOCAL lock_timeout = '5s'"))
                session.execute(sa.insert(Model).values(name="written meanwhile"))
            upgrade(writer)
            with lock_publishing(writer):
                pass
        with transaction(writer, write=False) as session:
            assert session.scalars(sa.select(Model.name)).all() == ["written meanwhile"]
        writer.dispose()

    def test_exclusive_writers_wait_for_each_other(self, postgres_url: str) -> None:
        writer = connect(postgres_url)
        with transaction(writer, exclusive=True), writer.connect() as waiting:
            waiting.execute(sa.text("SET LOCAL lock_timeout = '100ms'"))
            with pytest.raises(OperationalError, match="lock timeout"):
                lock_for_writing(waiting)
        writer.dispose()


class TestPasswords:
    @pytest.mark.parametrize(
        "statement",
        [
            "SELECT rolpassword FROM pg_authid",
            "SELECT passwd FROM pg_shadow",
            'SELECT rolpassword FROM U&"pg\\005fauthid"',
            "SELECT table_to_xml(CAST('pg_auth' || 'id' AS regclass), true, true, '')",
            "SELECT umoptions FROM pg_user_mapping",
        ],
    )
    def test_hashes_of_passwords_are_out_of_reach(self, postgres_url: str, statement: str) -> None:
        with pytest.raises(SqlError, match="not allowed"):
            request(postgres_url, statement)
