"""What everything else makes of runs that were evaluated here: finished, unfinished, carried off, met by files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from live_runs_made import IDENTITY, OTHER, ask, asked, n_stored, opened, portion
from readings import answers, keep, scores

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import ConflictError, SelectionError
from tracker.ingest.write.live.live_runs import ScoredResponse
from tracker.queries import tables
from tracker.queries.catalogue.listing import RunRow, find_run, list_runs
from tracker.queries.ranking.leaderboard import leaderboard
from tracker.queries.selection import Selection
from tracker.recording.doctor import run_checks
from tracker.recording.mlflow.model_run_spec import build_model_run_spec
from tracker.recording.run_status import delete, hide, restore, supersede

HALF = {"n_prompts": 4, "template": "Question:\n{{ text }}\nAnswer:", "command": "suffrage evaluate b --model org/m"}


@pytest.fixture
def file(sqlite_url: str) -> Iterator[sa.Engine]:
    """A benchmark of four prompts on SQLite."""
    engine = connect(sqlite_url)
    ask(engine, 4)
    yield engine
    engine.dispose()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[sa.Engine]:
    """Another store, empty."""
    engine = connect(f"sqlite:///{tmp_path / 'other.db'}")
    yield engine
    engine.dispose()


def said(engine: sa.Engine, *words: str) -> Result:
    """What a command says that works."""
    found = CliRunner().invoke(suffrage, [*words, "--database", engine.url.render_as_string(hide_password=False)])
    assert found.exit_code == 0, found.output
    return found


def all_runs(engine: sa.Engine) -> list[RunRow]:
    """Every run, the first one first."""
    with transaction(engine, write=False) as session:
        return list_runs(session)[::-1]


def rows(engine: sa.Engine, run_id: int) -> list[str]:
    """Scores and answers of a run."""
    with engine.connect() as connection:
        found = [
            connection.execute(sa.select(table).where(table.c.run_id == run_id)).all()
            for table in (tables.score, tables.answer)
        ]
    return sorted(str(tuple(row)[1:]) for one in found for row in one)


class TestUnfinished:
    def test_the_doctor_tells_how_far_it_came_and_how_to_go_on(self, file: sa.Engine) -> None:
        opened(file, portion(1, 2), settings=HALF)
        check = next(check for check in run_checks(file, None) if check.name == "runs")
        assert (check.verdict, check.result) == ("warning", "1 partial")
        assert check.advice == (
            "The evaluation of run 1 has not finished (2 of 4 prompts); it goes on with: "
            "suffrage evaluate b --model org/m"
        )

    def test_the_doctor_tells_it_from_a_damaged_file(self, file: sa.Engine) -> None:
        opened(file, portion(1), settings=HALF)
        keep(file, scores({"q0": 1}, model="cut"))
        with transaction(file) as session:
            session.execute(sa.update(tables.run).where(tables.run.c.id == 2).values(status="partial"))
        advice = next(check for check in run_checks(file, None) if check.name == "runs").advice
        assert "run 1 has not finished (1 of 4 prompts)" in advice
        assert "Of run 2 only what came before the damage of a file is there." in advice

    def test_a_leaderboard_leaves_it_out_and_says_so(self, file: sa.Engine) -> None:
        keep(file, scores({f"q{n}": n % 2 for n in range(4)}, model="from a file"))
        key = opened(file, portion(1, 2), settings=HALF).id
        with transaction(file, write=False) as session:
            board = leaderboard(session, Selection(benchmark="b", metric="accuracy"))
            named = leaderboard(session, Selection(benchmark="b", metric="accuracy", runs=(key,)))
            elsewhere = leaderboard(session, Selection(benchmark="b", metric="accuracy", variant=""))
        assert [row.model for row in board.rows] == ["from a file"]
        assert board.warnings[-1] == "Not taken, since the evaluation has not finished: org/m (run 2, 2 of 4 prompts)."
        assert not any("Not taken" in note for note in named.warnings)
        assert elsewhere.warnings == board.warnings

    def test_where_nothing_else_is_stored_that_is_said(self, file: sa.Engine) -> None:
        opened(file, portion(1))
        with (
            pytest.raises(SelectionError, match=r"its 1 are .* partial \(damaged or being evaluated\)"),
            transaction(file, write=False) as session,
        ):
            leaderboard(session, Selection(benchmark="b"))

    def test_one_of_another_condition_is_not_spoken_of(self, file: sa.Engine) -> None:
        keep(file, scores({f"q{n}": n % 2 for n in range(4)}, model="from a file"))
        opened(file, portion(1), condition="answer_only")
        with transaction(file, write=False) as session:
            assert leaderboard(session, Selection(benchmark="b", metric="accuracy")).warnings == ()

    def test_it_can_be_listed_and_deleted_but_not_set_aside(self, file: sa.Engine) -> None:
        opened(file, portion(1), settings=HALF)
        opened(file, portion(1), end=True, identity=OTHER)
        assert [(row.status, row.reason) for row in all_runs(file)] == [
            ("partial", "its evaluation has not finished"), ("complete", ""),
        ]  # fmt: skip
        assert "its evaluation has not finished" in said(file, "runs").stdout
        for change in (
            lambda session: hide(session, [1]),
            lambda session: restore(session, [1]),
            lambda session: supersede(session, 1, 2),
        ):
            with pytest.raises(ConflictError, match="is partial"), transaction(file) as session:
                change(session)
        with (
            pytest.raises(ConflictError, match="Go on with it: suffrage evaluate b"),
            transaction(file) as session,
        ):
            restore(session, [1])
        with transaction(file) as session:
            delete(session, [1])
        assert [row.id for row in all_runs(file)] == [2]
        assert opened(file).is_new

    def test_its_settings_are_shown_line_by_line(self, file: sa.Engine) -> None:
        opened(file, portion(1), settings=HALF | {"long": "x" * 500})
        table = said(file, "runs", "show", "1").stdout
        lines = {line.split()[0]: line for line in table.splitlines() if line.strip()}
        assert "Question: {{ text }} Answer:" in lines["settings.template"]
        assert lines["settings.usage.tokens_read"].split()[1] == "10"
        assert max(map(len, table.splitlines())) < 140
        whole = json.loads(said(file, "runs", "show", "1", "--format", "json").stdout)
        assert whole["settings"]["template"] == HALF["template"]
        assert whole["settings"]["long"] == "x" * 500


class TestFilesThatMeetIt:
    def test_a_file_that_says_something_else_is_a_run_of_its_own(self, store: sa.Engine) -> None:
        ask(store, 4)
        opened(store, portion(*asked(store)), end=True)
        before = rows(store, 1)
        for on_conflict in ("rerun", "update", "skip", "error"):
            stored = keep(store, scores({"q0": 0, "q1": 1}, model="org/m"), on_conflict=on_conflict)
        assert [(row.label, row.n_scores) for row in all_runs(store)] == [("", 8), ("#2", 2)]
        assert rows(store, 1) == before
        assert stored.runs_unchanged[0].id == 2, "later files meet the run of the file"

    def test_that_is_said(self, store: sa.Engine) -> None:
        ask(store, 4)
        opened(store, portion(1))
        stored = keep(store, scores({"q3": 0}, model="org/m"))
        assert stored.warnings[-1] == (
            "org/m: run 1 was evaluated here, which no file changes: stored as a new run, #2"
        )

    def test_a_file_that_says_nothing_new_changes_nothing(self, store: sa.Engine) -> None:
        ask(store, 4)
        opened(store, portion(*asked(store)), few_shot=5, settings={"dtype": "float32"})
        before = all_runs(store)
        stored = keep(
            store,
            scores({"q0": 1, "q1": 1}, model="org/m", few_shot=3, limited=True, settings={"seen": "elsewhere"}),
            answers({"q0": "A", "q1": "A"}, model="org/m"),
        )
        assert (stored.summary(), [one.id for one in stored.runs_unchanged]) == ("nothing new", [1])
        assert all_runs(store) == before, "it is not complete for it, and it came from no file"

    def test_a_label_that_it_has_is_refused_for_something_else(self, file: sa.Engine) -> None:
        opened(file, portion(1), end=True)
        assert opened(file, portion(1, 2), again=True).label == "#2"
        keep(file, scores({"q1": 1}, model="org/m", label="#2"))
        with pytest.raises(ConflictError, match="run 2, '#2' of org/m, was evaluated here"):
            keep(file, scores({"q1": 0}, model="org/m", label="#2"))

    def test_a_file_of_a_harness_with_a_time_stamp_is_a_run_of_its_own(self, file: sa.Engine) -> None:
        opened(file, portion(1))
        keep(file, scores({"q0": 1}, model="org/m", label="2024-05-01T12-00-00"))
        assert [row.label for row in all_runs(file)] == ["", "2024-05-01T12-00-00"]
        assert opened(file, identity=OTHER).label == "#2"

    def test_an_evaluation_never_goes_on_with_the_run_of_a_file(self, file: sa.Engine) -> None:
        keep(file, scores({"q0": 1}, model="org/m"))
        assert opened(file).label == "#2"


class TestCarriedOff:
    @pytest.mark.parametrize("end", [False, True])
    def test_an_archive_brings_it_whole_and_it_goes_on_there(
        self, file: sa.Engine, other: sa.Engine, tmp_path: Path, end: bool
    ) -> None:
        opened(file, portion(1, 2), settings=HALF, end=end, few_shot=5)
        said(file, "export", "archive", "--output", str(tmp_path / "all.suffrage.zip"))
        said(other, "ingest", str(tmp_path / "all.suffrage.zip"), "--no-mlflow")
        assert all_runs(other) == all_runs(file)
        assert rows(other, 1) == rows(file, 1)
        there = opened(other, settings=HALF)
        assert (there.id, there.status, n_stored(other, there)) == (1, "complete" if end else "partial", 2)

    def test_what_a_colleague_finished_comes_back_finished(
        self, file: sa.Engine, other: sa.Engine, tmp_path: Path
    ) -> None:
        opened(file, portion(1, 2), settings=HALF)
        said(file, "export", "archive", "--output", str(tmp_path / "half.suffrage.zip"))
        said(other, "ingest", str(tmp_path / "half.suffrage.zip"), "--no-mlflow")
        opened(other, portion(*asked(other)), settings=HALF, end=True)
        said(other, "export", "archive", "--output", str(tmp_path / "whole.suffrage.zip"))
        said(file, "ingest", str(tmp_path / "half.suffrage.zip"), "--no-mlflow")
        assert all_runs(file)[0].status == "partial"
        said(file, "ingest", str(tmp_path / "whole.suffrage.zip"), "--no-mlflow")
        assert all_runs(file) == all_runs(other)
        assert rows(file, 1) == rows(other, 1)

    def test_in_an_archive_another_evaluation_is_another_run(
        self, file: sa.Engine, other: sa.Engine, tmp_path: Path
    ) -> None:
        ask(other, 4)
        opened(other, [ScoredResponse(prompt_id=1, scores={"exact_match": 1.0})], identity=OTHER, end=True)
        opened(other, portion(3), end=True)
        opened(file, portion(3), end=True)
        said(other, "export", "archive", "--output", str(tmp_path / "all.suffrage.zip"))
        told = said(file, "ingest", str(tmp_path / "all.suffrage.zip"), "--no-mlflow").stderr
        found = [(row.label, row.settings["identity"], row.n_scores) for row in all_runs(file)]
        assert found == [("", IDENTITY, 2), ("#2", OTHER, 1)]
        assert "org/m: the store has another run '': stored as a new run, #2" in told

    def test_a_copy_of_the_store_goes_on_as_the_original(self, file: sa.Engine, tmp_path: Path) -> None:
        opened(file, portion(1, 2), settings=HALF)
        copy = f"sqlite:///{tmp_path / 'copy.db'}"
        source = file.url.render_as_string(hide_password=False)
        done = CliRunner().invoke(suffrage, ["db", "copy", source, copy])
        assert done.exit_code == 0, done.output
        engine = connect(copy)
        assert all_runs(engine) == all_runs(file)
        assert n_stored(engine, opened(engine, settings=HALF)) == 2
        engine.dispose()

    @pytest.mark.parametrize("layout", ["csv", "every-eval-ever"])
    def test_what_is_exported_and_taken_in_again_changes_nothing(
        self, file: sa.Engine, other: sa.Engine, tmp_path: Path, layout: str
    ) -> None:
        opened(file, portion(*asked(file)), settings=HALF, end=True)
        before, out = all_runs(file), tmp_path / ("out" if layout != "csv" else "out.csv")
        said(file, "export", "scores", "b", "--format", layout, "--output", str(out))
        told = said(file, "ingest", str(out), "--benchmark", "b", "--no-mlflow")
        assert all_runs(file) == before, told.output
        said(other, "ingest", str(out), "--benchmark", "b", "--no-mlflow")
        (there,) = all_runs(other)
        assert (there.status, there.n_scores, there.means) == ("complete", 8, before[0].means)
        assert "identity" not in (there.settings or {})

    def test_mlflow_shows_it_from_start_to_end_with_its_settings(self, file: sa.Engine) -> None:
        opened(file, portion(*asked(file)), settings=HALF, end=True)
        with transaction(file, write=False) as session:
            shown, row = build_model_run_spec(session, 1), find_run(session, 1)
        assert shown.metrics["accuracy"] == 1.0
        assert shown.parameters["settings.template"] == HALF["template"]
        assert shown.parameters["settings.usage.tokens_read"] == "100"
        assert shown.started < shown.ended == row.ingested.replace(tzinfo=shown.ended.tzinfo)
