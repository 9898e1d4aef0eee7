from __future__ import annotations

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from analyses.numerics.weighting.dirichlet_tail import both_tails
from analyses.numerics.weighting.simplex import compute_lead_chances, density, distribution, moments, quantiles

RNG = np.random.default_rng(4)
TINY = np.finfo(float).tiny


def partial_fractions(d, digits=60):
    """P(Σ E_i d_i > 0) for exponential E_i and distinct d_i, in as many digits as are left of so many."""
    with mpmath.workdps(digits):
        exact = [mpmath.mpf(float(x)) for x in d]
        return sum(
            mpmath.fprod([first / (first - second) for i, second in enumerate(exact) if i != j])
            for j, first in enumerate(exact)
            if first > 0
        )


def few_terms(kind, rng):
    n = int(rng.integers(2, 31))
    d = rng.normal(size=n)
    if kind == "shifted":
        d -= rng.uniform(0, 2)
    if kind == "of every size":
        d = np.sign(d) * 10 ** rng.uniform(-8, 0, n)
    if kind == "one against all":
        d = -np.abs(d)
        d[0] = 10 ** rng.uniform(-6, 1)
    return d


def binary(n, k, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random((n, k)) < rng.random((n, 1)) * rng.uniform(0.5, 1, k)).astype(float)


