"""Task files of lm-evaluation-harness: where tasks and documents come from, and what is rejected."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from click.testing import CliRunner

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import BadInputError, ConflictError, NotFoundError, SelectionError
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import prepare
from tracker.ingest.datasets.lm_eval.ingest_tasks import LmEvalOptions, ingest_lm_eval_tasks
from tracker.ingest.datasets.lm_eval.task_search import TaskFolder
from tracker.queries.prompts import PromptTexts, load_prompts
from tracker.queries.selection import Selection

SETTINGS: dict[str, Any] = {
    "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "test.jsonl", "train": "train.jsonl"}},
    "test_split": "test", "training_split": "train", "output_type": "multiple_choice",
    "doc_to_text": "Q: {{question}}\nA:", "doc_to_choice": ["no", "yes"], "doc_to_target": "label",
    "metric_list": [{"metric": "acc"}],
}  # fmt: skip
CODE = """
def text(document):
    return "Read: " + document["question"]


def scores(document, results):
    return {}
"""

Write = Callable[..., Path]


@pytest.fixture
def engine(sqlite_url: str) -> Any:
    built = connect(sqlite_url)
    yield built
    built.dispose()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a task file beside the documents; a setting of None is left out."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    for split, n in (("test", 4), ("train", 6)):
        rows = [{"question": f"{split} {at}?", "label": at % 2} for at in range(n)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "functions.py").write_text(CODE)

    def write_task(name: str = "yes_or_no", *, tail: str = "", file: str = "", **settings: Any) -> Path:
        path = folder / (file or f"{name}.yaml")
        merged = {"task": name, **SETTINGS, **settings}
        content = {key: value for key, value in merged.items() if value is not None}
        path.write_text(yaml.safe_dump(content) + tail)
        return path

    return write_task


def rendered(engine: sa.Engine, benchmark: str = "yes_or_no", **options: Any) -> list[str]:
    """The complete texts of a benchmark's prompts, in the order of their documents."""
    prepared = prepare(engine, Plan.from_options(benchmark, "model", **options))
    return [prompt.text() for prompt in sorted(prepared.rendered["full"].prompts, key=lambda prompt: prompt.prompt_id)]


def stored(engine: sa.Engine, benchmark: str) -> PromptTexts:
    with transaction(engine, write=False) as session:
        return load_prompts(session, Selection(benchmark=benchmark))


class TestSearch:
    def test_included_settings_are_replaced_by_those_of_the_file(self, write: Write, engine: Any) -> None:
        write("base", file="base_yaml", doc_to_text="Base: {{question}}", num_fewshot=1)
        path = write().parent / "included.yaml"
        path.write_text("include: base_yaml\ntask: included\ndoc_to_text: 'Own: {{question}}'\n")
        ingest_lm_eval_tasks(engine, [str(path)])
        assert rendered(engine, "included")[0].splitlines()[-1] == "Own: test 0?"
        assert rendered(engine, "included")[0].startswith("Own: train")

    def test_groups_tags_and_names_are_searched_in_the_folder(self, write: Write) -> None:
        folder = write("b", tag=["both"]).parent
        write("a", tag="both")
        (folder / "group.yaml").write_text("group: every\ntask:\n  - both\n  - task: c\n    num_fewshot: 3\n")
        write("c")
        tasks = TaskFolder(folder).find("every")
        assert [task.name for task in tasks] == ["a", "b", "c"]
        assert tasks[2].settings["num_fewshot"] == 3
        assert [task.name for task in TaskFolder(folder).find("both")] == ["a", "b"]

    def test_several_tasks_are_separate_benchmarks_or_tasks_of_one(self, write: Write, engine: Any) -> None:
        paths = [str(write("a")), str(write("b", doc_to_text="{{question}}"))]
        assert [each.result.benchmark for each in ingest_lm_eval_tasks(engine, paths)] == ["a", "b"]
        (imported,) = ingest_lm_eval_tasks(engine, paths, benchmark="both")
        assert set(stored(engine, "both").tasks) == {"a", "b"}
        assert imported.result.counts == {("test", "a"): 4, ("test", "b"): 4}

    def test_an_unknown_name_names_the_folder(self, write: Write) -> None:
        with pytest.raises(NotFoundError, match="lm-eval-tasks FOLDER"):
            TaskFolder(write().parent).find("nothing")

    def test_a_file_that_includes_itself_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "loop.yaml").write_text("include: loop.yaml\ntask: loop\n")
        with pytest.raises(BadInputError, match="includes itself"):
            TaskFolder(None).find(str(tmp_path / "loop.yaml"))


