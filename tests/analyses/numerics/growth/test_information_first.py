from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.filtering.item_response import fit_two_parameter
from analyses.numerics.growth.information_first import know_probabilities, order_by_information, prompt_information
from analyses.numerics.growth.predicted_means import N_GROUPS, fit_other_models, predict_means
from analyses.numerics.growth.prediction_errors import measure_prediction_errors
from tracker.statistics.rng_streams import stream_key

RNG = np.random.default_rng(3)
FLOORS = np.repeat([0.0, 0.25], 30)
ABILITY, DIFFICULTY = RNG.normal(size=12), RNG.normal(size=60)
KNOWS = 1 / (1 + np.exp(-1.5 * (ABILITY - DIFFICULTY[:, None])))
RIGHT = (RNG.random((60, 12)) < FLOORS[:, None] + (1 - FLOORS[:, None]) * KNOWS).astype(float)


def plain_order(information: np.ndarray, start: int | None) -> list[int]:
    """Look at every remaining prompt at each step."""
    rows, precision = [], np.ones(information.shape[1])
    while len(rows) < len(information):
        gains = [
            -1 if i in rows else (1 / precision - 1 / (precision + information[i])).sum()
            for i in range(len(information))
        ]
        rows.append(start if not rows and start is not None else int(np.argmax(gains)))
        precision = precision + information[rows[-1]]
    return rows


class TestAgainstReference:
    @settings(max_examples=15)
    @given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4), st.booleans())
    def test_lazy_evaluation_finds_the_order_of_the_plain_search(self, seed, n, k, has_start):
        information = np.random.default_rng(seed).exponential(size=(n, k))
        start = n - 1 if has_start else None
        result = order_by_information(information, start)
        assert result.rows.tolist() == plain_order(information, start)
        variances = 1 / (1 + np.cumsum(information[result.rows], axis=0))
        assert np.cumsum(result.distances) == pytest.approx(1 - variances.mean(axis=1))

    def test_information_is_the_mean_squared_slope_of_the_log_likelihood(self):
        fit, h = fit_two_parameter(RIGHT, FLOORS), 1e-5

        def chances(ability):
            return FLOORS[:, None] + (1 - FLOORS[:, None]) * know_probabilities(fit, ability)

        slope = (chances(ABILITY + h) - chances(ABILITY - h)) / (2 * h)
        P = chances(ABILITY)
        assert prompt_information(fit, FLOORS, ABILITY) == pytest.approx(slope**2 / (P * (1 - P)), rel=1e-5)

    def test_a_predicted_mean_joins_observed_scores_and_chances_at_the_most_probable_ability(self):
        weights, sizes = RNG.gamma(4, size=60), np.array([7, 40])
        fits, order = fit_other_models(RIGHT, FLOORS), RNG.permutation(60)
        predicted, plain = predict_means(RIGHT, FLOORS, weights, sizes, fits, order)
        group = fits[2]
        grid = np.linspace(-5, 5, 20_001)
        P = FLOORS[:, None] + (1 - FLOORS[:, None]) * know_probabilities(group.fit, grid)
        for column in group.columns:
            for place, size in enumerate(sizes):
                first, rest = order[:size], order[size:]
                scores = RIGHT[first, column]
                likelihood = np.where(scores[:, None] == 1, np.log(P[first]), np.log1p(-P[first])).sum(axis=0)
                best = np.argmax(likelihood - grid**2 / 2)
                total = weights[first] @ scores + weights[rest] @ P[rest, best]
                assert predicted[place, column] == pytest.approx(total / weights.sum(), abs=2e-4)
                assert plain[place, column] == pytest.approx(np.average(scores, weights=weights[first]))


class TestLaws:
    def test_every_model_is_in_one_group_whose_fit_does_not_depend_on_it(self):
        fits = fit_other_models(RIGHT, FLOORS)
        assert len(fits) == N_GROUPS
        assert sorted(np.concatenate([group.columns for group in fits])) == list(range(12))
        alone = fit_two_parameter(np.delete(RIGHT, fits[1].columns, axis=1), FLOORS)
        assert alone.difficulty.tobytes() == fits[1].fit.difficulty.tobytes()

    def test_errors_of_plain_means_fall_with_the_number_of_prompts(self):
        errors = measure_prediction_errors(RIGHT, FLOORS, np.ones(60), n_orders=5, key=stream_key(0))
        assert errors.sizes.tolist() == [10, 20, 50]
        assert errors.n_orders == 5
        assert (np.diff(errors.random_plain) < 0).all()
        assert (errors.random < errors.random_plain)[0]
