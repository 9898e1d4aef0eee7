"""Similarities of the rows of a binary table, against tables drawn under a null: exact and fast.

The distribution of a similarity over all pairs is a vector of counts (`pair_lattice`), found without
storing a pair (`pair_counts`), and everything reported is a function of these integers
(`distributions`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.bit_tables import BitTable
from analyses.numerics.compilation import bit_counts
from analyses.numerics.distributions import ATOMIC, STATISTICS, compare_distances, compare_exactly, described
from analyses.numerics.null_tables import common_ancestor, fixed_margins, shuffled_columns
from analyses.numerics.pair_counts import EMPTY, SIDES, ZERO, count_by_pattern, count_pair_by_pair
from analyses.numerics.pair_lattice import (
    Lattice,
    cosine_lattice,
    cosine_starts,
    hamming_lattice,
    jaccard_lattice,
    no_cosine_lattice,
)
from analyses.numerics.resampling import Comparison, blocks_of, compared, map_blocks
from analyses.numerics.similarity import SimilarityTest, SimilarityTests
from analyses.numerics.streams import stream_key

Null = Literal["columns", "margins"]

SIMILARITIES = ("hamming", "cosine", "cosine_nonzero", "jaccard", "jaccard_empty0")
MANY_PATTERNS = 64
"""With more patterns of missing cells than this, pairs are counted one by one."""

INVARIANT_HAMMING = (
    "the same in every table with these column sums: a column with m ones among n prompts adds "
    "C(m, 2) + C(n - m, 2) agreements wherever its ones are"
)
INVARIANT_ROW_SUMS = "this null keeps the row sums"
ONE_VARYING_COLUMN = "only one model has both right and wrong answers, so shuffling only reorders the prompts"
NO_OTHER_TABLE = "no draw differed from the observed table: its row and column sums leave no cell free"


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts the pairs of one table's rows, whatever their scores.

    Attributes:
        table: whose missing cells, and rows if none are given, are counted.
        lattices: of Hamming, cosine and Jaccard, in the order of the counts.
        starts: where the cosine's cells begin.
    """

    table: BitTable
    lattices: tuple[Lattice, Lattice, Lattice]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, table: BitTable, *, cosine: bool) -> Counter:
        """A counter for tables of this shape with these missing cells, with or without the cosine."""
        k = table.n_columns
        lattices = (
            hamming_lattice(k, table.overlaps()),
            cosine_lattice(k) if cosine else no_cosine_lattice(k),
            jaccard_lattice(k),
        )
        return cls(table, lattices, cosine_starts(k) if cosine else np.zeros((k + 1, k + 1), np.int64))

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where the counts of each lattice begin, and where the last end."""
        return np.cumsum([0, *(lattice.size for lattice in self.lattices)])

    def count(self, rows: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Counts of all lattices in one vector, and the side counts."""
        if self.table.n_patterns > MANY_PATTERNS:
            return self._one_by_one(rows, np.empty((0, 3)), np.empty(0, np.int64))
        counts, sides = np.empty(self.offsets[-1], np.int64), np.empty(SIDES, np.int64)
        count_by_pattern(rows, self.table.patterns, self.table.starts, *self._indexes(), counts, sides)
        return counts, sides

    def mean_to_others(self) -> NDArray[np.float64]:
        """``(n, 3)``: mean similarity of each row of the table to those it shares cells with, in the table's order."""
        n = self.table.rows.shape[0]
        sums, partners = np.zeros((n, 3)), np.zeros(n, np.int64)
        self._one_by_one(self.table.rows, sums, partners)
        means = np.full((n, 3), np.nan)
        some = partners > 0
        means[self.table.order[some]] = sums[some] / partners[some, None]
        return means

    def of_similarity(self, name: str, counts: NDArray[np.int64], sides: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts of one of `SIMILARITIES` from counts of all lattices; both ``(n, ...)``."""
        which = {"hamming": 0, "cosine": 1, "jaccard": 2}[name.split("_")[0]]
        mine = counts[:, self.offsets[which] : self.offsets[which + 1]]
        if name == "cosine_nonzero":
            mine = mine.copy()
            mine[:, 0] -= sides[:, ZERO]
        elif name == "jaccard_empty0":
            mine = mine.copy()
            mine[:, 0] += sides[:, EMPTY]
            mine[:, -1] -= sides[:, EMPTY]
        return mine

    def lattice(self, name: str) -> Lattice:
        """The lattice of one of `SIMILARITIES`."""
        return self.lattices[("hamming", "cosine", "jaccard").index(name.split("_")[0])]

    def _indexes(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        hamming, cosine, jaccard = self.lattices
        return hamming.index, jaccard.index, cosine.index, self.starts, self.offsets

    def _one_by_one(
        self, rows: NDArray[np.uint64], sums: NDArray[np.float64], partners: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        counts, sides = np.empty(self.offsets[-1], np.int64), np.empty(SIDES, np.int64)
        values = np.concatenate([lattice.values for lattice in self.lattices])
        count_pair_by_pair(rows, self.table.masks, *self._indexes(), counts, sides, values, sums, partners)
        return counts, sides


@dataclass(frozen=True, slots=True)
class Block:
    """What one block of draws leaves behind.

    Attributes:
        used: places of the counts that are not all zero.
        counts: ``(n, used.size)`` counts at these places.
        sides: ``(n, SIDES)``.
        statistics, signs: ``(n, n_similarities, 4)``.
        squares: ``(n,)`` sum of squared row sums.
        moved: whether any draw differs from the observed table.
    """

    used: NDArray[np.int64]
    counts: NDArray[np.uint64]
    sides: NDArray[np.int64]
    statistics: NDArray[np.float64]
    signs: NDArray[np.int8]
    squares: NDArray[np.int64]
    moved: bool

    def dense(self, size: int) -> NDArray[np.int64]:
        """All counts, ``(n, size)``."""
        full = np.zeros((self.counts.shape[0], size), np.int64)
        full[:, self.used] = self.counts
        return full


def _known_equal(name: str, table: BitTable) -> frozenset[str]:
    """Statistics of a similarity that no draw can change, under either null.

    The agreements of all pairs add up to the same number in every draw, column by column; so does their
    mean share, if every two rows that share cells share equally many.
    """
    return frozenset({"mean"}) if name == "hamming" and table.overlaps().size == 1 else frozenset()


def _draw_block(
    block: int, *, runs: list[range], counter: Counter, names: tuple[str, ...], observed: NDArray[np.int64],
    observed_sides: NDArray[np.int64], key: NDArray[np.uint64], ancestor: NDArray[np.uint64] | None,
) -> Block:  # fmt: skip
    run, table = runs[block], counter.table
    counts = np.empty((len(run), observed.size), np.int64)
    sides = np.empty((len(run), SIDES), np.int64)
    squares = np.empty(len(run), np.int64)
    moved = False
    for b, permutation in enumerate(run):
        if ancestor is None:
            rows = shuffled_columns(table, key, permutation)
        else:
            rows = fixed_margins(table, ancestor, key, permutation)
        counts[b], sides[b] = counter.count(rows)
        squares[b] = (bit_counts(rows) ** 2).sum()
        moved = moved or not np.array_equal(rows, table.rows)
    statistics = np.empty((len(run), len(names), len(STATISTICS)))
    signs = np.empty(statistics.shape, np.int8)
    for i, name in enumerate(names):
        mine = counter.of_similarity(name, observed[None, :], observed_sides[None, :])[0]
        others = np.ascontiguousarray(counter.of_similarity(name, counts, sides))
        statistics[:, i], signs[:, i] = compare_exactly(counter.lattice(name), mine, others, _known_equal(name, table))
    used = np.flatnonzero(counts.any(axis=0))
    small = np.uint32 if counts.max(initial=0) < 2**32 else np.uint64
    return Block(used, counts[:, used].astype(small), sides, statistics, signs, squares, moved)


def binary_similarities(
    table: NDArray[np.float64],
    *,
    n_permutations: int,
    null: Null = "columns",
    similarities: tuple[str, ...] = SIMILARITIES,
    seed: int,
) -> SimilarityTests:
    """Compare the similarities of a binary table's rows with those of tables drawn under a null.

    Args:
        table: ``(n, k)`` of 0, 1 and NaN (missing), ``n >= 2`` and ``1 <= k <= MAX_COLUMNS``, for cosines
            ``MAX_COSINE_COLUMNS``; every row and column has a measured cell.
        n_permutations: draws, at least 1.
        null: "columns" shuffles each column among its measured cells; "margins" keeps the sums of rows too.
        similarities: some of `SIMILARITIES`.
        seed: of all draws.
    """
    bits = BitTable.of(table)
    counter = Counter.of(bits, cosine=any(name.startswith("cosine") for name in similarities))
    key = stream_key(seed)
    observed, sides = counter.count(bits.rows)
    runs = blocks_of(n_permutations, max(1, min(50, 4_000_000 // observed.size)))
    task = partial(
        _draw_block, runs=runs, counter=counter, names=similarities, observed=observed, observed_sides=sides,
        key=key, ancestor=common_ancestor(bits, key) if null == "margins" else None,
    )  # fmt: skip
    blocks = map_blocks(task, len(runs))
    reason = _nothing_moves(bits, blocks, null)
    means = counter.mean_to_others()
    n_pairs = int(observed[: counter.offsets[1]].sum())
    return SimilarityTests(
        tests=tuple(_test(name, i, counter, observed, sides, blocks, reason) for i, name in enumerate(similarities)),
        n_pairs=n_pairs,
        n_disjoint=table.shape[0] * (table.shape[0] - 1) // 2 - n_pairs,
        mean_to_others={
            name: means[:, i] for i, name in enumerate(("hamming", "cosine", "jaccard")) if name in similarities
        },
        row_sums=_row_sums(bits, blocks, reason or (INVARIANT_ROW_SUMS if null == "margins" else ""))
        if bits.is_complete
        else None,
    )


def _nothing_moves(table: BitTable, blocks: list[Block], null: Null) -> str:
    """Why no statistic at all can be a test; empty if some can."""
    if null == "margins":
        return "" if any(block.moved for block in blocks) else NO_OTHER_TABLE
    varying = int(((table.ones > 0) & (table.ones < np.diff(table.cell_starts))).sum())
    return ONE_VARYING_COLUMN if varying < 2 and table.is_complete else ""


def _test(
    name: str, i: int, counter: Counter, observed: NDArray[np.int64], sides: NDArray[np.int64],
    blocks: list[Block], reason: str,
) -> SimilarityTest:  # fmt: skip
    lattice = counter.lattice(name)
    mine = counter.of_similarity(name, observed[None, :], sides[None, :])[0]
    pooled = mine * 0
    for block in blocks:
        pooled += counter.of_similarity(name, block.dense(observed.size), block.sides).sum(axis=0)
    parts = [
        compare_distances(
            mine,
            np.ascontiguousarray(counter.of_similarity(name, block.dense(observed.size), block.sides)),
            mine + pooled,
        )
        for block in blocks
    ]
    statistics = np.concatenate([block.statistics[:, i] for block in blocks])
    signs = np.concatenate([block.signs[:, i] for block in blocks])
    own, _ = described(mine[None, :], lattice.values)
    known = _known_equal(name, counter.table)
    distance = compared(
        parts[0][0], np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts]), reason
    )
    if distance.reason and not distance.observed and not distance.null.any():
        reason = distance.reason  # all draws have the same distribution
    comparisons: dict[str, Comparison] = {
        statistic: compared(
            own[0, s],
            statistics[:, s],
            signs[:, s],
            reason or (INVARIANT_HAMMING if statistic in known else ""),
            on_an_atom=statistic in ATOMIC,
        )
        for s, statistic in enumerate(STATISTICS)
    }
    comparisons["ks_d"] = distance
    return SimilarityTest(
        name=name, values=lattice.values, width=0.0, observed=mine, pooled=pooled, comparisons=comparisons
    )


def _row_sums(table: BitTable, blocks: list[Block], reason: str) -> Comparison:
    """Variance (divided by ``n``) of the ones in a row; the sum of row sums is fixed, so squares decide ties."""
    n = table.rows.shape[0]
    squares = np.concatenate([block.squares for block in blocks])
    own = int((bit_counts(table.rows) ** 2).sum())
    mean = table.ones.sum() / n
    return compared(own / n - mean**2, squares / n - mean**2, np.sign(squares - own).astype(np.int8), reason)
