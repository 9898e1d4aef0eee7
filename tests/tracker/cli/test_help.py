"""Help of every command: an imperative first line, options that explain themselves, and examples that run."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import replace
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from text_rules import invented_terms, long_sentences

from tracker.cli import COMMANDS, SECTIONS, overview_line, suffrage
from tracker.cli.commands.embed import ingest_vector_file
from tracker.cli.help_text import Command
from tracker.database import connect
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.vectors import EncoderName
from tracker.simulation.files import RESULT_FILES, write_files
from tracker.simulation.item_response import Design, Simulation, simulate

MAX_WORDS = 12
CHOICES = re.compile(r"\[(?:default:\s+)?[\w|-]+\]")
"""Values of options, which keep their names."""
IMPERATIVES = frozenset(
    [
        "Add",
        "Analyze",
        "Back",
        "Check",
        "Choose",
        "Cluster",
        "Compare",
        "Compute",
        "Copy",
        "Delete",
        "Downgrade",
        "Embed",
        "Erase",
        "Evaluate",
        "Exclude",
        "Export",
        "Find",
        "Import",
        "List",
        "Map",
        "Measure",
        "Merge",
        "Move",
        "Open",
        "Plot",
        "Print",
        "Publish",
        "Query",
        "Rank",
        "Remove",
        "Rename",
        "Replace",
        "Restore",
        "Run",
        "Separate",
        "Show",
        "Simulate",
        "Split",
        "Test",
        "Track",
        "Upgrade",
        "Use",
        "Write",
    ]
)
MODELS = ("llama-3.1-70b", "qwen2.5-72b")
ENCODER = EncoderName(name="planted-meaning", revision="", template="question+choices")
PREPARATION = (
    "suffrage runs hide 4",
    "suffrage weights mmlu_pro weights.csv",
    "suffrage analyze smart-filtering gpqa --metric accuracy",
    "suffrage analyze social-choice mmlu_pro --time-limit 1",
    "suffrage analyze social-choice gpqa --metric accuracy --time-limit 1",
)
"""Commands that hide run 4 and record the findings 1 to 4 of the prepared store."""
PARSED_ONLY = {
    "analyze": "tests/tracker/cli/test_demo.py runs every analysis",
    "demo": "it takes long, and tests/tracker/cli/test_demo.py runs it",
    "evaluate": "it needs a model",
    "embed mmlu_pro$": "it needs an encoder",
    "embed mmlu_pro --encoder": "it needs an encoder",
    "gate": "it needs two folders of results, and tests/tracker/cli/test_gate.py runs it",
    "prompts import mmlu cais/mmlu": "it needs the hub",
    "prompts import --lm-eval": "it needs the hub",
    "tasks (?:un)?alias": "tests/tracker/recording/test_task_aliases.py runs them",
    "models (?:un)?merge": "tests/tracker/recording/test_model_merges.py runs them",
    "db copy sqlite:///suffrage.db postgresql": "it needs a server",
    "db backup .* postgresql": "it needs a server",
    "db verify .* postgresql": "it needs a server",
    "seal mmlu_pro(?: --to s3:.*)?$": "tests/tracker/sealing/test_sealing.py runs it, also with an address",
    "unseal mmlu_pro --from": "tests/tracker/sealing/test_sealing.py runs it",
    "ui": "it serves until it is stopped",
    "serve": "it serves until it is stopped",
    "publish": "it takes long, and tests/tracker/cli/test_publish_and_ui.py runs it",
}
"""Beginnings of examples that are not executed, as patterns, and why."""
BACKUP = "suffrage db backup backup.db"
NEED_BACKUP = ("suffrage db check --repair --from", "suffrage db restore", "suffrage db verify")
"""Beginnings of examples that read the file which `BACKUP` writes."""


def walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """List a command and all commands below it, each with its words."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from walk(child, f"{path} {name}")


EVERY = dict(walk(suffrage, "suffrage"))
EXAMPLES = list(
    dict.fromkeys(line for command in EVERY.values() if isinstance(command, Command) for line in command.examples)
)


def is_executed(example: str) -> bool:
    """Whether an example is cheap to run."""
    return not re.match(rf"suffrage (?:{'|'.join(PARSED_ONLY)})", example)


def option_texts(command: click.Command) -> list[str]:
    return [option.help or "" for option in command.params if isinstance(option, click.Option) and not option.hidden]


@cache
def printed_help(path: str) -> str:
    """What a command prints with --help."""
    return CliRunner().invoke(suffrage, [*path.split()[1:], "--help"]).output


@pytest.mark.parametrize("path", EVERY)
class TestEveryCommand:
    def test_begins_with_a_short_imperative_sentence(self, path: str) -> None:
        first, _, rest = (EVERY[path].help or "").partition("\n")
        assert first.endswith(".")
        assert len(first.split()) <= MAX_WORDS
        assert first.split()[0].rstrip(",") in IMPERATIVES
        assert rest[:1] in ("\n", "")

    def test_every_option_has_a_sentence_of_help(self, path: str) -> None:
        assert [text for text in option_texts(EVERY[path]) if not re.match(r"[A-Z`\d]|[a-z-]+:", text)] == []
        assert [text for text in option_texts(EVERY[path]) if not text.endswith(".")] == []

    def test_accepts_h_and_help_with_and_without_a_parent(self, path: str) -> None:
        settings = EVERY[path].context_settings  # click fixes the names of the option at the first use of a command
        assert click.Context(EVERY[path], **settings).help_option_names == ["-h", "--help"]

    def test_ends_with_one_to_three_examples_of_itself(self, path: str) -> None:
        command = EVERY[path]
        assert isinstance(command, Command)
        assert 1 <= len(command.examples) <= 3
        assert [
            example for example in command.examples if not example.startswith(f"{path.removesuffix(' list')}")
        ] == []
        printed = printed_help(path)
        assert printed.rstrip().split("\nExamples:\n")[1].split("\n") == [f"  {line}" for line in command.examples]

    def test_uses_standard_terms_and_short_sentences(self, path: str) -> None:
        printed = printed_help(path)
        assert invented_terms(CHOICES.sub("", printed)) == []
        texts = [EVERY[path].help or "", *option_texts(EVERY[path])]
        assert [sentence for text in texts for sentence in long_sentences(text)] == []


