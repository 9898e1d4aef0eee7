"""lighteval with a stub model: all kinds of tasks, with a limit, and without details."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from drift.environments import Environment
from drift.harness import Harness, Release, Reported, mean_stderr, perplexity
from drift.lm_eval_tasks import documents

PROGRAM = Path(__file__).parent / "programs/lighteval_offline.py"
STUB = Path(__file__).parent / "programs/lighteval_stub.py"
MODELS = ("org/alpha-2", "org/beta-3")
"""The stub models, with the logarithm of their perplexity per word."""
TASKS = {
    "drift_choice": 12, "drift_generation": 12, "drift_repeats": 8, "drift_corpus": 12, "drift_text": 12,
    "drift_last_word": 12, "drift_parts:a": 5, "drift_parts:b": 9,
}  # fmt: skip
"""Tasks with their numbers of prompts; the last two are parts of a benchmark."""
CASES: Mapping[str, Sequence[str]] = {
    "all": ["--save-details"],
    "limit": ["--save-details", "--max-samples", "4"],
    "no_details": [],
}


def run(environment: Environment, folder: Path) -> list[Path]:
    """Evaluate every task with both models, once for each case."""
    for name, n_prompts in TASKS.items():
        data = folder / "data" / name.replace(":", "_")
        data.mkdir(parents=True)
        rows = documents(name, n_prompts, 2 if name == "drift_choice" else 4)
        (data / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    prefix = "" if _version(environment) >= (0, 13) else "custom|"
    suffix = "|0" if _version(environment) >= (0, 11) else "|0|0"
    tasks = ",".join(f"{prefix}{name}{suffix}" for name in TASKS)
    variables = {"DRIFT_DATA": str(folder / "data"), "HF_HOME": str(folder / "hub")}
    for case, options in CASES.items():
        for model in MODELS:
            environment.run(
                environment.python, PROGRAM, "custom", model, STUB, tasks, "--custom-tasks", STUB,
                "--output-dir", folder / case, *options, cwd=folder, variables=variables,
            )  # fmt: skip
    return [folder / case for case in CASES]


def _version(environment: Environment) -> tuple[int, ...]:
    return tuple(int(part) for part in environment.version.split(".")[:2])


def reported(folder: Path) -> Iterator[Reported]:
    """Every number of every results file, without the averages over tasks."""
    has_details = (folder / "details").exists()
    for path in sorted(folder.rglob("results_*.json")):
        data = json.loads(path.read_text())
        general = data["config_general"]
        model = general.get("model_name") or general["model_config"]["model_name"]
        for written, values in data["results"].items():
            name = next((part for part in written.split("|") if part in TASKS), None)
            if name is None:
                continue
            benchmark, _, part = name.partition(":")
            for key, value in values.items():
                metric = key.removesuffix("_stderr")
                is_error = key != metric
                number = Reported(
                    model=model, benchmark=benchmark, tasks=(part or benchmark,), metric=metric, name=key, value=value
                )  # fmt: skip
                yield replace(number, statistic=mean_stderr, column="stderr") if is_error else number
                if metric == "ppl" and has_details and not is_error:
                    yield replace(number, metric="loglikelihood", statistic=perplexity)


XXHASH = "xxhash<3.7"
"""Every release hashes texts, which later versions reject."""
HARNESS = Harness(
    name="lighteval",
    package="lighteval",
    releases=(
        Release(requirements=("lighteval", XXHASH), min_compared=412),
        Release(
            requirements=("lighteval[math]==0.11.0", "transformers<5", "datasets<5", "emoji", "syllapy", XXHASH),
            min_compared=364,
        ),
        Release(requirements=("lighteval==0.6.2", "transformers<5")),
    ),
    run=run,
    reported=reported,
)
