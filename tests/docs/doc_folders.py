"""Folders in which documentation pages run: small files, made here or taken from the folder of real data."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from doc_pages import run_line, working_folder
from numpy.typing import NDArray

from tracker.simulation.files import FILES, RESULT_FILES, write_files
from tracker.simulation.item_response import Simulation, simulate

Build = Callable[[Path, Path], None]


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


RESULTS = (
    HarnessRun("borealis-2-large", "northlight/borealis-2-large", 9),
    HarnessRun("folio-72b", "quillworks/folio-72b", 9),
    HarnessRun("checkpoint-10000", "saltmarsh/heron-3", 10),
    HarnessRun("checkpoint-20000", "saltmarsh/heron-3", 12, gained=75, lost=40),
    HarnessRun("acorn-7b", "oakhollow/acorn-7b", 12),
)
NIGHTLY = (
    HarnessRun("assistant", "paperlantern/kite-20b", 14),
    HarnessRun("assistant", "paperlantern/kite-20b", 15, gained=12, lost=10),
    HarnessRun("assistant", "paperlantern/kite-20b", 16, gained=15, lost=70),
)


def _empty(folder: Path, shared: Path) -> None:
    """Nothing."""


def _simulated(folder: Path, shared: Path) -> None:
    """The files of `suffrage demo`."""
    write_files(simulate(seed=0), folder)


def _demo(folder: Path, shared: Path) -> None:
    """A store with the simulated benchmark of `suffrage demo`."""
    _simulated(folder, shared)
    with working_folder(folder):
        for file in FILES:
            run_line(file.command(Path()) + (" --no-mlflow" if file in RESULT_FILES else ""))
            Path(file.name).unlink()


def _harness(folder: Path, shared: Path) -> None:
    """`results/` and `nightly/`: output of lm-evaluation-harness on the six tasks of the simulated benchmark."""
    simulation = simulate(seed=0)
    for name, runs in (("results", RESULTS), ("nightly", NIGHTLY)):
        for run in runs:
            _write_run(simulation, run, folder / name / run.model)


def _write_run(simulation: Simulation, run: HarnessRun, target: Path) -> None:
    stamp = f"2026-01-{run.day:02d}T03-04-05.000000"
    target.mkdir(parents=True, exist_ok=True)
    chosen = _responses(simulation, run)
    tasks = sorted(set(simulation.tasks.tolist()))
    for task in tasks:
        samples = [_sample(simulation, int(row), chosen) for row in np.flatnonzero(simulation.tasks == task)]
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


def _real(*names: str) -> Build:
    """Files of the folder of real data, as links."""

    def build(folder: Path, shared: Path) -> None:
        for name in names:
            for path in sorted((shared / "data").glob(name)):
                (folder / path.name).symlink_to(path)

    return build


ORGANIZATIONS = {
    "Meta": ("Llama", "Meta-Llama"),
    "Alibaba": ("Qwen",),
    "Mistral AI": ("Mistral", "Mixtral", "mathstral"),
    "01.AI": ("Yi",),
    "Google": ("gemini", "gemma"),
    "AI21": ("jamba",),
    "Cohere": ("c4ai",),
    "Microsoft": ("Phi",),
    "DeepSeek": ("DeepSeek",),
}
"""Who made the models of MMLU-Pro, by the beginning of their names."""


def _mmlu_pro(folder: Path, shared: Path) -> None:
    """The published results of MMLU-Pro, a part of them, and `models.csv`: who made the models."""
    _real("mmlu_pro/*")(folder, shared)
    with gzip.open(folder / "scores_wide.csv.gz", "rt") as file:
        models = file.readline().strip().split(",")[1:]
    makers = {model: name for model in models for name, starts in ORGANIZATIONS.items() if model.startswith(starts)}
    lines = ["model,organization", *(f"{model},{name}" for model, name in makers.items())]
    (folder / "models.csv").write_text("\n".join(lines) + "\n")


FOLDERS: Mapping[str, Build] = MappingProxyType(
    {
        "empty": _empty,
        "simulated": _simulated,
        "demo": _demo,
        "harness": _harness,
        "mmlu-pro": _mmlu_pro,
        "alpaca-eval": _real("alpaca_eval/*"),
        "leaderboards": _real("leaderboards/*"),
    }
)
"""What builds the folder that a page names in `<!-- run in: NAME -->`."""

REAL = frozenset({"mmlu-pro", "alpaca-eval", "leaderboards"})
"""Folders of real data; pages that use them are skipped where it is missing."""
