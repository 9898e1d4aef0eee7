"""`suffrage evaluate`: from stored prompts to runs, with the prompt and without it; killed, and gone on."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
import vllm_stand_in
from click.testing import CliRunner, Result
from language_model_files import write_language_model
from memorised_prompts import learn, write_prompts

import tracker
from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import SelectionError, SuffrageError

torch = pytest.importorskip("torch")

from tracker.evaluating.evaluation import evaluate  # noqa: E402
from tracker.evaluating.plan import Plan  # noqa: E402
from tracker.evaluating.preparation import prepare  # noqa: E402

N_EVALUATED = 24
ROWS = {
    "score": "SELECT metric_id, prompt_id, trial, value FROM score ORDER BY 1, 2, 3",
    "answer": "SELECT prompt_id, extraction, trial, text, probability, status FROM answer ORDER BY 1, 2, 3",
    "run": "SELECT n_scores, checksum, status, settings, few_shot, limited FROM run ORDER BY id",
}


@pytest.fixture(scope="module")
def prompts_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prompts") / "quiz.csv"
    write_prompts(path)
    return path


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path, prompts_file: Path) -> Path:
    """A store that holds the prompts of a quiz."""
    path = tmp_path_factory.mktemp("filled") / "store.db"
    shutil.copy(sqlite_template, path)
    with tracker.open(f"sqlite:///{path}") as store:
        store.ingest(prompts_file, benchmark="quiz")
    return path


@pytest.fixture
def url(filled: Path, tmp_path: Path) -> str:
    shutil.copy(filled, tmp_path / "store.db")
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def model(language_model_folders: dict[str, Path]) -> Path:
    return language_model_folders["llama"]


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(suffrage, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit | SuffrageError):
        raise result.exception
    return result


def dump(url: str) -> dict[str, list[tuple[Any, ...]]]:
    engine = connect(url)
    with transaction(engine, write=False) as session:
        rows = {name: [tuple(row) for row in session.execute(sa.text(query))] for name, query in ROWS.items()}
    engine.dispose()
    return rows


class TestMemorised:
    @pytest.mark.soak
    def test_a_model_that_has_learned_answers_by_heart_is_contaminated_on_just_these(
        self, url: str, tmp_path: Path
    ) -> None:
        """Half of the prompts are learned without their prompt; both runs come from `evaluate`."""
        folder = write_language_model(tmp_path / "rote", "gpt2", size=64)
        options = {"template": "smart", "conditions": ("full", "answer_only"), "device": "cpu"}
        with tracker.open(url) as store:
            rendered_prompts = (
                prepare(store.engine, Plan.from_options("quiz", str(folder), **options)).rendered["answer_only"].prompts
            )
            by_heart = {prompt.prompt_id for prompt in rendered_prompts[::2]}
            answers = [
                "ABCD"[prompt.correct_option or 0] if prompt.prompt_id in by_heart else None
                for prompt in rendered_prompts
            ]
            learn(folder, [prompt.text() for prompt in rendered_prompts], answers)
            full, blind = store.evaluate("quiz", folder, **options)
            assert full.is_complete
            assert blind.means["accuracy"] >= 0.5
            answer = store.analyze(
                "smart-filtering", "quiz", models=["rote"], without_similar=True, n_subsets=5, n_splits=5
            )
            assert answer.metrics["contaminated.n_flagged"] == len(by_heart) == N_EVALUATED / 2
            flagged = store.sql("SELECT prompt_id FROM filter_reason WHERE step = 'contaminated'")
            assert set(flagged["prompt_id"].to_pylist()) == by_heart


class TestStopped:
    def killed(self, url: str, model: Path, *, statement: str, nth: int, **options: Any) -> None:
        """Evaluate in a process that is killed after its n-th statement that begins so."""
        child = os.fork()
        if not child:
            try:
                n_seen = 0

                def count(connection: Any, cursor: Any, words: str, *rest: Any) -> None:
                    nonlocal n_seen
                    n_seen += words.startswith(statement)
                    if n_seen == nth:
                        os.kill(os.getpid(), signal.SIGKILL)

                sa.event.listen(sa.Engine, "after_cursor_execute", count)
                evaluate(connect(url), Plan.from_options("quiz", str(model), **options))
            finally:
                os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL

    @pytest.fixture
    def portions_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Small benchmarks are over in a second: portions are stored at once, so that there is something to kill."""
        monkeypatch.setattr("tracker.evaluating.evaluation.SECONDS_PER_PORTION", 0.0)

    @pytest.mark.usefixtures("portions_at_once")
    def test_killed_and_started_again_it_ends_with_the_bytes_of_a_run_that_was_not(
        self, url: str, model: Path, tmp_path: Path, filled: Path
    ) -> None:
        options = {"batch_size": 2, "device": "cpu", "conditions": ("full", "answer_only"), "method": "loglikelihood"}
        uninterrupted = f"sqlite:///{shutil.copy(filled, tmp_path / 'uninterrupted.db')}"
        evaluate(connect(uninterrupted), Plan.from_options("quiz", str(model), **options))
        n_scores = []
        for portion in (3, 8):
            self.killed(url, model, statement="UPDATE run SET", nth=portion, **options)
            n_scores.append(len(dump(url)["score"]))
        assert n_scores == [2 * 2 * 3, 9 * 2 * 3], "each portion has two prompts with three scores"
        board = run("leaderboard", "quiz", "--metric", "acc", "--database", url)
        assert "being evaluated" in str(board.exception)
        evaluate(connect(url), Plan.from_options("quiz", str(model), **options))
        assert dump(url) == dump(uninterrupted)

    @pytest.mark.usefixtures("portions_at_once")
    def test_two_commands_at_once_end_with_the_bytes_of_one_and_compute_each_batch_once(
        self, url: str, model: Path, tmp_path: Path, filled: Path
    ) -> None:
        alone = f"sqlite:///{shutil.copy(filled, tmp_path / 'alone.db')}"
        plan = Plan.from_options("quiz", str(model), batch_size=2, device="cpu", method="loglikelihood")
        evaluate(connect(alone), plan)
        with ThreadPoolExecutor(2) as commands:
            outcomes = [outcome for (outcome,) in commands.map(lambda _: evaluate(connect(url), plan), range(2))]
        assert sum(outcome.n_new for outcome in outcomes) == N_EVALUATED
        assert all(outcome.is_complete for outcome in outcomes)
        assert dump(url) == dump(alone)

    @pytest.mark.soak
    @pytest.mark.usefixtures("portions_at_once")
    @pytest.mark.parametrize("method", ["letters", "loglikelihood", "generation"])
    def test_killed_at_twenty_random_moments(
        self, model: Path, tmp_path: Path, sqlite_template: Path, method: str
    ) -> None:
        options = {"batch_size": 2, "device": "cpu", "method": method, "few_shot": 2, "few_shot_split": "dev"}
        if method == "generation":
            options |= {"max_tokens": 4, "temperature": 1.0, "trials": 2}
        write_prompts(tmp_path / "long.csv", n=168)
        empty = tmp_path / "empty.db"
        shutil.copy(sqlite_template, empty)
        with tracker.open(f"sqlite:///{empty}") as store:
            store.ingest(tmp_path / "long.csv", benchmark="quiz")
        uninterrupted = f"sqlite:///{shutil.copy(empty, tmp_path / 'uninterrupted.db')}"
        engine = connect(uninterrupted)
        statements: list[str] = []
        sa.event.listen(engine, "after_cursor_execute", lambda *answers: statements.append(answers[2]))
        evaluate(engine, Plan.from_options("quiz", str(model), **options))
        whole = dump(uninterrupted)
        chance = random.Random(20)
        places = set()
        for kill in range(20):
            url = f"sqlite:///{shutil.copy(empty, tmp_path / f'killed{kill}.db')}"
            self.killed(url, model, statement="", nth=chance.randrange(1, len(statements)), **options)
            assert run("db", "check", "--database", url).exit_code == 0
            places.add(len(dump(url)["score"]))
            evaluate(connect(url), Plan.from_options("quiz", str(model), **options))
            assert dump(url) == whole
        assert len(places) > 10, "the kills came at few places"

    def test_whatever_the_batch_size_it_ends_with_the_same_numbers_and_goes_on_where_it_was(
        self, url: str, model: Path, tmp_path: Path, filled: Path
    ) -> None:
        whole = dump(url)
        for size in (3, 24, None):
            path = f"sqlite:///{shutil.copy(filled, tmp_path / f'{size}.db')}"
            engine = connect(path)
            outcome = evaluate(engine, Plan.from_options("quiz", str(model), batch_size=size, device="cpu"))[0]
            assert (outcome.is_complete, outcome.n_new) == (True, N_EVALUATED)
            again = evaluate(engine, Plan.from_options("quiz", str(model), batch_size=1, device="cpu"))[0]
            assert (again.run_id, again.n_new) == (outcome.run_id, 0)
            rows = dump(path)
            if whole["score"]:
                values = [np.array([row[-1] for row in prompt["score"]]) for prompt in (rows, whole)]
                assert values[0] == pytest.approx(values[1], abs=1e-5)
                assert [row[3] for row in rows["answer"]] == [row[3] for row in whole["answer"]]
            whole = rows
            engine.dispose()
        assert len(whole["score"]) == 3 * N_EVALUATED


