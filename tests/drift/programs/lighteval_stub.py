"""A stub model and local tasks for lighteval, which loads this file as its custom model and as its custom tasks.

The variable ``DRIFT_DATA`` names the folder with the data, a folder for each task. The stub assigns each word of a
running text a log-likelihood that its name ends with: ``org/alpha-2`` one of −2, so that its perplexity is exp(2).
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any

from lighteval.metrics.metrics import Metrics
from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

N_REPEATS = 4


class NoCache:
    """Stands in for the cache of responses, which new releases hand their tasks to."""

    def _init_registry(self, registry: Any) -> None:
        return


class StubModel(LightevalModel):
    """Responds to everything by a hash of its name and of the request."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self._cache = NoCache()
        self.name = str(config.model_name)
        self.cost = float(self.name.rpartition("-")[2])

    @property
    def tokenizer(self) -> None:
        return None

    @property
    def add_special_tokens(self) -> bool:
        return False

    @property
    def max_length(self) -> int:
        return 2048

    def cleanup(self) -> None:
        return

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        return [ModelResponse(input=doc.query, text=self._generate(doc)) for doc in docs]

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        return [
            ModelResponse(
                input=doc.query,
                logprobs=[-self.cost - self._share(doc.query, choice) for choice in doc.choices],
                argmax_logits_eq_gold=[False for _ in doc.choices],
                output_tokens=[[1] for _ in doc.choices],
            )
            for doc in docs
        ]

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        return [
            ModelResponse(input=doc.query, logprobs=[-self.cost * len(re.split(r"\s+", doc.query))]) for doc in docs
        ]

    def _generate(self, doc: Doc) -> list[str]:
        texts = []
        for repeat in range(doc.num_samples or 1):
            share = self._share(doc.query, str(repeat))
            right = doc.get_golds()[0]
            texts.append("" if share < 0.1 else right if share < 0.6 else f"{right} or {int(share * 10)}")
        return texts

    def _share(self, *texts: str) -> float:
        """A number in [0, 1) that depends on the texts."""
        digest = hashlib.sha256("\0".join([self.name, *texts]).encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48


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
        name=name, prompt_function=prompt_function, metrics=list(metrics), hf_subset="default",
        hf_repo=os.path.join(os.environ["DRIFT_DATA"], name.replace(":", "_")), hf_avail_splits=["test"],
        evaluation_splits=["test"], few_shots_split=None, generation_size=20, stop_sequence=["\n"], **SUITE,
    )  # fmt: skip


FIELDS = LightevalTaskConfig.__dataclass_fields__
SUITE = {"suite": ["custom"]} if "suite" in FIELDS else {}
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
    task("drift_last_word", choice, Metrics.target_perplexity),
    task("drift_parts:a", choice, Metrics.loglikelihood_acc),
    task("drift_parts:b", choice, Metrics.loglikelihood_acc),
]
