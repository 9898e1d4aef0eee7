from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from analyses.numerics.filtering.similar_prompts.encoder_overlap import (
    EncoderResult,
    Overlap,
    compare_encoders,
    find_similar_by_encoder,
    measure_overlap,
)
from analyses.numerics.filtering.similar_prompts.similar_step import SimilarSettings

SETTINGS = SimilarSettings(n_neighbours=5, threshold=0.1, largest_group=0.5)


def vectors(seed: int, n: int = 40, noise: float = 0.1) -> np.ndarray:
    """Pairs of like directions, those of another seed between other prompts; the last ones are alone."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((n, 8))
    for i in rng.permutation(n)[: n // 2].reshape(-1, 2):
        E[i[0]] = E[i[1]] + noise * rng.standard_normal(8)
    return E.astype(np.float32)


def step_of(E, **settings):
    return find_similar_by_encoder("an encoder", E, [""] * len(E), replace(SETTINGS, **settings), seed=0)


def distances(E):
    unit = E.astype(np.float64) / np.linalg.norm(E.astype(np.float64), axis=1, keepdims=True)
    return 1 - unit @ unit.T


class TestAgainstReference:
    @given(arrays(np.bool_, 12), arrays(np.bool_, 12))
    def test_overlaps_are_those_of_python_sets(self, first, second):
        a, b = ({i for i in range(12) if some[i]} for some in (first, second))
        result = measure_overlap(first, second)
        assert result.n_both == len(a & b)
        assert (result.n_first, result.n_second, result.n) == (len(a), len(b), 12)
        if a and b:
            assert result.coefficient == len(a & b) / min(len(a), len(b))
        if a | b:
            assert result.jaccard == len(a & b) / len(a | b)

    def test_the_expected_overlap_is_that_of_sets_at_random(self):
        result = Overlap(n=30, n_first=12, n_second=5, n_both=4)
        rng = np.random.default_rng(0)
        first = np.arange(30) < 12
        drawn = [measure_overlap(first, rng.permutation(30) < 5) for _ in range(4000)]
        assert result.expected == 2
        assert np.mean([overlap.n_both for overlap in drawn]) == pytest.approx(2, abs=0.06)
        assert result.expected_coefficient == 0.4
        assert np.mean([overlap.coefficient for overlap in drawn]) == pytest.approx(0.4, abs=0.012)

    @pytest.mark.parametrize("n_neighbours", [1, 5, 100])
    @pytest.mark.parametrize("threshold", [0.05, 0.3, 0.6])
    def test_pairs_are_all_those_that_are_nearer(self, n_neighbours, threshold):
        E = vectors(3)
        result = step_of(E, n_neighbours=n_neighbours, threshold=threshold, largest_group=1.0)
        i, j = np.triu_indices(len(E), 1)
        assert result.pairs.tolist() == (i * len(E) + j)[distances(E)[i, j] < threshold].tolist()
        assert result.similar.n_pairs == len(result.pairs)

    def test_two_encoders_share_the_prompts_and_pairs_that_plain_loops_find(self):
        first, second = vectors(0), vectors(1)
        second[:20] = first[:20]
        steps = [step_of(first), step_of(second)]
        (result,) = compare_encoders(steps)
        near = [distances(E) < 0.1 for E in (first, second)]
        pairs = [{(i, j) for i in range(40) for j in range(i + 1, 40) if overlap[i, j]} for overlap in near]
        prompts = [{k for pair in some for k in pair} for some in pairs]
        assert 0 < len(pairs[0] & pairs[1]) < min(map(len, pairs))
        assert result.prompts.coefficient == len(prompts[0] & prompts[1]) / min(map(len, prompts))
        assert result.pairs.coefficient == len(pairs[0] & pairs[1]) / min(map(len, pairs))
        assert result.pairs.n == 40 * 39 / 2
        assert (result.pairs.n_first, result.pairs.n_second) == tuple(map(len, pairs))


class TestLaws:
    def test_a_set_that_holds_the_other_overlaps_it_wholly_however_small_that_is(self):
        assert Overlap(n=100, n_first=99, n_second=1, n_both=1).coefficient == 1

    def test_the_same_vectors_share_everything_and_three_encoders_have_three_pairs(self):
        E = vectors(0)
        result = compare_encoders([step_of(E), step_of(2 * E), step_of(vectors(1))])
        assert [(overlap.first, overlap.second) for overlap in result] == [(0, 1), (0, 2), (1, 2)]
        same, scaled, also = result
        assert (same.prompts.coefficient, same.prompts.jaccard, same.pairs.jaccard) == (1, 1, 1)
        assert scaled.prompts == also.prompts
        assert scaled.prompts.jaccard < 1


class TestDegenerate:
    def test_of_empty_sets_there_is_no_overlap(self):
        nothing = measure_overlap(np.zeros(5, bool), np.zeros(5, bool))
        assert np.isnan([nothing.coefficient, nothing.jaccard, nothing.expected_coefficient]).all()
        assert nothing.expected == 0
        overlap = measure_overlap(np.zeros(5, bool), np.ones(5, bool))
        assert np.isnan(overlap.coefficient)
        assert overlap.jaccard == 0
        assert Overlap(n=0, n_first=0, n_second=0, n_both=0).expected == 0

    def test_where_one_flags_nothing_there_is_no_overlap_but_a_reason(self):
        nothing, something = step_of(vectors(0), threshold=1e-6), step_of(vectors(0))
        assert nothing.reason == "no two prompts are called similar below 1e-06"
        (result,) = compare_encoders([something, nothing])
        assert result.prompts is None
        assert result.pairs is None
        assert result.reason == "the similar step flags nothing with an encoder"

    def test_where_one_is_refused_there_is_no_overlap_but_a_reason(self):
        refused = step_of(vectors(0), threshold=1.9)
        assert not refused.similar.flags.flagged.any()
        (result,) = compare_encoders([refused, step_of(vectors(0))])
        assert result.prompts is None
        assert "one group would hold" in refused.reason
        assert result.reason == "the similar step flags nothing with an encoder"

    def test_an_encoder_without_vectors_is_the_reason_of_every_pair_and_one_alone_has_none(self):
        missing = EncoderResult(encoder="another", similar=None, reason="3 prompts have no vector", pairs=None)
        assert (
            compare_encoders([missing, step_of(vectors(0))])[0].reason == "the similar step flags nothing with another"
        )
        assert (
            compare_encoders([missing, missing])[0].reason == "the similar step flags nothing with another and another"
        )
        assert compare_encoders([missing]) == ()
