"""Evaluate local tasks with Inspect and a stub model, run as ``python inspect_tasks.py FOLDER``.

Writes each log to ``FOLDER/<format>/<task>.<format>``, and to ``FOLDER/<format>.reported.json`` the results that
Inspect's own reader finds in each log, with the reason for each task that this release does not run.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

os.environ["INSPECT_DISPLAY"] = "none"

import inspect_ai
import inspect_ai.scorer
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import Score, choice, includes, match, metric, scorer
from inspect_ai.solver import multiple_choice, solver

MODEL = "stub/letters"
FORMATS = ("json", "eval")
GRADES = ["C", "C", "I", "C", "P", "I", "C", "N", "I", "C", "C", "I"]
SUBJECTS = ["history", "law", "mathematics"]
NUMBERS = {"C": 3.25, "I": -1.5, "P": 0.5, "N": 2}
NOT_SCORED = {"C": 1, "I": 0, "P": math.nan, "N": math.nan}
WORDS = {"C": "Yes", "I": "no", "P": "0.25", "N": "unsure"}
N = len(GRADES)


@modelapi(name="stub")
def stub() -> Any:
    class Stub(ModelAPI):
        """A model that chooses B for every third question, else A to D in turn."""

        async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
            text = input[-1].content if isinstance(input[-1].content, str) else input[-1].content[0].text
            number = int(text.rpartition("Question ")[2].partition("?")[0]) - 1
            return ModelOutput.from_content(MODEL, f"ANSWER: {'ABCD'[number % 4] if number % 3 else 'B'}")

        async def count_text_tokens(self, text: str) -> int:
            return len(text)

    return Stub


@solver
def replay() -> Any:
    """Put the response of the sample in place of the model's; fail where it is an error."""

    async def solve(state: Any, generate: Any) -> Any:
        responses = state.metadata["responses"]
        response = responses[(state.epoch - 1) % len(responses)]
        if response == "error":
            raise RuntimeError("the stub fails on this sample")
        state.output = ModelOutput.from_content(MODEL, response)
        return state

    return solve


@metric
def extremes() -> Any:
    """A metric with two values."""

    def compute(scores: Any) -> dict[str, float]:
        values = [float(entry.score.value if hasattr(entry, "score") else entry.value) for entry in scores]
        return {"lowest": min(values), "highest": max(values)}

    return compute


def metrics(*names: str) -> list[Any]:
    """Return metrics by name and settings, such as ``stderr cluster=passage``, without those that the release lacks."""
    chosen = []
    for text in names:
        name, *settings = text.split(" ")
        make = extremes if name == "extremes" else getattr(inspect_ai.scorer, name, None)
        arguments: dict[str, Any] = dict(setting.split("=") for setting in settings)
        if "metric" in arguments:
            arguments["metric"] = getattr(inspect_ai.scorer, arguments["metric"])()
        if arguments.get("all") == "False":
            arguments["all"] = False
        with suppress(TypeError):  # a metric or an argument that the release lacks
            chosen.append(make(**arguments))
    return chosen


def epochs(n: int, *reducers: str) -> Any:
    """Return epochs with the reducers that the release has."""
    known = []
    for reducer in reducers:
        with suppress(Exception):
            inspect_ai.Epochs(n, [reducer])
            known.append(reducer)
    return inspect_ai.Epochs(n, known)


def graded(name: str, score_metrics: Any, convert: Any = lambda response: response) -> Any:
    """Return a scorer whose score is the converted response; None for no score."""

    def make() -> Any:
        async def score(state: Any, target: Any) -> Any:
            response = state.output.completion
            value = convert(response)
            return None if value is None else Score(value=value, answer=response)

        return score

    return scorer(metrics=score_metrics, name=name)(make)()


def grades(i: int) -> list[str]:
    """Return the grades of a sample in four epochs."""
    return [GRADES[(i * step + step) % N] for step in (1, 5, 7, 11)]


def with_errors(i: int) -> list[str]:
    return ["C", "error", "I", "C"] if i in (2, 7) else grades(i)


