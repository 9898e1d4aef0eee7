"""Few-shot examples of lm-evaluation-harness: the same documents as its samplers select."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.datasets.lm_eval.documents import Document, TaskDocuments
from tracker.ingest.datasets.lm_eval.task import LmEvalTask

HARNESS_SEED = 1234
"""Default seed of the harness's draws (``fewshot_random_seed``)."""


class ExampleSampler:
    """Selects the few-shot examples of each document; documents must be passed in their order.

    Args:
        task: the task.
        documents: its documents.
        seed: seed of the draws.

    Raises:
        BadInputError: the task has no source of examples.

    Source: lm-evaluation-harness, ``api/samplers.py``. One generator draws for all documents in turn.
    """

    def __init__(self, task: LmEvalTask, documents: TaskDocuments, *, seed: int = HARNESS_SEED) -> None:
        self.task, self.n = task, task.few_shot.n
        self.split, self.pool = _load_pool(task, documents) if self.n else ("", [])
        # The harness compares the names of the splits, also if both are missing.
        self.removes_document = task.few_shot.split == task.test_split
        self.random = Random(seed)

    def sample(self, document: Document) -> list[Document]:
        """Return the examples of the next document.

        Raises:
            BadInputError: there are too few.
        """
        if not self.n:
            return []
        n_drawn = self.n + self.removes_document
        if self.task.few_shot.sampler == "first_n":
            chosen = list(islice(self._candidates(document), self.n))
        elif len(self.pool) < n_drawn:
            chosen = []
        else:
            drawn = self.random.sample(self.pool, n_drawn)
            chosen = [row for row in drawn if row != document][: self.n] if self.removes_document else drawn
            if len(chosen) < self.n and len(candidates := list(self._candidates(document))) >= self.n:
                chosen = self.random.sample(candidates, self.n)
        if len(chosen) < self.n:
            raise BadInputError(
                self.task.path,
                f"the task {self.task.name} shows {self.n} few-shot examples, but its split has only "
                f"{len(self.pool)} documents.",
            )
        return chosen

    def _candidates(self, document: Document) -> Iterator[Document]:
        """Yield the documents of the pool, without the evaluated one if it may be among them."""
        return (row for row in self.pool if not (self.removes_document and row == document))


def _load_pool(task: LmEvalTask, documents: TaskDocuments) -> tuple[str, list[Document]]:
    """Return the split that examples come from, and its documents."""
    few_shot = task.few_shot
    if few_shot.split is not None:
        return few_shot.split, documents.split(few_shot.split, few_shot.process_docs)
    if few_shot.samples is not None:
        samples: Any = few_shot.samples() if callable(few_shot.samples) else few_shot.samples
        return "few-shot", [dict(sample) for sample in samples]
    split = next(filter(None, (task.training_split, task.validation_split, task.test_split)), None)
    if split is None:
        raise BadInputError(task.path, f"the task {task.name} has no split for few-shot examples.")
    return split, documents.split(split, task.process_docs)
