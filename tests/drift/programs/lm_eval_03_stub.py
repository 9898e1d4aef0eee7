"""Run lm-evaluation-harness 0.3 with a stub model: `python lm_eval_03_stub.py TASKS.json NAME COST LIMIT RESULTS.json`.

This release has no tasks in files, so that they are classes here. Its results are written as its ``main.py`` does.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from lm_eval import evaluator
from lm_eval.base import LM, MultipleChoiceTask, PerplexityTask, Task, rf
from lm_eval.metrics import mean, perplexity

DOCUMENTS = json.loads(Path(sys.argv[1]).read_text())


class StubModel(LM):
    def __init__(self, name: str, cost: float) -> None:
        super().__init__()
        self.name, self.cost = name, cost

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        return [
            (-len(continuation.split()) * (self.cost + self._share(context, continuation)), False)
            for context, continuation in requests
        ]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        return [-self.cost * len(text.split()) for (text,) in requests]

    def greedy_until(self, requests: list[Any]) -> list[str]:
        return [str(int(10 * self._share(context))) for context, _ in requests]

    def _share(self, *texts: str) -> float:
        digest = hashlib.sha256("\0".join([self.name, *texts]).encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48


class _Local:
    """Documents from the file, without a download."""

    VERSION = 1
    task = ""

    def download(self, *arguments: Any, **options: Any) -> None:
        return

    def has_training_docs(self) -> bool:
        return False

    def has_validation_docs(self) -> bool:
        return False

    def has_test_docs(self) -> bool:
        return True

    def test_docs(self) -> list[Any]:
        return DOCUMENTS[self.task]


class Choice(_Local, MultipleChoiceTask):
    task = "drift_choice"

    def doc_to_text(self, doc: dict[str, Any]) -> str:
        return f"Question: {doc['query']}\nAnswer:"


class Text(_Local, PerplexityTask):
    task = "drift_text"


class LastWord(_Local, Task):
    task = "drift_last_word"

    def doc_to_text(self, doc: dict[str, Any]) -> str:
        return str(doc["query"])

    def doc_to_target(self, doc: dict[str, Any]) -> str:
        return " " + doc["choices"][doc["gold"]]

    def construct_requests(self, doc: dict[str, Any], context: str) -> Any:
        loglikelihood, is_greedy = rf.loglikelihood(context, self.doc_to_target(doc))
        return loglikelihood, is_greedy

    def process_results(self, doc: dict[str, Any], results: Any) -> dict[str, float]:
        loglikelihood, is_greedy = results
        return {"ppl": loglikelihood, "acc": float(is_greedy or loglikelihood > -4)}

    def aggregation(self) -> dict[str, Any]:
        return {"ppl": perplexity, "acc": mean}

    def higher_is_better(self) -> dict[str, bool]:
        return {"ppl": False, "acc": True}


def main(name: str, cost: str, limit: str, results: str) -> None:
    tasks = {task.task: task() for task in (Choice, Text, LastWord)}
    first = int(limit) or None
    output = evaluator.evaluate(lm=StubModel(name, float(cost)), task_dict=tasks, limit=first, bootstrap_iters=100)
    output["config"] = {
        "model": "stub", "model_args": f"pretrained={name}", "num_fewshot": 0, "batch_size": None, "device": None,
        "no_cache": True, "limit": first, "bootstrap_iters": 100, "description_dict": {},
    }  # fmt: skip
    Path(results).write_text(json.dumps(output, indent=2))


if __name__ == "__main__":
    main(*sys.argv[2:])