class TestCommand:
    def test_its_prompts_are_shown_estimated_evaluated_and_stored(self, url: str, model: Path) -> None:
        words = ("evaluate", "quiz", "--model", model, "--device", "cpu", "--few-shot", 2, "--few-shot-split", "dev")
        printed = run(*words, "--show-prompt", "--database", url)
        assert "Answer:" in printed.stdout
        assert printed.stdout.count("What is") == 3
        assert "(gold)" in printed.stdout
        answers = run(*words, "--dry-run", "--price-read", 1, "--price-written", 2, "--database", url)
        assert "24 prompts" in answers.stdout
        assert "extrapolated from 24 prompts" in answers.stdout
        assert dump(url)["run"] == []
        done = run(*words, "--condition", "full,answer-only", "--database", url)
        assert done.exit_code == 0, done.output
        assert "quiz, llama: run 1, 24 prompts of test: accuracy 0." in done.stdout
        assert "all labels together have a mean probability of only 0.0" in done.stderr
        assert "quiz, llama (answer-only): run 2, 24 prompts" in done.stdout
        again = run(*words, "--condition", "full,answer-only", "--database", url)
        assert again.stdout.count("24 prompts of test, all already stored") == 2
        more = run(*words, "--again", "--database", url)
        assert "run 3, 24 prompts" in more.stdout
        uninterrupted = run(*words, "--template", "cloze", "--variant", "cloze", "--database", url)
        assert "acc_norm" in uninterrupted.stdout
        assert "run 4" in uninterrupted.stdout
        board = run("leaderboard", "quiz", "--database", url)
        assert board.exit_code == 0, board.output
        assert "accuracy over 24 prompts" in board.output

    def test_settings_of_the_run_record_how_it_was_made(self, url: str, model: Path) -> None:
        run("evaluate", "quiz", "--model", model, "--name", "mine", "--limit", 10, "--seed", 3, "--database", url)
        with tracker.open(url) as store:
            outcome = store.sql("SELECT settings, limited FROM run")
        settings = json.loads(outcome["settings"][0].as_py())
        assert settings["method"] == "letters"
        assert settings["template"]["name"] == "multiple_choice"
        assert len(settings["template"]["digest"]) == 64
        assert settings["model"]["architecture"] == "LlamaForCausalLM"
        assert settings["usage"]["n_prompts"] == 10
        assert settings["command"].startswith("suffrage evaluate quiz --model ")
        assert "--limit 10 --seed 3" in settings["command"]

    def test_the_stored_command_gives_the_same_plan(self, model: Path) -> None:
        from tracker.cli.commands.evaluate import command

        plan = Plan.from_options(
            "quiz", str(model), conditions=("full", "answer_only"), few_shot=5, few_shot_split="dev", chat=True,
            stop=("\n\n", "Q:"), metrics=("f1", "rougeL"), batch_size=4, temperature=0.7, tasks=("a", "b"),
        )  # fmt: skip
        words = shlex.split(plan.command())[2:]
        context = command.make_context("evaluate", words)
        parsed = context.params
        assert parsed["stop"] == ("\n\n", "Q:")
        assert parsed["conditions"] == "full,answer-only"
        assert (parsed["few_shot"], parsed["chat"], parsed["batch_size"]) == (5, True, "4")
        assert parsed["metrics"] == ("f1,rougeL",)

    @pytest.mark.parametrize("words", ["5.00 EUR", "--budget=5.00 €", "'5.00 EUR'", "5.00", "--budget='5 usd'"])
    def test_a_budget_has_its_currency_with_and_without_quotes(self, words: str) -> None:
        from tracker.cli.commands.evaluate import command

        option = "" if words.startswith("--") else "--budget "
        line = f"--model m {option}{words} quiz --price-read 1 --price-written 2"
        parsed = command.make_context("evaluate", shlex.split(line)).params
        assert parsed["benchmark"] == "quiz"
        assert parsed["budget"] == words.removeprefix("--budget=").strip("'")
        plan = Plan.from_options("quiz", "m", budget=parsed["budget"], price_read=1.0, price_written=2.0)
        assert plan.server.read_budget() is not None

    def test_a_benchmark_after_a_budget_is_no_currency(self) -> None:
        from tracker.cli.commands.evaluate import command

        parsed = command.make_context("evaluate", ["--model", "m", "--budget", "5", "BBH"]).params
        assert (parsed["budget"], parsed["benchmark"]) == ("5", "BBH")


