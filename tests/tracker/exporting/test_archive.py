"""A store, its archive, and another store that took it in: all the same."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from archive_files import AWKWARD, Rows
from filling import empty, fill, stores
from hypothesis import HealthCheck, given, settings
from store_content import OF_THE_STORE, TABLES, content_of
from store_rows import rows_of, undo

from tracker.database import connect, transaction
from tracker.exporting.formats.archive.archive_writer import ArchiveSummary, write_archive
from tracker.ingest.archives.layout import DERIVED_COLUMNS, ROW_ORDER, archive_columns
from tracker.ingest.pipeline import IngestResult, ingest_file
from tracker.queries.resolution import find_benchmark


def archived(engine: sa.Engine, path: Path, *benchmarks: str) -> ArchiveSummary:
    """Write the archive of a store, or of some benchmarks."""
    with transaction(engine, write=False) as session, path.open("wb") as file:
        return write_archive(session, file, [find_benchmark(session, benchmark) for benchmark in benchmarks])


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
        same_after(*pair, AWKWARD, tmp_path / "a.zip")

    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(rows=stores())
    def test_any_store_comes_back_on_sqlite(self, sqlite_url: str, other_url: str, tmp_path: Path, rows: Rows) -> None:
        target_store, source_store = connect(sqlite_url), connect(other_url)
        try:
            same_after(target_store, source_store, rows, tmp_path / "a.zip")
        finally:
            for engine in (target_store, source_store):
                empty(engine)
                engine.dispose()

    @settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(rows=stores())
    def test_any_store_comes_back_across_engines(
        self, sqlite_url: str, postgres_url: str, tmp_path: Path, rows: Rows
    ) -> None:
        sqlite, postgres = connect(sqlite_url), connect(postgres_url)
        try:
            for target_store, source_store in ((sqlite, postgres), (postgres, sqlite)):
                same_after(target_store, source_store, rows, tmp_path / "a.zip")
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
            same_after(target_store, source_store, rows, tmp_path / "a.zip")
        finally:
            for engine in (target_store, source_store):
                empty(engine)
                engine.dispose()

    def test_the_archive_of_an_ingested_archive_is_the_same_file(
        self, sqlite_url: str, other_url: str, tmp_path: Path
    ) -> None:
        target_store, source_store = connect(sqlite_url), connect(other_url)
        fill(target_store, AWKWARD)
        archived(target_store, tmp_path / "a.zip")
        ingest_archive(source_store, tmp_path / "a.zip")
        archived(source_store, tmp_path / "b.zip")
        assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()

    def test_the_smaller_archives_of_benchmarks_make_up_the_runs_of_the_store(
        self, sqlite_url: str, other_url: str, tmp_path: Path
    ) -> None:
        target_store, source_store = connect(sqlite_url), connect(other_url)
        fill(target_store, AWKWARD)
        before = []
        for place, name in enumerate(("grüße ☂", "grüße ☂@v2", "empty")):
            archived(target_store, tmp_path / f"{place}.zip", name)
            before.append(rows_of(source_store))
            ingest_archive(source_store, tmp_path / f"{place}.zip")
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
    def test_every_table_and_column_is_carried_or_named_as_left_behind(self) -> None:
        """A new table or column of the schema is carried at once, or this says so."""
        assert set(TABLES) - OF_THE_STORE == set(ROW_ORDER)
        for table, described in TABLES.items():
            if table in OF_THE_STORE:
                continue
            carried = {column.stored for column in archive_columns(table)}
            assert carried | {"id"} | DERIVED_COLUMNS.get(table, frozenset()) >= set(described.c.keys()), table
        assert {name: set(columns) for name, columns in DERIVED_COLUMNS.items()} == {
            "benchmark": {"default_metric_id"},  # a choice of each store
            "run": {"checksum"},  # of keys; made anew, and checked
            "prompt_alias": {"task_id"},  # the prompt's
            "embedding": {"id"},  # nothing refers to it
        }

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
        values = archived(engine, tmp_path / "a.zip")
        assert values.n_rows == {table: len(AWKWARD[table]) for table in ROW_ORDER}
        with zipfile.ZipFile(io.BytesIO((tmp_path / "a.zip").read_bytes())) as archive:
            assert archive.testzip() is None
            assert archive.namelist() == [
                "suffrage-archive",
                *(f"{table}.parquet" for table in ROW_ORDER),
                "manifest.json",
            ]

    def test_a_file_of_which_only_a_part_is_archived_can_still_be_ingested(
        self, sqlite_url: str, other_url: str, tmp_path: Path
    ) -> None:
        table = tmp_path / "two.csv"
        table.write_text("benchmark,model,prompt_id,score\na,m,1,1\nb,m,1,0\n")
        target_store, source_store = connect(sqlite_url), connect(other_url)
        ingest_archive(target_store, table)
        assert archived(target_store, tmp_path / "a.zip", "a").n_files_left_out == 1
        ingest_archive(source_store, tmp_path / "a.zip")
        assert "1 new run, 1 score" in ingest_archive(source_store, table).changes.summary()
        assert len(content_of(source_store)["run"]) == 2
