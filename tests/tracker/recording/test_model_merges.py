"""Models that are one: a warning at import, and a merge that can be reversed."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from store_rows import rows_of

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import ConflictError, NotFoundError
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.resolve.similar_models import comparison_key, show_name
from tracker.queries.catalogue.listing import list_models
from tracker.queries.catalogue.model_names import find_model
from tracker.queries.performance import load_performance_matrix
from tracker.queries.selection import Selection
from tracker.recording.checks.content_checks import Check, check_contents
from tracker.recording.mlflow.model_run_spec import run_versions
from tracker.recording.model_merges import merge_models, unmerge_models
from tracker.recording.pipeline import run_analysis
from tracker.recording.undo.imports import find_import, list_imports

B = ReadOptions(benchmark="b", metric="accuracy")
SCORES = "model,prompt_id,score\n{0},1,1\n{0},2,0\n{1},1,0\n{1},2,1\n"


def store(engine: sa.Engine, path: Path, *names: str) -> tuple[str, ...]:
    """Import two scores of each of two models; the warnings."""
    path.write_text(SCORES.format(*names))
    return ingest_file(engine, path, B).changes.warnings


@pytest.fixture
def engine(sqlite_url: str, tmp_path: Path) -> sa.Engine:
    engine = connect(sqlite_url)
    store(engine, tmp_path / "first.csv", "org/Llama", "org/llama")
    return engine


def models_of(engine: sa.Engine) -> dict[str, int]:
    with transaction(engine, write=False) as session:
        return {row.name: row.n_runs for row in list_models(session)}


class TestSimilarNames:
    @pytest.mark.parametrize(
        ("name", "similar"),
        [
            ("caf\u00e9", "cafe\u0301"),
            ("Llama", "llama"),
            ("my  model ", "my model"),
            ("my\u200bmodel", "mymodel"),
            ("org__model", "org/model"),
            ("a\u00a0b", "a b"),
        ],
    )
    def test_equal_keys(self, name: str, similar: str) -> None:
        assert comparison_key(name) == comparison_key(similar)

    @pytest.mark.parametrize(("name", "different"), [("llama-3", "llama-31"), ("a/b__c", "a/b/c"), ("ab", "a b")])
    def test_different_keys(self, name: str, different: str) -> None:
        assert comparison_key(name) != comparison_key(different)

    def test_names_that_look_equal_are_shown_with_escapes(self) -> None:
        assert show_name("caf\u00e9") == "$'caf\\u00e9'"
        assert show_name("it's\u200b") == "$'it\\'s\\u200b'"
        assert show_name("two words") == "'two words'"

    def test_a_new_model_is_reported_with_the_command(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        (warning,) = store(engine, tmp_path / "a.csv", "Llama", "llama")
        assert warning.endswith("If they are one model: suffrage models merge Llama llama")
        (warning,) = store(engine, tmp_path / "b.csv", "other", "LLAMA")
        assert "suffrage models merge Llama LLAMA" in warning
        assert store(engine, tmp_path / "c.csv", "third", "fourth") == ()

    def test_the_store_is_checked_for_them(self, engine: sa.Engine, tmp_path: Path) -> None:
        def models() -> Check:
            with transaction(engine, write=False) as session:
                return next(check for check in check_contents(session) if check.name == "models")

        assert (models().verdict, models().result) == ("warning", "2, some with similar names: org/Llama and org/llama")
        assert models().advice == "If they are one model: suffrage models merge org/Llama org/llama"
        with transaction(engine, exclusive=True) as session:
            merge_models(session, "org/Llama", "org/llama")
        assert (models().verdict, models().result, models().advice) == ("ok", "1", "")
        store(engine, tmp_path / "later.csv", "zed", "Zed")
        assert models().advice == "If they are one model: suffrage models merge zed Zed"


class TestMerge:
    def test_the_runs_move_and_the_name_is_an_alias(self, engine: sa.Engine, tmp_path: Path) -> None:
        with transaction(engine, exclusive=True) as session:
            result = merge_models(session, "org/Llama", "org/llama")
        assert (result.name, result.alias) == ("org/Llama", "org/llama")
        assert len(result.run_ids) == len(result.relabeled) == 1
        assert list(models_of(engine)) == ["org/Llama"]
        with transaction(engine, write=False) as session:
            assert find_model(session, "org/llama").name == "org/Llama"
            assert load_performance_matrix(session, Selection(benchmark="b", models=("org/llama",))).n_models == 1
        assert store(engine, tmp_path / "more.csv", "org/llama", "new") == ()
        assert list(models_of(engine)) == ["new", "org/Llama"]

    def test_unmerge_is_its_inverse(self, engine: sa.Engine) -> None:
        before = rows_of(engine)
        with transaction(engine, exclusive=True) as session:
            merge_models(session, "org/Llama", "org/llama")
        assert rows_of(engine) != before
        with transaction(engine, exclusive=True) as session:
            unmerge_models(session, "org/llama")
        assert rows_of(engine) == before

    def test_merges_of_merged_models_are_undone_in_the_opposite_order(self, engine: sa.Engine, tmp_path: Path) -> None:
        store(engine, tmp_path / "more.csv", "other", "third")
        stages = [rows_of(engine)]
        for target, merged in (("org/Llama", "org/llama"), ("other", "org/Llama")):
            with transaction(engine, exclusive=True) as session:
                merge_models(session, target, merged)
            stages.append(rows_of(engine))
        assert list(models_of(engine)) == ["other", "third"]
        with pytest.raises(ConflictError), transaction(engine, exclusive=True) as session:
            unmerge_models(session, "org/llama")
        for merged, rows in (("org/Llama", stages[1]), ("org/llama", stages[0])):
            with transaction(engine, exclusive=True) as session:
                unmerge_models(session, merged)
            assert rows_of(engine) == rows

    def test_an_import_that_was_merged_since_names_the_command_that_separates_the_models(
        self, engine: sa.Engine, sqlite_url: str, tmp_path: Path
    ) -> None:
        store(engine, tmp_path / "later.csv", "other", "third")
        with transaction(engine, exclusive=True) as session:
            merge_models(session, "other", "third")
        store(engine, tmp_path / "latest.csv", "unrelated", "models")
        before = rows_of(engine)
        undo = ("undo", "--source", "2", "--yes", "--no-mlflow", "--database", sqlite_url)
        blocked = CliRunner().invoke(suffrage, undo)
        problem = "import of {} cannot be undone: the later merge of third into other changed a run that it added"
        assert problem.format(tmp_path / "later.csv") in str(blocked.exception)
        assert str(blocked.exception).endswith("Undo that first: suffrage models unmerge third")
        assert rows_of(engine) == before
        unmerge = ["models", "unmerge", "third", "--no-mlflow", "--database", sqlite_url]
        assert CliRunner().invoke(suffrage, unmerge).exit_code == 0
        assert CliRunner().invoke(suffrage, undo).exit_code == 0
        assert "third" not in models_of(engine)

    def test_undo_reverses_the_latest_merge_and_names_it(self, engine: sa.Engine, sqlite_url: str) -> None:
        before = rows_of(engine)
        with transaction(engine, exclusive=True) as session:
            merge_models(session, "org/Llama", "org/llama")
        undone = CliRunner().invoke(suffrage, ["undo", "--yes", "--no-mlflow", "--database", sqlite_url])
        assert undone.stderr.startswith("Merge of org/llama into org/Llama:\n")
        assert undone.stderr.endswith("The merge of org/llama into org/Llama is undone.\n")
        assert rows_of(engine) == before

    def test_an_archive_with_a_quote_in_its_name_is_no_merge(
        self, engine: sa.Engine, sqlite_url: str, tmp_path: Path
    ) -> None:
        archive, copy = tmp_path / "it's.db", f"sqlite:///{tmp_path / 'copy.db'}"
        exported = CliRunner().invoke(
            suffrage, ["export", "archive", "--output", str(archive), "--database", sqlite_url]
        )
        assert exported.exit_code == 0, exported.output
        store(connect(copy), tmp_path / "other.csv", "third", "fourth")
        ingest_file(connect(copy), archive, ReadOptions())
        with transaction(connect(copy), exclusive=True) as session:
            with pytest.raises(NotFoundError, match="No merge 'a'"):
                unmerge_models(session, "a")
            (brought, _) = list_imports(session)
            assert (brought.source, brought.undo_command) == (None, "suffrage undo --source 2")
            assert find_import(session, 2) == brought

    def test_errors(self, engine: sa.Engine) -> None:
        with transaction(engine, exclusive=True) as session:
            with pytest.raises(ConflictError, match="names of the same model"):
                merge_models(session, "org/Llama", "org/Llama")
            with pytest.raises(NotFoundError):
                merge_models(session, "org/Llama", "none")
            with pytest.raises(NotFoundError, match="No merge"):
                unmerge_models(session, "org/llama")

    def test_the_commands(self, engine: sa.Engine, sqlite_url: str) -> None:
        def run(*arguments: str) -> str:
            result = CliRunner().invoke(suffrage, ["models", *arguments, "--no-mlflow", "--database", sqlite_url])
            assert result.exit_code == 0, result.output
            return result.output

        assert "org/llama is merged into org/Llama: 1 run moved." in run("merge", "org/Llama", "org/llama")
        assert run("unmerge", "org/llama") == "org/llama is a separate model again, with 1 run.\n"
        assert models_of(engine) == {"org/Llama": 1, "org/llama": 1}

    def test_stale_findings_are_reported_and_the_mlflow_runs_are_outdated(
        self, engine: sa.Engine, sqlite_url: str, tmp_path: Path
    ) -> None:
        def run(*arguments: str) -> str:
            result = CliRunner().invoke(suffrage, ["models", *arguments, "--no-mlflow", "--database", sqlite_url])
            assert result.exit_code == 0, result.output
            return result.output

        def versions() -> dict[int, str]:
            with transaction(engine, write=False) as session:
                return run_versions(session)

        store(engine, tmp_path / "more.csv", "third", "fourth")
        run_analysis(engine, "rank-intervals", Selection(benchmark="b", models=("org/Llama", "third")))
        before = versions()
        assert "Stale now: finding 1. See why" in run("merge", "org/Llama", "org/llama")
        assert {key for key, version in versions().items() if version != before[key]} == {2}
        assert "No longer stale: finding 1." in run("unmerge", "org/llama")
        assert versions() == before


def test_the_merge_is_reversed_on_a_server(postgres_url: str, tmp_path: Path) -> None:
    engine = connect(postgres_url)
    store(engine, tmp_path / "first.csv", "org/Llama", "org/llama")
    before = rows_of(engine)
    with transaction(engine, exclusive=True) as session:
        merge_models(session, "org/Llama", "org/llama")
    with transaction(engine, exclusive=True) as session:
        unmerge_models(session, "org/llama")
    assert rows_of(engine) == before
    engine.dispose()
