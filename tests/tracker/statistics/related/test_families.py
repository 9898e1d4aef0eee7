from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tracker.model_names.series import find_series
from tracker.statistics.related.families import compute_priority, group_models

RANKS = st.floats(0, 1)
NONE = np.zeros((4, 4))


class TestNames:
    @pytest.mark.parametrize(
        ("series", "names"),
        [
            ("llama", ["Llama-2-7b-hf", "meta-llama/Meta-Llama-3.1-70B-Instruct", "Llama-3 (run 4)"]),
            ("mistral", ["mathstral-7B", "Mixtral-8x7B-Instruct-v0.1", "mistralai__Mistral-7B-v0.1"]),
            ("gpt", ["gpt2", "openai-community/gpt2#2", "gpt-4o-2024-05-13"]),
            ("aurora", ["aurora-7b", "org/Aurora-70B-instruct", "aurora_chat-2024-05-13", "aurora-0613"]),
        ],
    )
    def test_models_of_one_series(self, series, names):
        assert {find_series(name) for name in names} == {series}

    def test_numbered_models_and_sizes_alone_are_no_series(self):
        names = ["model 0", "model 1", "model-7b", "model-13b", "7b", "m1", "m2", "candidate-1"]
        assert len({find_series(name) for name in names}) == len(names)


class TestGroups:
    def test_the_best_of_a_family_stands_for_it(self):
        families = group_models(["a", "b", "a", ""], NONE, NONE > 0, np.array([0.0, 1.0, 2.0, 3.0]))
        assert families.groups == ((2, 0), (1,), (3,))
        assert families.kept.tolist() == [1, 2, 3]

    def test_a_chain_of_near_copies_is_not_one_family(self):
        copies = np.zeros((3, 3), dtype=bool)
        for i, j in ((0, 1), (1, 2)):
            copies[i, j] = copies[j, i] = True
        families = group_models([""] * 3, copies * 0.5, copies, np.array([2.0, 1.0, 0.0]))
        assert families.groups == ((0, 1), (2,))

    def test_a_label_decides_before_agreement_and_agreement_between_copies(self):
        copies = np.ones((4, 4), dtype=bool)
        copies[:2, :2] = False
        excess = np.zeros((4, 4))
        excess[2, 1] = excess[1, 2] = 0.9
        families = group_models(["x", "y", "", "x"], excess, copies, np.arange(4.0, 0, -1))
        assert families.representative.tolist() == [0, 1, 1, 0]

    @given(
        st.integers(1, 8).flatmap(lambda k: st.tuples(arrays(bool, (k, k)), arrays(float, k, elements=st.floats(0, 1))))
    )
    def test_no_two_representatives_are_related_and_all_others_are_to_theirs(self, drawn):
        copies, priority = drawn
        copies = copies | copies.T
        families = group_models([""] * len(copies), copies * 1.0, copies, priority)
        kept = families.kept
        assert not (copies[np.ix_(kept, kept)] & ~np.eye(len(kept), dtype=bool)).any()
        for column, representative in enumerate(families.representative.tolist()):
            assert column == representative or copies[column, representative]
        assert sorted(column for group in families.groups for column in group) == list(range(len(copies)))

    def test_models_with_few_scores_come_last_and_ties_in_order(self):
        Q = np.array([[1, 1, 0, 1], [1, 0, 1, 1.0], [np.nan, 0, 1, 1], [np.nan, 1, 1, 1]])
        Q[1, 0] = np.nan
        assert np.argsort(-compute_priority(Q, higher_is_better=True)).tolist() == [3, 2, 1, 0]
        assert np.argsort(-compute_priority(Q, higher_is_better=False)).tolist() == [1, 2, 3, 0]
        assert np.argsort(-compute_priority(np.ones((2, 3)), higher_is_better=True)).tolist() == [0, 1, 2]