class TestAgainstReference:
    @pytest.mark.parametrize("kind", ["centred", "shifted", "of every size", "one against all"])
    def test_both_tails_equal_partial_fractions_at_60_digits(self, kind):
        rng = np.random.default_rng(7)
        smallest = 1.0
        for _ in range(60):
            d = few_terms(kind, rng)
            if not ((d > 0).any() and (d < 0).any()):
                continue
            up, down, _ = both_tails(d, np.ones(len(d)), False)
            assert up == pytest.approx(float(partial_fractions(d)), rel=1e-10)
            assert down == pytest.approx(float(partial_fractions(-d)), rel=1e-10)
            smallest = min(smallest, up, down)
        assert smallest < (1e-3 if kind == "centred" else 1e-20 if kind == "one against all" else 1e-5)

    @pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
    def test_only_the_ratios_of_differences_matter(self, scale):
        d = np.array([0.3, -1.0, 0.45, -0.2])
        assert both_tails(d * scale, np.ones(4), False)[0] == pytest.approx(float(partial_fractions(d)), rel=1e-12)

    def test_two_terms_of_any_shape_equal_the_incomplete_beta_function(self):
        rng = np.random.default_rng(1)
        for _ in range(300):
            (a, b), (p, q) = 10 ** rng.uniform(-4, 3, 2), 10 ** rng.uniform(-3, 0, 2)
            up, down, _ = both_tails(np.array([p, -q]), np.array([a, b]), False)
            for actual, expected in (
                (up, special.betainc(b, a, p / (p + q))),
                (down, special.betainc(a, b, q / (p + q))),
            ):
                assert actual == pytest.approx(expected, rel=1e-10, abs=1e-290)

    @pytest.mark.parametrize("shapes", [[0.05, 0.1, 0.2], [0.5, 1.0, 2.3], [30.0, 4.5, 20.25]])
    def test_any_shapes_agree_with_a_million_draws(self, shapes):
        d = np.array([1.0, -2.0, -0.5])
        drawn = np.random.default_rng(2).standard_gamma(shapes, (10**6, 3)) @ d > 0
        up, down, _ = both_tails(d, np.array(shapes), False)
        assert up == pytest.approx(drawn.mean(), abs=4.5 * np.sqrt(up * down / 10**6))

    def test_terms_of_hardly_any_shape_are_chosen_in_proportion_to_it(self):
        up, _, _ = both_tails(np.array([1.0, -2.0, -0.5]), np.array([1e-5, 2e-5, 1e-5]), False)
        assert up == pytest.approx(0.25, abs=1e-5)

    @pytest.mark.parametrize("n", [200, pytest.param(3000, marks=pytest.mark.soak)])
    @pytest.mark.parametrize("kind", ["continuous", "binary"])
    def test_many_terms_agree_with_a_million_draws(self, n, kind):
        rng = np.random.default_rng(n)
        d = rng.normal(0.02, 1, n) * rng.exponential(size=n)
        if kind == "binary":
            d = rng.choice([-1.0, 0.0, 1.0], n, p=[0.2, 0.59, 0.21])
        n_draws, ahead = 10**6, 0
        for _ in range(n_draws // 5000):
            ahead += (rng.standard_exponential((5000, n), dtype=np.float32) @ d.astype(np.float32) > 0).sum()
        up, down, _ = both_tails(d, np.ones(n), False)
        assert up == pytest.approx(ahead / n_draws, abs=4.5 * np.sqrt(up * down / n_draws))

    def test_chances_of_binary_models_are_binomial_tails(self):
        X = binary(300, 9)
        result = compute_lead_chances(X, np.ones(300))
        for i in range(9):
            for j in range(9):
                a, b = int((X[:, i] > X[:, j]).sum()), int((X[:, j] > X[:, i]).sum())
                assert (result.better[i, j], result.better[j, i]) == (a, b)
                if i != j:
                    assert result.beats[i, j] == pytest.approx(stats.binom.sf(b - 1, a + b - 1, 0.5), rel=1e-11)
                    assert result.beats[i, j] == pytest.approx(special.betainc(b, a, 0.5), rel=1e-12)

    def test_far_tails_of_binary_models_keep_their_digits(self):
        X = np.zeros((1000, 2))
        X[:990, 0] = X[990:, 1] = 1
        with mpmath.workdps(60):
            tail = sum(mpmath.binomial(999, i) for i in range(990, 1000)) / mpmath.mpf(2) ** 999
        assert compute_lead_chances(X, np.ones(1000)).beats[1, 0] == pytest.approx(float(tail), rel=1e-10)
        assert tail < 1e-270

    def test_the_two_routes_agree_on_binary_models(self):
        X = binary(400, 6)
        weights = RNG.gamma(2.0, size=400)
        weights *= weights.sum() / (weights**2).sum()
        for alpha in (np.ones(400), weights):
            closed, contour = (
                compute_lead_chances(X, alpha),
                compute_lead_chances(np.hstack([X, np.full((400, 1), 0.25)]), alpha),
            )
            assert contour.beats[:6, :6] == pytest.approx(closed.beats, rel=1e-10)
            assert (contour.better[:6, :6] == closed.better).all()

    def test_weighted_accuracy_is_a_beta_variable(self):
        x, levels = binary(500, 1)[:, 0], np.array([1e-5, 0.025, 0.5, 0.975, 1 - 1e-5])
        c = x.sum()
        expected = stats.beta(c, 500 - c)
        assert quantiles(x, np.ones(500), levels) == pytest.approx(expected.ppf(levels), rel=1e-10)
        (mean,), (sd,) = moments(x[:, None], np.ones(500))
        assert (mean, sd) == pytest.approx((expected.mean(), expected.std()), rel=1e-12)
        assert sd == pytest.approx(np.sqrt(mean * (1 - mean) / 501), rel=1e-12)
        at = np.linspace(0.3, 0.7, 5)
        assert density(x, np.ones(500), at) == pytest.approx(expected.pdf(at), rel=1e-9)

    def test_the_contour_finds_the_quantiles_of_a_beta_variable(self):
        """A third value of next to no weight takes the general route."""
        x, levels = np.append(binary(500, 1)[:, 0], 0.5), np.array([1e-5, 0.025, 0.5, 0.975, 1 - 1e-5])
        c = x[:500].sum()
        result = quantiles(x, np.append(np.ones(500), 1e-12), levels)
        assert result == pytest.approx(stats.beta(c, 500 - c).ppf(levels), rel=1e-9)

    def test_distribution_and_density_of_few_scores_equal_partial_fractions(self):
        x = np.array([-0.4, 0.1, 0.3, 0.9, 2.0])
        for t in (-0.3, 0.2, 0.31, 1.7):
            below = float(partial_fractions(t - x))
            assert distribution(x, np.ones(5), np.array([t]))[0] == pytest.approx(below, rel=1e-12)
            with mpmath.workdps(60):
                slope = mpmath.diff(lambda u: _mp_distribution(x, u), mpmath.mpf(t))
            assert density(x, np.ones(5), np.array([t]))[0] == pytest.approx(float(slope), rel=1e-10)

    def test_quantiles_of_continuous_scores_agree_with_draws(self):
        x = RNG.beta(0.3, 1.0, 150)
        drawn = RNG.dirichlet(np.ones(150), 100_000) @ x
        for level in (0.025, 0.5, 0.975):
            below = (drawn < quantiles(x, np.ones(150), np.array([level]))[0]).mean()
            assert below == pytest.approx(level, abs=4.5 * np.sqrt(level * (1 - level) / 100_000))


def _mp_distribution(x, t):
    exact = [t - mpmath.mpf(float(score)) for score in x]
    return sum(
        mpmath.fprod([first / (first - second) for i, second in enumerate(exact) if i != j])
        for j, first in enumerate(exact)
        if first > 0
    )


def scores(max_prompts=12, models=3):
    some = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(-2, 2).map(lambda x: round(x, 3)))
    return st.integers(1, max_prompts).flatmap(lambda n: arrays(np.float64, (n, models), elements=some))