def task(scorers: Any, responses: Any = grades, n: int = N, first_id: Any = "q01", **settings: Any) -> Task:
    """Return a task whose responses are known: of each sample a list by epoch."""
    samples = [
        Sample(
            id=f"q{i + 1:02d}" if first_id == "q01" else first_id + i,
            input=f"Question {i + 1}?",
            target="C",
            metadata={
                "subject": SUBJECTS[i % 3], "passage": f"p{i // 2}", "level": i % 2, "responses": responses(i),
            },
        )
        for i in range(n)
    ]  # fmt: skip
    return Task(dataset=MemoryDataset(samples), solver=[replay()], scorer=scorers, **settings)


def choices() -> Task:
    samples = [
        Sample(id=i + 1, input=f"Question {i + 1}?", choices=["red", "green", "blue", "grey"], target="ABCD"[i % 4])
        for i in range(N)
    ]
    return Task(dataset=MemoryDataset(samples), solver=[multiple_choice(template=LETTERS)], scorer=choice())


LETTERS = "Answer with one of {letters}.\n{choices}\n{question}"


def quality(convert: Any, **by_key: list[Any]) -> Any:
    """Return a scorer whose score is a dictionary, with the metrics of each key."""
    return graded(
        "quality", {key.replace("every", "*"): metrics_of_key for key, metrics_of_key in by_key.items()}, convert
    )


def plain_tasks() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return tasks of one epoch, and the options of their evaluation, by name."""
    spread = metrics("accuracy", "stderr", "std", "var")
    return {
        "choice": (choices, {}),
        "two_scorers": (lambda: task([match(), includes()]), {}),
        "same_scorer_twice": (lambda: task([match(), match(location="any")]), {}),
        "partial": (lambda: task(graded("grade", spread)), {}),
        "two_means": (lambda: task(graded("grade", metrics("accuracy", "mean"))), {}),
        "bootstrap": (lambda: task(graded("grade", metrics("accuracy", "bootstrap_stderr"))), {}),
        "booleans": (lambda: task(graded("right", spread, lambda text: text == "C")), {}),
        "words": (lambda: task(graded("verdict", spread, WORDS.__getitem__)), {}),
        "not_scored": (lambda: task(graded("rating", spread, NOT_SCORED.__getitem__)), {}),
        "no_score": (lambda: task(graded("grade", spread, lambda text: None if text == "N" else text)), {}),
        "own_metric": (lambda: task(graded("rating", metrics("mean", "extremes"), NUMBERS.__getitem__)), {}),
        "intervals": (lambda: task(graded("grade", metrics("accuracy", "ci", "ci_wilson", "frequency"))), {}),
        "one_sample": (lambda: task(graded("grade", spread), n=1), {}),
        "number_ids": (lambda: task(match(), first_id=1), {}),
        "errors": (lambda: task(match(), lambda i: ["error"] if i in (2, 7) else grades(i)), {"fail_on_error": False}),
        "all_errors": (lambda: task(match(), lambda i: ["error"]), {"fail_on_error": False}),
        "stopped": (lambda: task(match(), lambda i: ["error"] if i > 5 else grades(i)), {"fail_on_error": True}),
        "range": (lambda: task(match()), {"limit": (3, 9)}),
        "sample_ids": (lambda: task(match()), {"sample_id": ["q02", "q05"]}),
        "without_samples": (lambda: task(match()), {"log_samples": False}),
    }


def dictionary_tasks() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return tasks whose scores are dictionaries."""
    mean, mean_std = metrics("mean", "stderr"), metrics("mean", "std")
    return {
        "dictionary": (
            lambda: task(
                quality(lambda text: {"style": NUMBERS[text], "right": text, "quality": text == "C"}, every=mean),
                epochs=2,
            ),
            {},
        ),
        "dictionary_with_none": (
            lambda: task(
                quality(lambda text: {"style": NUMBERS[text] if text != "N" else None, "right": text}, every=mean)
            ),
            {},
        ),
        "dictionary_not_scored": (
            lambda: task(
                quality(
                    lambda text: math.nan if text == "P" else {"style": NOT_SCORED[text], "right": text},
                    style=mean,
                    right=mean_std,
                ),
                epochs=2,
            ),
            {},
        ),
        "groups_of_dictionary": (
            lambda: task(
                quality(
                    lambda text: {"style": NUMBERS[text], "right": text},
                    style=metrics("grouped metric=mean group_key=subject", "mean"),
                    right=metrics("grouped metric=mean group_key=level"),
                )
            ),
            {},
        ),
    }


