"""A store in another place: every pair of engines, everything in it, and nothing left where it fails."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker import schema
from tracker.cli import suffrage
from tracker.connections.schema_versions import schema_differences, upgrade
from tracker.copying.engines import read_rows
from tracker.copying.store_copy import copy_store
from tracker.copying.values import RowsChecksum
from tracker.database import connect, create_unchecked_engine, find_file_damage, find_stray_rows, transaction
from tracker.errors import DatabaseError
from tracker.integrity.stored_checksums import LOCAL_SCOPES
from tracker.schema import metadata
from tracker.schema.search_index import find_search_faults

OLD = Path(__file__).parents[2] / "old_databases"
EVERYTHING = max(OLD.glob("*.sql"))


def contents(engine: sa.Engine) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table as the tables of the schema read it: the slow, obvious way.

    Without the checksums of what belongs to one database: definitions, and counters of keys.
    """
    contents_found = {}
    with transaction(engine, write=False) as session:
        for table in metadata.sorted_tables:
            rows = session.execute(sa.select(table).order_by(*table.primary_key)).mappings().all()
            rows = [row for row in rows if row.get("table_name") not in LOCAL_SCOPES]
            contents_found[table.name] = [{name: moment(value) for name, value in row.items()} for row in rows]
    return contents_found


