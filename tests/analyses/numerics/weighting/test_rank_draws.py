from __future__ import annotations

import itertools

import joblib
import numpy as np
import pytest
from scipy import stats

from analyses.numerics.weighting.exponentials import WIDTH, fill_exponentials
from analyses.numerics.weighting.rank_draws import BLOCK, GAMMA, draw_rankings
from analyses.numerics.weighting.simplex import compute_lead_chances

RNG = np.random.default_rng(8)
BINARY = (RNG.random((90, 6)) < RNG.random((90, 1)) * np.linspace(0.7, 1, 6)).astype(float)
CONTINUOUS = RNG.normal(np.linspace(0, 0.3, 5), 1, (60, 5))


def plain_places(X, alpha, n_draws, rng):
    """Shares of places by NumPy's Dirichlet weights and a sort."""
    means = rng.dirichlet(alpha, n_draws) @ X
    order = np.argsort(-means, axis=1)
    return np.array([(order == model).mean(axis=0) for model in range(X.shape[1])])


def alone(X):
    return np.arange(X.shape[1])


class TestAgainstReference:
    @pytest.mark.parametrize("X", [BINARY, CONTINUOUS])
    @pytest.mark.parametrize("shape", [1.0, 0.6, 3.0])
    def test_places_agree_with_a_sort_of_dirichlet_weighted_means(self, X, shape):
        alpha = np.full(len(X), shape) * (1 if shape == 1 else RNG.uniform(0.5, 1.5, len(X)))
        result = draw_rankings(X, alpha, alone(X), n_draws=40_000, seed=1).places / 40_000
        expected = plain_places(X, alpha, 40_000, np.random.default_rng(2))
        error = np.sqrt(2 * expected * (1 - expected) / 40_000)
        assert (np.abs(result - expected) <= 4.5 * error + 1e-4).all()

    @pytest.mark.parametrize("X", [BINARY, CONTINUOUS])
    def test_the_share_of_draws_ahead_agrees_with_the_exact_chance(self, X):
        exact = compute_lead_chances(X, np.ones(len(X))).beats
        result = draw_rankings(X, np.ones(len(X)), alone(X), n_draws=40_000, seed=3).ahead / 40_000
        error = np.sqrt(exact * (1 - exact) / 40_000)
        off_diagonal = ~np.eye(X.shape[1], dtype=bool)
        assert (np.abs(result - exact) <= 4.5 * error)[off_diagonal].all()

    def test_many_prompts_with_the_same_scores_are_drawn_at_once_and_count_as_many(self):
        X = np.repeat([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]], [3 * GAMMA, 3 * GAMMA + 4, GAMMA - 3], axis=0)
        exact = compute_lead_chances(X, np.ones(len(X))).beats
        result = draw_rankings(X, np.ones(len(X)), alone(X), n_draws=100_000, seed=3).ahead / 100_000
        assert np.abs(result - exact)[~np.eye(3, dtype=bool)].max() < 0.007

    def test_kept_means_are_those_of_normalised_weights(self):
        x = BINARY[:, 0]
        result = draw_rankings(BINARY, np.ones(90), alone(BINARY), n_draws=20_000, seed=0, keep_means=True).means[0]
        assert stats.kstest(result, stats.beta(x.sum(), 90 - x.sum()).cdf).pvalue > 1e-3

    def test_exponentials_are_logarithms_of_their_words(self):
        words = np.append(RNG.integers(0, 2**32, 3 * WIDTH + 5, dtype=np.uint32), [0, 1, 2**31, 2**32 - 1])
        drawn = np.empty(words.size, np.float32)
        fill_exponentials(words.astype(np.uint32), drawn)
        assert drawn == pytest.approx(-np.log((words.astype(float) + 0.5) / 2**32), abs=1e-6)
        assert (drawn >= 0).all()


class TestLaws:
    def test_every_draw_gives_every_place_once(self):
        result = draw_rankings(CONTINUOUS, np.ones(60), alone(CONTINUOUS), n_draws=BLOCK + 7, seed=0)
        assert (result.places.sum(axis=0) == BLOCK + 7).all()
        assert (result.places.sum(axis=1) == BLOCK + 7).all()
        both = result.ahead + result.ahead.T
        assert (both[~np.eye(5, dtype=bool)] == BLOCK + 7).all()

    @pytest.mark.parametrize(
        ("X", "n_jobs", "backend"), [(BINARY, 2, "threading"), (CONTINUOUS, 3, "threading"), (CONTINUOUS, 2, "loky")]
    )
    def test_any_number_of_workers_gives_the_same_bytes(self, X, n_jobs, backend):
        def run():
            return draw_rankings(X, np.ones(len(X)), alone(X), n_draws=3 * BLOCK + 1, seed=5, keep_means=True)

        first = run()
        with joblib.parallel_config(n_jobs=n_jobs, backend=backend):
            second = run()
        for name in ("places", "ahead", "means"):
            assert getattr(first, name).tobytes() == getattr(second, name).tobytes()

    def test_another_seed_gives_other_draws(self):
        a, b = (draw_rankings(CONTINUOUS, np.ones(60), alone(CONTINUOUS), n_draws=500, seed=s).places for s in (0, 1))
        assert (a != b).any()

    def test_more_draws_begin_with_the_same_ones(self):
        few, many = (
            draw_rankings(CONTINUOUS, np.ones(60), alone(CONTINUOUS), n_draws=n, seed=0, keep_means=True).means
            for n in (2 * BLOCK, 3 * BLOCK)
        )
        assert (many[:, : 2 * BLOCK] == few).all()

    def test_models_that_differ_on_one_prompt_are_separated_in_every_draw(self):
        x = (RNG.random(3000) < 0.6).astype(float)
        y = x.copy()
        y[np.flatnonzero(x == 0)[0]] = 1
        result = draw_rankings(np.stack([x, y], axis=1), np.ones(3000), np.arange(2), n_draws=5000, seed=0)
        assert result.ahead.tolist() == [[0, 0], [5000, 0]]

    def test_identical_models_share_the_best_of_their_places(self):
        X = CONTINUOUS[:, [0, 1, 0, 2]]
        twins = np.array([0, 1, 0, 3])
        result = draw_rankings(X, np.ones(60), twins, n_draws=2000, seed=0)
        assert (result.places[0] == result.places[2]).all()
        assert result.places[0, 3] == 0
        lone = draw_rankings(CONTINUOUS[:, :3], np.ones(60), np.arange(3), n_draws=2000, seed=0)
        assert result.places[0, 0] == lone.places[0, 0]
        for i, j in itertools.product(range(3), range(3)):
            assert result.ahead[[0, 1, 3][i], [0, 1, 3][j]] == lone.ahead[i, j]