class TestEngines:
    def test_a_run_of_vllm_has_the_scores_of_transformers_and_is_another_run(
        self, url: str, model: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The command of docs/how-to/models.md, with a stand-in for the package."""
        monkeypatch.setitem(sys.modules, "vllm", vllm_stand_in.make_module())
        monkeypatch.setattr("tracker.evaluating.vllm_engine.vllm_loading.count_devices", lambda: 1)
        options = {"limit": 6, "few_shot": 1, "few_shot_split": "dev"}
        engine = connect(url)
        (first,) = evaluate(engine, Plan.from_options("quiz", str(model), device="cpu", **options))
        (second,) = evaluate(engine, Plan.from_options("quiz", str(model), engine="vllm", **options))
        assert first.run_id != second.run_id
        assert second.means == pytest.approx(first.means, abs=1e-4)
        with tracker.open(url) as store:
            settings = json.loads(store.sql("SELECT settings FROM run ORDER BY id DESC")["settings"][0].as_py())
        assert (settings["engine"], settings["device"], settings["device_count"]) == ("vllm", "cuda", 1)
        assert "--engine vllm" in settings["command"]
        engine.dispose()


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"method": "guess"}, "method is 'guess'; it must be one of: letters"),
            ({"conditions": ("blind",)}, "condition is 'blind'"),
            ({"conditions": ()}, "Name a condition: full, answer_only"),
            ({"fewshot": 3}, "evaluate has no option 'fewshot'. Options: again, answer_only_shots"),
        ],
    )
    def test_what_a_plan_cannot_hold_is_refused(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(SelectionError, match=words):
            Plan.from_options("quiz", "model", **options)

    def test_prompts_that_do_not_fit_are_refused_left_out_or_cut(self, url: str, tmp_path: Path) -> None:
        folder = write_language_model(tmp_path / "short", "qwen2", size=64, context=30)
        words = ("evaluate", "quiz", "--model", folder, "--device", "cpu", "--database", url)
        refused = run(*words)
        assert refused.exit_code == 1
        assert "exceed the context of short even without examples" in str(refused.exception or refused.output)
        assert dump(url)["run"] == []
        skipped = run(*words, "--too-long", "skip")
        assert "are longer than the model's context and have no score" in skipped.stderr
        cut = run(*words, "--too-long", "cut", "--variant", "cut")
        assert "run 2, 24 prompts of test: accuracy" in cut.stdout

    def test_a_folder_that_is_no_model_is_an_error_before_anything_is_stored(self, url: str, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        refused = run("evaluate", "quiz", "--model", tmp_path / "empty", "--database", url)
        assert refused.exit_code == 1
        assert dump(url)["run"] == []
