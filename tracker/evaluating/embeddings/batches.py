"""Encode texts in reproducible batches.

The batch size and the longest text of a batch change the last digits of a vector. Batches are therefore cut from all
texts of a benchmark, whether or not they have a stored vector. A batch with any missing vector is computed whole. An
interrupted and resumed run thus ends with the same bytes as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.embeddings.text_encoder import TextEncoder

PORTION = 256
"""Minimum number of prompts per yielded block."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Texts that are encoded together.

    Attributes:
        rows: ``(m,)`` indices into all texts.
        cost: computed tokens, including padding.
    """

    rows: NDArray[np.intp]
    cost: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Portion:
    """Newly computed vectors.

    Attributes:
        prompt_ids: ``(m,)`` int64 keys.
        vectors: ``(m, n_dimensions)`` float32, finite and nonzero.
        n_useless: vectors dropped because they are zero or not finite.
        cost: computed tokens, including padding.
    """

    prompt_ids: NDArray[np.int64]
    vectors: NDArray[np.float32]
    n_useless: int
    cost: int


def make_batches(
    prompt_ids: NDArray[np.int64], lengths: NDArray[np.int64], limit: int | None, batch_size: int
) -> list[Batch]:
    """Cut all texts into batches of similar length, longest first, so that a batch too large for memory fails at once.

    Args:
        prompt_ids: ``(n,)`` keys of the texts' prompts; they break ties in length.
        lengths: ``(n,)`` tokens of each text.
        limit: maximum number of tokens; longer texts are truncated.
        batch_size: texts per batch; the last batch may have fewer.
    """
    read = lengths if limit is None else np.minimum(lengths, limit)
    order = np.lexsort((prompt_ids, -read))
    parts = [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
    return [Batch(rows=rows, cost=int(read[rows[0]]) * len(rows)) for rows in parts]


def find_missing_batches(every: Sequence[Batch], prompt_ids: NDArray[np.int64], stored: Collection[int]) -> list[Batch]:
    """Return the batches in which at least one prompt has no vector yet."""
    lacks = ~np.isin(prompt_ids, np.fromiter(stored, dtype=np.int64, count=len(stored)))
    return [batch for batch in every if lacks[batch.rows].any()]


def embed_batches(
    encoder: TextEncoder,
    texts: Sequence[str],
    prompt_ids: NDArray[np.int64],
    todo: Sequence[Batch],
    stored: Collection[int],
) -> Iterator[Portion]:
    """Yield the missing vectors in blocks of a few hundred.

    Args:
        encoder: computes the vectors.
        texts: all ``n`` texts.
        prompt_ids: ``(n,)`` keys of their prompts.
        todo: batches to compute.
        stored: prompts that already have a vector.
    """
    is_missing = ~np.isin(prompt_ids, np.fromiter(stored, dtype=np.int64, count=len(stored)))
    rows: list[NDArray[np.intp]] = []
    parts: list[NDArray[np.float32]] = []
    cost = 0
    for number, batch in enumerate(todo, start=1):
        vectors = encoder.encode([texts[row] for row in batch.rows])
        kept = is_missing[batch.rows]
        rows.append(batch.rows[kept])
        parts.append(vectors[kept])
        cost += batch.cost
        if sum(map(len, rows)) >= PORTION or number == len(todo):
            yield _make_portion(prompt_ids[np.concatenate(rows)], np.concatenate(parts), cost)
            rows, parts, cost = [], [], 0


def _make_portion(prompt_ids: NDArray[np.int64], vectors: NDArray[np.float32], cost: int) -> Portion:
    useful = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    return Portion(
        prompt_ids=prompt_ids[useful], vectors=vectors[useful], n_useless=int((~useful).sum()), cost=cost
    )  # fmt: skip
