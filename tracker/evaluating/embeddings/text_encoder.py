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
        name: as it is stored.
        revision: of its weights.
        dimensions: length of its vectors.
        limit: how many tokens it reads, those that mark begin and end included; None where there is no limit.
        model: the sentence-transformers model.
        warning: how it makes a vector, where the user did not choose it.
    """

    name: str
    revision: str
    dimensions: int
    limit: int | None
    model: Any
    warning: str = ""

    def lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """``(n,)`` length of each text, nothing cut off: in tokens, or in letters where it has no tokens to count."""
        from transformers import PreTrainedTokenizerBase

        tokenizer = getattr(self.model[0], "tokenizer", None)
        if not isinstance(tokenizer, PreTrainedTokenizerBase):
            return np.array([len(text) for text in texts], dtype=np.int64)
        return count_tokens(tokenizer, texts)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """``(n, dimensions)`` vectors of texts that go through the model together."""
        vectors = self.model.encode(list(texts), batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)


def count_tokens(tokenizer: Any, texts: Sequence[str]) -> NDArray[np.int64]:
    """``(n,)`` how many tokens each text is, those that mark begin and end included, nothing cut off."""
    tokens = tokenizer(list(texts), truncation=False, padding=False, return_attention_mask=False, verbose=False)
    return np.array([len(ids) for ids in tokens["input_ids"]], dtype=np.int64)
