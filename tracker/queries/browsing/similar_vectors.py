"""Find prompts with similar vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracker.queries.embeddings import Embeddings


@dataclass(frozen=True, kw_only=True, eq=False)
class SimilarVectors:
    """Finds the prompts whose vectors are most similar to that of a prompt.

    Attributes:
        vectors: the vectors of a benchmark.
    """

    vectors: Embeddings

    @cached_property
    def _lengths(self) -> NDArray[np.float64]:
        E = self.vectors.E
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", E, E, dtype=np.float64)))

    def find(self, prompt_id: int, n: int) -> list[tuple[int, float]]:
        """Return the keys of the other prompts with the largest cosine similarity, with it; equal ones by key.

        A vector of zeros has similarity 0. A prompt without a vector has no similar prompts.

        Args:
            prompt_id: key of the prompt.
            n: number of prompts.
        """
        keys, E = self.vectors.prompt_ids, self.vectors.E
        place = int(np.searchsorted(keys, prompt_id))
        if place == len(keys) or keys[place] != prompt_id:
            return []
        lengths = self._lengths * self._lengths[place]
        cosines = np.zeros(len(E))
        np.divide((E @ E[place]).astype(np.float64), lengths, out=cosines, where=lengths > 0)
        cosines[place] = -np.inf
        n = min(n, len(keys) - 1)
        if not n:
            return []
        candidates = np.flatnonzero(cosines >= np.partition(cosines, -n)[-n])
        nearest = candidates[np.argsort(-cosines[candidates], kind="stable")[:n]]
        return [(int(keys[at]), float(cosines[at])) for at in nearest.tolist()]
