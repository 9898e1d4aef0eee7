"""Output of lm-evaluation-harness on the simulated benchmark, and a stand-in for its command."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tracker.simulation.item_response import Simulation, simulate


@dataclass(frozen=True)
class HarnessRun:
    """A run in the output of the harness.

    Attributes:
        model: its name.
        source: the simulated model whose responses it has.
        day: of January 2026.
        gained: prompts that it answers correctly and the source did not.
        lost: prompts that the source answered correctly and it does not.
    """

    model: str
    source: str
    day: int
    gained: int = 0
    lost: int = 0


def run_lm_eval(arguments: Sequence[str]) -> str:
    """Write what the harness logs for the documents that `--samples` lists: the responses of a simulated model."""
    parser = argparse.ArgumentParser("lm_eval", allow_abbrev=False, exit_on_error=False)
    for option in ("--model", "--model_args", "--tasks", "--samples", "--output_path"):
        parser.add_argument(option, required=True)
    parser.add_argument("--log_samples", action="store_true", required=True)
    options = parser.parse_args(arguments)
    documents = json.loads(Path(options.samples).read_text())
    tasks = options.tasks.split(",")
    assert set(tasks) <= set(documents), "the harness evaluates every document of a task that is missing"
    run = HarnessRun(options.model_args.removeprefix("pretrained="), "saltmarsh/heron-3", 20)
    folder = Path(options.output_path) / run.model.replace("/", "__")
    write_run(simulate(seed=0), run, folder, {task: documents[task] for task in tasks})
    return ""


def write_run(
    simulation: Simulation, run: HarnessRun, target: Path, documents: Mapping[str, Sequence[int]] | None = None
) -> None:
    """Write results and samples of the simulated benchmark, of all documents or of those numbered by task."""
    stamp = f"2026-01-{run.day:02d}T03-04-05.000000"
    target.mkdir(parents=True, exist_ok=True)
    chosen = _responses(simulation, run)
    tasks = sorted(set(simulation.tasks.tolist()) if documents is None else documents)
    for task in tasks:
        rows = np.flatnonzero(simulation.tasks == task)
        rows = rows if documents is None else rows[list(documents[task])]
        samples = [_sample(simulation, int(row), chosen) for row in rows]
        (target / f"samples_{task}_{stamp}.jsonl").write_text("".join(json.dumps(item) + "\n" for item in samples))
    summary = {
        "results": {task: {"alias": task} for task in tasks},
        "group_subtasks": {"reasoning": tasks},
        "configs": {task: {"task": task, "output_type": "multiple_choice"} for task in tasks},
        "versions": dict.fromkeys(tasks, 1.0),
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": {task: {"acc": True} for task in tasks},
        "config": {"model": "hf", "model_args": f"pretrained={run.model}", "limit": None},
        "model_name": run.model,
        "date": 1767236645.0 + 86400 * (run.day - 1),
        "lm_eval_version": "0.4.9",
    }
    (target / f"results_{stamp}.json").write_text(json.dumps(summary))


def _responses(simulation: Simulation, run: HarnessRun) -> NDArray[np.int64]:
    """The option that the model chooses for each prompt."""
    rng = np.random.default_rng(run.day)
    correct = np.array([question.answer for question in simulation.questions])
    chosen = simulation.full.predicted[:, simulation.models.index(run.source)].copy()
    wrong, right = np.flatnonzero(chosen != correct), np.flatnonzero(chosen == correct)
    gained = rng.choice(wrong, run.gained, replace=False)
    lost = rng.choice(right, run.lost, replace=False)
    chosen[gained], chosen[lost] = correct[gained], (correct[lost] + 1) % 2
    return chosen


def _sample(simulation: Simulation, row: int, chosen: NDArray[np.int64]) -> dict[str, object]:
    """A line of the harness's log: the log-likelihood of each option, and whether the likeliest is right."""
    question = simulation.questions[row]
    responses = [["-0.5" if option == chosen[row] else "-2.0", "False"] for option in range(len(question.choices))]
    return {
        "doc_id": int(np.sum(simulation.tasks[:row] == simulation.tasks[row])),
        "doc": {"question": question.text, "choices": list(question.choices), "gold": question.answer},
        "target": str(question.answer),
        "arguments": {
            f"gen_args_{option}": {"arg_0": f"{question.text}\nAnswer:", "arg_1": f" {text}"}
            for option, text in enumerate(question.choices)
        },
        "resps": [[response] for response in responses],
        "filtered_resps": responses,
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": simulation.keys[row],
        "acc": float(chosen[row] == question.answer),
    }
