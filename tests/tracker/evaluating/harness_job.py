"""The job of the process in which lm-evaluation-harness runs; one process serves all tests that compare with it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import harness_peer
from filelock import FileLock
from harness_peer import task_config
from language_model_files import corpus
from lm_eval_task_files import ORDINARY, TEXTS, write_task

from tracker.ingest.datasets.lm_eval.task_search import find_installed_tasks

FAMILIES = ("gpt2", "llama", "qwen2", "t5")
N_PROMPTS, N_EXAMPLES, LABELS = 8, 5, ("A", "B", "C", "D")
QUESTION_FORMAT = "Question: {{question}}\nAnswer:"
OPTIONS_FORMAT = (
    "Question: {{question}}\n{% for option in options %}{{ 'ABCD'[loop.index0] }}. {{ option }}\n{% endfor %}Answer:"
)
FILE_FAMILY = "llama"
"""Family of the model that evaluates the task files."""
ODD = {
    "a text that ends with spaces": ("What is lomi? ", "nabe"),
    "a text that ends with several spaces": ("What is lomi?   ", "nabe"),
    "a text that ends with a new line": ("What is lomi?\n", "nabe"),
    "an option behind a new line": ("What is lomi?", "\nnabe"),
    "a text that begins as the tokenizer would begin it": ("<s>What is lomi?", " nabe"),
    "nothing before the option": ("", "nabe"),
    "an option of signs": ("What is lomi?", " ... (1)"),
    "letters that the tokenizer has not seen": ("Что такое ломи?", " день"),
    "an option that goes on with the last word": ("What is lo", "mi"),
}


def make_rows(n: int) -> list[dict[str, Any]]:
    """Questions with four options each."""
    chance = random.Random(7)
    words = sorted({word for line in corpus(200) for word in line.split() if word.isalpha()})
    return [
        {
            "question": " ".join(chance.choices(words, k=chance.randint(4, 14))) + "?",
            "options": [" ".join(chance.choices(words, k=k)) for k in chance.sample((1, 1, 2, 3, 5), 4)],
            "gold": chance.randrange(4),
        }
        for _ in range(n)
    ]


def long_pair() -> tuple[str, str]:
    """A context longer than the model reads, and a continuation."""
    return " ".join(make_rows(1)[0]["question"] for _ in range(120)), " Z"


def load_harness_results(folder_of_all_workers: Path, language_model_folders: dict[str, Path]) -> dict[str, Any]:
    """What the harness found: ``families`` by model, and ``files`` by task file.

    The folder ``peer`` of all workers has the task files.
    """
    folder = folder_of_all_workers / "peer"
    with FileLock(f"{folder}.lock"):
        if not (folder / "found.json").exists():
            folder.mkdir(exist_ok=True)
            rows = make_rows(N_PROMPTS + N_EXAMPLES)
            prompts = folder / "prompts.jsonl"
            prompts.write_text("".join(json.dumps(row) + "\n" for row in rows[N_EXAMPLES:]))
            examples = rows[:N_EXAMPLES]
            letters = "{{['A', 'B', 'C', 'D']}}"
            job = {
                "models": {family: str(language_model_folders[family]) for family in FAMILIES},
                "tasks": [
                    task_config("texts", prompts, examples, "{{options}}", QUESTION_FORMAT),
                    task_config("letters", prompts, examples, letters, OPTIONS_FORMAT),
                ],
                "requests": [*ODD.values(), long_pair()],
                "stored": FAMILIES[0],
                "files": write_file_job(folder / "tasks", ORDINARY, language_model_folders[FILE_FAMILY]),
            }
            run_harness(folder, job)
    results: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return results


def write_file_job(folder: Path, names: tuple[str, ...], model: Path) -> dict[str, Any]:
    """Write task files with documents; returns the job that evaluates them."""
    installed = find_installed_tasks()
    assert installed is not None
    folder.mkdir()
    for name in names:
        write_task(folder, name, installed)
    return {"model": str(model), "folder": str(folder), "tasks": list(names), "texts": TEXTS}


def run_harness(folder: Path, job: dict[str, Any]) -> None:
    """Run a job; ``found.json`` in the folder has the results."""
    (folder / "job.json").write_text(json.dumps(job))
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hub")}
    ran = subprocess.run(
        [sys.executable, harness_peer.__file__, str(folder / "job.json"), str(folder / "found.json")],
        env=os.environ | offline | {"OMP_NUM_THREADS": "1"}, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4_000:]
