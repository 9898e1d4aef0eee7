"""Prompts with nearly the same text, by the pairs of neighbouring words that two texts share."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.sql import tables

WORD = re.compile(r"\w+")
LEAST_SIMILARITY = 0.5
"""Share of word pairs from which two texts are nearly the same."""


@dataclass(frozen=True, kw_only=True)
class TextIndex:
    """The word pairs of texts.

    Attributes:
        prompt_ids: ``(n,)`` int64, ascending.
        sizes: ``(n,)`` number of distinct word pairs of each text.
        starts: ``(n + 1,)`` where the word pairs of each text begin in ``codes``.
        codes: word pairs of all texts, as numbers from 0.
        text_starts: where the texts with each word pair begin in ``texts``.
        texts: places of the texts with each word pair.
    """

    prompt_ids: NDArray[np.int64]
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    codes: NDArray[np.int64]
    text_starts: NDArray[np.int64]
    texts: NDArray[np.int64]

    @classmethod
    def build(cls, prompt_ids: Sequence[int], texts: Sequence[str]) -> TextIndex:
        """Build the index of some texts; ``prompt_ids`` ascend."""
        parts = [np.array(sorted(find_word_pairs(text)), dtype=np.int64) for text in texts]
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        values = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        _, codes = np.unique(values, return_inverse=True)
        owners = np.repeat(np.arange(len(parts)), sizes)
        counts = np.bincount(codes) if len(codes) else np.empty(0, dtype=np.int64)
        return cls(
            prompt_ids=np.array(prompt_ids, dtype=np.int64),
            sizes=sizes,
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            codes=codes.astype(np.int64),
            text_starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            texts=owners[np.argsort(codes, kind="stable")].astype(np.int64),
        )

    def find_similar(self, prompt_id: int, limit: int) -> list[tuple[int, float]]:
        """Return prompts with nearly the same text, the most similar first.

        Args:
            prompt_id: key of a prompt.
            limit: maximum number of prompts.

        Returns:
            Their keys, and the word pairs that both texts have, as a share of those that either has (Jaccard).
        """
        place = int(np.searchsorted(self.prompt_ids, prompt_id))
        if place >= len(self.prompt_ids) or self.prompt_ids[place] != prompt_id:
            return []
        codes = self.codes[self.starts[place] : self.starts[place + 1]].tolist()
        parts = [self.texts[self.text_starts[code] : self.text_starts[code + 1]] for code in codes]
        if not parts:
            return []
        shared = np.bincount(np.concatenate(parts), minlength=len(self.prompt_ids))
        similarity = shared / np.maximum(self.sizes + self.sizes[place] - shared, 1)
        similarity[place] = 0.0
        places = np.flatnonzero(similarity >= LEAST_SIMILARITY)
        nearest = places[np.argsort(-similarity[places], kind="stable")][:limit]
        return [(int(self.prompt_ids[near]), float(similarity[near])) for near in nearest]


def find_word_pairs(text: str) -> set[int]:
    """Return a number for each pair of neighbouring words of a text, with its beginning and its end as words.

    Upper and lower case, and what is between words, make no difference.
    """
    words = ["", *WORD.findall(text.casefold()), ""]
    if len(words) == 2:
        return set()
    return {zlib.crc32(f"{first} {second}".encode()) for first, second in pairwise(words)}


def load_text_index(session: Session, benchmark_id: int) -> TextIndex:
    """Return the index of the texts of a benchmark's prompts."""
    prompt = tables.prompt.c
    rows = session.execute(
        sa.select(prompt.id, prompt.text)
        .join(tables.task, tables.task.c.id == prompt.task_id)
        .where(tables.task.c.benchmark_id == benchmark_id, prompt.text.is_not(None))
        .order_by(prompt.id)
    ).all()
    return TextIndex.build([row.id for row in rows], [row.text for row in rows])
