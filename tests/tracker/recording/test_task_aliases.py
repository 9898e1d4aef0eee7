"""Two harnesses on one benchmark: tasks with several names, and prompts that are one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from store_rows import rows_of, undo

sys.path.insert(0, str(Path(__file__).parents[1] / "ingest"))

import sound.inspect_ai as inspect_logs  # of the tests of formats

from tracker.cli import suffrage
from tracker.connections.schema_versions import upgrade
from tracker.database import connect, transaction
from tracker.errors import ConflictError, NotFoundError, SelectionError
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.resolve.similar_tasks import describe_similar_tasks, task_words
from tracker.queries.catalogue.tasks import list_tasks
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.recording.task_aliases import add_task_aliases, remove_task_aliases

B = ReadOptions(benchmark="quiz", metric="acc")
QUESTIONS = [(f"What is {n} times {n + 1}?", [str(n * (n + 1)), str(n + 90), str(3 * n + 200)]) for n in range(2, 12)]
SAMPLES, LOG = "org__small/samples_leaderboard_quiz_products_2026-01-02T03-04-05.jsonl", "products.json"
FEW_SHOT = "Question: What is 1 times 1?\nA. 1\nB. 2\nAnswer: A\n\n"


def lm_eval_line(number: int, right: bool) -> dict[str, Any]:
    """A sample whose question is as the harness asks it, after a few-shot example."""
    question, options = QUESTIONS[number]
    option_list = "\n".join(f"{letter}. {option}" for letter, option in zip("ABC", options, strict=True))
    text = f"Question: {question}\n{option_list}\nAnswer:"
    likelihoods = ["-1.0", "-2.0", "-3.0"] if right else ["-3.0", "-1.0", "-2.0"]
    return {
        "doc_id": number,
        "doc": {"question": text, "choices": ["A", "B", "C"]},
        "target": "0",
        "arguments": {f"gen_args_{place}": {"arg_0": FEW_SHOT + text, "arg_1": f" {letter}"}
                      for place, letter in enumerate("ABC")},
        "resps": [[[value, "False"]] for value in likelihoods],
        "filtered_resps": [[value, "False"] for value in likelihoods],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": f"hash{number}",
        "acc": float(right),
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Samples of lm-evaluation-harness and a log of Inspect on the same questions, in the opposite order."""
    folder = tmp_path_factory.mktemp("harnesses")
    lines = [json.dumps(lm_eval_line(number, number % 3 > 0)) for number in range(len(QUESTIONS))]
    (folder / SAMPLES).parent.mkdir()
    (folder / SAMPLES).write_text("\n".join(lines))
    samples = [
        inspect_logs.sample(100 + number, value="I" if number % 5 == 0 else "C", scorer="choice", metadata={},
                            input=QUESTIONS[number][0], choices=QUESTIONS[number][1], target="A")
        for number in reversed(range(len(QUESTIONS)))
    ]  # fmt: skip
    head = inspect_logs.header(
        inspect_logs.reported(0.8, scorer="choice"), task="products", model="org/large", task_args={},
        dataset={"name": "products", "samples": 10, "sample_ids": [sample["id"] for sample in samples]},
    )  # fmt: skip
    (folder / "products.json").write_text(json.dumps({**head, "samples": list(map(inspect_logs.whole, samples))}))
    return folder


def alias(engine: sa.Engine, name: str, task: str) -> dict[str, str]:
    with transaction(engine, exclusive=True) as session:
        return add_task_aliases(session, "quiz", name, task)


@pytest.fixture
def engine(sqlite_url: str, tmp_path: Path) -> sa.Engine:
    """A store with two tasks."""
    engine = connect(sqlite_url)
    store_table(engine, tmp_path / "first.csv", "biology", "law")
    return engine


def store_table(engine: sa.Engine, path: Path, *tasks: str, model: str = "m") -> tuple[str, ...]:
    """Import two scores in each task; the warnings."""
    rows = "".join(f"{model},{task},{key},1\n" for task in tasks for key in (1, 2))
    path.write_text(f"model,task,prompt_id,acc\n{rows}")
    return ingest_file(engine, path, B).changes.warnings


def tasks_of(engine: sa.Engine) -> dict[str, tuple[tuple[str, ...], int]]:
    with transaction(engine, write=False) as session:
        return {row.task: (tuple(row.aliases), row.n_prompts) for row in list_tasks(session, "quiz")}


