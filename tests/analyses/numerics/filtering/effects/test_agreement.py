from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score

from analyses.numerics.filtering.effects.agreement import ModelAgreement, measure_agreement, measure_random_agreement
from tracker.statistics.rng_streams import RANDOM_SUBSETS, generator

NAN = float("nan")
RNG = np.random.default_rng(3)
ANSWERS = RNG.integers(-1, 4, (60, 5)).astype(np.int32)
COPIED = np.where(RNG.random((300, 8)) < 0.6, RNG.integers(0, 4, (300, 1)), RNG.integers(-1, 4, (300, 8))).astype(
    np.int32
)

tables = st.tuples(st.integers(0, 9), st.integers(0, 5)).flatmap(
    lambda shape: arrays(np.int32, shape, elements=st.integers(-1, 3))
)


def by_loops(answers: np.ndarray) -> ModelAgreement:
    """Prompt by prompt, answer by answer, for every two models."""
    n, m = answers.shape
    share, kappa = np.full((m, m), NAN), np.full((m, m), NAN)
    for a in range(m):
        for b in range(m):
            both = [p for p in range(n) if answers[p, a] >= 0 and answers[p, b] >= 0]
            if not both:
                continue
            n_same = sum(answers[p, a] == answers[p, b] for p in both)
            share[a, b] = n_same / len(both)
            by_chance = sum(
                sum(answers[p, a] == c for p in both) * sum(answers[p, b] == c for p in both)
                for c in {*answers[both, a].tolist(), *answers[both, b].tolist()}
            )
            if by_chance < len(both) ** 2:
                expected = by_chance / len(both) ** 2
                kappa[a, b] = (n_same / len(both) - expected) / (1 - expected)
    means = []
    for values in (share, kappa):
        known = [values[a, b] for a in range(m) for b in range(a) if not np.isnan(values[a, b])]
        means.append(sum(known) / len(known) if known else NAN)
    return ModelAgreement(share=share, kappa=kappa, mean_share=means[0], mean_kappa=means[1])


def assert_same(result: ModelAgreement, expected: ModelAgreement) -> None:
    for name in ("share", "kappa", "mean_share", "mean_kappa"):
        assert getattr(result, name) == pytest.approx(getattr(expected, name), abs=1e-12, nan_ok=True)


class TestAgainstReference:
    @given(tables)
    @settings(max_examples=60)
    def test_numbers_are_those_of_plain_loops(self, answers) -> None:
        assert_same(measure_agreement(answers), by_loops(answers))

    @pytest.mark.parametrize("answers", [ANSWERS, np.abs(ANSWERS), COPIED[:40]])
    def test_larger_tables_with_and_without_missing_answers_too(self, answers) -> None:
        assert_same(measure_agreement(answers), by_loops(answers))

    def test_kappa_is_that_of_scikit_learn(self) -> None:
        result = measure_agreement(COPIED)
        for a in range(8):
            for b in range(a):
                both = (COPIED[:, [a, b]] >= 0).all(axis=1)
                expected = cohen_kappa_score(COPIED[both, a], COPIED[both, b])
                assert result.kappa[a, b] == pytest.approx(expected, abs=1e-12)

    def test_random_subsets_are_those_of_the_stream_counted_by_loops(self) -> None:
        result = measure_random_agreement(ANSWERS, 20, n_draws=5, seed=7)
        for draw in range(5):
            chosen = generator(7, RANDOM_SUBSETS, draw).choice(60, 20, replace=False)
            expected = by_loops(ANSWERS[chosen])
            assert result.share[draw] == pytest.approx(expected.mean_share, abs=1e-12)
            assert result.kappa[draw] == pytest.approx(expected.mean_kappa, abs=1e-12)

    def test_real_answers_agree_more_often_than_random_letters(self, shared) -> None:
        frame = pd.read_parquet(shared / "data/mmlu_pro/predictions_wide.parquet").set_index("prompt_id")
        codes = {letter: place for place, letter in enumerate("ABCDEFGHIJ")}
        answers = frame.apply(lambda column: column.map(codes)).fillna(-1).to_numpy(dtype=np.int32)
        result = measure_agreement(answers)
        some = [(0, 1), (2, 5), (3, 4)]
        for a, b in some:
            both = (answers[:, [a, b]] >= 0).all(axis=1)
            assert result.kappa[a, b] == pytest.approx(cohen_kappa_score(answers[both, a], answers[both, b]), abs=1e-12)
        assert result.mean_kappa > 0.3


