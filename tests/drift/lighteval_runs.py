"""lighteval with stub and tiny models: all kinds of tasks, with a limit, and without details."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from drift.environments import Environment
from drift.harness import Harness, Release, Reported, mean_stderr, perplexity
from drift.lm_eval_tasks import documents

PROGRAMS = Path(__file__).parent / "programs"
STUBS = ("org/alpha-2", "org/beta-3")
"""The stub models, with the logarithm of their perplexity per word."""
TINY = ("org/tiny-1", "org/tiny-2")
"""The models of two layers with random weights."""
TINY_TASKS = ("drift_choice", "drift_few_shot", "drift_generation", "drift_corpus", "drift_last_word")
TASKS = {
    "drift_choice": 12, "drift_generation": 12, "drift_repeats": 8, "drift_corpus": 12, "drift_text": 12,
    "drift_last_word": 12, "drift_few_shot": 12, "drift_parts:a": 5, "drift_parts:b": 9,
}  # fmt: skip
"""Tasks with their numbers of prompts; the last two are parts of a benchmark."""
N_EXAMPLES = 3
CASES: Mapping[str, Sequence[str]] = {
    "all": ["--save-details"],
    "limit": ["--save-details", "--max-samples", "4"],
    "no_details": [],
}


def run(environment: Environment, folder: Path) -> list[Path]:
    """Evaluate every task with two stub models, once for each case, and some with two tiny models.

    The tiny models stand in for the stubs where a release has no custom models.
    """
    _write_data(folder / "data")
    version = tuple(int(part) for part in environment.version.split(".")[:2])
    has_stubs = version >= (0, 9)  # earlier ones have no custom models
    prefix = "" if version >= (0, 13) else "custom|"
    suffix = "" if version >= (0, 11) else "|0"
    tasks = {name: f"{prefix}{name}|{N_EXAMPLES if name == 'drift_few_shot' else 0}{suffix}" for name in TASKS}
    variables = {"DRIFT_DATA": str(folder / "data"), "HF_HOME": str(folder / "hub")}
    environment.run(environment.python, PROGRAMS / "tiny_model.py", *TINY, cwd=folder)
    argument = "model_name" if has_stubs else "pretrained"
    tiny: list[list[str | Path]] = [["accelerate", f"{argument}={name},batch_size=4"] for name in TINY]
    stubs: list[list[str | Path]] = [["custom", name, PROGRAMS / "lighteval_stub.py"] for name in STUBS]
    cases = [(case, stubs if has_stubs else tiny, options, list(tasks.values())) for case, options in CASES.items()]
    if version >= (0, 13):  # 0.11 fails in its cache of responses, which stubs do not have
        cases.append(("tiny", tiny, CASES["all"], [tasks[name] for name in TINY_TASKS]))
    for case, models, options, chosen in cases:
        for model in models:
            environment.run(
                environment.python, PROGRAMS / "lighteval_offline.py", *model, ",".join(chosen),
                "--custom-tasks", PROGRAMS / "lighteval_tasks.py", "--output-dir", folder / case, *options,
                cwd=folder, variables=variables,
            )  # fmt: skip
    return [folder / case for case, *_ in cases]


def _write_data(folder: Path) -> None:
    for name, n_prompts in TASKS.items():
        data = folder / name.replace(":", "_")
        data.mkdir(parents=True)
        n_choices = 2 if name == "drift_choice" else 4
        for split, rows in (
            ("test", documents(name, n_prompts, n_choices)),
            ("validation", documents(f"examples of {name}", N_EXAMPLES, n_choices)),
        ):
            (data / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


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
        Release(requirements=("lighteval", XXHASH), min_compared=550),
        Release(
            requirements=("lighteval[math]==0.11.0", "transformers<5", "datasets<5", "emoji", "syllapy", XXHASH),
            min_compared=412,
        ),
        Release(
            requirements=("lighteval[math]==0.8.1", "transformers<5", "datasets<4", "pyarrow<21", XXHASH),
            min_compared=412,
        ),
        Release(requirements=("lighteval==0.6.2", "transformers<5")),
    ),
    run=run,
    reported=reported,
)
