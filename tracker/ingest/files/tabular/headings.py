"""Roles of table columns, derived from their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "model": ("model", "model_name", "model_id", "llm", "llm_name", "models"),
    "prompt": (
        "prompt_id", "prompt_key", "question_id", "item_id", "instance_id", "sample_id", "example_id", "doc_id",
        "problem_id", "row_id", "id", "uid", "qid", "key", "item", "instance", "example", "idx", "index", "prompt",
    ),
    "benchmark": ("benchmark", "benchmark_name"),
    "task": (
        "task", "task_name", "category", "subject", "subset", "domain", "dataset", "dataset_name", "scenario",
        "scenario_name", "subtask", "exam", "eval", "evaluation", "suite",
    ),
    "text": (
        "text", "question", "prompt_text", "question_text", "problem", "query", "instruction", "input", "prompt",
    ),
    "choices": ("choices", "options", "answer_choices"),
    "answer": (
        "gold", "gold_answer", "correct_answer", "answer", "target", "reference", "reference_answer", "expected",
        "label",
    ),
    "split": ("split",),
    "metric": ("metric", "metric_name", "measure"),
    "score": (
        "score", "value", "result", "metric_value", "correct", "is_correct", "points", "mark", "grade", "passed",
    ),
    "predicted": (
        "predicted", "prediction", "pred", "predicted_answer", "model_answer", "extracted_answer",
    ),
    "probability": ("predicted_probability", "prediction_probability", "confidence"),
    "gold_probability": ("gold_probability", "gold_prob", "p_gold", "gold_confidence"),
    "condition": ("condition",),
    "variant": ("variant", "perturbation", "template"),
    "trial": ("trial", "epoch", "repeat", "repetition", "attempt"),
    "run": ("run", "run_id", "run_name", "run_label"),
    "few_shot": ("few_shot", "num_fewshot", "n_shot", "shots"),
    "stderr": ("stderr", "standard_error", "score_stderr", "se"),
    "n_prompts": ("n_prompts", "n", "n_samples", "num_samples"),
    "filled_by": ("filled_by",),
}  # fmt: skip
CONTENT = ("benchmark", "task", "text", "choices", "answer", "split")
ROW_NUMBERS = ("", "unnamed:_0", "__index_level_0__")


@lru_cache(maxsize=1 << 15)
def normalize_heading(name: str) -> str:
    """Return a column's name in lower case, with underscores for spaces and dashes."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


def assign_roles(names: Sequence[str]) -> dict[str, str]:
    """Return the column of each role. The first listed synonym wins, and each column has one role."""
    by_plain: dict[str, str] = {}
    for name in names:
        by_plain.setdefault(normalize_heading(name), name)
    assigned: dict[str, str] = {}
    for role, synonyms in SYNONYMS.items():
        for synonym in synonyms:
            if synonym in by_plain:
                assigned[role] = by_plain.pop(synonym)
                break
    return assigned


def is_row_number(name: str) -> bool:
    """Return whether a column is the unnamed index that pandas writes."""
    return normalize_heading(name) in ROW_NUMBERS
