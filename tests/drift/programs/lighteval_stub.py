"""A stub model for lighteval, which loads this file as its custom model.

The stub assigns each word of a running text a log-likelihood that its name ends with: ``org/alpha-2`` one of −2, so
that its perplexity is exp(2).
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc


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
