"""A loaded encoder, which turns texts into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class TextEncoder:
    """A loaded encoder.

    Attributes:
        name: stored name.
        revision: revision of its weights.
        dimensions: length of its vectors.
        limit: maximum number of tokens, including special tokens; None without a limit.
        model: the sentence-transformers model.
        warning: how it computes a vector, if the user did not choose it.
    """

    name: str
    revision: str
    dimensions: int
    limit: int | None
    model: Any
    warning: str = ""

    def lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the length of each text, ``(n,)``, without truncation: in tokens, or in characters without a
        tokenizer.
        """
        from transformers import PreTrainedTokenizerBase

        tokenizer = getattr(self.model[0], "tokenizer", None)
        if not isinstance(tokenizer, PreTrainedTokenizerBase):
            return np.array([len(text) for text in texts], dtype=np.int64)
        return count_tokens(tokenizer, texts)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts in one batch: ``(n, dimensions)`` vectors."""
        vectors = self.model.encode(list(texts), batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)


def count_tokens(tokenizer: Any, texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of tokens of each text, ``(n,)``, including special tokens and without truncation."""
    tokens = tokenizer(list(texts), truncation=False, padding=False, return_attention_mask=False, verbose=False)
    return np.array([len(ids) for ids in tokens["input_ids"]], dtype=np.int64)
