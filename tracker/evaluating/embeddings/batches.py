"""Texts through an encoder in batches that are always the same.

How many texts go through a model together, and how long the longest is, moves a vector in its last digits. So
batches are cut from all texts of a benchmark, whatever is stored already, and a batch of which any vector is missing
is computed whole: what was stopped and run again ends with the bytes of a run that was not stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.embeddings.text_encoder import TextEncoder

PORTION = 256
"""Prompts that are handed over together, at least."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Texts that go through the encoder together.

    Attributes:
        rows: ``(m,)`` their places among all texts.
        cost: tokens that are computed, padding included.
    """

    rows: NDArray[np.intp]
    cost: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Portion:
    """Vectors that were missing.

    Attributes:
        prompt_ids: ``(m,)`` int64 keys.
        vectors: ``(m, n_dimensions)`` float32, finite and not zero.
        n_useless: vectors left out because they are not.
        cost: tokens that were computed for it.
    """

    prompt_ids: NDArray[np.int64]
    vectors: NDArray[np.float32]
    n_useless: int
    cost: int


def make_batches(
    prompt_ids: NDArray[np.int64], lengths: NDArray[np.int64], limit: int | None, batch_size: int
) -> list[Batch]:
    """All texts in batches of like length, the longest first: a batch too large for the machine fails at once.

    Args:
        prompt_ids: ``(n,)`` keys of the texts' prompts; they break ties of length.
        lengths: ``(n,)`` tokens of each.
        limit: tokens beyond which a text is cut.
        batch_size: texts in each; the last has fewer.
    """
    read = lengths if limit is None else np.minimum(lengths, limit)
    order = np.lexsort((prompt_ids, -read))
    parts = [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
    return [Batch(rows=rows, cost=int(read[rows[0]]) * len(rows)) for rows in parts]


def find_missing_batches(every: Sequence[Batch], prompt_ids: NDArray[np.int64], stored: Collection[int]) -> list[Batch]:
    """The batches of which some prompt has no vector yet."""
    lacks = ~np.isin(prompt_ids, np.fromiter(stored, dtype=np.int64, count=len(stored)))
    return [batch for batch in every if lacks[batch.rows].any()]


def embed_batches(
    encoder: TextEncoder,
    texts: Sequence[str],
    prompt_ids: NDArray[np.int64],
    todo: Sequence[Batch],
    stored: Collection[int],
) -> Iterator[Portion]:
    """The missing vectors, some hundred at a time.

    Args:
        encoder: makes them.
        texts: ``n`` of them.
        prompt_ids: ``(n,)`` their prompts.
        todo: what to compute.
        stored: prompts that have a vector already.
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