class TestTwoHarnesses:
    @pytest.mark.parametrize(
        ("names", "files"),
        [
            (("products", "leaderboard_quiz_products"), (SAMPLES, LOG)),
            (("leaderboard_quiz_products", "products"), (LOG, SAMPLES)),
        ],
    )
    def test_both_are_ranked_on_all_prompts(
        self, sqlite_url: str, folder: Path, names: tuple[str, str], files: tuple[str, str]
    ) -> None:
        engine = connect(sqlite_url)
        assert ingest_file(engine, folder / files[0], B).changes.n_prompts_new == len(QUESTIONS)
        alias(engine, *names)
        changes = ingest_file(engine, folder / files[1], B).changes
        assert changes.n_prompts_new == 0
        assert any("10 prompts have the question of a stored prompt" in warning for warning in changes.warnings)
        with transaction(engine, write=False) as session:
            selection = Selection(benchmark="quiz", metric="acc")
            rows = load_leaderboard(session, selection, n_resamples=0).rows
            Q = load_performance_matrix(session, selection).Q
        assert [(row.model, row.n, row.coverage, row.rank) for row in rows] == [
            ("org/large", 10, 1.0, 1.0), ("org/small", 10, 1.0, 2.0)
        ]  # fmt: skip
        expected = [(float(number % 5 > 0), float(number % 3 > 0)) for number in range(10)]
        assert sorted(map(tuple, Q.tolist())) == sorted(expected)
        assert ingest_file(engine, folder / files[1], B).changes.already_known


class TestNames:
    def test_a_file_with_the_other_name_lands_on_the_task(self, engine: sa.Engine, tmp_path: Path) -> None:
        assert alias(engine, "mmlu_pro_biology", "biology") == {"mmlu_pro_biology": "biology"}
        assert store_table(engine, tmp_path / "b.csv", "mmlu_pro_biology", "law", model="n") == ()
        assert tasks_of(engine) == {"biology": (("mmlu_pro_biology",), 2), "law": ((), 2)}
        with transaction(engine, write=False) as session:
            Q = load_performance_matrix(session, Selection(benchmark="quiz", tasks=("mmlu_pro_biology",))).Q
        assert Q.shape == (2, 2)

    def test_a_pattern_names_every_task(self, engine: sa.Engine) -> None:
        assert alias(engine, "quiz/*", "*") == {"quiz/biology": "biology", "quiz/law": "law"}
        assert alias(engine, "quiz/*", "*") == {}
        with transaction(engine, exclusive=True) as session:
            assert remove_task_aliases(session, "quiz", "quiz/*") == 2
        assert tasks_of(engine) == {"biology": ((), 2), "law": ((), 2)}

    def test_names_of_a_pattern_are_removed_together(self, engine: sa.Engine, tmp_path: Path) -> None:
        alias(engine, "quiz/*", "*")
        store_table(engine, tmp_path / "b.csv", "physics", model="n")
        alias(engine, "quiz/*", "*")
        advice = r"\nTo remove it: suffrage tasks unalias quiz 'quiz/\*'$"
        with pytest.raises(ConflictError, match="another name of a task of quiz already." + advice):
            alias(engine, "quiz/law", "biology")
        with pytest.raises(ConflictError, match="was added with others." + advice), transaction(engine) as session:
            remove_task_aliases(session, "quiz", "quiz/law")
        with transaction(engine, exclusive=True) as session:
            assert remove_task_aliases(session, "quiz", "quiz/*") == 3
        assert tasks_of(engine) == {"biology": ((), 2), "law": ((), 2), "physics": ((), 2)}

    def test_the_name_is_removed_without_a_trace(self, engine: sa.Engine, tmp_path: Path) -> None:
        before = rows_of(engine)
        alias(engine, "x", "biology")
        with transaction(engine, exclusive=True) as session:
            remove_task_aliases(session, "quiz", "x")
        assert rows_of(engine) == before
        alias(engine, "x", "biology")
        undo(engine)
        assert rows_of(engine) == before

    def test_scores_imported_since_stay(self, engine: sa.Engine, tmp_path: Path) -> None:
        alias(engine, "x", "biology")
        store_table(engine, tmp_path / "b.csv", "x", model="n")
        with transaction(engine, exclusive=True) as session:
            remove_task_aliases(session, "quiz", "x")
        store_table(engine, tmp_path / "c.csv", "x", model="o")
        assert {name: n for name, (_, n) in tasks_of(engine).items()} == {"biology": 2, "law": 2, "x": 2}

    def test_errors(self, engine: sa.Engine, tmp_path: Path) -> None:
        store_table(engine, tmp_path / "b.csv", "quiz_law", model="n")
        with pytest.raises(ConflictError, match=r"has scores of 1 run\.\n.*: suffrage undo --source 2$"):
            alias(engine, "quiz_law", "law")
        with pytest.raises(NotFoundError, match="No task 'biologi'"):
            alias(engine, "x", "biologi")
        for name, task in (("x_*", "law"), ("x", "*"), ("*", "*"), ("*_*", "*"), ("", "law")):
            with pytest.raises(SelectionError, match="pattern"):
                alias(engine, name, task)
        with pytest.raises(ConflictError, match="already named 'law'"):
            alias(engine, "law", "law")
        alias(engine, "x", "law")
        with pytest.raises(ConflictError, match=r"already.\nTo remove it: suffrage tasks unalias quiz x$"):
            alias(engine, "x", "biology")
        with pytest.raises(NotFoundError, match="No task 'x'"):
            alias(engine, "y", "x")
        with pytest.raises(NotFoundError, match="No alias 'y'"), transaction(engine, exclusive=True) as session:
            remove_task_aliases(session, "quiz", "y")

    def test_the_import_with_the_task_is_undone_after_the_name(self, engine: sa.Engine) -> None:
        alias(engine, "x", "law")
        with pytest.raises(ConflictError, match=r"alias x of quiz names its task.\n.*suffrage tasks unalias quiz x"):
            undo(engine, 1)

    def test_the_fix_of_a_task_with_scores(self, engine: sa.Engine, tmp_path: Path) -> None:
        (warning,) = store_table(engine, tmp_path / "b.csv", "quiz_law", model="n")
        assert warning.endswith("suffrage tasks alias quiz quiz_law law")
        undo(engine)
        alias(engine, "quiz_law", "law")
        assert store_table(engine, tmp_path / "b.csv", "quiz_law", model="n") == ()
        assert list(tasks_of(engine)) == ["biology", "law"]

    def test_archives_with_the_other_name_land_on_the_task(self, engine: sa.Engine, tmp_path: Path) -> None:
        def archive(name: str, *tasks: str) -> Path:
            path = tmp_path / f"{name}.db"
            source = connect(f"sqlite:///{path}")
            upgrade(source)
            store_table(source, tmp_path / f"{name}.csv", *tasks, model=name)
            return path

        alias(engine, "quiz_law", "law")
        changes = ingest_file(engine, archive("n", "quiz_law")).changes
        assert (changes.n_prompts_new, changes.n_scores) == (0, 2)
        assert list(tasks_of(engine)) == ["biology", "law"]
        with pytest.raises(ConflictError, match="two tasks, 'law' and 'quiz_law', that are one in the store"):
            ingest_file(engine, archive("o", "law", "quiz_law"))

    def test_weights_may_use_the_other_name(self, engine: sa.Engine, sqlite_url: str, tmp_path: Path) -> None:
        alias(engine, "x", "law")
        table = tmp_path / "weights.csv"
        table.write_text("task,prompt_id,weight\nx,1,1\nx,2,2\nbiology,1,1\nbiology,2,1\n")
        command = ["weights", "quiz", str(table), "--database", sqlite_url, "--no-mlflow"]
        result = CliRunner().invoke(suffrage, command)
        assert result.exit_code == 0, result.output

    def test_the_commands(self, engine: sa.Engine, sqlite_url: str) -> None:
        def run(*arguments: str) -> str:
            result = CliRunner().invoke(suffrage, ["tasks", *arguments, "--database", sqlite_url])
            assert result.exit_code == 0, result.output
            return result.output

        assert run("alias", "quiz", "x", "law").startswith("New names of tasks: x is law.")
        assert "x" in run("list", "--benchmark", "quiz")
        assert CliRunner().invoke(suffrage, ["undo", "--list", "--database", sqlite_url]).output.count(" alias ") == 2
        assert run("unalias", "quiz", "x") == "1 name removed.\n"