class TestOverview:
    def test_every_command_is_in_one_section(self) -> None:
        names_in_sections = [name for names in SECTIONS.values() for name in names]
        assert sorted(names_in_sections) == sorted(path.stem.replace("_", "-") for path in COMMANDS.glob("[a-z]*.py"))
        assert "Other commands" not in CliRunner().invoke(suffrage, ["--help"]).output

    def test_lists_the_first_line_of_the_help_of_each_command(self) -> None:
        for name in [path.split()[1] for path in EVERY if len(path.split()) == 2]:
            assert (EVERY[f"suffrage {name}"].help or "").split("\n")[0] == overview_line(COMMANDS / f"{name}.py")

    def test_defaults_are_shown(self) -> None:
        printed = " ".join(CliRunner().invoke(suffrage, ["compare", "--help"]).output.split())
        assert "[default: 9999" in printed
        assert "[default: (task for random task effects, else none)]" in printed


def write_scores(path: Path, simulation: Simulation, models: Sequence[str], **columns: str) -> None:
    """Write the scores of the first models, whatever their names, as a long table."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*columns, "model", "prompt_id", "task", "metric", "score"])
        for column, model in enumerate(models):
            for key, task, right in zip(
                simulation.keys, simulation.tasks, simulation.full.right[:, column], strict=True
            ):
                rows.writerow([*columns.values(), model, key, task, "accuracy", int(right)])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Path:
    """A folder with the stores and files that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    simulation = simulate(Design(n_prompts=180, n_easy=24, n_leaked=12, n_groups=6))
    models = (*MODELS, *simulation.models[2:])
    write_files(simulation, folder / "simulated")
    shutil.copy(folder / "simulated/vectors.parquet", folder)
    write_scores(folder / "results.csv", simulation, models)
    (folder / "lm_eval_output").mkdir()
    write_scores(folder / "lm_eval_output/results.csv", simulation, models, benchmark="bbh")
    write_scores(
        folder / "earlier.csv", simulate(Design(n_prompts=180, n_easy=24, n_leaked=12, n_groups=6), seed=1), models[:1]
    )
    weights = [
        f"{key},{task},{1 + row % 3}"
        for row, (key, task) in enumerate(zip(simulation.keys, simulation.tasks, strict=True))
    ]
    (folder / "weights.csv").write_text("\n".join(["prompt_id,task,weight", *weights]))
    (folder / "models.csv").write_text(f"model,organization,open_weights\n{MODELS[0]},Meta,true\n")
    (folder / "questions.csv").write_text("question,key\nHow many legs has a spider?,8\n")
    shutil.copy(sqlite_template, folder / "suffrage.db")
    engine = connect(f"sqlite:///{folder}/suffrage.db")
    for name in ("earlier.csv", "results.csv", "simulated/prompts.parquet"):
        ingest_file(engine, folder / name, ReadOptions(benchmark="mmlu_pro"))
    for file in RESULT_FILES:
        ingest_file(engine, folder / "simulated" / file.name, replace(file.options, benchmark="gpqa"))
    for benchmark in ("mmlu_pro", "gpqa"):
        ingest_vector_file(engine, benchmark, folder / "vectors.parquet", ENCODER)
    engine.dispose()
    with chdir(folder):
        for line in PREPARATION:
            execute(line)
    shutil.copy(folder / "suffrage.db", folder / "results.db")
    return folder


def execute(example: str) -> Result:
    """Run a command line without MLflow."""
    words = shlex.split(example)[1:]
    if "--no-mlflow" not in words and any("--no-mlflow" in option.opts for option in parse(words)[0].params):
        words.append("--no-mlflow")
    result = CliRunner().invoke(suffrage, words, catch_exceptions=False)
    assert result.exit_code == 0 or words[0] in ("doctor", "reproduce"), result.output
    return result


def parse(words: Sequence[str]) -> tuple[click.Command, list[str]]:
    """Return the command of a command line, and the words behind it."""
    command, rest = EVERY["suffrage"], list(words)
    while isinstance(command, click.Group) and rest and rest[0] in command.list_commands(click.Context(command)):
        child = command.get_command(click.Context(command), rest.pop(0))
        assert child is not None
        command = child
    return command, rest


class TestExamples:
    def test_are_parsed(self) -> None:
        for example in EXAMPLES:
            if not is_executed(example) and not example.endswith("--help"):
                command, words = parse(shlex.split(example)[1:])
                assert command.make_context(command.name, words).params, example

    @pytest.mark.parametrize("example", [line for line in EXAMPLES if is_executed(line)])
    def test_run(self, example: str, prepared: Path, tmp_path: Path) -> None:
        folder = tmp_path / "copy"
        shutil.copytree(prepared, folder)
        with chdir(folder):
            if example.startswith(NEED_BACKUP):
                execute(BACKUP)
            assert execute(example).output