class TestDocuments:
    def test_a_folder_replaces_the_data_set_and_labels_may_be_in_a_separate_file(
        self, write: Write, engine: Any, tmp_path: Path
    ) -> None:
        """As PIQA is published: valid.jsonl and valid-labels.lst."""
        path = write(dataset_path="nobody/nothing", dataset_kwargs=None, test_split=None, validation_split="validation")
        source = tmp_path / "published"
        source.mkdir()
        (source / "valid.jsonl").write_text('{"question": "One?"}\n{"question": "Two?"}\n')
        (source / "valid-labels.lst").write_text("1\n0\n")
        ingest_lm_eval_tasks(engine, [str(path)], LmEvalOptions(source=source))
        prompts = stored(engine, "yes_or_no")
        assert (prompts.answers, prompts.splits) == (("B", "A"), ("validation", "validation"))
        (source / "valid-labels.lst").write_text("1\n")
        with pytest.raises(BadInputError, match="1 labels for 2 rows"):
            ingest_lm_eval_tasks(engine, [str(path)], LmEvalOptions(source=source))

    def test_the_files_of_a_configuration_have_its_name(self, write: Write, engine: Any, tmp_path: Path) -> None:
        path = write(dataset_path="nobody/nothing", dataset_name="virology")
        for name in ("anatomy", "virology"):
            (tmp_path / f"data/{name}").mkdir(parents=True)
            (tmp_path / f"data/{name}/test.csv").write_text(f"question,label\nWhat is {name}?,1\n")
        ingest_lm_eval_tasks(engine, [str(path)], LmEvalOptions(source=tmp_path / "data"))
        assert stored(engine, "yes_or_no").texts == ("What is virology?",)

    def test_equal_documents_are_separate_prompts(self, write: Write, engine: Any) -> None:
        path = write()
        (path.parent / "test.jsonl").write_text('{"question": "Same?", "label": 1}\n' * 3)
        ingest_lm_eval_tasks(engine, [str(path)])
        assert rendered(engine) == ["Q: Same?\nA:"] * 3


class TestImport:
    def test_the_same_again_changes_nothing_and_other_texts_are_a_conflict(self, write: Write, engine: Any) -> None:
        path = str(write(num_fewshot=2))
        ingest_lm_eval_tasks(engine, [path])
        assert ingest_lm_eval_tasks(engine, [path])[0].result.changes.already_known
        with pytest.raises(ConflictError, match="yes_or_no@VERSION"):
            ingest_lm_eval_tasks(engine, [path], LmEvalOptions(few_shot=0))
        ingest_lm_eval_tasks(engine, [path], LmEvalOptions(few_shot=0), benchmark="yes_or_no@zero")
        assert rendered(engine, "yes_or_no@zero")[1] == "Q: test 1?\nA:"

    def test_a_dry_run_stores_nothing(self, write: Write, engine: Any) -> None:
        (imported,) = ingest_lm_eval_tasks(engine, [str(write())], dry_run=True)
        assert imported.result.n_prompts == 4
        with pytest.raises(NotFoundError):
            stored(engine, "yes_or_no")

    def test_only_evaluated_prompts_are_selected_with_any_template(self, write: Write, engine: Any) -> None:
        ingest_lm_eval_tasks(engine, [str(write(num_fewshot=2))])
        assert len(stored(engine, "yes_or_no").texts) > 4
        assert len(rendered(engine)) == len(rendered(engine, template="multiple_choice")) == 4
        assert rendered(engine, template="multiple_choice")[0] == "test 0?\nA. no\nB. yes\nAnswer:"

    def test_options_that_the_task_determines_are_rejected(self, write: Write, engine: Any) -> None:
        ingest_lm_eval_tasks(engine, [str(write())])
        for options in ({"few_shot": 2, "few_shot_split": "train"}, {"method": "letters"}, {"ignore": ("case",)}):
            with pytest.raises(SelectionError, match="as in lm-evaluation-harness"):
                rendered(engine, **options)

    def test_code_runs_only_with_trust(self, write: Write, engine: Any) -> None:
        path = str(write(doc_to_text=None, tail="doc_to_text: !function functions.text\n"))
        with pytest.raises(BadInputError, match=r"functions\.text.*\n.*--trust-code"):
            ingest_lm_eval_tasks(engine, [path])
        ingest_lm_eval_tasks(engine, [path], LmEvalOptions(trust_code=True))
        assert rendered(engine)[0] == "Read: test 0?"