class TestSimilarNames:
    @pytest.mark.parametrize(
        ("name", "similar", "benchmark"),
        [
            ("mmlu_pro_biology", "biology", "mmlu_pro"),
            ("mmlu/biology", "Biology", "mmlu"),
            ("leaderboard_mmlu_pro", "mmlu_pro", "mmlu_pro"),
            ("lighteval|arc:challenge", "ARC-Challenge", "arc"),
            ("hendrycksTest-abstract_algebra", "abstract algebra", "mmlu"),
        ],
    )
    def test_equal_words(self, name: str, similar: str, benchmark: str) -> None:
        assert task_words(name, benchmark) == task_words(similar, benchmark)

    @pytest.mark.parametrize(
        ("name", "different"), [("high_school_biology", "biology"), ("college_biology", "high_school_biology")]
    )
    def test_different_words(self, name: str, different: str) -> None:
        assert task_words(name, "mmlu") != task_words(different, "mmlu")

    def test_many_similar_tasks_are_one_warning(self) -> None:
        (warning,) = describe_similar_tasks("mmlu", ["mmlu_law", "mmlu_math", "new"], ["law", "math"])
        assert "1 more are similar too" in warning
        assert warning.endswith("suffrage tasks alias mmlu 'mmlu_*' '*'")
        assert describe_similar_tasks("mmlu", ["physics"], ["law", ""]) == []


def test_names_of_tasks_are_removed_on_a_server(postgres_url: str, tmp_path: Path) -> None:
    engine = connect(postgres_url)
    store_table(engine, tmp_path / "first.csv", "biology", "law")
    before = rows_of(engine)
    alias(engine, "x_*", "*")
    store_table(engine, tmp_path / "b.csv", "x_law", model="n")
    assert list(tasks_of(engine)) == ["biology", "law"]
    undo(engine)
    with transaction(engine, exclusive=True) as session:
        remove_task_aliases(session, "quiz", "x_*")
    assert rows_of(engine) == before
    engine.dispose()
