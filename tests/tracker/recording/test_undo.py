"""Undoing an import leaves the store as it was before it."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from store_rows import rows_of, undo

from tracker.database import connect, transaction
from tracker.errors import ConflictError, NotFoundError
from tracker.ingest.datasets.ingest_prompts import PromptOptions, ingest_prompts
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.detection import find_files
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.recording import run_status
from tracker.recording.metric_changes import delete_metric
from tracker.recording.pipeline import run_analysis
from tracker.recording.undo.imports import list_imports

SAMPLES = (
    "every_eval_ever", "evalplus", "helm", "inspect", "lighteval", "lm_eval", "openai_evals", "opencompass", "swebench",
    "tabular",
)  # fmt: skip
B = ReadOptions(benchmark="b", metric="accuracy")
FIRST = "model,prompt_id,task,score\na,1,t,1\na,2,t,0\nb,1,t,0\nb,2,t,1\nc,1,t,1\nc,2,t,1\n"
MORE = "model,prompt_id,task,score\na,3,t,1\nb,3,t,0\nc,3,t,0\n"


def check_undo(engine: sa.Engine, folder: Path) -> None:
    """Import all files of a folder, and undo them in the opposite order."""
    if not folder.is_dir():
        pytest.skip(f"no samples of {folder.name}")
    options = ReadOptions(
        model="org/model" if folder.name == "lm_eval" else None, benchmark="small" if folder.name == "tabular" else None
    )
    before = []
    for path in find_files([folder], options):
        before.append(rows_of(engine))
        ingest_file(engine, path, options)
    assert before
    for rows in reversed(before):
        undo(engine)
        assert rows_of(engine) == rows


@pytest.mark.parametrize("folder", SAMPLES)
def test_undo_after_any_import_of_the_samples(shared: Path, sqlite_url: str, folder: str) -> None:
    check_undo(connect(sqlite_url), shared / "samples" / folder)


@pytest.mark.parametrize("folder", ["swebench", *(pytest.param(name, marks=pytest.mark.soak) for name in SAMPLES)])
def test_undo_after_any_import_of_the_samples_on_a_server(shared: Path, postgres_url: str, folder: str) -> None:
    engine = connect(postgres_url)
    check_undo(engine, shared / "samples" / folder)
    engine.dispose()


@pytest.fixture
def first(tmp_path: Path, sqlite_url: str) -> sa.Engine:
    """A store with one imported file."""
    engine = connect(sqlite_url)
    store_text(engine, tmp_path / "first.csv", FIRST)
    return engine


def store_text(engine: sa.Engine, path: Path, text: str) -> None:
    path.write_text(text)
    ingest_file(engine, path, B)


class TestDependents:
    def test_a_run_that_was_extended_keeps_what_it_had(self, first: sa.Engine, tmp_path: Path) -> None:
        before = rows_of(first)
        store_text(first, tmp_path / "more.csv", MORE)
        assert undo(first).removed["score"] == 3
        assert rows_of(first) == before

    def test_an_import_that_a_later_one_extends_is_kept_with_the_reason(self, first: sa.Engine, tmp_path: Path) -> None:
        store_text(first, tmp_path / "more.csv", MORE)
        before = rows_of(first)
        with pytest.raises(ConflictError, match=r"more\.csv has scores of its run 1\.\n.*suffrage undo --source 2"):
            undo(first, 1)
        assert rows_of(first) == before

    def test_an_import_whose_prompts_have_later_scores_is_kept(self, first: sa.Engine, tmp_path: Path) -> None:
        store_text(first, tmp_path / "d.csv", FIRST[:27] + "d,1,t,1\nd,2,t,1\n")
        with pytest.raises(ConflictError, match=r"run 4 of d is on its benchmark\.\n.*suffrage undo --source 2"):
            undo(first, 1)

    def test_an_import_whose_prompts_a_later_file_repeats_is_kept(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        for name, end in (("first.csv", "\n"), ("again.csv", "\n\n")):
            (tmp_path / name).write_text(f"prompt_id,task,question\n1,t,One?{end}")
            ingest_file(engine, tmp_path / name, ReadOptions(benchmark="b"))
        with pytest.raises(ConflictError, match=r"again\.csv holds prompts of the same benchmark"):
            undo(engine, 1)

    def test_independent_imports_are_undone_in_any_order(self, first: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "other.csv"
        path.write_text("model,prompt_id,score\nx,1,1\ny,1,0\n")
        ingest_file(first, path, ReadOptions(benchmark="other"))
        undo(first, 1)
        with transaction(first, write=False) as session:
            assert [row.source for row in list_imports(session)] == [2]
            assert session.scalars(sa.text("SELECT name FROM model ORDER BY name")).all() == ["x", "y"]
        undo(first)
        assert not any(rows for table, rows in rows_of(first).items() if table != "database")

    def test_a_metric_that_a_later_import_uses_is_kept_with_the_reason(self, first: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "other.csv"
        path.write_text("model,prompt_id,score\nx,1,1\ny,1,0\n")
        ingest_file(first, path, ReadOptions(benchmark="other", metric="accuracy"))
        with pytest.raises(ConflictError, match=r"run 4 of x, 5 of y has scores under its metric"):
            undo(first, 1)

    def test_published_prompts_that_fill_in_texts_are_undone(self, first: sa.Engine, tmp_path: Path) -> None:
        before = rows_of(first)
        path = tmp_path / "prompts.csv"
        path.write_text("id,question,key\n1,One?,A\n2,Two?,B\n")
        options = PromptOptions(fields={"id": "id", "text": "question", "answer": "key"})
        ingest_prompts(first, "b", str(path), options)
        assert rows_of(first) != before
        undo(first)
        assert rows_of(first) == before


class TestLaterChanges:
    def test_what_users_changed_since_stays(self, first: sa.Engine, tmp_path: Path) -> None:
        store_text(first, tmp_path / "more.csv", MORE)
        with transaction(first) as session:
            run_status.hide(session, [1], "odd")
            session.execute(sa.text("UPDATE model SET family = 'x' WHERE id = 1"))
        undo(first)
        with transaction(first, write=False) as session:
            assert session.execute(sa.text("SELECT status, n_scores FROM run WHERE id = 1")).one() == ("hidden", 2)
            assert session.scalar(sa.text("SELECT family FROM model WHERE id = 1")) == "x"
            assert verify_checksums(session) == []

    def test_a_metric_that_was_deleted_since_does_not_hinder(self, first: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "more.csv"
        path.write_text(MORE)
        ingest_file(first, path, ReadOptions(benchmark="b", metric="f1"))
        with transaction(first) as session:
            delete_metric(session, find_benchmark(session, "b"), "f1")
        undo(first)
        with transaction(first, write=False) as session:
            assert session.scalars(sa.text("SELECT n_scores FROM run ORDER BY id")).all() == [2, 2, 2]
            assert verify_checksums(session) == []

    def test_runs_that_were_deleted_since_do_not_hinder(self, first: sa.Engine) -> None:
        with transaction(first) as session:
            run_status.delete(session, [1, 2])
        assert undo(first).removed["run"] == 1
        with transaction(first, write=False) as session:
            assert session.scalar(sa.text("SELECT count(*) FROM prompt")) == 0


class TestFindings:
    def test_findings_become_stale_and_keep_the_rows_that_they_refer_to(self, first: sa.Engine) -> None:
        run_analysis(first, "rank-intervals", Selection(benchmark="b"))
        result = undo(first)
        assert list(result.stale) == [1]
        assert "import of" in result.stale[1]
        assert {table for table, n in result.kept.items() if n} >= {"benchmark", "model"}
        with transaction(first, write=False) as session:
            assert session.scalar(sa.text("SELECT count(*) FROM run")) == 0
            assert session.scalars(sa.text("SELECT name FROM benchmark")).all() == ["b"]

    def test_a_finding_from_before_the_import_is_no_longer_stale(self, first: sa.Engine, tmp_path: Path) -> None:
        run_analysis(first, "rank-intervals", Selection(benchmark="b"))
        store_text(first, tmp_path / "more.csv", MORE)
        assert undo(first).sound == (1,)


class TestChoice:
    def test_an_unknown_source_is_named(self, first: sa.Engine) -> None:
        with pytest.raises(NotFoundError, match="No source '7'"):
            undo(first, 7)

    def test_an_import_without_a_record_is_explained(self, first: sa.Engine) -> None:
        with transaction(first) as session:
            session.execute(sa.text("DELETE FROM undo_record"))
        with pytest.raises(ConflictError, match="before the store recorded imports"):
            undo(first, 1)
        with pytest.raises(ConflictError, match="no import that can be undone"):
            undo(first)