def epoch_tasks() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return tasks of several epochs."""
    spread = metrics("accuracy", "stderr", "std", "var")
    numbers = metrics("mean", "stderr", "std", "var")
    reducers = ("mean", "median", "mode", "max", "pass_at_1", "pass_at_2", "at_least_2", "pass_k_2", "majority")
    return {
        "epochs": (lambda: task(graded("grade", spread), epochs=4), {}),
        "limited": (lambda: task(graded("grade", spread), epochs=2), {"limit": 5}),
        "reducers": (lambda: task(graded("grade", spread), epochs=epochs(4, *reducers[:-1])), {}),
        "one_reducer": (lambda: task(match(), epochs=epochs(4, "mode")), {}),
        "no_reducer": (lambda: task(graded("grade", spread), epochs=epochs(4)), {}),
        "numbers": (lambda: task(graded("rating", numbers, NUMBERS.__getitem__), epochs=2), {}),
        "number_reducers": (
            lambda: task(graded("rating", numbers, NUMBERS.__getitem__), epochs=epochs(4, *reducers)),
            {},
        ),
        "not_scored_reducers": (
            lambda: task(
                graded("rating", numbers, NOT_SCORED.__getitem__),
                epochs=epochs(4, "mean", "mode", "max", "pass_at_2", "pass_at_4"),
            ),
            {},
        ),
        "clusters": (
            lambda: task(graded("grade", metrics("accuracy", "stderr", "stderr cluster=passage")), epochs=2),
            {},
        ),
        "errors_in_epochs": (
            lambda: task(
                graded("grade", [*metrics("grouped metric=accuracy group_key=subject"), *spread]),
                with_errors,
                epochs=epochs(4, "mean", "pass_at_4"),
            ),
            {"fail_on_error": False},
        ),
    }


def group_tasks() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return tasks with metrics of groups of samples."""
    by_subject = "grouped metric=accuracy group_key=subject"
    return {
        "groups": (lambda: task(graded("grade", metrics(by_subject, "accuracy", "stderr cluster=passage"))), {}),
        "groups_only": (
            lambda: task(
                graded("grade", metrics("grouped metric=mean group_key=subject all=groups all_label=overall", "std")),
                epochs=2,
            ),
            {},
        ),
        "groups_of_two_keys": (
            lambda: task(
                graded(
                    "grade",
                    metrics(
                        f"{by_subject} all=False",
                        "grouped metric=accuracy group_key=level",
                        "grouped metric=stderr group_key=subject",
                    ),
                )
            ),
            {},
        ),
        "group_names": (
            lambda: task(graded("grade", metrics(f"{by_subject} name_template=of_{{group_name}}/mean", "accuracy"))),
            {},
        ),
        "groups_reducers": (
            lambda: task(
                graded("grade", metrics(by_subject, "accuracy")), epochs=epochs(4, "mean", "max", "pass_at_2")
            ),
            {},
        ),
    }


def plain(value: Any) -> Any:
    """Return a value as JSON; numbers that are not finite as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def run(name: str, make: Any, options: dict[str, Any], log_format: str, folder: Path) -> dict[str, Any]:
    """Evaluate a task; return what its log reports."""
    new_task = make()
    new_task._name = name
    logs = folder / "logs" / f"{name}_{log_format}"
    evaluate(new_task, model=MODEL, log_dir=str(logs), log_format=log_format, **options)
    (written,) = [path for path in logs.iterdir() if path.suffix == f".{log_format}"]
    log = read_eval_log(str(written))
    results = plain(log.results.model_dump()) if log.results else None
    if log.samples or results:  # early releases write nothing of an evaluation that fails
        (folder / log_format).mkdir(exist_ok=True)
        shutil.move(written, folder / log_format / f"{name}.{log_format}")
    return {"status": log.status, "results": results}


def main(folder: Path) -> None:
    for log_format in FORMATS:
        reported: dict[str, Any] = {"version": inspect_ai.__version__}
        tasks = plain_tasks() | dictionary_tasks() | epoch_tasks() | group_tasks()
        for name, (make, options) in tasks.items():
            try:
                reported[name] = run(name, make, options, log_format, folder)
            except Exception as error:  # noqa: BLE001 - whatever a release fails with is reported
                reported[name] = {"unsupported": f"{type(error).__name__}: {error}"[:300]}
        (folder / f"{log_format}.reported.json").write_text(json.dumps(reported, indent=1))


main(Path(sys.argv[1]))
