"""Local tasks for lighteval, which loads this file as its custom tasks.

The variable ``DRIFT_DATA`` names the folder with the data, a folder for each task.
"""

from __future__ import annotations

import os
from typing import Any

from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

N_REPEATS = 4


def choice(line: dict[str, Any], task_name: str = "") -> Doc:
    return Doc(task_name=task_name, query=line["query"], choices=line["choices"], gold_index=line["gold"])


def sum_of_numbers(line: dict[str, Any], task_name: str = "") -> Doc:
    return Doc(task_name=task_name, query=line["sum"], choices=[line["total"]], gold_index=0)


def translation(line: dict[str, Any], task_name: str = "") -> Doc:
    return Doc(task_name=task_name, query=line["sum"], choices=[line["translation"]], gold_index=0)


def text(line: dict[str, Any], task_name: str = "") -> Doc:
    return Doc(task_name=task_name, query=line["text"], choices=[""], gold_index=0)


def task(name: str, prompt_function: Any, *metrics: Any) -> LightevalTaskConfig:
    return LightevalTaskConfig(
        name=name, prompt_function=prompt_function, hf_subset="default",
        hf_repo=os.path.join(os.environ["DRIFT_DATA"], name.replace(":", "_")), hf_avail_splits=["validation", "test"],
        evaluation_splits=["test"], few_shots_split="validation", few_shots_select="sequential", generation_size=20,
        stop_sequence=["\n"], **{METRICS: list(metrics)}, **SUITE,
    )  # fmt: skip


FIELDS = LightevalTaskConfig.__dataclass_fields__
SUITE = {"suite": ["custom"]} if "suite" in FIELDS else {}
METRICS = "metrics" if "metrics" in FIELDS else "metric"
REPEATED = (
    [
        metric(sample_params=parameters)
        for metric, parameters in (
            (Metrics.avg_at_n, {"n": N_REPEATS}),
            (Metrics.maj_at_n, {"n": N_REPEATS}),
            (Metrics.pass_at_k, {"k": 2, "n": N_REPEATS}),
        )
    ]
    if hasattr(Metrics, "avg_at_n")
    else [Metrics.exact_match]
)
"""Releases before 0.12 have no metrics of a number of responses that the task chooses."""
TASKS_TABLE = [
    task("drift_choice", choice, Metrics.loglikelihood_acc, Metrics.mrr, Metrics.loglikelihood_f1, Metrics.mcc),
    task("drift_generation", sum_of_numbers, Metrics.exact_match, Metrics.f1_score),
    task("drift_repeats", sum_of_numbers, *REPEATED),
    task("drift_corpus", translation, Metrics.bleu, Metrics.chrf, Metrics.ter),
    task("drift_text", text, Metrics.word_perplexity, Metrics.byte_perplexity, Metrics.bits_per_byte),
    task("drift_few_shot", choice, Metrics.loglikelihood_acc, Metrics.mrr),
    task("drift_last_word", choice, Metrics.target_perplexity),
    task("drift_parts:a", choice, Metrics.loglikelihood_acc),
    task("drift_parts:b", choice, Metrics.loglikelihood_acc),
]
