"""The same 60 questions in the output of lm-evaluation-harness and in a log of Inspect AI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

STAMP = "2026-01-20T03-04-05.000000"
TASK = "leaderboard_arithmetic"
FEW_SHOT = "Question: What is 1 + 1?\nA. 2\nB. 3\nC. 1\nAnswer: A\n\n"
N_QUESTIONS = 60


def write_two_harnesses(folder: Path) -> None:
    """`harness/`: samples with letters as options, after a few-shot example; `arithmetic.json`: a log."""
    rng = np.random.default_rng(0)
    right = rng.random((2, N_QUESTIONS)) < [[0.65], [0.85]]
    _write_samples(folder / "harness", right[0].tolist())
    _write_log(folder / "arithmetic.json", right[1].tolist())


def _question(number: int) -> tuple[str, list[str]]:
    first, second = 12 + number, 7 + number % 9
    return f"What is {first} × {second}?", [str(first * second), str(first * second + 10), str(first + second)]


def _write_samples(folder: Path, right: list[bool]) -> None:
    folder.mkdir()
    lines = [json.dumps(_sample(number, correct)) for number, correct in enumerate(right)]
    (folder / f"samples_{TASK}_{STAMP}.jsonl").write_text("\n".join(lines))
    summary = {
        "results": {TASK: {"alias": TASK, "acc,none": float(np.mean(right))}},
        "configs": {TASK: {"task": TASK, "output_type": "multiple_choice"}},
        "versions": {TASK: 1.0},
        "n-shot": {TASK: 1},
        "higher_is_better": {TASK: {"acc": True}},
        "config": {"model": "hf", "model_args": "pretrained=oakhollow/acorn-7b", "limit": None},
        "model_name": "oakhollow/acorn-7b",
        "lm_eval_version": "0.4.9",
    }
    (folder / f"results_{STAMP}.json").write_text(json.dumps(summary))


def _sample(number: int, correct: bool) -> dict[str, Any]:
    question, options = _question(number)
    option_list = "\n".join(f"{letter}. {option}" for letter, option in zip("ABC", options, strict=True))
    text = f"Question: {question}\n{option_list}\nAnswer:"
    responses = [["-1.0", "False"], ["-2.0", "False"], ["-3.0", "False"]]
    responses = responses if correct else responses[::-1]
    return {
        "doc_id": number,
        "doc": {"question": text, "choices": ["A", "B", "C"]},
        "target": "0",
        "arguments": [[FEW_SHOT + text, f" {letter}"] for letter in "ABC"],
        "resps": [[response] for response in responses],
        "filtered_resps": responses,
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": f"{number:064x}",
        "acc": float(correct),
    }


def _write_log(path: Path, right: list[bool]) -> None:
    samples = [
        {
            "id": number + 1, "epoch": 1, "input": _question(number)[0], "choices": _question(number)[1], "target": "A",
            "scores": {"choice": {"value": "C" if correct else "I", "answer": "A" if correct else "C"}},
        }
        for number, correct in enumerate(right)
    ]  # fmt: skip
    spec = {
        "eval_id": "e1", "run_id": "r1", "created": "2026-01-21T03:04:05+00:00", "task": "arithmetic",
        "dataset": {"name": "arithmetic", "samples": N_QUESTIONS}, "model": "northlight/borealis-2-large",
        "config": {}, "packages": {"inspect_ai": "0.3.285"},
    }  # fmt: skip
    metrics = {"accuracy": {"name": "accuracy", "value": float(np.mean(right))}}
    results = {
        "total_samples": N_QUESTIONS,
        "completed_samples": N_QUESTIONS,
        "scores": [{"name": "choice", "scorer": "choice", "params": {}, "metrics": metrics}],
    }
    path.write_text(
        json.dumps({"version": 2, "status": "success", "eval": spec, "results": results, "samples": samples})
    )
