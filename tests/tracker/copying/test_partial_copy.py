"""A store, its archive, and another store that it was merged into: all the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from example_stores import AWKWARD, Rows, empty, fill, stores
from hypothesis import HealthCheck, given, settings
from store_content import OF_THE_STORE, TABLES, content_of
from store_rows import rows_of, undo

from tracker.copying.partial_copy import MEASUREMENTS, PartialCopyResult, StorePart, copy_part
from tracker.database import connect, transaction
from tracker.ingest.pipeline import IngestResult, ingest_file
from tracker.queries.resolution import find_benchmark


def archived(engine: sa.Engine, path: Path, *benchmarks: str, **part: Any) -> PartialCopyResult:
    """Write the archive of a store, or of a part of it."""
    path.unlink(missing_ok=True)
    with transaction(engine, write=False) as session:
        keys = [find_benchmark(session, benchmark).id for benchmark in benchmarks]
    return copy_part(engine, path, StorePart(benchmarks=keys, **part))


def ingest_archive(engine: sa.Engine, path: Path, **options: Any) -> IngestResult:
    return ingest_file(engine, path, **options)


@pytest.fixture
def other_url(sqlite_template: Path, tmp_path: Path) -> str:
    """Of another empty SQLite store."""
    shutil.copy(sqlite_template, tmp_path / "other.db")
    return f"sqlite:///{tmp_path / 'other.db'}"


@pytest.fixture(params=["sqlite to sqlite", "sqlite to postgres", "postgres to sqlite"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[sa.Engine, sa.Engine]]:
    """Two empty stores."""
    first, _, second = request.param.split()
    urls = [request.getfixturevalue(f"{first}_url")]
    urls.append(request.getfixturevalue("other_url" if first == second else f"{second}_url"))
    engines = [connect(url) for url in urls]
    yield engines[0], engines[1]
    for engine in engines:
        engine.dispose()


def same_after(target_store: sa.Engine, source_store: sa.Engine, rows: Rows, path: Path) -> None:
    """Fill a store, take its archive into the other, twice, and look; then undo it."""
    fill(target_store, rows)
    archived(target_store, path)
    before = rows_of(source_store)
    ingest_archive(source_store, path)
    expected = content_of(target_store)
    assert content_of(source_store) == expected
    again = ingest_archive(source_store, path)
    assert again.changes.summary() == "nothing new"
    assert content_of(source_store) == expected
    if any(rows.values()):
        undo(source_store)
    assert rows_of(source_store) == before


class TestRoundTrip:
    def test_everything_that_is_easily_lost_comes_back(self, pair: tuple[sa.Engine, sa.Engine], tmp_path: Path) -> None:
        same_after(*pair, AWKWARD, tmp_path / "a.db")

    @settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(rows=stores())
    def test_any_store_comes_back_on_sqlite(self, sqlite_url: str, other_url: str, tmp_path: Path, rows: Rows) -> None:
        target_store, source_store = connect(sqlite_url), connect(other_url)
        try:
            same_after(target_store, source_store, rows, tmp_path / "a.db")
        finally:
            for engine in (target_store, source_store):
                empty(engine)
                engine.dispose()

    @pytest.mark.tampers
    @settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(rows=stores())
    def test_any_store_comes_back_across_engines(
        self, sqlite_url: str, postgres_url: str, tmp_path: Path, rows: Rows
    ) -> None:
        sqlite, postgres = connect(sqlite_url), connect(postgres_url)
        try:
            for target_store, source_store in ((sqlite, postgres), (postgres, sqlite)):
                same_after(target_store, source_store, rows, tmp_path / "a.db")
                empty(sqlite)
                empty(postgres)
        finally:
            for engine in (sqlite, postgres):
                empty(engine)
                engine.dispose()

    @pytest.mark.soak
    @settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(rows=stores())
    def test_hundreds_of_stores_come_back(self, sqlite_url: str, other_url: str, tmp_path: Path, rows: Rows) -> None:
        target_store, source_store = connect(sqlite_url), connect(other_url)
        try:
            same_after(target_store, source_store, rows, tmp_path / "a.db")
        finally:
            for engine in (target_store, source_store):
                empty(engine)
                engine.dispose()

    def test_the_archive_is_a_store_with_the_same_keys(self, pair: tuple[sa.Engine, sa.Engine], tmp_path: Path) -> None:
        fill(pair[0], AWKWARD)
        archived(pair[0], tmp_path / "a.db")
        assert [path.name for path in tmp_path.glob("a.db*")] == ["a.db"]
        expected, result = rows_of(pair[0]), rows_of(connect(f"sqlite:///{tmp_path / 'a.db'}"))
        for name in MEASUREMENTS:
            assert len(result[name]) == len(expected[name])
        assert content_of(connect(f"sqlite:///{tmp_path / 'a.db'}")) == content_of(pair[0])

    def test_a_part_has_the_chosen_runs_and_what_they_need(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        fill(engine, AWKWARD)
        for part, runs in (
            ({"models": [1]}, [1, 2, 3, 4]),
            ({"runs": [2, 5]}, [2, 5]),
            ({"models": [2], "runs": [5]}, [5]),
        ):
            archived(engine, tmp_path / "a.db", **part)
            archive = connect(f"sqlite:///{tmp_path / 'a.db'}")
            with transaction(archive, write=False) as session:
                assert sorted(session.scalars(sa.select(TABLES["run"].c.id))) == runs
                assert len(session.execute(sa.select(TABLES["model"])).all()) == len({key < 5 for key in runs})
                assert session.scalars(sa.text("PRAGMA foreign_key_check")).all() == []
            content_of(archive)
            archive.dispose()

    def test_the_smaller_archives_of_benchmarks_make_up_the_runs_of_the_store(
        self, sqlite_url: str, other_url: str, tmp_path: Path
    ) -> None:
        target_store, source_store = connect(sqlite_url), connect(other_url)
        fill(target_store, AWKWARD)
        before = []
        for place, name in enumerate(("grüße ☂", "grüße ☂@v2", "empty")):
            archived(target_store, tmp_path / f"{place}.db", name)
            before.append(rows_of(source_store))
            ingest_archive(source_store, tmp_path / f"{place}.db")
        expected, result = content_of(target_store), content_of(source_store)
        for table in ("benchmark", "task", "prompt", "prompt_alias", "score", "answer", "task_score", "embedding"):
            assert sorted(map(repr, result[table])) == sorted(map(repr, expected[table])), table
        assert {item["name"] for item in result["model"]} == {
            "org/m",
            "模型",
        }  # who answered nothing is in none of them
        for rows in reversed(before):
            undo(source_store)
            assert rows_of(source_store) == rows


class TestDefinition:
    def test_every_table_is_carried_or_excluded(self) -> None:
        """A new table of the schema is carried at once, or this says so."""
        assert set(TABLES) - OF_THE_STORE == set(MEASUREMENTS)

    @pytest.mark.tampers
    def test_the_comparison_sees_each_column(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        fill(engine, AWKWARD)
        before = content_of(engine)
        changes = {
            "model": ("open_weights", True), "prompt": ("split", "other"), "metric": ("lower", -5.0),
            "run": ("reason", "changed"), "answer": ("status", "error"), "embedding": ("vector", b"abcdabcd"),
            "prompt_alias": ("namespace", "x"), "source": ("harness", "y"), "task_score": ("stderr", 0.25),
        }  # fmt: skip
        for table, (column, value) in changes.items():
            described = TABLES[table]
            keys = list(described.primary_key.columns)
            with engine.begin() as connection:
                first = connection.execute(sa.select(*keys).order_by(*keys)).first()
                row = sa.and_(*(key == content for key, content in zip(keys, first, strict=True)))
                connection.execute(sa.update(described).where(row).values({column: value}))
            assert content_of(engine)[table] != before[table], table


class TestFile:
    def test_its_summary_counts_its_rows(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        fill(engine, AWKWARD)
        values = archived(engine, tmp_path / "a.db")
        assert values.n_rows == {table: len(AWKWARD[table]) for table in MEASUREMENTS}

    def test_a_file_of_which_only_a_part_is_archived_can_still_be_ingested(
        self, sqlite_url: str, other_url: str, tmp_path: Path
    ) -> None:
        table = tmp_path / "two.csv"
        table.write_text("benchmark,model,prompt_id,score\na,m,1,1\nb,m,1,0\n")
        target_store, source_store = connect(sqlite_url), connect(other_url)
        ingest_archive(target_store, table)
        assert archived(target_store, tmp_path / "a.db", "a").n_files_left_out == 1
        ingest_archive(source_store, tmp_path / "a.db")
        assert "1 new run, 1 score" in ingest_archive(source_store, table).changes.summary()
        assert len(content_of(source_store)["run"]) == 2