class TestErrors:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"output_type": "loglikelihood_rolling"}, "output type loglikelihood_rolling, which is not supported"),
            ({"class": "x"}, "is a task in Python"),
            ({"unsafe_code": True}, "runs generated code"),
            ({"repeats": 4}, "repeats above 1"),
            ({"metric_list": [{"metric": "bleu"}]}, r"no supported metric \(it has bleu\)"),
            ({"filter_list": [{"name": "f", "filter": [{"function": "regex"}]}]}, "uses the filter regex"),
            ({"fewshot_config": {"sampler": "balanced"}}, "uses the sampler 'balanced'"),
            ({"fewshot_config": {"kind": "x"}}, "unknown field of fewshot_config: kind"),
            ({"doc_to_text": "{{missing}}"}, "document 0 of the split test of yes_or_no: .*'missing' is undefined"),
            ({"doc_to_text": "{{''.__class__.__mro__}}"}, "unsafe"),
            ({"doc_to_choice": "{{question}}"}, "doc_to_choice is not a list"),
            ({"test_split": "dev"}, "has no split 'dev'"),
            ({"test_split": None}, "neither a test_split nor a validation_split"),
            ({"num_fewshot": 7}, "shows 7 few-shot examples, but its split has only 6"),
            ({"dataset_path": None}, "has no dataset_path"),
        ],
    )
    def test_a_task_that_cannot_be_imported(
        self, write: Write, engine: Any, settings: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(BadInputError, match=message):
            ingest_lm_eval_tasks(engine, [str(write(**settings))])
        with pytest.raises(NotFoundError):
            stored(engine, "yes_or_no")

    def test_scores_in_python_are_rejected_even_with_trust(self, write: Write, engine: Any) -> None:
        path = str(write(tail="process_results: !function functions.scores\n"))
        with pytest.raises(BadInputError, match=r"scores in Python \(functions\.scores\)"):
            ingest_lm_eval_tasks(engine, [path], LmEvalOptions(trust_code=True))

    def test_tasks_that_no_run_can_evaluate_together(self, write: Write, engine: Any) -> None:
        paths = [str(write("a")), str(write("b", output_type="loglikelihood", metric_list=None))]
        with pytest.raises(SelectionError, match="differ in output_type"):
            ingest_lm_eval_tasks(engine, paths, benchmark="both")

    def test_a_file_that_is_no_task(self, tmp_path: Path) -> None:
        for content, message in (
            ("a: [", "line 2: is not valid YAML"),
            ("- a\n", "no YAML mapping"),
            ("a: 1\n", "`task`"),
        ):
            (tmp_path / "t.yaml").write_text(content)
            with pytest.raises(BadInputError, match=message):
                TaskFolder(None).find(str(tmp_path / "t.yaml"))


class TestCommand:
    def run(self, url: str, *words: str) -> Any:
        return CliRunner().invoke(suffrage, ["prompts", "import", *words, "--database", url])

    def test_it_prints_the_next_command_with_the_temperature_of_the_task(self, write: Write, sqlite_url: str) -> None:
        sampled = {"generation_kwargs": {"do_sample": True, "temperature": 0.7}}
        written = {"output_type": "generate_until", "doc_to_choice": None, "metric_list": None, **sampled}
        result = self.run(sqlite_url, "--lm-eval", str(write("open", **written)))
        assert "open: 4 prompts (test 4); 4 new prompts" in result.stderr
        assert "Next: suffrage evaluate open --model MODEL --temperature 0.7" in result.stderr

    def test_options_without_effect_are_rejected(self, write: Write, sqlite_url: str) -> None:
        path = str(write())
        assert (
            "--map and similar options have no effect"
            in self.run(sqlite_url, "--lm-eval", path, "--map", "text=question").stderr
        )
        assert "need --lm-eval TASK" in self.run(sqlite_url, "quiz", path, "--few-shot", "3").stderr
        assert "BENCHMARK and SOURCE are required" in self.run(sqlite_url, "quiz").stderr
