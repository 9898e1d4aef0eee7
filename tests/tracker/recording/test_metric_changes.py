"""Metrics are renamed and deleted, and what depended on them is stale."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from tracker.database import connect, transaction
from tracker.errors import ConflictError, NotFoundError, SelectionError
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums
from tracker.queries.catalogue.metrics import list_benchmark_metrics
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.recording.metric_changes import delete_metric, rename_metric
from tracker.recording.pipeline import run_analysis

ROWS = [f"{model},{i},{(i + len(model)) % 3 % 2}" for model in ("a", "bb") for i in range(6)]
SCORES = "\n".join(["model,prompt_id,score", *ROWS, ""])
B = ReadOptions(benchmark="b")
ACCURACY = ReadOptions(benchmark="b", metric="accuracy")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "results.csv"
    path.write_text(SCORES)
    return path


@pytest.fixture
def scored(sqlite_url: str, file: Path) -> sa.Engine:
    """A store with one file under accuracy."""
    engine = connect(sqlite_url)
    ingest_file(engine, file, ACCURACY)
    return engine


def metrics(engine: sa.Engine) -> list[tuple[str, int]]:
    with transaction(engine, write=False) as session:
        assert verify_checksums(session) == []
        return [(row.metric, row.n_runs) for row in list_benchmark_metrics(session)]


class TestSecondMetric:
    def test_the_same_file_fails_under_a_second_metric(self, scored: sa.Engine, file: Path) -> None:
        with pytest.raises(ConflictError, match=r"b has this content under accuracy, not under score.*\n.*--new-m"):
            ingest_file(scored, file, B)
        assert metrics(scored) == [("accuracy", 2)]

    def test_the_same_scores_in_another_file_fail_too(self, scored: sa.Engine, file: Path) -> None:
        file.write_text(SCORES + "\n")
        with pytest.raises(ConflictError, match="--new-metric"):
            ingest_file(scored, file, B)

    def test_other_scores_are_stored_under_a_second_metric(self, scored: sa.Engine, file: Path) -> None:
        file.write_text(SCORES.replace("a,0,1", "a,0,0"))
        ingest_file(scored, file, B)
        assert metrics(scored) == [("accuracy", 2), ("score", 2)]

    def test_the_same_file_is_stored_on_request(self, scored: sa.Engine, file: Path) -> None:
        ingest_file(scored, file, B, new_metric=True)
        assert metrics(scored) == [("accuracy", 2), ("score", 2)]
        assert ingest_file(scored, file, ACCURACY).changes.already_known

    def test_another_benchmark_is_not_concerned(self, scored: sa.Engine, file: Path) -> None:
        ingest_file(scored, file, ReadOptions(benchmark="c"))
        assert metrics(scored) == [("accuracy", 2), ("score", 2)]


class TestDeletion:
    def test_only_the_scores_under_the_metric_go(self, scored: sa.Engine, file: Path) -> None:
        run_analysis(scored, "rank-intervals", Selection(benchmark="b"))
        ingest_file(scored, file, B, new_metric=True)
        with transaction(scored) as session:
            deletion = delete_metric(session, find_benchmark(session, "b"), "score")
        assert (deletion.n_scores, deletion.run_ids, deletion.deleted_runs) == (12, (1, 2), ())
        assert deletion.stale == {}
        assert metrics(scored) == [("accuracy", 2)]
        with transaction(scored, write=False) as session:
            assert session.scalars(sa.text("SELECT name FROM metric")).all() == ["accuracy"]

    def test_runs_without_other_scores_go_and_findings_are_stale(self, scored: sa.Engine, file: Path) -> None:
        run_analysis(scored, "rank-intervals", Selection(benchmark="b"))
        with transaction(scored) as session:
            deletion = delete_metric(session, find_benchmark(session, "b"), "accuracy")
        assert deletion.deleted_runs == (1, 2)
        assert set(deletion.stale) == {1}
        assert metrics(scored) == []
        assert ingest_file(scored, file, ACCURACY).changes.n_scores == 12  # not "ingested before"

    def test_an_unknown_metric_is_named(self, scored: sa.Engine) -> None:
        with transaction(scored) as session, pytest.raises(NotFoundError, match="Did you mean 'accuracy'"):
            delete_metric(session, find_benchmark(session, "b"), "acuracy")


class TestRenaming:
    def test_scores_and_findings_get_the_new_name(self, scored: sa.Engine) -> None:
        run_analysis(scored, "rank-intervals", Selection(benchmark="b", metric="accuracy"))
        with transaction(scored) as session:
            rename_metric(session, "accuracy", "exact_match")
        assert metrics(scored) == [("exact_match", 2)]
        run_analysis(scored, "rank-intervals", Selection(benchmark="b", metric="exact_match"))
        with transaction(scored, write=False) as session:
            selections = session.scalars(sa.text("SELECT selection FROM finding")).all()
            assert all('"exact_match"' in selection for selection in selections)

    def test_the_name_that_it_has_is_an_error(self, scored: sa.Engine) -> None:
        with transaction(scored) as session, pytest.raises(SelectionError, match="already named 'accuracy'"):
            rename_metric(session, "accuracy", "accuracy ")

    def test_a_name_that_is_in_use_is_an_error(self, scored: sa.Engine, file: Path) -> None:
        ingest_file(scored, file, B, new_metric=True)
        with transaction(scored) as session, pytest.raises(ConflictError, match="has a metric 'accuracy' too"):
            rename_metric(session, "score", "accuracy")
