from __future__ import annotations

import itertools
import statistics

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analyses.numerics.filtering.effects.stability import count_subsets, decide_by_subset, summarize_population
from analyses.numerics.filtering.removal import draw_retained
from analyses.numerics.filtering.step_flags import find_confidently_right, find_kept, make_flags

N_PROMPTS, N_MODELS = 24, 5
SHARES = st.sampled_from([0.0, 0.1, 0.5, 1.0])


@st.composite
def evidence(draw):
    """Who is sure with the question and without, and what other steps remove."""
    often = arrays(np.bool_, (N_PROMPTS, N_MODELS), elements=st.integers(0, 5).map(bool))
    return draw(often), draw(st.none() | often), draw(arrays(np.bool_, N_PROMPTS))


def slow(sure, sure_blind, otherwise, subset, retain, seed):
    """The steps of one filter, as the definitions say."""
    easy = find_confidently_right(sure[:, subset], None, 0)
    steps = [make_flags(easy, easy & ~draw_retained(easy, retain, seed=seed)), make_flags(otherwise)]
    if sure_blind is not None:
        steps.append(make_flags(find_confidently_right(sure_blind[:, subset], None, 0)))
    return easy, ~find_kept(steps, len(sure))


class TestAgainstReference:
    @given(evidence(), st.lists(st.integers(1, N_MODELS), min_size=1, max_size=3, unique=True), SHARES)
    def test_every_subset_is_filtered_by_the_steps(self, inputs, sizes, retain):
        result = decide_by_subset(*inputs, sizes=sizes, retain=retain, seed=3)
        expected = [subset for size in sizes for subset in itertools.combinations(range(N_MODELS), size)]
        assert list(result.subsets) == expected
        assert len(expected) == count_subsets(N_MODELS, sizes)
        assert result.sizes.tolist() == [len(subset) for subset in expected]
        _, by_all = slow(*inputs, list(range(N_MODELS)), retain, 3)
        assert result.by_all.tolist() == by_all.tolist()
        for place, subset in enumerate(expected):
            easy, removed = slow(*inputs, list(subset), retain, 3)
            assert result.n_easy[place] == sum(easy)
            assert result.n_retained[place] == round(retain * sum(easy))
            assert result.n_contaminated[place] == (
                inputs[1][:, subset].all(axis=1).sum() if inputs[1] is not None else 0
            )
            assert result.share_removed[place] == sum(removed) / N_PROMPTS
            assert result.share_changed[place] == sum(removed != by_all) / N_PROMPTS

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
    def test_the_spread_is_that_of_the_whole_population(self, values):
        result = summarize_population(np.array(values))
        assert result.mean == pytest.approx(statistics.fmean(values))
        assert result.sd == pytest.approx(statistics.pstdev(values), abs=1e-9)
        assert (result.min, result.max) == (min(values), max(values))


class TestLaws:
    @given(evidence(), SHARES)
    def test_fewer_models_agree_on_more_prompts(self, inputs, retain):
        result = decide_by_subset(*inputs, sizes=(2, 3), retain=retain, seed=0)
        counts = dict(zip(result.subsets, zip(result.n_easy, result.n_contaminated, strict=True), strict=True))
        for subset in (subset for subset in result.subsets if len(subset) == 3):
            for smaller in itertools.combinations(subset, 2):
                assert all(few >= many for few, many in zip(counts[smaller], counts[subset], strict=True))

    @given(evidence(), SHARES)
    def test_all_models_change_nothing(self, inputs, retain):
        result = decide_by_subset(*inputs, sizes=(N_MODELS,), retain=retain, seed=0)
        assert result.n_changed.tolist() == [0]
        assert result.n_removed.tolist() == [result.by_all.sum()]

    def test_any_number_of_workers_gives_the_same_bytes(self):
        rng = np.random.default_rng(0)
        inputs = rng.random((200, 10)) < 0.9, rng.random((200, 10)) < 0.7, rng.random(200) < 0.1
        alone = decide_by_subset(*inputs, sizes=(4, 5), retain=0.1, seed=1)
        with joblib.parallel_config(n_jobs=2, backend="threading"):
            shared = decide_by_subset(*inputs, sizes=(4, 5), retain=0.1, seed=1)
        assert alone.subsets == shared.subsets
        assert alone.n_removed.tobytes() == shared.n_removed.tobytes()
        assert (
            decide_by_subset(*inputs, sizes=(4, 5), retain=0.1, seed=2).n_removed.tolist() != alone.n_removed.tolist()
        )


class TestDegenerate:
    def test_a_single_model_is_its_only_subset(self):
        result = decide_by_subset(np.ones((3, 1), bool), None, np.zeros(3, bool), sizes=(1,), retain=0.0, seed=0)
        assert result.share_removed.tolist() == [1.0]
        assert summarize_population(result.share_removed).sd == 0
