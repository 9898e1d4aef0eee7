"""The lines of a table beside those of tables in which meaning and performance have been torn apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.null_tables import shuffle_table
from analyses.numerics.pooled_distance import compute_pooled_distances
from analyses.numerics.semantic.semantic_regression import (
    Floats,
    Lines,
    Meaning,
    fit_lines,
    performance_rows,
    unit_rows,
)
from analyses.numerics.semantic.strata import difficulty_length_strata, permute_within, remove_difficulty_length
from tracker.statistics.multiple_testing import ascending_fdr_values, fdr_values
from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.resampling import ALPHA, PermutationTest, build_permutation_test
from tracker.statistics.rng_streams import ROWS, generator, stream_key

DRAW_TOLERANCE = 1e-9
"""Statistics of draws within this share of their scale are equal: above `TIE_TOLERANCE`, as they are quotients of long
sums; rounding is far below, and a tie only raises p."""
BLOCK_CELLS, STACK_CELLS = 2**20, 2**21
"""Numbers in one array over the draws of a block, and over the draws whose products are taken together."""
MAX_DRAWS = 128
"""In one block."""
BINS = 60
TAIL = 5e-4
"""Share of the pooled slopes on either side that the outermost bars hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bars:
    """How a number is distributed over the prompts, observed and drawn.

    Attributes:
        edges: ``(m + 1,)``; the outermost bars also hold what lies beyond.
        observed, drawn: ``(m,)`` shares of prompts; drawn is over all draws together.
    """

    edges: Floats
    observed: Floats
    drawn: Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class SemanticTest:
    """Lines of the observed table, and its statistics beside those of the draws.

    Attributes:
        kept: ``(n_all,)`` prompts that took part; all-wrong ones have no cosine.
        slope, stderr, t, pvalue, fdr, familywise: one number for each prompt that took part; NaN where it has no line.
        comparisons: by name: slope.mean, n_discoveries, ks_slope, ks_fdr, max_t.
        slope_bars, fdr_bars: distributions over the prompts.
    """

    kept: NDArray[np.bool_]
    slope: Floats
    stderr: Floats
    t: Floats
    pvalue: Floats
    fdr: Floats
    familywise: Floats
    comparisons: Mapping[str, PermutationTest]
    slope_bars: Bars
    fdr_bars: Bars

    def without_pvalues(self, reason: str) -> SemanticTest:
        """The same lines and draws without what is concluded from them: no p-values, for a reason."""
        return replace(
            self,
            familywise=np.full_like(self.familywise, np.nan),
            comparisons={name: replace(comparison, reason=reason) for name, comparison in self.comparisons.items()},
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _LineStatistics:
    """Of some tables, one row each; slopes in units of ``scale``, ascending, NaN last, and so the FDR values."""

    slope_mean: Floats
    n_discoveries: Floats
    max_t: Floats
    slopes: NDArray[np.float32]
    fdr: NDArray[np.float32]

    @classmethod
    def describe(cls, fitted: Lines, scale: float) -> _LineStatistics:
        is_fitted = ~np.isnan(fitted.t)
        n = is_fitted.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            slope_mean = np.where(is_fitted, fitted.slope, 0.0).sum(axis=0) / n
        fdr = ascending_fdr_values(np.sort(fitted.pvalue.T, axis=1))
        # Rounded, so that values that differ by the order of summation only are the same value.
        slopes = np.sort(np.round(fitted.slope.T / scale, 9), axis=1)
        largest = np.where(is_fitted, np.abs(fitted.t), -1.0).max(axis=0)
        return cls(
            slope_mean=slope_mean,
            n_discoveries=np.where(n > 0, (fdr <= ALPHA).sum(axis=1), np.nan),
            max_t=np.where(n > 0, largest, np.nan),
            slopes=slopes.astype(np.float32),
            fdr=fdr.astype(np.float32),
        )

    @classmethod
    def join(cls, parts: list[_LineStatistics]) -> _LineStatistics:
        """Join parts, and empty their list: the memory of each is free as soon as it is copied."""
        n_tables = sum(len(part.max_t) for part in parts)
        joined = {}
        for name in cls.__slots__:
            values = getattr(parts[0], name)
            joined[name] = np.empty((n_tables, *values.shape[1:]), dtype=values.dtype)
        first = 0
        while parts:
            part = parts.pop(0)
            last = first + len(part.max_t)
            for name, values in joined.items():
                values[first:last] = getattr(part, name)
            first = last
        return cls(**joined)


class _NullTables:
    """Tables drawn under a null, by number.

    Args:
        Q: ``(n, k)`` scores without gaps.
        weights: ``(n,)`` positive.
        similarity, null, weights_follow_scores, seed: as in `semantic_test`.
        strata: ``(n,)`` of the rows.
    """

    def __init__(
        self,
        Q: Floats,
        weights: Floats,
        *,
        similarity: str,
        null: str,
        strata: NDArray[np.int64],
        weights_follow_scores: bool,
        seed: int,
    ) -> None:
        self.Q, self.similarity, self.null, self.strata, self.seed = Q, similarity, null, strata, seed
        self.moves_weights = null != "columns" and weights_follow_scores and bool((weights != weights[0]).any())
        self.rows = performance_rows(Q, similarity)
        self.weights = weights
        self.partners = weights * self.rows.any(axis=1)
        self.key = stream_key(seed)

    def fit_observed(self, meaning: Meaning) -> Lines:
        partners = self.partners[:, None]
        return fit_lines(meaning, self.rows[:, None, :], partners, meaning.squares_under(partners))

    def order(self, draw: int) -> NDArray[np.int64]:
        random = generator(self.seed, ROWS, draw)
        return random.permutation(len(self.Q)) if self.null == "rows" else permute_within(self.strata, random)

    def performance(self, draw: int) -> Floats:
        """``(n, k)`` performance rows."""
        if self.null != "columns":
            return self.rows[self.order(draw)]
        return performance_rows(shuffle_table(self.Q, self.key, draw), self.similarity)

    def partner_weights(self, draws: range) -> Floats:
        """``(n, b)``."""
        if self.moves_weights:
            return np.column_stack([self.partners[self.order(draw)] for draw in draws])
        if self.null == "columns" and self.similarity == "cosine":
            return np.column_stack([self.weights * self.performance(draw).any(axis=1) for draw in draws])
        return np.repeat(self.partners[:, None], len(draws), axis=1)


def semantic_test(
    Q: Floats,
    E: NDArray[Any],
    weights: Floats,
    *,
    similarity: str,
    intercept: bool,
    null: str,
    lengths: Floats | None = None,
    weights_follow_scores: bool = False,
    n_permutations: int,
    seed: int,
) -> SemanticTest:
    """Fit every prompt's line, and test the lines together.

    Args:
        Q: ``(n, k)`` scores without gaps; 0 and 1 for Hamming.
        E: ``(n, d)`` vectors, none of them zero.
        weights: ``(n,)`` of partners, positive.
        similarity: "cosine" or "hamming".
        intercept: whether the lines have one.
        null: "strata" permutes vectors among prompts of similar difficulty and length, "rows" among all; "columns"
            shuffles each model's scores over the prompts.
        lengths: ``(n,)`` of the texts; None if all are equal.
        weights_follow_scores: whether under `strata` and `rows` a weight goes with the scores, as it must where it was
            computed from them; else it stays with the vector, as it must where it knows of the texts but not of
            the scores.
        n_permutations: tables drawn.
        seed: of all draws.
    """
    kept = np.asarray(performance_rows(Q, similarity).any(axis=1))
    rows = kept if null != "columns" else np.ones(len(Q), dtype=np.bool_)
    lengths = np.zeros(rows.sum()) if lengths is None else lengths[rows]
    Q, weights, E = Q[rows], weights[rows], _adjust_vectors(E[rows], Q[rows], lengths, null)
    draws = _NullTables(
        Q,
        weights,
        similarity=similarity,
        null=null,
        strata=difficulty_length_strata(Q.mean(axis=1), lengths),
        weights_follow_scores=weights_follow_scores,
        seed=seed,
    )
    meaning = Meaning.of(E, draws.partners, intercept=intercept)
    observed = draws.fit_observed(meaning)
    scale = _typical_spread(observed)
    parts = _describe_draws(draws, meaning, scale, n_permutations)
    parts.insert(0, _LineStatistics.describe(observed, scale))
    columns = (observed.slope, observed.stderr, observed.t, observed.pvalue)
    slope, stderr, t, pvalue = (values[draws.partners > 0, 0] for values in columns)
    del draws, meaning, Q, E  # as large as the statistics of a thousand draws
    statistics = _LineStatistics.join(parts)
    return SemanticTest(
        kept=kept,
        slope=slope,
        stderr=stderr,
        t=t,
        pvalue=pvalue,
        fdr=fdr_values(pvalue),
        familywise=_familywise(np.abs(t), statistics.max_t[1:]),
        comparisons=_comparisons(statistics, scale),
        slope_bars=_bars(statistics.slopes, _slope_edges(statistics.slopes), scale),
        fdr_bars=_bars(statistics.fdr, np.linspace(0, 1, BINS // 3 * 2 + 1), 1.0),
    )


def _adjust_vectors(E: NDArray[Any], Q: Floats, lengths: Floats, null: str) -> NDArray[Any]:
    """Return the vectors less what difficulty and length predict of them, if the null keeps these."""
    return remove_difficulty_length(unit_rows(E), Q.mean(axis=1), lengths) if null == "strata" else E


def _typical_spread(lines: Lines) -> float:
    """Return the median spread of the lines; 1 without any."""
    spread = lines.spread[~np.isnan(lines.spread)]
    return float(np.median(spread)) if spread.size else 1.0


def _describe_draws(draws: _NullTables, meaning: Meaning, scale: float, n_permutations: int) -> list[_LineStatistics]:
    """Statistics of blocks of drawn tables."""
    n, k = draws.rows.shape
    blocks = split_blocks(n_permutations, min(MAX_DRAWS, max(8, BLOCK_CELLS // n)))
    stack = max(1, STACK_CELLS // (n * k))

    def describe_block(block: int) -> _LineStatistics:
        numbers = blocks[block]
        weights = draws.partner_weights(numbers)
        squares = meaning.squares_under(weights)
        parts = []
        for places in split_blocks(len(numbers), stack):
            part = slice(places.start, places.stop)
            U = np.stack([draws.performance(draw) for draw in numbers[part]], axis=1)
            fitted = fit_lines(meaning, U, weights[:, part], squares[:, part])
            parts.append(_LineStatistics.describe(fitted, scale))
        return _LineStatistics.join(parts)

    return map_blocks(describe_block, len(blocks))


def _familywise(t: Floats, largest: Floats) -> Floats:
    """Share of tables, the observed one among them, whose largest |t| is at least that of each prompt."""
    ascending = np.sort(np.where(np.isnan(largest), np.inf, largest))
    below = np.searchsorted(ascending, t * (1 - DRAW_TOLERANCE))
    return np.where(np.isnan(t), np.nan, (1 + len(ascending) - below) / (1 + len(ascending)))


def _comparisons(statistics: _LineStatistics, scale: float) -> dict[str, PermutationTest]:
    values = {
        "slope.mean": (statistics.slope_mean, DRAW_TOLERANCE * scale),
        "n_discoveries": (statistics.n_discoveries, 0.0),
        "ks_slope": (compute_pooled_distances(statistics.slopes), DRAW_TOLERANCE),
        "ks_fdr": (compute_pooled_distances(statistics.fdr), DRAW_TOLERANCE),
        "max_t": (statistics.max_t, DRAW_TOLERANCE * float(statistics.max_t[0])),
    }
    no_line = "" if np.isfinite(statistics.max_t[0]) else "no prompt has a line"
    comparisons = {}
    for name, (value, slack) in values.items():
        difference = value[1:] - value[0]
        signs = np.where(np.abs(difference) > slack, np.sign(difference), 0).astype(np.int8)
        on_an_atom = name in ("n_discoveries", "ks_fdr")
        comparisons[name] = build_permutation_test(value[0], value[1:], signs, no_line, on_an_atom=on_an_atom)
    return comparisons


def _slope_edges(slopes: NDArray[np.float32]) -> Floats:
    observed, pool = slopes[0][~np.isnan(slopes[0])], slopes[1:][~np.isnan(slopes[1:])]
    low, high = (np.quantile(values, [TAIL, 1 - TAIL]) if values.size else np.zeros(2) for values in (observed, pool))
    least, most = float(min(low[0], high[0])), float(max(low[1], high[1]))
    margin = 0.02 * (most - least) or 0.5
    return np.linspace(least - margin, most + margin, BINS + 1)


def _bars(values: NDArray[np.float32], edges: Floats, scale: float) -> Bars:
    def shares(some: NDArray[np.float32]) -> Floats:
        some = some[~np.isnan(some)]
        counts = np.histogram(np.clip(some, edges[0], edges[-1]), edges)[0]
        return np.asarray(counts / max(1, some.size))

    return Bars(edges=edges * scale, observed=shares(values[0]), drawn=shares(values[1:]))
