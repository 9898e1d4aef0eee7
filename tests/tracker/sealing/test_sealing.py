"""A sealed benchmark gives the same results as before, takes little space, and loses nothing.

The commands of docs/how-to/sealing.md are tested too.
"""

from __future__ import annotations

import pickle
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from sealed_stores import (
    count_rows,
    load_benchmark,
    output,
    seal_benchmark,
    sealed_runs,
    unseal_benchmark,
    write_results,
)
from store_rows import rows_of

from tracker.api.store import Store
from tracker.cli import main
from tracker.copying.comparison import compare_stores
from tracker.copying.store_copy import copy_store
from tracker.database import connect, create_reading_engine, create_unchecked_engine, transaction
from tracker.errors import ConflictError, DatabaseError, OptionsError, SealedRowsError
from tracker.integrations.storing import store_files
from tracker.integrity.sealed_rows import reads_measurements
from tracker.queries.performance import load_performance_matrix
from tracker.queries.selection import Selection
from tracker.recording.doctor import find_faults
from tracker.recording.sealing import loading, sealing
from tracker.recording.sealing.sealed_files import FILES, MANIFEST
from tracker.recording.sealing.storage import normalize_address

COMMANDS = (
    ["leaderboard", "one"],
    ["leaderboard", "one", "--format", "json"],
    ["leaderboard", "one", "--models", "a,b,c", "--tasks", "task 1"],
    ["compare", "one", "a", "e"],
    ["verdict", "one"],
    ["history", "a"],
    ["models", "related", "one"],
    ["plan", "one", "--effect", "0.1"],
    ["runs"],
    ["models"],
    ["tasks"],
    ["metrics"],
    ["benchmarks"],
    ["findings"],
    ["prompts", "list", "one"],
    ["export", "scores", "one"],
    ["export", "scores", "one", "--format", "jsonl", "--no-answers"],
    ["export", "runs"],
    ["sql", "SELECT * FROM leaderboard ORDER BY 1, 2, 3, 4, 5, 6"],
    ["sql", "SELECT * FROM run_history ORDER BY run_id, metric"],
    ["sql", "SELECT status, count(*), sum(length(text)) FROM answer GROUP BY status ORDER BY status"],
    ["sql", "WITH a AS (SELECT * FROM/**/score) SELECT metric_id, trial, count(*) FROM a GROUP BY 1, 2 ORDER BY 1, 2"],
)
ANALYSES = ("rank-intervals", "prompt-correlation", "social-choice")
WITHOUT_ROWS = (
    ["leaderboard", "other"],
    ["verdict", "other"],
    ["compare", "other", "a", "b"],
    ["analyze", "rank-intervals", "other", "--no-mlflow"],
    ["export", "scores", "other"],
    ["runs"],
    ["models"],
    ["tasks"],
    ["metrics"],
    ["benchmarks"],
    ["findings"],
    ["history", "other"],
    ["prompts", "list", "one"],
    ["undo", "--list"],
)
"""Commands that need no row of the benchmark `one`."""


@pytest.fixture
def filled(store: sa.Engine, tmp_path: Path) -> Iterator[sa.Engine]:
    """A store with two benchmarks."""
    api = Store(store)
    api.ingest(write_results(tmp_path / "one.csv", seed=1), benchmark="one", metric="accuracy")
    api.ingest(write_results(tmp_path / "other.csv", seed=2), benchmark="other", metric="accuracy")
    yield store
    store.dispose()


