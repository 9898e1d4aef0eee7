"""Every recipe of README, docs and help scores right answers of a server 1.0, and wrong ones 0.0."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from oracle import MARK, N_PROMPTS, Oracle, write_benchmarks
from protocol_server import MODEL, ProtocolServer
from recipes import DECIDING, NEUTRAL, OPTIONS, Recipe, documented

import tracker
from tracker.cli.commands.evaluate import command

LOGPROBS = frozenset({"logprobs", "echo", "chat_logprobs"})
COMPLETIONS = frozenset({"completions", "max_tokens"})
CHAT = frozenset({"chat", "max_tokens"})
RECIPES = documented()
BEST = {"judge_score": (10.0, 1.0), "label_probability": (1.0, 1.0)}
"""Score of right and of wrong answers, where it is not 1 and 0."""


@pytest.fixture(scope="module")
def store(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tracker.Store]:
    folder = tmp_path_factory.mktemp("recipes")
    path = folder / "store.db"
    path.write_bytes(sqlite_template.read_bytes())
    with tracker.open(f"sqlite:///{path}") as store:
        write_benchmarks(store, folder)
        yield store


@pytest.fixture(scope="module")
def numbers(store: tracker.Store) -> dict[int, int]:
    """The number of each prompt."""
    table = store.sql("SELECT id, text FROM prompt")
    texts = zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True)
    return {prompt_id: int(MARK.findall(text)[-1]) for prompt_id, text in texts}


@pytest.fixture(scope="module")
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server


def benchmark_of(recipe: Recipe) -> str:
    """The benchmark that the options are about, if no command names it."""
    if recipe.benchmark:
        return {"mmlu_pro": "mmlu"}.get(recipe.benchmark, recipe.benchmark)
    preset, template, metric = (recipe.value(name) for name in ("--preset", "--template", "--metric"))
    if preset or "--extract" in recipe.arguments or "--extract-reference" in recipe.arguments:
        return "math" if preset == "boxed" else "gsm8k"
    if template in ("anli", "hellaswag", "commonsense_qa", "cnn_dailymail"):
        return template
    if template == "written" or metric.startswith("pass@"):
        return "gsm8k"
    if metric == "math_verify":
        return "math"
    if metric or "--ignore" in recipe.arguments or "--judge" in recipe.arguments:
        return "cnn_dailymail"
    return "mmlu" if "--few-shot" in recipe.arguments or template == "smart" else "quiz"


def form_of(recipe: Recipe) -> str:
    if recipe.value("--preset") == "last-number":
        return "number"
    return "sentence" if recipe.value("--method") == "generation" else "answer"


def needs(recipe: Recipe) -> str:
    """The package without which a recipe cannot be run; empty if there is none."""
    values = " ".join(recipe.arguments)
    if "boxed" in values or "math_verify" in values:
        return "math_verify"
    return "rouge_score" if "rouge" in values else ""


@pytest.fixture
def check(
    store: tracker.Store, server: ProtocolServer, numbers: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Runs the command of a recipe, and compares the score of each prompt with what it must be."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("tracker.database.connect", lambda *_, **__: store.engine)

    def check(recipe: Recipe, offers: frozenset[str], is_right: Callable[[int], bool]) -> set[str]:
        benchmark = benchmark_of(recipe)
        oracle = Oracle(benchmark=benchmark, is_right=is_right, form=form_of(recipe))
        server.offers, server.write, server.first, server.echoed = offers, oracle.write, oracle.first, oracle.echoed
        server.requests.clear()
        arguments = [benchmark, "--model", MODEL, "--api-base", server.url, "--again", "--tries", "1"]
        done = CliRunner().invoke(command, [*arguments, *recipe.arguments])
        assert done.exit_code == 0, (recipe, done.output, done.exception)
        runs = re.findall(r": run (\d+)", done.stdout)
        table = store.sql(
            "SELECT prompt_id, name AS metric, value FROM score JOIN metric ON metric.id = metric_id "
            f"WHERE run_id IN ({', '.join(runs)})"
        )
        rows = table.to_pylist()
        assert len({row["prompt_id"] for row in rows}) == N_PROMPTS
        for row in rows:
            expected = BEST.get(row["metric"], (1.0, 0.0))[not is_right(numbers[row["prompt_id"]])]
            tolerance = 0.05 if "_probability" in row["metric"] else 0.0
            assert abs(row["value"] - expected) <= tolerance, (recipe, sorted(offers), numbers[row["prompt_id"]], row)
        return {row["metric"] for row in rows}

    return check


def servers(recipe: Recipe) -> list[frozenset[str]]:
    """What servers offer for which a recipe is meant."""
    if recipe.value("--method") == "loglikelihood" or recipe.value("--template") == "cloze":
        return [COMPLETIONS | LOGPROBS]  # servers have no log-probabilities of texts in conversations
    in_turns = recipe.value("--api") == "chat" or {"--chat", "--judge"} & set(recipe.arguments)
    return [CHAT] if in_turns else [COMPLETIONS] if recipe.value("--api") == "completions" else [COMPLETIONS, CHAT]


def skip_without_package(recipe: Recipe) -> None:
    if needs(recipe) and find_spec(needs(recipe)) is None:
        pytest.skip(f"{needs(recipe)} is not installed")


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_every_recipe_scores_right_answers_1_and_wrong_ones_0(recipe: Recipe, check: Any) -> None:
    """Half of the answers are right, and two thirds of both halves come with reasoning.

    Values of the help are tried on one endpoint here, and on all by `make soak`.
    """
    skip_without_package(recipe)
    kinds = servers(recipe)
    for offers in kinds if recipe.place != "--help" else [kinds[RECIPES.index(recipe) % len(kinds)]]:
        check(recipe, offers | LOGPROBS if offers == COMPLETIONS else offers, lambda n: n % 2 == 0)


@pytest.mark.soak
@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_every_recipe_scores_an_oracle_1_and_a_server_of_wrong_answers_0(
    recipe: Recipe, is_right: bool, check: Any
) -> None:
    skip_without_package(recipe)
    for offers in servers(recipe):
        check(recipe, offers, lambda _: is_right)
        check(recipe, offers | LOGPROBS, lambda _: is_right)


class TestRecipes:
    """The recipes are those of the pages."""

    def test_a_recipe_that_is_added_to_a_page_is_found(self) -> None:
        block = "```console\n$ suffrage evaluate gsm8k --model m --trials 3  # three\n```\n"
        page = f"Use `--preset boxed --chat`, or\n\n{block}"
        first, second = documented({"docs/how-to/evaluate.md": page})[:2]
        assert str(first) == "gsm8k --trials 3"
        assert str(second) == "--preset boxed --chat"

    def test_a_placeholder_without_a_value_here_is_an_error(self) -> None:
        with pytest.raises(KeyError, match="PATTERN"):
            documented({"docs/how-to/evaluate.md": "Or `--extract PATTERN`."})

    def test_every_option_either_decides_scores_or_does_not(self) -> None:
        assert set(OPTIONS) == DECIDING | NEUTRAL
        assert not DECIDING & NEUTRAL

    def test_recipes_name_every_deciding_option(self) -> None:
        arguments = {argument for recipe in RECIPES for argument in recipe.arguments}
        assert DECIDING - arguments == set()
        texts = {str(recipe) for recipe in RECIPES}
        for benchmark in ("anli", "hellaswag", "commonsense_qa", "cnn_dailymail"):
            assert any(f"--template {benchmark} --few-shot" in text for text in texts)
        assert any("smart --few-shot 5 --few-shot-split dev --condition full,answer-only" in text for text in texts)
