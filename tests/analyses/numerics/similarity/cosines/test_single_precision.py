"""Binning in single precision has the counts and cosines of double precision, and its errors are within their bound."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.similarity.continuous import CosineDraws, compare_continuous
from analyses.numerics.similarity.cosines import cosine_layout, single_precision
from analyses.numerics.similarity.cosines.cosine_layout import CosineLayout
from analyses.numerics.similarity.cosines.cosine_pairs import BINS
from analyses.numerics.similarity.cosines.cosine_passes import DoublePasses, SinglePasses
from analyses.numerics.similarity.cosines.dot_products import PANEL, fill_dots
from analyses.numerics.similarity.cosines.rounded_rows import TOGETHER, RoundedRows, round_rows
from analyses.numerics.similarity.score_table import ScoreTable
from tracker.statistics.rng_streams import stream_key

KINDS = MappingProxyType(
    {
        "uniform": lambda rng, shape: rng.random(shape),
        "few values": lambda rng, shape: rng.integers(0, 4, shape) / 3,
        "rows of zeros": lambda rng, shape: rng.random(shape) * (rng.random((shape[0], 1)) < 0.7),
        "both signs": lambda rng, shape: rng.normal(size=shape),
        "similar rows": lambda rng, shape: 1 + 0.01 * rng.random(shape),
        "narrow bins": lambda rng, shape: 1 + 1e-4 * rng.random(shape),
        "equal rows": lambda rng, shape: rng.random((shape[0], 1)) * np.linspace(1, 2, shape[1]),
        "large first": lambda rng, shape: rng.random(shape) * 10.0 ** -np.arange(shape[1]),
        "tiny": lambda rng, shape: 1e-200 * rng.random(shape),
        "huge": lambda rng, shape: 1e200 * rng.random(shape),
    }
)


def some_table(kind: str, n: int, k: int, seed: int) -> ScoreTable:
    """A complete table."""
    return ScoreTable(KINDS[kind](np.random.default_rng(seed), (n, k)))


def exact_cosines(scores: np.ndarray) -> np.ndarray:
    """``(n, n)`` cosines with more digits than double precision; 0 for rows of zeros."""
    rows = scores.astype(np.longdouble)
    rows = rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(float).tiny)
    norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    rows = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return rows @ rows.T


def positions(rows: RoundedRows) -> np.ndarray:
    """``(n, n)``, the places of cosines among the bins in single precision, for each row and later ones."""
    n = len(rows.scores)
    places = np.full((n, n), np.nan)
    dots = np.empty((PANEL, rows.tiles.shape[0] * rows.tiles.shape[2]), np.float32)
    for begin in range(0, n, PANEL):
        end = min(begin + PANEL, n)
        fill_dots(rows.units, rows.tiles, begin, end, TOGETHER, dots)
        for i in range(begin, end):
            sums = dots[i - begin, i + 1 : n] + (rows.offsets[i] + rows.offsets[i + 1 :])
            places[i, i + 1 :] = sums.astype(np.float64) + rows.origin
    return places


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.integers(2, 130), st.integers(1, 90), st.integers(0, 10**6))
def test_counts_and_cosines_are_those_of_double_precision(kind: str, n: int, k: int, seed: int) -> None:
    table = some_table(kind, n, k, seed)
    layout = CosineLayout.create(table)
    is_selected = np.random.default_rng(seed).random(BINS) < 0.2
    results = []
    for passes in (DoublePasses(layout), SinglePasses(layout)):
        rows = passes.prepare(table.packed_scores, layout.weights)
        if isinstance(rows, RoundedRows) and rows.errors.max() > 1:
            return  # such tables are never binned in single precision
        room = passes.make_room(is_selected, n * n)
        bins = passes.bin(rows, room)
        assert room.has_all
        cosines, _ = passes.select(rows, room, is_selected)
        assert cosines.size == bins.counts[is_selected].sum()
        again = passes.make_room(is_selected, cosines.size)
        passes.collect(rows, again)
        assert np.array_equal(np.sort(passes.select(rows, again, is_selected)[0]), np.sort(cosines))
        results.append((bins, np.sort(cosines)))
    (double, expected), (single, cosines) = results
    assert np.array_equal(single.counts, double.counts)
    assert cosines.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_draws_of_a_large_table_have_the_counts_of_double_precision(kind: str) -> None:
    draws = CosineDraws(table=some_table(kind, 700, 21, 4), key=stream_key(0), n_permutations=1)
    layout, no_bins = draws.layout, np.zeros(BINS, np.bool_)
    for permutation in range(3):
        scores = layout.shuffle(draws.key, permutation)
        counts = [
            passes.bin(passes.prepare(scores, layout.weights), passes.make_room(no_bins, 0)).counts
            for passes in (DoublePasses(layout), SinglePasses(layout))
        ]
        assert np.array_equal(*counts)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.integers(2, 130), st.integers(1, 90), st.integers(0, 10**6))
def test_errors_are_within_their_bound(kind: str, n: int, k: int, seed: int) -> None:
    if kind in ("tiny", "huge"):
        return  # these are scaled before
    table = some_table(kind, n, k, seed)
    lowest = cosine_layout.min_cosine(table)
    rows = round_rows(table.packed_scores, lowest)
    n_bins = BINS / (1 - lowest)
    gap = np.abs(positions(rows) - (exact_cosines(table.packed_scores) - lowest) * np.longdouble(n_bins))
    slack = 1e-17 * n_bins  # of the exact cosines themselves
    assert (gap <= rows.errors[:, None] + slack)[np.triu_indices(n, 1)].all()


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.integers(2, 90), st.integers(1, 90), st.integers(0, 10**6))
def test_sums_over_pairs_are_those_of_a_loop_over_pairs(kind: str, n: int, k: int, seed: int) -> None:
    table = some_table(kind, n, k, seed)
    scores = table.packed_scores / np.abs(table.packed_scores).max(initial=1e-300)
    rows = scores[scores.any(axis=1)].astype(np.longdouble)
    rows = rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    gaps = np.array([((rows[j] - rows[i]) ** 2).sum() / 2 for i in range(len(rows)) for j in range(i)], np.longdouble)
    sums = round_rows(scores, 0.0).gaps
    if gaps.size == 0 or gaps.mean() < 2.0**-50:
        assert not sums.any()
    else:
        assert sums[0] == pytest.approx(float(gaps.sum()), rel=1e-9)
        assert sums[1] == pytest.approx(float((gaps * gaps).sum()), rel=1e-9)


def test_cosines_with_large_errors_are_all_computed_in_double_precision() -> None:
    table = some_table("uniform", 90, 7, 0)
    layout = CosineLayout.create(table)
    expected = DoublePasses(layout).bin(
        DoublePasses(layout).prepare(table.packed_scores, layout.weights),
        DoublePasses(layout).make_room(np.zeros(BINS, np.bool_), 0),
    )
    rows = round_rows(table.packed_scores, layout.lowest)
    for error in (0.5, 3.0):
        unsure = rows._replace(errors=np.full_like(rows.errors, error), offsets=rows.offsets + np.float32(2))
        counts = np.zeros(BINS, np.int64)
        nothing = single_precision.CollectedPairs.with_room(np.zeros(BINS, np.bool_), 0, 90)
        assert single_precision.bin_rounded(unsure, counts, nothing) == layout.n_pairs
        assert np.array_equal(counts, expected.counts)


def test_only_some_cosines_are_computed_in_double_precision() -> None:
    table = some_table("uniform", 300, 40, 1)
    layout = CosineLayout.create(table)
    assert layout.in_single_precision
    counts, nothing = (
        np.zeros(BINS, np.int64),
        single_precision.CollectedPairs.with_room(np.zeros(BINS, np.bool_), 0, 300),
    )
    rows = round_rows(table.packed_scores, layout.lowest)
    assert 0 < single_precision.bin_rounded(rows, counts, nothing) < 0.05 * layout.n_pairs


def test_double_precision_is_kept_where_single_precision_decides_little() -> None:
    narrow = ScoreTable(1 + 1e-7 * np.random.default_rng(0).random((60, 5)))
    assert not CosineLayout.create(narrow).in_single_precision
    wide = np.random.default_rng(0).random((60, 31))
    assert CosineLayout.create(ScoreTable(wide[:, :30])).in_single_precision
    assert not CosineLayout.create(ScoreTable(wide)).in_single_precision
    at_an_edge = ScoreTable(np.array([[1.0, 0.0], [1.0, np.sqrt(3)]] * 20))
    assert not CosineLayout.create(at_an_edge).in_single_precision


def test_missing_scores_and_weights_are_compared_in_double_precision() -> None:
    scores = np.random.default_rng(0).random((60, 9))
    assert CosineLayout.create(ScoreTable(scores)).in_single_precision
    assert not CosineLayout.create(ScoreTable(scores, np.linspace(0.5, 1.5, 60))).in_single_precision
    scores[3, 4] = np.nan
    assert not CosineLayout.create(ScoreTable(scores)).in_single_precision


@pytest.mark.parametrize("kind", ["uniform", "few values", "rows of zeros", "both signs", "tiny"])
def test_the_whole_test_is_that_of_double_precision(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = some_table(kind, 70, 6, 3)
    first = compare_continuous(table, n_permutations=60, seed=2)
    monkeypatch.setattr(cosine_layout, "MAX_ERROR", 0)
    assert not CosineDraws(table=table, key=np.zeros(2, np.uint64), n_permutations=1).layout.in_single_precision
    second = compare_continuous(table, n_permutations=60, seed=2)
    for a, b in zip(first.tests, second.tests, strict=True):
        assert np.array_equal(a.observed, b.observed)
        assert np.array_equal(a.pooled, b.pooled)
        for name, comparison in a.comparisons.items():
            assert comparison.pvalue == b.comparisons[name].pvalue
            assert comparison.null == pytest.approx(b.comparisons[name].null, rel=1e-11, abs=1e-14)


def test_too_little_room_is_detected() -> None:
    table = some_table("uniform", 50, 6, 0)
    layout = CosineLayout.create(table)
    passes, everywhere = SinglePasses(layout), np.ones(BINS, np.bool_)
    rows = passes.prepare(table.packed_scores, layout.weights)
    for n, has_all in ((0, False), (layout.n_pairs - 1, False), (layout.n_pairs, True)):
        room = passes.make_room(everywhere, n)
        passes.bin(rows, room)
        assert room.has_all is has_all
        assert room.n[0] == layout.n_pairs
