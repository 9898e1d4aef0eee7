"""lm-evaluation-harness with stub and tiny models: all kinds of tasks, with a limit, and without samples."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from drift.environments import Environment
from drift.harness import Harness, Release, Reported, Rows, mean, mean_stderr, number_of_prompts, perplexity
from drift.lm_eval_tasks import documents, write_tasks

PROGRAMS = Path(__file__).parent / "programs"
STUBS = {"org/alpha": 2.0, "org/beta": 3.0}
"""The stub models and the logarithm of their perplexity per word."""
TINY = ("org/tiny-1", "org/tiny-2")
"""The models of two layers with random weights."""
TINY_TASKS = ("drift_choice", "drift_few_shot", "drift_filters", "drift_text", "drift_last_word")
LIMIT = 4
CASES: Mapping[str, Sequence[str]] = {
    "all": ["--log_samples"],
    "limit": ["--log_samples", "--limit", str(LIMIT)],
    "no_samples": [],
}
OLD_TASKS = ("drift_choice", "drift_text", "drift_last_word")
CORPUS = (
    "bleu",
    "chrf",
    "ter",
    "f1",
    "mcc",
    "matthews_corrcoef",
    "word_perplexity",
    "byte_perplexity",
    "bits_per_byte",
)
"""Metrics that the stored rows do not determine, so that the store must hold the number itself."""


def run(environment: Environment, folder: Path) -> list[Path]:
    """Evaluate every task with two stub models, once for each case, and some with two tiny models."""
    version = tuple(int(part) for part in environment.version.split(".")[:3])
    if version < (0, 4, 0):
        return _run_version_3(environment, folder)
    tasks = folder / "tasks"
    names = write_tasks(tasks, has_groups=version >= (0, 4, 3))
    stubs = {
        name: ["--model", "stub", "--model_args", f"pretrained={name},cost={cost}"] for name, cost in STUBS.items()
    }
    tiny = {
        name: ["--model", "hf", "--model_args", f"pretrained={name}", "--device", "cpu", "--batch_size", "4"]
        for name in TINY
    }
    environment.run(environment.python, PROGRAMS / "tiny_model.py", *TINY, cwd=folder)
    cases = [
        *((case, stubs, options, names) for case, options in CASES.items()),
        ("tiny", tiny, CASES["all"], TINY_TASKS),
    ]
    for case, models, options, chosen in cases:
        for name, model in models.items():
            output = folder / case / name.replace("/", "__")
            environment.run(
                environment.python, PROGRAMS / "lm_eval_stub.py", *model, "--tasks", ",".join(chosen),
                "--include_path", tasks, "--output_path", output, *options,
                cwd=folder, variables={"HF_HOME": str(folder / "hub")},
            )  # fmt: skip
    return [folder / case for case, *_ in cases]


def _run_version_3(environment: Environment, folder: Path) -> list[Path]:
    prompts = folder / "documents.json"
    rows = {name: documents(name) for name in OLD_TASKS}
    prompts.write_text(json.dumps(rows | {"drift_text": [row["text"] for row in rows["drift_text"]]}))
    cases = {"no_samples": 0, "limit": LIMIT}
    for case, limit in cases.items():
        (folder / case).mkdir()
        for model, cost in STUBS.items():
            results = folder / case / f"results_{model.replace('/', '__')}.json"
            program = PROGRAMS / "lm_eval_03_stub.py"
            environment.run(
                environment.python, program, prompts, model, str(cost), str(limit), results, cwd=folder
            )  # fmt: skip
    return [folder / case for case in cases]


def reported(folder: Path) -> Iterator[Reported]:
    """Every number of every results file."""
    for path in sorted(folder.rglob("results*.json")):
        data = json.loads(path.read_text())
        arguments = data["config"]["model_args"]
        if isinstance(arguments, str):
            arguments = dict(pair.split("=") for pair in arguments.split(","))
        has_samples = any(path.parent.glob("*.jsonl"))
        groups = _groups(data)
        for task, values in data["results"].items():
            if task in groups and not has_samples:
                continue  # follows from the task scores, which are compared
            for number in _of_task(arguments["pretrained"], task, values, groups, data):
                yield number
                if number.metric == "perplexity" and number.column == "value" and has_samples:
                    yield replace(number, metric="loglikelihood", statistic=perplexity)


def _groups(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """The tasks of each group; the first releases with groups do not list them."""
    parts_of_groups = {group: parts for group, parts in data.get("group_subtasks", {}).items() if parts}
    if parts_of_groups or "groups" not in data:
        return parts_of_groups
    members = {task: config.get("group") for task, config in data["configs"].items()}
    return {group: [task for task, of in members.items() if group in (of, *(of or []))] for group in data["groups"]}


def _of_task(
    model: str, task: str, values: Mapping[str, Any], groups: Mapping[str, list[str]], data: Mapping[str, Any]
) -> Iterator[Reported]:
    """The numbers of a task or group."""
    parts = tuple(groups.get(task, [task]))
    benchmark = next((group for group, members in groups.items() if parts[0] in members), task)
    config = data.get("configs", {}).get(task, {})
    aggregations = {metric["metric"]: metric.get("aggregation") for metric in config.get("metric_list", [])}
    common = {"model": model, "benchmark": benchmark, "tasks": parts}
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or key in ("sample_len", "samples"):
            continue
        name, _, filter_name = key.partition(",")
        is_error = name.endswith("_stderr")
        suffix = "" if filter_name in ("", "none") else f",{filter_name}"
        metric = name.removesuffix("_stderr")
        number = {**common, "metric": metric + suffix, "name": key, "value": value}
        if is_error:
            if len(parts) == 1:
                yield Reported(**number, statistic=mean_stderr, column="stderr")
            continue
        if aggregations.get(metric) == "median":
            yield Reported(**number, statistic=_upper_median)
            continue
        yield Reported(**number)
        sizes = data.get("n-samples", {}).get(task)
        if sizes and metric not in CORPUS:
            count = {"value": sizes["effective"], "name": f"n-samples of {key}"}
            yield Reported(**number | count, statistic=number_of_prompts, column="n_prompts")


def _upper_median(rows: Rows) -> float:
    return statistics.median_high([mean([trials]) for trials in rows])


HARNESS = Harness(
    name="lm-eval",
    package="lm_eval",
    releases=(
        Release(requirements=("lm-eval[hf]",), min_compared=700),
        Release(requirements=("lm-eval==0.4.2", "transformers<5", "datasets<4"), min_compared=600),
        Release(requirements=("lm-eval==0.4.0", "transformers<5", "datasets<3"), min_compared=600),
        Release(requirements=("lm-eval==0.3.0", "requests", "transformers<5", "datasets<3"), min_compared=100),
    ),
    run=run,
    reported=reported,
    explained={
        (version, "acc,none of drift_median"): "this release does not sort the scores before it takes the median"
        for version in ("0.4.0", "0.4.2")
    },
)