class TestLaws:
    @given(tables, st.randoms(use_true_random=False))
    @settings(max_examples=30)
    def test_neither_the_order_of_prompts_nor_the_numbers_of_answers_matter(self, answers, random) -> None:
        rows, names = [*range(len(answers))], [0, 1, 2, 3]
        random.shuffle(rows)
        random.shuffle(names)
        renamed = np.array([*names, -1], np.int32)[answers[rows]]
        assert_same(measure_agreement(renamed.reshape(answers.shape)), measure_agreement(answers))

    @given(tables)
    @settings(max_examples=30)
    def test_agreement_is_symmetric_within_its_bounds_and_whole_with_oneself(self, answers) -> None:
        result = measure_agreement(answers)
        for values, least in ((result.share, 0.0), (result.kappa, -1.0)):
            assert np.array_equal(values, values.T, equal_nan=True)
            known = values[~np.isnan(values)]
            assert ((known >= least) & (known <= 1)).all()
            assert set(np.diag(values)[~np.isnan(np.diag(values))]) <= {1.0}

    def test_removing_prompts_with_equal_answers_lowers_the_share_more_than_random_subsets_do(self) -> None:
        unanimous = (COPIED[:, :1] == COPIED).all(axis=1)
        unanimous[100:] = False
        before, after = measure_agreement(COPIED), measure_agreement(COPIED[~unanimous])
        drawn = measure_random_agreement(COPIED, int((~unanimous).sum()), n_draws=50, seed=0)
        assert after.mean_share < drawn.share.min()
        assert drawn.share.mean() == pytest.approx(before.mean_share, abs=4 * drawn.share.std() / np.sqrt(50))

    def test_any_number_of_workers_and_the_same_seed_give_the_same_bytes(self) -> None:
        alone = measure_random_agreement(COPIED, 100, n_draws=30, seed=4)
        with joblib.parallel_config(n_jobs=2, backend="threading"):
            beside = measure_random_agreement(COPIED, 100, n_draws=30, seed=4)
        other_seed = measure_random_agreement(COPIED, 100, n_draws=30, seed=5)
        assert alone.share.tobytes() == beside.share.tobytes()
        assert alone.kappa.tobytes() == beside.kappa.tobytes()
        assert alone.share.tobytes() != other_seed.share.tobytes()

    def test_a_subset_of_all_prompts_is_all_of_them(self) -> None:
        whole, drawn = measure_agreement(ANSWERS), measure_random_agreement(ANSWERS, 60, n_draws=3, seed=0)
        assert drawn.share.tolist() == [whole.mean_share] * 3
        assert drawn.kappa.tolist() == [whole.mean_kappa] * 3


class TestDegenerate:
    def test_models_with_one_constant_answer_agree_wholly_and_have_no_kappa(self) -> None:
        result = measure_agreement(np.zeros((5, 2), np.int32))
        assert result.share.tolist() == [[1, 1], [1, 1]]
        assert np.isnan(result.kappa).all()
        assert np.isnan(result.mean_kappa)

    def test_models_with_different_constant_answers_never_agree_and_have_kappa_0(self) -> None:
        result = measure_agreement(np.tile([0, 1], (5, 1)).astype(np.int32))
        assert result.share[0, 1] == 0
        assert result.kappa[0, 1] == 0

    def test_models_that_answered_no_prompt_in_common_have_neither(self) -> None:
        result = measure_agreement(np.array([[0, -1, 0], [-1, 1, 1], [2, -1, 2]], np.int32))
        assert np.isnan([result.share[0, 1], result.kappa[0, 1]]).all()
        assert [result.share[0, 2], result.share[1, 2]] == [1, 1]
        assert result.mean_share == 1

    def test_without_prompts_or_with_one_model_there_is_no_mean(self) -> None:
        for answers in (np.empty((0, 3), np.int32), np.zeros((4, 1), np.int32), np.empty((4, 0), np.int32)):
            assert np.isnan([measure_agreement(answers).mean_share, measure_agreement(answers).mean_kappa]).all()
        assert np.isnan(measure_random_agreement(ANSWERS, 0, n_draws=2, seed=0).share).all()


class TestErrors:
    def test_no_subset_is_larger_than_the_whole(self) -> None:
        with pytest.raises(ValueError, match="larger"):
            measure_random_agreement(ANSWERS, 61, seed=0)
