"""The similarities of two rows, one object each: what tests, summaries and figures know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.lattices import (
    MAX_COLUMNS,
    MAX_COSINE_COLUMNS,
    Lattice,
    cosine_lattice,
    hamming_lattice,
    jaccard_lattice,
)
from analyses.numerics.similarity.pairs.pair_counts import BOTH_EMPTY, DISJOINT_ONES, SAME_ONES

Counts = NDArray[Any]
"""int64, or float64 where rows have weights."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Similarity:
    """One similarity of two rows.

    Attributes:
        name: under which it is reported.
        choice: the option that selects it; variants of one similarity share it, and their ``lattice``.
        title: in a sentence.
        lattice: its values in binary tables, from the number of columns and the `BitTable.overlaps`.
        adjust: changes ``(n, m)`` counts at the values, in place, with the ``(n, n_sides)`` side counts; None: as is.
        convention: the difference from the other variants of its choice.
        concerns: the pairs or rows for which variants differ.
        max_columns: columns up to which it is counted exactly in binary tables.
        is_binary_only: whether it exists for scores of 0 and 1 only.
        is_default: whether it is computed without being selected.
        invariant_mean: why no draw changes its mean where rows share equally many cells; empty if draws do.
    """

    name: str
    choice: str
    title: str
    lattice: Callable[[int, NDArray[np.int64]], Lattice]
    adjust: Callable[[Counts, Counts], None] | None = None
    convention: str = ""
    concerns: str = ""
    max_columns: int = MAX_COLUMNS
    is_binary_only: bool = True
    is_default: bool = True
    invariant_mean: str = ""


def _drop_zero_rows(counts: Counts, sides: Counts) -> None:
    counts[:, 0] = sides[:, DISJOINT_ONES]


def _put_empty_pairs_at_zero(counts: Counts, sides: Counts) -> None:
    counts[:, 0] += sides[:, BOTH_EMPTY]
    counts[:, -1] = sides[:, SAME_ONES]


SIMILARITIES = (
    Similarity(
        name="hamming",
        choice="hamming",
        title="Hamming",
        lattice=hamming_lattice,
        invariant_mean="the same in every table with these column sums: a column with m ones among n prompts adds "
        "C(m, 2) + C(n - m, 2) agreements wherever its ones are",
    ),
    Similarity(
        name="cosine",
        choice="cosine",
        title="cosine",
        lattice=cosine_lattice,
        convention="zero rows = 0",
        concerns="prompts that no model got right",
        max_columns=MAX_COSINE_COLUMNS,
        is_binary_only=False,
    ),
    Similarity(
        name="cosine_nonzero",
        choice="cosine",
        title="cosine",
        lattice=cosine_lattice,
        adjust=_drop_zero_rows,
        convention="no zero rows",
        concerns="prompts that no model got right",
        max_columns=MAX_COSINE_COLUMNS,
        is_binary_only=False,
    ),
    Similarity(
        name="jaccard",
        choice="jaccard",
        title="Jaccard",
        lattice=jaccard_lattice,
        convention="0/0 = 1",
        concerns="pairs of prompts that no model got right",
    ),
    Similarity(
        name="jaccard_empty0",
        choice="jaccard",
        title="Jaccard",
        lattice=jaccard_lattice,
        adjust=_put_empty_pairs_at_zero,
        convention="0/0 = 0",
        concerns="pairs of prompts that no model got right",
    ),
)
BY_NAME = {similarity.name: similarity for similarity in SIMILARITIES}
CHOICES = tuple(dict.fromkeys(similarity.choice for similarity in SIMILARITIES))
DEFAULT_CHOICES = tuple(dict.fromkeys(similarity.choice for similarity in SIMILARITIES if similarity.is_default))


def select_similarities(choices: Iterable[str]) -> tuple[Similarity, ...]:
    """The similarities of these choices."""
    selected = set(choices)
    return tuple(similarity for similarity in SIMILARITIES if similarity.choice in selected)
