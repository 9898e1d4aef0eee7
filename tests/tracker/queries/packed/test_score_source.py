"""Where PostgreSQL reads the scores of large matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import sqlalchemy as sa
from database_roles import login_role
from filled_stores import add_scores

from tracker.database import connect
from tracker.integrity.sealed_rows import reads_measurements
from tracker.queries.packed import gathered_scores
from tracker.queries.packed.gathered_scores import read_whole
from tracker.queries.packed.score_source import ScoreSource, find_source
from tracker.queries.packed.stored_scores import read_stored
from tracker.queries.sql.arrow import open_reading, snapshot

Q = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])


@pytest.fixture
def store(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[sa.Engine]:
    """A store of a benchmark with the runs 1 and 2."""
    monkeypatch.setattr(gathered_scores, "MIN_GATHERED", 1)
    engine = connect(postgres_url)
    assert add_scores(engine, Q) == [1, 2]
    yield engine
    engine.dispose()


@pytest.fixture
def reader(store: sa.Engine) -> Iterator[sa.Engine]:
    """The store, as a role that may read all tables but partitions."""
    with login_role(store, "USAGE ON SCHEMA public", "SELECT ON ALL TABLES IN SCHEMA public") as url:
        with store.begin() as connection:
            connection.exec_driver_sql(f"REVOKE SELECT ON score_1, answer_1 FROM {url.username}")
        engine = connect(url.render_as_string(hide_password=False))
        yield engine
        engine.dispose()


def source_of(store: sa.Engine, *runs: int) -> ScoreSource:
    with snapshot(store) as reading:
        return find_source(reading, 1, runs)


def read_all(store: sa.Engine) -> None:
    with snapshot(store) as reading:
        np.testing.assert_array_equal(read_whole(reading, 1, [1, 2], np.arange(1, 4)), Q == 1)


def test_terms_that_are_true_of_every_row_are_left_out(store: sa.Engine) -> None:
    source = source_of(store, 1, 2)
    assert source.of_runs([2, 1]) == "FROM score_1 AS score WHERE metric_id = 1"
    assert source.of_runs([2]) == "FROM score_1 AS score WHERE metric_id = 1 AND run_id IN (2)"
    sampled = "FROM score_1 AS score TABLESAMPLE SYSTEM (0.5) REPEATABLE (0) WHERE metric_id = 1"
    assert source.of_runs([1, 2], 0.5) == sampled


def test_runs_are_named_if_others_may_be_added_meanwhile(store: sa.Engine) -> None:
    with open_reading(store) as reading:
        source = find_source(reading, 1, [1, 2])
    assert source.of_runs([1, 2]) == "FROM score_1 AS score WHERE metric_id = 1 AND run_id IN (1,2)"


def test_several_benchmarks_are_read_from_the_whole_table(store: sa.Engine) -> None:
    add_scores(store, Q, benchmark="c")
    source = source_of(store, 1, 2, 3, 4)
    assert source.of_runs([1, 2, 3, 4]) == "FROM score AS score WHERE metric_id = 1 AND benchmark_id IN (1,2)"


def test_statements_are_known_to_read_scores(store: sa.Engine) -> None:
    assert reads_measurements(f"SELECT count(*) {source_of(store, 1, 2).of_runs([1, 2])}")


def test_a_role_without_rights_to_the_partition_reads_the_whole_table(reader: sa.Engine) -> None:
    with reader.connect() as connection, pytest.raises(sa.exc.ProgrammingError, match="permission denied"):
        connection.exec_driver_sql("SELECT * FROM score_1")
    assert source_of(reader, 1, 2).table == "score"
    read_all(reader)


@pytest.mark.parametrize("table", ["score", "score_1"])
def test_policies_for_rows_hold(store: sa.Engine, table: str) -> None:
    with store.begin() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    assert source_of(store, 1, 2).table == "score"


@pytest.mark.parametrize("rows", [[0.0, 1.0, 0.0], [0.5, 1.0, 0.0]])
def test_runs_that_a_policy_hides_are_not_read(store: sa.Engine, reader: sa.Engine, rows: list[float]) -> None:
    add_scores(store, np.array(rows)[:, None], models=["m2"])
    with store.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE run ENABLE ROW LEVEL SECURITY")
        connection.exec_driver_sql("CREATE POLICY hidden ON run USING (id <> 2)")
    with snapshot(reader) as reading:
        assert find_source(reading, 1, [1, 3]).n_runs is None
        np.testing.assert_array_equal(read_stored(reading, 1, [1, 3], np.arange(1, 4)).Q, np.c_[Q[:, 0], rows])


def test_a_table_of_another_program_is_no_partition(store: sa.Engine) -> None:
    with store.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA other")
        connection.exec_driver_sql("CREATE TABLE other.score_1 (LIKE score_1)")
        connection.exec_driver_sql(f'ALTER DATABASE "{store.url.database}" SET search_path = other, public')
    store.dispose()
    engine = connect(store.url.render_as_string(hide_password=False))
    assert source_of(engine, 1, 2).table == "score"
    read_all(engine)
    engine.dispose()