class TestLaws:
    @given(scores())
    def test_chances_of_two_models_add_up_to_one(self, X):
        result = compute_lead_chances(X, np.ones(len(X)))
        assert result.beats + result.beats.T == pytest.approx(1.0, abs=1e-15)
        assert ((result.beats >= 0) & (result.beats <= 1)).all()
        never_worse = (result.better.T == 0) & (result.better > 0)
        assert (result.beats[never_worse] == 1).all()
        assert (result.beats[(result.better == 0) & (result.better.T == 0)] == 0.5).all()

    @given(scores(), st.permutations(range(3)), st.randoms(use_true_random=False))
    def test_the_order_of_models_and_prompts_does_not_matter(self, X, models, random):
        prompts = list(range(len(X)))
        random.shuffle(prompts)
        first, second = (
            compute_lead_chances(X, np.ones(len(X))),
            compute_lead_chances(X[prompts][:, models], np.ones(len(X))),
        )
        assert second.beats == pytest.approx(first.beats[np.ix_(models, models)], rel=1e-10)

    @given(scores(), st.sampled_from([-1.0, 0.25, 3.0]))
    def test_scores_can_be_moved_and_turned_round(self, X, factor):
        first, second = (
            compute_lead_chances(X, np.ones(len(X))),
            compute_lead_chances(factor * X + 0.5, np.ones(len(X))),
        )
        expected = first.beats if factor > 0 else first.beats.T
        assert second.beats == pytest.approx(expected, rel=1e-7, abs=1e-9)

    @given(scores(models=1), st.sampled_from([1.0, 0.4, 2.5]))
    def test_quantiles_match_the_distribution(self, X, shape):
        x, levels = X[:, 0], np.array([1e-5, 0.025, 0.4, 0.975, 1 - 1e-5])
        assume(len(np.unique(x)) > 2)
        alpha = np.full(len(x), shape)
        result = quantiles(x, alpha, levels)
        assert (np.diff(result) >= 0).all()
        assert x.min() <= result[0]
        assert result[-1] <= x.max()
        inside = (result > x.min() + 1e-9) & (result < x.max() - 1e-9)
        assert distribution(x, alpha, result[inside]) == pytest.approx(levels[inside], rel=1e-8)

    def test_splitting_a_prompt_in_two_changes_nothing(self):
        X = RNG.random((20, 4))
        halves = np.full(20, 1.0)
        halves[0] = 0.5
        first = compute_lead_chances(X, np.ones(20)).beats
        second = compute_lead_chances(np.vstack([X, X[:1]]), np.append(halves, 0.5)).beats
        assert second == pytest.approx(first, rel=1e-11)

    def test_equal_scores_up_to_rounding_are_the_same_score(self):
        x = RNG.random(30)
        result = compute_lead_chances(np.stack([x, x * (1 + 2e-16), x + 1e-15], axis=1), np.ones(30))
        assert (result.beats == 0.5).all()
        assert (result.better == 0).all()


class TestDegenerate:
    def test_one_prompt_decides_everything(self):
        result = compute_lead_chances(np.array([[0.2, 0.9, 0.2]]), np.ones(1))
        assert result.beats.tolist() == [[0.5, 0, 0.5], [1, 0.5, 1], [0.5, 0, 0.5]]

    def test_no_weights_can_change_a_constant_score(self):
        X = np.full((7, 1), 0.1)
        (mean,), (sd,) = moments(X, np.ones(7))
        assert (mean, sd) == (0.1, 0.0)
        assert quantiles(X[:, 0], np.ones(7), np.array([0.025, 0.975])).tolist() == [0.1, 0.1]

    def test_all_right_and_all_wrong_are_sure(self):
        X = np.array([[1.0, 0, 1]] * 5)
        assert compute_lead_chances(X, np.ones(5)).beats.tolist() == [[0.5, 1, 0.5], [0, 0.5, 0], [0.5, 1, 0.5]]

    def test_one_model_has_nobody_to_beat(self):
        for column in (np.array([[0.0], [1.0]]), RNG.random((5, 1))):
            assert compute_lead_chances(column, np.ones(len(column))).beats.tolist() == [[0.5]]

    def test_a_chance_too_small_for_a_float_is_zero_and_its_opposite_one(self):
        X = np.zeros((5000, 2))
        X[:4990, 0] = X[4990:, 1] = 1
        for table in (X, np.hstack([X, np.full((5000, 1), 0.3)])):
            result = compute_lead_chances(table, np.ones(5000))
            assert (result.beats[1, 0], result.beats[0, 1]) == (0.0, 1.0)
            assert (result.better[1, 0], result.better[0, 1]) == (10, 4990)