def moment(value: Any) -> Any:
    """A stored moment with its time zone, which SQLite does not keep."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[sa.Engine]:
    """A store with rows in every table: the dump of the present version."""
    path = tmp_path / "everything.db"
    raw = sqlite3.connect(path)
    raw.executescript(EVERYTHING.read_text())
    raw.close()
    engine = create_unchecked_engine(f"sqlite:///{path}")
    upgrade(engine)
    with transaction(engine) as session:
        # a reference that points ahead, a number that SQLite does not keep, words of every kind
        session.execute(sa.update(schema.Run).where(schema.Run.id == 1).values(superseded_by=4, status="superseded"))
        session.execute(sa.update(schema.Score).where(schema.Score.prompt_id == 1).values(value=-0.0))
        session.execute(
            sa.update(schema.Prompt).where(schema.Prompt.id == 1).values(text='tab\t"quote"\\ é 漢 \u2028\n')
        )
        deep = {"z": [1.0, 2, {"a": None}], "b": 1e-7, "c": 1e22, "é": True}
        session.execute(sa.update(schema.Prompt).where(schema.Prompt.id == 1).values(details=deep))
        session.execute(sa.delete(schema.Run).where(schema.Run.id == 5))
    yield engine
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    """An empty target on each engine in turn."""
    url = f"sqlite:///{tmp_path}/copy.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    engine = create_unchecked_engine(url)
    yield engine
    engine.dispose()


class TestAgainstReference:
    def test_every_row_is_the_same_and_so_it_is_when_it_is_copied_back(
        self, everything: sa.Engine, empty: sa.Engine, tmp_path: Path
    ) -> None:
        copied = copy_store(everything, empty)
        before = contents(everything)
        assert all(before.values()), "rows in every table"
        assert contents(empty) == before
        assert {table.name: table.n_rows for table in copied.tables} == {t: len(rows) for t, rows in before.items()}
        back = create_unchecked_engine(f"sqlite:///{tmp_path}/back.db")
        again = copy_store(empty, back)
        assert contents(back) == before
        assert again.tables == copied.tables
        back.dispose()

    def test_the_copy_is_a_sound_store_that_goes_on_counting(self, everything: sa.Engine, empty: sa.Engine) -> None:
        last = sqlite3.connect(str(everything.url.database)).execute("SELECT seq FROM sqlite_sequence WHERE name='run'")
        (last_run,) = last.fetchone()
        copy_store(everything, empty)
        assert schema_differences(empty) == []
        with transaction(empty) as session:
            assert [*find_file_damage(session), *find_stray_rows(session)] == []
            assert find_search_faults(session.connection()) == []
            run = schema.Run(benchmark_id=1, model_id=1, label="new")
            task = schema.Task(benchmark_id=1, name="new")
            session.add_all([run, task])
            session.flush()
            assert run.id == last_run + 1 > max(row["id"] for row in contents(everything)["run"]) + 1
            assert task.id == 3
        with pytest.raises(sa.exc.IntegrityError), transaction(empty) as session:
            session.add(schema.Score(run_id=1, metric_id=1, prompt_id=999, trial=0, value=1.0))

    @settings(max_examples=20)
    @given(
        values=st.lists(st.tuples(st.integers(1, 9), st.floats(allow_nan=False, allow_infinity=False)), max_size=30),
        seed=st.integers(0, 9),
    )
    def test_the_checksum_is_that_of_the_rows_whatever_their_order(
        self, values: list[tuple[int, float]], seed: int
    ) -> None:
        for table in (metadata.tables["score"], metadata.tables["task_score"]):
            rows = [(1, 1, prompt, place, value) for place, (prompt, value) in enumerate(values)]
            rows = rows if table.name == "score" else [(*row, None) for row in rows]
            plain, mixed, second = RowsChecksum(table), RowsChecksum(table), RowsChecksum(table)
            plain.add(rows)
            shuffled = np.random.default_rng(seed).permutation(len(rows)).tolist()
            for place in shuffled:
                mixed.add([rows[place]])
            assert (mixed.value, mixed.n_rows) == (plain.value, len(rows))
            if rows:
                changed = rows[seed % len(rows)]
                second.add(
                    [
                        (*changed[:4], np.nextafter(changed[4], np.inf), *changed[5:]) if row is changed else row
                        for row in rows
                    ]
                )
                assert second.value != plain.value


class TestIdentity:
    def test_it_is_the_same_store_or_another_on_request(self, everything: sa.Engine, tmp_path: Path) -> None:
        same, second = (create_unchecked_engine(f"sqlite:///{tmp_path}/{name}.db") for name in ("same", "other"))
        copy_store(everything, same)
        copy_store(everything, second, new_identity=True)
        before, moved, beside = (contents(engine) for engine in (everything, same, second))
        assert moved["database"] == before["database"] != beside["database"]
        assert (len(moved["publication"]), len(beside["publication"])) == (1, 0)
        assert moved["score"] == beside["score"]


class TestErrors:
    def test_a_target_that_holds_something_is_refused_and_left_alone(
        self, everything: sa.Engine, store: sa.Engine
    ) -> None:
        with transaction(store) as session:
            session.add(schema.Model(name="mine"))
        before = contents(store)
        with pytest.raises(DatabaseError, match="is not empty: there are rows in model"):
            copy_store(everything, store)
        assert contents(store) == before

    def test_a_source_that_is_not_there_is_named_and_nothing_made(self, tmp_path: Path) -> None:
        source, target = (create_unchecked_engine(f"sqlite:///{tmp_path}/{name}.db") for name in ("none", "target"))
        with pytest.raises(DatabaseError, match=r"none.db is not a store"):
            copy_store(source, target)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.tampers
    def test_a_stray_reference_leaves_the_target_empty(self, everything: sa.Engine, empty: sa.Engine) -> None:
        everything.dispose()
        raw = sqlite3.connect(str(everything.url.database))
        raw.execute("DELETE FROM prompt WHERE id = 4")
        raw.commit()
        raw.close()
        with pytest.raises(DatabaseError, match="Nothing was copied"):
            copy_store(everything, empty)
        assert not any(rows for name, rows in contents(empty).items() if name not in ("checksum", "database"))
        assert schema_differences(empty) == []

    def test_what_an_engine_cannot_hold_is_named_with_its_table(self, everything: sa.Engine, postgres_url: str) -> None:
        with transaction(everything) as session:
            session.execute(sa.update(schema.Model).where(schema.Model.id == 1).values(organization="a\0b"))
        target = connect(postgres_url)
        with pytest.raises(DatabaseError, match="model could not be copied"):
            copy_store(everything, target)
        target.dispose()

    def test_a_failed_read_is_named_with_its_table(
        self, everything: sa.Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr("tracker.copying.engines.convert_rows", fail)
        with transaction(everything, write=False) as session, pytest.raises(DatabaseError) as caught:
            list(read_rows(session.connection(), schema.metadata.tables["model"]))
        assert str(caught.value).startswith("model could not be read from sqlite:///")
        assert str(caught.value).endswith(": disk I/O error.")


class TestCommand:
    def test_it_reports_every_table(self, everything: sa.Engine, tmp_path: Path) -> None:
        urls = [str(everything.url), f"sqlite:///{tmp_path}/new.db"]
        result = CliRunner().invoke(suffrage, ["db", "copy", *urls, "--format", "csv"], catch_exceptions=False)
        assert result.exit_code == 0
        lines = result.stdout.splitlines()
        assert lines[0] == "name,n_rows,checksum"
        assert len(lines) == 1 + len(metadata.tables)
        assert all(re.fullmatch(r"\w+,\d+,[0-9a-f]{32}", line) for line in lines[1:])
        assert re.search(r"Copied and compared \d+ rows in", result.stderr)


@pytest.mark.soak
class TestAtScale:
    def test_millions_of_scores_go_in_both_directions(self, tmp_path: Path, postgres_url: str) -> None:
        rows = 3_000_000
        source = connect(f"sqlite:///{tmp_path}/large.db")
        with transaction(source) as session:
            session.add_all([schema.Benchmark(name="b"), schema.Model(name="m"), schema.Metric(name="a")])
            session.flush()
            session.add(schema.Task(benchmark_id=1))
            session.flush()
            count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "
            session.execute(
                sa.text(
                    "INSERT INTO prompt (id, task_id, occurrence) " + count.format(10_000) + "SELECT i, 1, i FROM n"
                )
            )
            for run in range(1, rows // 10_000 + 1):
                session.add(schema.Run(benchmark_id=1, model_id=1, label=str(run)))
                session.flush()
                session.execute(
                    sa.text("INSERT INTO score SELECT :run, 1, id, 0, (id * :run % 1000) / 999.0 FROM prompt"),
                    {"run": run},
                )
        target, back = connect(postgres_url), create_unchecked_engine(f"sqlite:///{tmp_path}/back.db")
        result = copy_store(source, target)
        home = copy_store(target, back)
        assert result.tables == home.tables
        assert next(table.n_rows for table in result.tables if table.name == "score") == rows
        print(f"to PostgreSQL {rows / result.seconds:,.0f} scores/s, to SQLite {rows / home.seconds:,.0f} scores/s")
        for engine in (source, target, back):
            engine.dispose()
