"""What everything else makes of runs that were evaluated here: finished, unfinished, carried off, met by files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from live_run_steps import IDENTITY, OTHER_IDENTITY, add_prompts, make_run, n_stored, portion, prompt_ids
from measurement_blocks import answers, scores, store_blocks

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import ConflictError, SelectionError
from tracker.ingest.write.live.live_runs import ScoredResponse
from tracker.queries.catalogue.listing import RunRow, find_run, list_runs
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.doctor import run_checks
from tracker.recording.mlflow.model_run_spec import build_model_run_spec
from tracker.recording.run_status import delete, hide, restore, supersede

HALF = {"n_prompts": 4, "template": "Question:\n{{ text }}\nAnswer:", "command": "suffrage evaluate b --model org/m"}


@pytest.fixture
def file(sqlite_url: str) -> Iterator[sa.Engine]:
    """A benchmark of four prompts on SQLite."""
    engine = connect(sqlite_url)
    add_prompts(engine, 4)
    yield engine
    engine.dispose()


@pytest.fixture
def second_store(tmp_path: Path) -> Iterator[sa.Engine]:
    """Another store, empty."""
    engine = connect(f"sqlite:///{tmp_path / 'other.db'}")
    yield engine
    engine.dispose()


def run_command(engine: sa.Engine, *words: str) -> Result:
    """What a command says that works."""
    result = CliRunner().invoke(suffrage, [*words, "--database", engine.url.render_as_string(hide_password=False)])
    assert result.exit_code == 0, result.output
    return result


def all_runs(engine: sa.Engine) -> list[RunRow]:
    """Every run, the first one first."""
    with transaction(engine, write=False) as session:
        return list_runs(session)[::-1]


def rows(engine: sa.Engine, run_id: int) -> list[str]:
    """Scores and answers of a run."""
    with engine.connect() as connection:
        result = [
            connection.execute(sa.select(table).where(table.c.run_id == run_id)).all()
            for table in (tables.score, tables.answer)
        ]
    return sorted(str(tuple(row)[1:]) for item in result for row in item)


class TestUnfinished:
    def test_the_doctor_reports_how_far_it_came_and_how_to_go_on(self, file: sa.Engine) -> None:
        make_run(file, portion(1, 2), settings=HALF)
        check = next(check for check in run_checks(file, None) if check.name == "runs")
        assert (check.verdict, check.result) == ("warning", "1 partial")
        assert check.advice == (
            "The evaluation of run 1 is not complete (2 of 4 prompts). Resume it with: "
            "suffrage evaluate b --model org/m"
        )

    def test_the_doctor_distinguishes_it_from_a_damaged_file(self, file: sa.Engine) -> None:
        make_run(file, portion(1), settings=HALF)
        store_blocks(file, scores({"q0": 1}, model="cut"))
        with transaction(file) as session:
            session.execute(sa.update(tables.run).where(tables.run.c.id == 2).values(status="partial"))
        advice = next(check for check in run_checks(file, None) if check.name == "runs").advice
        assert "run 1 is not complete (1 of 4 prompts)" in advice
        assert "Run 2 has only the data before the damage of its file." in advice

    def test_a_leaderboard_leaves_it_out_with_a_warning(self, file: sa.Engine) -> None:
        store_blocks(file, scores({f"q{n}": n % 2 for n in range(4)}, model="from a file"))
        key = make_run(file, portion(1, 2), settings=HALF).id
        with transaction(file, write=False) as session:
            board = load_leaderboard(session, Selection(benchmark="b", metric="accuracy"))
            chosen = load_leaderboard(session, Selection(benchmark="b", metric="accuracy", runs=(key,)))
            elsewhere = load_leaderboard(session, Selection(benchmark="b", metric="accuracy", variant=""))
        assert [row.model for row in board.rows] == ["from a file"]
        assert board.warnings[-1] == "Excluded, because the evaluation is not complete: org/m (run 2, 2 of 4 prompts)."
        assert not any("Excluded, because" in warning for warning in chosen.warnings)
        assert elsewhere.warnings == board.warnings

    def test_where_nothing_else_is_stored_it_is_an_error(self, file: sa.Engine) -> None:
        make_run(file, portion(1))
        with (
            pytest.raises(SelectionError, match=r"its 1 runs are .* partial"),
            transaction(file, write=False) as session,
        ):
            load_leaderboard(session, Selection(benchmark="b"))

    def test_one_of_another_condition_is_not_spoken_of(self, file: sa.Engine) -> None:
        store_blocks(file, scores({f"q{n}": n % 2 for n in range(4)}, model="from a file"))
        make_run(file, portion(1), condition="answer_only")
        with transaction(file, write=False) as session:
            assert load_leaderboard(session, Selection(benchmark="b", metric="accuracy")).warnings == ()

    def test_it_can_be_listed_and_deleted_but_not_hidden(self, file: sa.Engine) -> None:
        make_run(file, portion(1), settings=HALF)
        make_run(file, portion(1), end=True, identity=OTHER_IDENTITY)
        assert [(row.status, row.reason) for row in all_runs(file)] == [
            ("partial", "its evaluation has not finished"), ("complete", ""),
        ]  # fmt: skip
        assert "its evaluation has not finished" in run_command(file, "runs").stdout
        for change in (
            lambda session: hide(session, [1]),
            lambda session: restore(session, [1]),
            lambda session: supersede(session, 1, 2),
        ):
            with pytest.raises(ConflictError, match="is partial"), transaction(file) as session:
                change(session)
        with (
            pytest.raises(ConflictError, match="Resume it: suffrage evaluate b"),
            transaction(file) as session,
        ):
            restore(session, [1])
        with transaction(file) as session:
            delete(session, [1])
        assert [row.id for row in all_runs(file)] == [2]
        assert make_run(file).is_new

    def test_its_settings_are_shown_line_by_line(self, file: sa.Engine) -> None:
        make_run(file, portion(1), settings=HALF | {"long": "x" * 500})
        table = run_command(file, "runs", "show", "1").stdout
        lines = {line.split()[0]: line for line in table.splitlines() if line.strip()}
        assert "Question: {{ text }} Answer:" in lines["settings.template"]
        assert lines["settings.usage.tokens_read"].split()[1] == "10"
        assert max(map(len, table.splitlines())) < 140
        whole = json.loads(run_command(file, "runs", "show", "1", "--format", "json").stdout)
        assert whole["settings"]["template"] == HALF["template"]
        assert whole["settings"]["long"] == "x" * 500


class TestFilesThatMeetIt:
    def test_a_file_with_other_values_is_a_run_of_its_own(self, store: sa.Engine) -> None:
        add_prompts(store, 4)
        make_run(store, portion(*prompt_ids(store)), end=True)
        before = rows(store, 1)
        for on_conflict in ("rerun", "update", "skip", "error"):
            stored = store_blocks(store, scores({"q0": 0, "q1": 1}, model="org/m"), on_conflict=on_conflict)
        assert [(row.label, row.n_scores) for row in all_runs(store)] == [("", 8), ("#2", 2)]
        assert rows(store, 1) == before
        assert stored.runs_unchanged[0].id == 2, "later files meet the run of the file"

    def test_a_new_run_is_reported(self, store: sa.Engine) -> None:
        add_prompts(store, 4)
        make_run(store, portion(1))
        stored = store_blocks(store, scores({"q3": 0}, model="org/m"))
        assert stored.warnings[-1] == (
            "org/m: run 1 was evaluated by Suffrage, so files do not change it; stored as a new run, #2"
        )

    def test_a_file_without_new_values_changes_nothing(self, store: sa.Engine) -> None:
        add_prompts(store, 4)
        make_run(store, portion(*prompt_ids(store)), few_shot=5, settings={"dtype": "float32"})
        before = all_runs(store)
        stored = store_blocks(
            store,
            scores({"q0": 1, "q1": 1}, model="org/m", few_shot=3, limited=True, settings={"seen": "elsewhere"}),
            answers({"q0": "A", "q1": "A"}, model="org/m"),
        )
        assert (stored.summary(), [item.id for item in stored.runs_unchanged]) == ("nothing new", [1])
        assert all_runs(store) == before, "it is not complete for it, and it came from no file"

    def test_a_label_that_it_has_is_refused_for_something_else(self, file: sa.Engine) -> None:
        make_run(file, portion(1), end=True)
        assert make_run(file, portion(1, 2), again=True).label == "#2"
        store_blocks(file, scores({"q1": 1}, model="org/m", label="#2"))
        with pytest.raises(ConflictError, match="run 2, '#2' of org/m, was evaluated by Suffrage"):
            store_blocks(file, scores({"q1": 0}, model="org/m", label="#2"))

    def test_a_file_of_a_harness_with_a_time_stamp_is_a_run_of_its_own(self, file: sa.Engine) -> None:
        make_run(file, portion(1))
        store_blocks(file, scores({"q0": 1}, model="org/m", label="2024-05-01T12-00-00"))
        assert [row.label for row in all_runs(file)] == ["", "2024-05-01T12-00-00"]
        assert make_run(file, identity=OTHER_IDENTITY).label == "#2"

    def test_an_evaluation_never_goes_on_with_the_run_of_a_file(self, file: sa.Engine) -> None:
        store_blocks(file, scores({"q0": 1}, model="org/m"))
        assert make_run(file).label == "#2"


class TestCarriedOff:
    @pytest.mark.parametrize("end", [False, True])
    def test_an_archive_brings_it_whole_and_it_goes_on_there(
        self, file: sa.Engine, second_store: sa.Engine, tmp_path: Path, end: bool
    ) -> None:
        make_run(file, portion(1, 2), settings=HALF, end=end, few_shot=5)
        run_command(file, "export", "archive", "--output", str(tmp_path / "all.db"))
        run_command(second_store, "ingest", str(tmp_path / "all.db"), "--no-mlflow")
        assert all_runs(second_store) == all_runs(file)
        assert rows(second_store, 1) == rows(file, 1)
        copied = make_run(second_store, settings=HALF)
        assert (copied.id, copied.status, n_stored(second_store, copied)) == (1, "complete" if end else "partial", 2)

    def test_what_a_colleague_finished_comes_back_finished(
        self, file: sa.Engine, second_store: sa.Engine, tmp_path: Path
    ) -> None:
        make_run(file, portion(1, 2), settings=HALF)
        run_command(file, "export", "archive", "--output", str(tmp_path / "half.db"))
        run_command(second_store, "ingest", str(tmp_path / "half.db"), "--no-mlflow")
        make_run(second_store, portion(*prompt_ids(second_store)), settings=HALF, end=True)
        run_command(second_store, "export", "archive", "--output", str(tmp_path / "whole.db"))
        run_command(file, "ingest", str(tmp_path / "half.db"), "--no-mlflow")
        assert all_runs(file)[0].status == "partial"
        run_command(file, "ingest", str(tmp_path / "whole.db"), "--no-mlflow")
        assert all_runs(file) == all_runs(second_store)
        assert rows(file, 1) == rows(second_store, 1)

    def test_in_an_archive_another_evaluation_is_another_run(
        self, file: sa.Engine, second_store: sa.Engine, tmp_path: Path
    ) -> None:
        add_prompts(second_store, 4)
        make_run(
            second_store, [ScoredResponse(prompt_id=1, scores={"exact_match": 1.0})], identity=OTHER_IDENTITY, end=True
        )
        make_run(second_store, portion(3), end=True)
        make_run(file, portion(3), end=True)
        run_command(second_store, "export", "archive", "--output", str(tmp_path / "all.db"))
        output = run_command(file, "ingest", str(tmp_path / "all.db"), "--no-mlflow").stderr
        result = [(row.label, row.settings["identity"], row.n_scores) for row in all_runs(file)]
        assert result == [("", IDENTITY, 2), ("#2", OTHER_IDENTITY, 1)]
        assert "org/m: the store has a different run ''; this one was stored as a new run, #2" in output

    def test_a_copy_of_the_store_goes_on_as_the_original(self, file: sa.Engine, tmp_path: Path) -> None:
        make_run(file, portion(1, 2), settings=HALF)
        copy = f"sqlite:///{tmp_path / 'copy.db'}"
        source = file.url.render_as_string(hide_password=False)
        done = CliRunner().invoke(suffrage, ["db", "copy", source, copy])
        assert done.exit_code == 0, done.output
        engine = connect(copy)
        assert all_runs(engine) == all_runs(file)
        assert n_stored(engine, make_run(engine, settings=HALF)) == 2
        engine.dispose()

    @pytest.mark.parametrize("layout", ["csv", "every-eval-ever"])
    def test_what_is_exported_and_ingested_again_changes_nothing(
        self, file: sa.Engine, second_store: sa.Engine, tmp_path: Path, layout: str
    ) -> None:
        make_run(file, portion(*prompt_ids(file)), settings=HALF, end=True)
        before, out = all_runs(file), tmp_path / ("out" if layout != "csv" else "out.csv")
        run_command(file, "export", "scores", "b", "--format", layout, "--output", str(out))
        output = run_command(file, "ingest", str(out), "--benchmark", "b", "--no-mlflow")
        assert all_runs(file) == before, output.output
        run_command(second_store, "ingest", str(out), "--benchmark", "b", "--no-mlflow")
        (copied,) = all_runs(second_store)
        assert (copied.status, copied.n_scores, copied.means) == ("complete", 8, before[0].means)
        assert "identity" not in (copied.settings or {})

    def test_mlflow_shows_it_from_start_to_end_with_its_settings(self, file: sa.Engine) -> None:
        make_run(file, portion(*prompt_ids(file)), settings=HALF, end=True)
        with transaction(file, write=False) as session:
            spec, row = build_model_run_spec(session, 1), find_run(session, 1)
        assert spec.metrics["accuracy"] == 1.0
        assert spec.parameters["settings.template"] == HALF["template"]
        assert spec.parameters["settings.usage.tokens_read"] == "100"
        assert spec.started < spec.ended == row.ingested.replace(tzinfo=spec.ended.tzinfo)
