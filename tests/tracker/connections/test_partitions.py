"""On PostgreSQL each benchmark has a partition of scores and one of answers, and queries of it read no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from answer_tables import MODELS, N_PROMPTS, write_answers

from tracker.api.store import Store
from tracker.connections.partitions import (
    PARTITIONED,
    built_partitions,
    in_partition,
    in_partitions_of_runs,
    target_table,
)
from tracker.copying.backup import back_up
from tracker.database import connect, find_stray_rows, transaction
from tracker.errors import DatabaseError
from tracker.ingest.write.bulk_rows import insert_answers, insert_scores
from tracker.ingest.write.score_columns import ScoreColumn, pack
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.repair.repair import repair


@pytest.fixture
def two(postgres_url: str, tmp_path: Path) -> Iterator[sa.Engine]:
    """A store with two benchmarks of three runs each."""
    with Store(connect(postgres_url)) as store:
        for number, name in enumerate(("first", "second")):
            store.ingest(write_answers(tmp_path / f"{name}.csv", number), benchmark=name)
    engine = connect(postgres_url)
    yield engine
    engine.dispose()


def query(engine: sa.Engine, sql: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(sql)]


def execute(engine: sa.Engine, *statements: str, without_triggers: bool = False) -> None:
    with engine.begin() as connection:
        if without_triggers:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        for statement in statements:
            connection.exec_driver_sql(statement)


def count_scans(engine: sa.Engine) -> dict[str, int]:
    """How often each partition was read since the server started, as far as other connections have reported it."""
    sql = (
        "SELECT relname, coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_user_tables "
        "WHERE relname ~ '^(score|answer)_[0-9]+$'"
    )
    return dict(query(engine, sql))  # type: ignore[arg-type]


def list_nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All nodes of a plan of PostgreSQL."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from list_nodes(part)


class TestPlaceOfRows:
    @pytest.mark.parametrize("table", PARTITIONED)
    def test_an_import_puts_every_row_into_the_partition_of_its_benchmark(self, two: sa.Engine, table: str) -> None:
        counts = query(
            two,
            f"SELECT {table}.tableoid::regclass::text, run.benchmark_id, count(*) FROM {table} "
            "JOIN run ON run.id = run_id GROUP BY 1, 2 ORDER BY 2",
        )
        assert counts == [(f"{table}_{n}", n, N_PROMPTS * len(MODELS)) for n in (1, 2)]

    def test_a_row_without_benchmark_is_moved_there(self, two: sa.Engine) -> None:
        execute(two, "INSERT INTO score SELECT run_id, metric_id, prompt_id, trial + 1, value FROM score")
        moved = query(two, "SELECT tableoid::regclass::text, count(*) FROM score WHERE trial = 1 GROUP BY 1 ORDER BY 1")
        assert moved == [(f"score_{n}", N_PROMPTS * len(MODELS)) for n in (1, 2)]
        assert query(two, "SELECT count(*) FROM score_unrouted") == [(0,)]

    @pytest.mark.tampers
    def test_a_benchmark_without_scores_has_empty_partitions(self, postgres_url: str) -> None:
        engine = connect(postgres_url)
        execute(engine, "INSERT INTO benchmark (name, revision) VALUES ('empty', '')")
        assert query(engine, "SELECT count(*) FROM score_1") == query(engine, "SELECT count(*) FROM answer_1") == [(0,)]
        engine.dispose()

    def test_a_failed_import_leaves_no_partition(self, postgres_url: str) -> None:
        engine = connect(postgres_url)

        def fail() -> None:
            with transaction(engine, exclusive=True) as session, built_partitions(session.connection()):
                session.connection().exec_driver_sql("INSERT INTO benchmark (name, revision) VALUES ('b', '')")
                session.connection().exec_driver_sql("SELECT start_partition('score', 1)")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert query(engine, "SELECT to_regclass('score_1')") == [(None,)]
        engine.dispose()


class TestOrphans:
    """No statement, through the table or a partition, leaves a row without its run, prompt or metric."""

    @pytest.mark.parametrize(
        "statement",
        [
            "INSERT INTO score VALUES (99, 1, 1, 9, 1.0)",
            "INSERT INTO score VALUES (1, 1, 999, 9, 1.0)",
            "INSERT INTO score VALUES (1, 99, 1, 9, 1.0)",
            "INSERT INTO score VALUES (1, 1, 999, 9, 1.0, 1)",
            "INSERT INTO score VALUES (1, 1, 1, 9, 1.0, 2)",
            "INSERT INTO score VALUES (1, 1, 1, 9, 1.0, 77)",
            "INSERT INTO score_1 VALUES (1, 1, 999, 9, 1.0, 1)",
            "INSERT INTO score_1 VALUES (1, 99, 1, 9, 1.0, 1)",
            "INSERT INTO score_1 VALUES (99, 1, 1, 9, 1.0, 1)",
            "INSERT INTO score_2 VALUES (1, 1, 1, 9, 1.0, 2)",
            "INSERT INTO score_1 VALUES (1, 1, 1, 9, 1.0, 2)",
            "INSERT INTO score_unrouted VALUES (99, 1, 1, 9, 1.0)",
            "INSERT INTO answer VALUES (99, 1, '', 9, 'A', NULL, 'ok')",
            "INSERT INTO answer_1 VALUES (1, 999, '', 9, 'A', NULL, 'ok', 1)",
            "INSERT INTO answer_2 VALUES (1, 1, '', 9, 'A', NULL, 'ok', 2)",
            "UPDATE score SET benchmark_id = 2 WHERE run_id = 1",
            "UPDATE score_1 SET prompt_id = 999 WHERE run_id = 1 AND prompt_id = 1",
            "UPDATE score SET run_id = 99 WHERE run_id = 1",
            "UPDATE run SET benchmark_id = 2 WHERE id = 1",
            "DELETE FROM prompt WHERE id = 1",
            "DELETE FROM metric",
            "TRUNCATE prompt CASCADE",
        ],
    )
    def test_it_is_rejected(self, two: sa.Engine, statement: str) -> None:
        before = query(two, "SELECT * FROM score ORDER BY 1, 2, 3, 4")
        with pytest.raises((sa.exc.IntegrityError, sa.exc.InternalError, sa.exc.NotSupportedError)):
            execute(two, statement)
        assert query(two, "SELECT * FROM score ORDER BY 1, 2, 3, 4") == before
        with transaction(two, write=False) as session:
            assert find_stray_rows(session) == []

    @pytest.mark.parametrize("key", ["run", "prompt", "metric"])
    def test_nor_does_a_new_partition_take_one(self, postgres_url: str, key: str) -> None:
        engine = connect(postgres_url)
        keys = {"run": 1, "metric": 1, "prompt": 1} | {key: 99}

        def insert() -> None:
            with transaction(engine, exclusive=True) as session:
                connection = session.connection()
                with built_partitions(connection):
                    _insert_catalogue(connection)
                    assert target_table(connection, "score", 1) == "score_1"
                    values = ", ".join(map(str, keys.values()))
                    connection.exec_driver_sql(f"INSERT INTO score_1 VALUES ({values}, 0, 1.0)")

        with pytest.raises(sa.exc.IntegrityError):
            insert()
        assert query(engine, "SELECT count(*) FROM benchmark") == [(0,)]
        engine.dispose()

    @pytest.mark.tampers
    def test_a_deleted_run_takes_its_rows_along(self, two: sa.Engine) -> None:
        execute(two, "DELETE FROM run WHERE id = 1")
        for table in PARTITIONED:
            assert query(two, f"SELECT count(*), count(DISTINCT run_id) FROM {table}_1") == [(N_PROMPTS * 2, 2)]


def _insert_catalogue(connection: sa.Connection) -> None:
    for statement in (
        "INSERT INTO benchmark (name, revision) VALUES ('b', '')",
        "INSERT INTO task (benchmark_id, name) VALUES (1, 't')",
        "INSERT INTO prompt (task_id, occurrence, content_hash) VALUES (1, 0, 'h')",
        "INSERT INTO metric (name, higher_is_better) VALUES ('accuracy', true)",
        "INSERT INTO model (name) VALUES ('m')",
        "INSERT INTO run (benchmark_id, model_id, condition, variant, label, limited, status, n_scores, checksum, "
        "ingested) VALUES (1, 1, 'full', '', '', false, 'complete', 1, repeat('0', 32), now())",
    ):
        connection.exec_driver_sql(statement)


class TestCopies:
    """Rows that are copied into a new partition, an old one, or through the table are equal."""

    @pytest.mark.parametrize("is_built", [True, False])
    def test_scores_and_answers(self, postgres_url: str, is_built: bool) -> None:
        engine = connect(postgres_url)
        values = np.array([0.5])
        with transaction(engine, exclusive=True) as session:
            connection = session.connection()
            if not is_built:
                _insert_catalogue(connection)
            with built_partitions(connection):
                if is_built:
                    _insert_catalogue(connection)
                column = ScoreColumn(metric_id=1, keys=pack(np.array([1]), np.array([3])), values=values)
                insert_scores(session, [(1, column)])
                insert_answers(session, [(1, 1, "", 3, "A\tB", 0.25, "ok")])
        assert query(engine, "SELECT * FROM score_1") == [(1, 1, 1, 3, 0.5, 1)]
        assert query(engine, "SELECT * FROM answer_1") == [(1, 1, "", 3, "A\tB", 0.25, "ok", 1)]
        engine.dispose()


Read = Callable[[Store], object]


class TestReads:
    @pytest.mark.parametrize(
        "read",
        [
            pytest.param(lambda store: store.leaderboard("first"), id="leaderboard"),
            pytest.param(lambda store: store.verdict("first"), id="verdict"),
            pytest.param(lambda store: store.compare("first", "a", "b"), id="compare"),
            pytest.param(lambda store: store.performance_matrix("first"), id="matrix"),
            pytest.param(lambda store: store.analyze("prompt-correlation", "first", n_permutations=9), id="analysis"),
            *(
                pytest.param(
                    lambda store, view=view: store.sql(f"SELECT * FROM {view} WHERE benchmark = 'first'"), id=view
                )
                for view in ("leaderboard", "run_history")
            ),
        ],
    )
    def test_a_query_of_a_benchmark_reads_no_partition_of_another(self, two: sa.Engine, read: Read) -> None:
        store_url = two.url.render_as_string(hide_password=False)
        two.dispose()  # a connection reports its reads when it ends
        before = count_scans(two)
        two.dispose()
        with Store(connect(store_url)) as store:
            read(store)
        after = count_scans(two)
        assert {name: after[name] - before[name] for name in before if name.endswith("_2")} == {
            "score_2": 0, "answer_2": 0,
        }  # fmt: skip
        assert after["score_1"] > before["score_1"]

    def test_a_view_reads_the_scores_of_a_benchmark_at_most_twice(self, two: sa.Engine, tmp_path: Path) -> None:
        """After ANALYZE, with as many scores as let PostgreSQL prefer other joins than with few."""
        path, n_prompts = tmp_path / "scores.csv", 5000
        prompts = ",".join(f"q{n}" for n in range(n_prompts))
        rows = [f"m{m},{','.join(str((m * n) % 3 % 2) for n in range(n_prompts))}" for m in range(20)]
        path.write_text("\n".join([f"model,{prompts}", *rows]))
        with Store(connect(two.url.render_as_string(hide_password=False))) as store:
            store.ingest(path, benchmark="large")
        execute(two, "ANALYZE")
        for view in ("leaderboard", "run_history"):
            [(plan,)] = query(two, f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM {view} WHERE benchmark = 'large'")
            nodes = list(list_nodes(plan[0]["Plan"]))
            assert 1 <= sum(node["Actual Loops"] for node in nodes if node.get("Relation Name") == "score_3") <= 2

    def test_planning_a_query_of_a_benchmark_locks_no_partition_of_another(self, two: sa.Engine) -> None:
        locked = "SELECT relation::regclass::text FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'"
        with transaction(two, write=False) as session:
            load_leaderboard(session, Selection(benchmark="first"))
            load_performance_matrix(session, Selection(benchmark="first"))
            names = set(session.scalars(sa.text(locked)))
        assert "score" in names
        assert not {name for name in names if name.endswith("_2")}

    def test_the_terms_are_true_on_sqlite(self, sqlite_url: str) -> None:
        engine = connect(sqlite_url)
        with transaction(engine, write=False) as session:
            terms = in_partition(session, tables.score, 7), in_partitions_of_runs(session, tables.score, [7])
        compiled = sa.select(tables.score.c.value).where(*terms).compile(engine)
        assert str(compiled).endswith("WHERE 1 = 1")
        assert compiled.params == {}
        engine.dispose()


class TestRights:
    """Partitions are added with the rights of their owner, by those alone who may insert scores."""

    @pytest.fixture
    def role(self, two: sa.Engine) -> Iterator[str]:
        """A role that may read, and create tables as on servers before PostgreSQL 15."""
        name = f"role_{two.url.database}"
        execute(two, f"CREATE ROLE {name}", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
        execute(two, f"GRANT CREATE, USAGE ON SCHEMA public TO {name}")
        yield name
        execute(two, f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")

    @pytest.fixture
    def connection(self, two: sa.Engine, role: str) -> Iterator[sa.Connection]:
        """A connection of that role."""
        with two.connect() as connection:
            connection.exec_driver_sql(f"SET SESSION AUTHORIZATION {role}")
            connection.commit()
            yield connection
            connection.rollback()
            connection.exec_driver_sql("RESET SESSION AUTHORIZATION")
            connection.commit()

    @pytest.mark.parametrize("function", ["start_partition", "attach_partition"])
    @pytest.mark.parametrize("table", ["score", "run"])
    def test_a_reader_adds_no_partition(self, connection: sa.Connection, function: str, table: str) -> None:
        with pytest.raises(sa.exc.ProgrammingError, match="may not add partitions"):
            connection.exec_driver_sql(f"SELECT {function}('{table}', 77)")

    @pytest.mark.parametrize("call", ["create_partition('score', 'score', 7)", "finish_partition('score', 'score', 1)"])
    def test_nobody_calls_what_checks_no_right(self, connection: sa.Connection, call: str) -> None:
        with pytest.raises(sa.exc.ProgrammingError, match="permission denied for function"):
            connection.exec_driver_sql(f"SELECT {call}")

    def test_a_temporary_table_of_that_name_changes_nothing(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("CREATE TEMP TABLE score (benchmark_id integer)")
        with pytest.raises(sa.exc.ProgrammingError, match="may not add partitions"):
            connection.exec_driver_sql("SELECT start_partition('score', 77)")

    def test_an_operator_of_the_caller_is_not_run(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql(
            "CREATE FUNCTION public.spy(text, integer) RETURNS text LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'run as %%', current_user; END $$"
        )
        connection.exec_driver_sql(
            "CREATE OPERATOR public.|| (FUNCTION = public.spy, LEFTARG = text, RIGHTARG = integer)"
        )
        with pytest.raises(sa.exc.ProgrammingError, match="may not add partitions"):
            connection.exec_driver_sql("SELECT start_partition('score', 5)")

    def test_a_writer_adds_no_partition_of_a_benchmark_that_does_not_exist(
        self, two: sa.Engine, role: str, connection: sa.Connection
    ) -> None:
        execute(two, f"GRANT INSERT ON score TO {role}")
        with pytest.raises(sa.exc.IntegrityError, match="benchmark 77 does not exist"):
            connection.exec_driver_sql("SELECT start_partition('score', 77)")

    @pytest.mark.tampers
    def test_what_a_writer_started_is_attached_when_it_commits(
        self, two: sa.Engine, role: str, connection: sa.Connection
    ) -> None:
        execute(two, f"GRANT INSERT ON score, benchmark TO {role}", f"GRANT USAGE ON benchmark_id_seq TO {role}")
        connection.exec_driver_sql("SET CONSTRAINTS benchmark_inserted DEFERRED")
        connection.exec_driver_sql("INSERT INTO benchmark (name, revision) VALUES ('third', '')")
        connection.exec_driver_sql("SELECT start_partition('score', 3)")
        connection.commit()
        attached = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhrelid IN "
        rows = query(two, f"{attached}('score_3'::regclass, 'answer_3'::regclass) ORDER BY 1")
        assert rows == [("answer_3",), ("score_3",)]

    def test_the_rights_are_those_of_the_role_that_is_set(self, two: sa.Engine, role: str) -> None:
        execute(two, f"GRANT INSERT ON score TO {role}")
        with two.connect() as connection:
            connection.exec_driver_sql("INSERT INTO benchmark (id, name, revision) VALUES (9, 'ninth', '')")
            connection.exec_driver_sql("DROP TABLE score_9")
            connection.exec_driver_sql(f"SET ROLE {role}")
            connection.exec_driver_sql("SELECT start_partition('score', 9)")
            assert connection.exec_driver_sql("SELECT count(*) FROM score_9").scalar_one() == 0  # it may read it
            connection.rollback()

    @pytest.mark.parametrize("table", PARTITIONED)
    def test_a_table_of_another_role_is_not_adopted(
        self, two: sa.Engine, connection: sa.Connection, table: str, tmp_path: Path
    ) -> None:
        connection.exec_driver_sql(f"CREATE TABLE {table}_3 (LIKE {table} INCLUDING ALL)")
        connection.commit()
        with Store(connect(two.url.render_as_string(hide_password=False))) as store:
            with pytest.raises(DatabaseError, match=f"the table {table}_3 of another program takes the name"):
                store.ingest(write_answers(tmp_path / "third.csv", 2), benchmark="third")
            assert len(store.benchmarks()) == 2
            execute(two, f"DROP TABLE {table}_3")

    @pytest.mark.tampers
    def test_a_partition_has_no_privileges_but_those_of_its_owner(
        self, two: sa.Engine, role: str, connection: sa.Connection
    ) -> None:
        execute(two, f"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {role}, PUBLIC")
        execute(two, f"GRANT INSERT ON score, benchmark TO {role}", f"GRANT USAGE ON benchmark_id_seq TO {role}")
        with built_partitions(connection):
            connection.exec_driver_sql("INSERT INTO benchmark (id, name, revision) VALUES (3, 'third', '')")
            assert target_table(connection, "score", 3) == "score_3"
        connection.commit()
        granted = "SELECT relname FROM pg_class WHERE relname IN ('score_3', 'answer_3') AND EXISTS "
        assert query(two, f"{granted}(SELECT 1 FROM aclexplode(relacl) WHERE grantee <> relowner)") == []
        execute(two, f"ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM {role}, PUBLIC")


class TestMisplacedRows:
    """Rows of another partition would be invisible to queries of their benchmark."""

    @pytest.mark.tampers
    def test_a_run_moved_to_another_benchmark_is_repaired_with_its_scores(self, two: sa.Engine, tmp_path: Path) -> None:
        back_up(two, tmp_path / "backup.db")
        before = query(two, "SELECT * FROM score ORDER BY 1, 2, 3, 4")
        execute(two, "UPDATE run SET benchmark_id = 2, label = 'x' WHERE id = 1", without_triggers=True)
        assert repair(two, [tmp_path / "backup.db"]).remaining == []
        assert query(two, "SELECT * FROM score ORDER BY 1, 2, 3, 4") == before

    @pytest.mark.tampers
    @pytest.mark.parametrize("table", PARTITIONED)
    def test_they_are_found_and_repaired(self, two: sa.Engine, table: str) -> None:
        before = query(two, f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4")
        execute(two, f"UPDATE {table} SET benchmark_id = 2 WHERE run_id = 1", without_triggers=True)
        with transaction(two, write=False) as session:
            assert find_stray_rows(session) == [f"{N_PROMPTS} {table}s are in the partition of another benchmark"]
        assert repair(two).remaining == []
        assert query(two, f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4") == before