@pytest.fixture
def url(filled: sa.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Its address, which commands use, in a folder without settings."""
    address = filled.url.render_as_string(hide_password=False)
    monkeypatch.setenv("SUFFRAGE_DATABASE_URL", address)
    monkeypatch.chdir(tmp_path)
    return address


def list_contents_faults(engine: sa.Engine) -> list[str]:
    return [fault.sentence for fault in find_faults(engine)]


class TestSameResults:
    def test_every_command_prints_the_same(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for analysis in ANALYSES:
            output(capsys, "analyze", analysis, "one", "--no-mlflow")
        before = [output(capsys, *words) for words in COMMANDS]
        rows = rows_of(filled)
        for words, expected in zip(COMMANDS, before, strict=True):
            seal_benchmark(filled, "one", tmp_path / "sealed")
            assert output(capsys, *words) == expected, words
        seal_benchmark(filled, "one", tmp_path / "sealed")
        reproduced = output(capsys, "reproduce", "--all")
        assert reproduced.count("equal") >= len(ANALYSES), reproduced
        unseal_benchmark(filled, "one")
        assert {**rows_of(filled), "database": ""} == {**rows, "database": ""}

    def test_the_api_loads_what_it_needs(self, filled: sa.Engine, tmp_path: Path) -> None:
        api = Store(filled)
        expected, board = api.performance_matrix("one").Q, api.leaderboard("one").rows
        seal_benchmark(filled, "one", tmp_path / "sealed")
        np.testing.assert_array_equal(api.performance_matrix("one").Q, expected)
        seal_benchmark(filled, "one", tmp_path / "sealed")
        assert api.leaderboard("one").rows == board
        seal_benchmark(filled, "one", tmp_path / "sealed")
        api.analyze("rank-intervals", "one")
        with transaction(filled, write=False) as session:
            assert session.scalars(sa.text("SELECT status FROM finding")).all() == ["complete"]

    def test_rows_are_loaded_by_those_alone_who_need_them(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        output(capsys, "analyze", "rank-intervals", "one", "--no-mlflow")
        seal_benchmark(filled, "one", tmp_path / "sealed")
        shutil.move(tmp_path / "sealed", tmp_path / "moved")
        left = count_rows(filled)
        for words in WITHOUT_ROWS:
            output(capsys, *words)
        assert count_rows(filled) == left
        output(capsys, "db", "upgrade")  # records the checksums of answers anew
        write_results(tmp_path / "more.csv", seed=3, models="fg")
        output(capsys, "ingest", "more.csv", "--benchmark", "other", "--metric", "accuracy", "--no-mlflow")
        assert count_rows(filled)[0] == left[0] + 2 * 30 * 2
        write_results(tmp_path / "further.csv", seed=4, models="f", n_prompts=32)  # extends a run
        further = "ingest", "further.csv", "--benchmark", "other", "--metric", "accuracy", "--no-mlflow"
        output(capsys, *further, "--on-conflict", "skip")
        left = count_rows(filled)
        shutil.move(tmp_path / "moved", tmp_path / "sealed")
        output(capsys, "db", "check")
        assert count_rows(filled) == left
        assert "5 runs, 5 of them in sealed files only" in output(capsys, "doctor")


class TestFiles:
    def test_rows_are_in_the_files_and_not_in_the_store(self, filled: sa.Engine, tmp_path: Path) -> None:
        n_scores, n_answers = count_rows(filled)
        result = seal_benchmark(filled, "one", tmp_path / "sealed")
        assert (result.n_scores, result.n_answers, result.n_runs) == (n_scores // 2, n_answers // 2, 5)
        assert count_rows(filled) == (n_scores // 2, n_answers // 2)
        folder = Path(str(result.address))
        assert folder.parent == tmp_path / "sealed"
        assert pq.read_table(folder / "scores.parquet").num_rows == n_scores // 2
        assert pq.read_table(folder / "answers.parquet").num_rows == n_answers // 2
        assert {path.name for path in folder.iterdir()} == {*FILES, MANIFEST}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        assert list_contents_faults(filled) == []

    def test_a_binary_score_takes_less_than_three_bytes(self, store: sa.Engine, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        lines = ["model," + ",".join(f"q{n}" for n in range(4000))]
        lines += [f"m{n}," + ",".join(map(str, rng.integers(0, 2, 4000))) for n in range(10)]
        (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
        Store(store).ingest(tmp_path / "wide.csv", benchmark="b", metric="accuracy")
        result = seal_benchmark(store, "b", tmp_path / "sealed")
        assert result.n_scores == 40_000
        assert result.n_bytes / result.n_scores < 3

    def test_what_did_not_change_is_removed_without_new_files(self, filled: sa.Engine, tmp_path: Path) -> None:
        seal_benchmark(filled, "one", tmp_path / "sealed")
        before = sorted((tmp_path / "sealed").rglob("*"))
        assert load_benchmark(filled, "one") == 5
        result = seal_benchmark(filled, "one", tmp_path / "sealed")
        assert (result.address, result.n_runs) == (None, 5)
        assert sorted((tmp_path / "sealed").rglob("*")) == before

    def test_what_changed_is_written_again(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        seal_benchmark(filled, "one", tmp_path / "sealed")
        output(capsys, "responses", "erase", "one", "--models", "a", "--yes")
        write_results(tmp_path / "more.csv", seed=3, models="f")
        output(capsys, "ingest", "more.csv", "--benchmark", "one", "--metric", "accuracy", "--no-mlflow")
        rows = rows_of(filled)
        result = seal_benchmark(filled, "one", tmp_path / "sealed")
        assert result.address is not None
        assert pq.read_table(Path(result.address) / "scores.parquet").num_rows == 2 * 30 * 2  # of a and f
        assert list_contents_faults(filled) == []
        load_benchmark(filled, "one")
        assert {name: rows_of(filled)[name] for name in ("score", "answer", "run")} == {
            name: rows[name] for name in ("score", "answer", "run")
        }

    @pytest.mark.parametrize("name", [*FILES, MANIFEST])
    def test_a_damaged_file_changes_nothing_in_the_store(self, filled: sa.Engine, tmp_path: Path, name: str) -> None:
        result = seal_benchmark(filled, "one", tmp_path / "sealed")
        path = Path(str(result.address)) / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 4
        path.write_bytes(content)
        left = count_rows(filled)
        with pytest.raises(DatabaseError, match=f"{name} is not as it was written"):
            load_benchmark(filled, "one")
        assert [f"{name} is not as it was written" in fault for fault in list_contents_faults(filled)] == [True]
        path.unlink()
        with pytest.raises(DatabaseError, match=f"{name} is missing"):
            load_benchmark(filled, "one")
        assert [f"{name} is missing" in fault for fault in list_contents_faults(filled)] == [True]
        assert count_rows(filled) == left

    def test_files_of_another_store_are_not_accepted(self, filled: sa.Engine, tmp_path: Path) -> None:
        seal_benchmark(filled, "one", tmp_path / "sealed")
        with transaction(filled) as session:
            session.execute(sa.text("UPDATE run SET checksum = '0123456789abcdef0123456789abcdef' WHERE id = 2"))
        with pytest.raises(DatabaseError, match=r"run 2 .* are not those of the store"):
            load_benchmark(filled, "one")

    @pytest.mark.parametrize("is_deleted", [True, False])
    def test_rows_whose_files_are_lost_are_written_again(
        self, filled: sa.Engine, tmp_path: Path, is_deleted: bool
    ) -> None:
        rows = rows_of(filled)
        folder = Path(str(seal_benchmark(filled, "one", tmp_path / "sealed").address))
        load_benchmark(filled, "one")
        if is_deleted:
            shutil.rmtree(folder)
        else:
            (folder / "scores.parquet").write_bytes(b"damaged")
        result = seal_benchmark(filled, "one", tmp_path / "sealed")
        assert Path(str(result.address)).name == folder.name + ("" if is_deleted else "-1")
        unseal_benchmark(filled, "one")
        assert rows_of(filled) == rows

    def test_rows_that_are_unsealed_meanwhile_stay(
        self, filled: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = rows_of(filled)
        seal_benchmark(filled, "one", tmp_path / "sealed")
        load_benchmark(filled, "one")
        wait = sealing._without_readers

        def unseal_first(engine: sa.Engine) -> Any:
            unseal_benchmark(filled, "one")
            return wait(engine)

        monkeypatch.setattr(sealing, "_without_readers", unseal_first)
        with pytest.raises(ConflictError, match="Nothing was removed"):
            seal_benchmark(filled, "one", tmp_path / "sealed")
        assert rows_of(filled) == rows

    def test_folders_that_have_moved_together(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        seal_benchmark(filled, "one", tmp_path / "sealed")
        write_results(tmp_path / "more.csv", seed=3, models="f")
        output(capsys, "ingest", "more.csv", "--benchmark", "one", "--metric", "accuracy", "--no-mlflow")
        seal_benchmark(filled, "one", tmp_path / "sealed")
        shutil.move(tmp_path / "sealed", tmp_path / "moved")
        output(capsys, "unseal", "one", "--from", "moved")
        assert count_rows(filled)[0] == 2 * 5 * 30 * 2 + 30 * 2

    def test_a_folder_that_has_moved_is_named(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rows = rows_of(filled)
        result = seal_benchmark(filled, "one", tmp_path / "sealed")
        shutil.move(str(result.address), tmp_path / "elsewhere")
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main(["unseal", "one", "--from", "elsewhere"])
        assert f"The files stay: {tmp_path / 'elsewhere'}." in capsys.readouterr().err
        assert rows_of(filled) == rows

    def test_who_may_not_write_is_sent_to_somebody_who_may(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
    ) -> None:
        seal_benchmark(filled, "one", tmp_path / "sealed")
        create = loading.create_unchecked_engine
        monkeypatch.setattr(loading, "create_unchecked_engine", lambda url: create_reading_engine(create(url)))
        with pytest.raises(SystemExit) as end:
            main(["leaderboard", "one"])
        assert end.value.code == 1
        assert "in sealed files and could not be copied into the store" in capsys.readouterr().err

    def test_an_address_of_fsspec(self, filled: sa.Engine, tmp_path: Path) -> None:
        rows = rows_of(filled)
        result = seal_benchmark(filled, "one", "memory://bucket/sealed")
        assert str(result.address).startswith("memory://bucket/sealed/one-")
        assert count_rows(filled)[0] == 5 * 30 * 2
        unseal_benchmark(filled, "one")
        assert rows_of(filled) == rows

    @pytest.mark.parametrize("address", ["s3://key:secret@bucket/a", "s3://bucket/a?token=1"])
    def test_secrets_in_an_address_are_rejected(self, address: str) -> None:
        with pytest.raises(OptionsError, match="would be stored"):
            normalize_address(address)


class TestStores:
    def test_a_reader_gets_an_error_instead_of_a_part(self, filled: sa.Engine, tmp_path: Path) -> None:
        seal_benchmark(filled, "one", tmp_path / "sealed")
        with transaction(filled, write=False) as session, pytest.raises(SealedRowsError, match="5 runs"):
            session.execute(sa.text("SELECT avg(value) FROM score"))
        with transaction(filled, write=False) as session, pytest.raises(SealedRowsError):
            load_performance_matrix(session, Selection(benchmark="one"))
        with transaction(filled, write=False) as session:
            assert load_performance_matrix(session, Selection(benchmark="other")).n_prompts == 30

    def test_a_copy_refers_to_the_same_files(self, filled: sa.Engine, tmp_path: Path) -> None:
        rows = rows_of(filled)
        seal_benchmark(filled, "one", tmp_path / "sealed")
        copy = create_unchecked_engine(f"sqlite:///{tmp_path / 'copy.db'}")
        copy_store(filled, copy)
        assert list_contents_faults(copy) == []
        assert sealed_runs(copy, "one") == sealed_runs(filled, "one")
        unseal_benchmark(copy, "one")
        unseal_benchmark(filled, "one")
        assert rows_of(filled) == rows
        assert compare_stores(filled, copy) == []
        copy.dispose()

    def test_backup_archive_and_comparison(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        output(capsys, "db", "backup", "before.db")
        seal_benchmark(filled, "one", tmp_path / "sealed")
        output(capsys, "db", "backup", "sealed.db")
        output(capsys, "db", "verify", url, "sqlite:///sealed.db")
        with pytest.raises(SystemExit):
            main(["db", "verify", url, "sqlite:///before.db"])
        assert "Scores of one of the stores are in sealed files" in capsys.readouterr().err
        assert load_benchmark(filled, "one") == 5
        output(capsys, "db", "verify", url, "sqlite:///before.db")
        seal_benchmark(filled, "one", tmp_path / "sealed")
        output(capsys, "export", "archive", "--output", "archive.db")
        seal_benchmark(filled, "one", tmp_path / "sealed")
        with pytest.raises(SystemExit) as end:
            main(["ingest", "sealed.db", "--database", "sqlite:///target.db"])
        assert end.value.code == 1
        assert "is a store with sealed runs" in capsys.readouterr().err
        output(capsys, "ingest", "archive.db", "--database", "sqlite:///target.db", "--no-mlflow")
        target = connect("sqlite:///target.db")
        assert count_rows(target) == (2 * 5 * 30 * 2, count_rows(filled)[1] * 2)
        target.dispose()

    def test_an_earlier_version_waits_for_the_rows(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        seal_benchmark(filled, "one", tmp_path / "sealed")
        with pytest.raises(SystemExit) as end:
            main(["db", "downgrade", "0016", "--yes"])
        assert end.value.code == 1
        assert "suffrage unseal --all" in capsys.readouterr().err
        output(capsys, "unseal", "--all")
        output(capsys, "db", "downgrade", "0016", "--yes")
        output(capsys, "db", "upgrade")
        assert list_contents_faults(filled) == []

    def test_undo_and_deletion(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        seal_benchmark(filled, "one", tmp_path / "sealed")
        output(capsys, "runs", "delete", "1", "--yes", "--no-mlflow")
        seal_benchmark(filled, "one", tmp_path / "sealed")
        output(capsys, "undo", "--source", "2", "--yes", "--no-mlflow")
        assert len(sealed_runs(filled, "one")) == 4
        seal_benchmark(filled, "one", tmp_path / "sealed")
        output(capsys, "undo", "--source", "1", "--yes", "--no-mlflow")
        assert count_rows(filled) == (0, 0)
        assert list_contents_faults(filled) == []
        with transaction(filled, write=False) as session:
            assert session.scalar(sa.text("SELECT count(*) FROM sealed_run")) == 0

    @pytest.mark.tampers
    def test_views_of_other_programs_read_all_rows(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with filled.begin() as connection:
            connection.execute(sa.text("CREATE VIEW theirs AS SELECT value FROM score"))
        for table in ("theirs", *(("score_1",) if filled.dialect.name == "postgresql" else ())):
            statement = "sql", f"SELECT count(*) FROM {table}", "--format", "csv"
            expected = output(capsys, *statement)
            seal_benchmark(filled, "one", tmp_path / "sealed")
            assert output(capsys, "sql", "SELECT count(*) FROM prompt", "--format", "csv").split()[1] == "60"
            assert count_rows(filled)[0] == 5 * 30 * 2
            assert output(capsys, *statement) == expected

    @pytest.mark.tampers
    def test_a_store_that_has_lost_the_table_is_reported(
        self, filled: sa.Engine, url: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with filled.begin() as connection:
            connection.execute(sa.text("DROP TABLE sealed_run"))
        for words in (["doctor"], ["sql", "SELECT count(*) FROM score"], ["db", "check"]):
            with pytest.raises(SystemExit) as end:
                main(words)
            assert end.value.code == 1
            written = capsys.readouterr().err
            assert "Traceback" not in written

    def test_each_of_several_files_is_imported_once(
        self, filled: sa.Engine, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        seal_benchmark(filled, "one", tmp_path / "sealed")
        write_results(tmp_path / "a.csv", seed=3, models="fg")
        write_results(tmp_path / "b.csv", seed=4, models="a", n_prompts=33)  # contradicts a sealed run
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(["ingest", "a.csv", "b.csv", "--benchmark", "one", "--metric", "accuracy", "--no-mlflow"])
        written = capsys.readouterr().err
        assert end.value.code in (0, None)
        assert written.count("a.csv (") == 1
        assert "ingested before" not in written
        assert list_contents_faults(filled) == []

    def test_harnesses_store_their_results(self, filled: sa.Engine, url: str, tmp_path: Path) -> None:
        seal_benchmark(filled, "one", tmp_path / "sealed")
        path = write_results(tmp_path / "b.csv", seed=4, models="a", n_prompts=33)
        assert len(store_files([path], database=url, benchmark="one")) == 1

    @pytest.mark.tampers
    def test_damaged_rows_are_not_sealed(self, filled: sa.Engine, tmp_path: Path) -> None:
        with filled.begin() as connection:
            connection.execute(sa.text("UPDATE score SET value = 0.5 WHERE run_id = 2 AND trial = 1"))
        with pytest.raises(DatabaseError, match="Run 2 of one differs from its checksums"):
            seal_benchmark(filled, "one", tmp_path / "sealed")
        assert not (tmp_path / "sealed").exists()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT value FROM score", True),
        ('select * from "score" where run_id = 1', True),
        ("SELECT 1 FROM run, score", True),
        ("SELECT * FROM public.answer", True),
        ('SELECT * FROM "main"."leaderboard"', True),
        ("UPDATE answer SET text = NULL", True),
        ("SELECT prompt.answer, prompt.id FROM prompt", False),
        ("SELECT task_score.value FROM task_score", False),
        ('PRAGMA main.table_info("score")', False),
    ],
)
def test_statements_that_read_measurements(statement: str, expected: bool) -> None:
    assert reads_measurements(statement) == expected


def test_the_error_reaches_other_processes() -> None:
    error = pickle.loads(pickle.dumps(SealedRowsError("sqlite:///store.db", [1, 2])))
    assert (error.url, error.run_ids) == ("sqlite:///store.db", [1, 2])
