"""What computes the parts of a test of similarities that grow with the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from analyses.numerics.null_tables import Shuffle, shuffle_columns
from analyses.numerics.similarity.pairs.pair_counter import PairCounter
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarities import Similarity


class Engine(NamedTuple):
    """Counts pairs and draws tables. All engines return the same integers.

    Attributes:
        create_counter: creates what counts the pairs of a table, see `PairCounter.create`.
        shuffle_columns: draws a table of the null "columns", see `analyses.numerics.null_tables.shuffle_columns`.
    """

    create_counter: Callable[[ScoreTable, tuple[Similarity, ...]], PairCounter]
    shuffle_columns: Shuffle


KERNELS = Engine(PairCounter.create, shuffle_columns)
"""Compiled kernels on the CPU."""
