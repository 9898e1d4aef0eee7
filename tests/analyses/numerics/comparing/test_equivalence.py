"""Two one-sided tests against statsmodels, exact enumeration and simulated null tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom
from statsmodels.stats.weightstats import DescrStatsW

from analyses.numerics.comparing.equivalence import score_equivalence, score_statistic, t_equivalence
from tracker.statistics.grouping import Grouping
from tracker.statistics.paired_differences import estimate_clustered_mean, estimate_mean


def plain_statistic(n_a: int, n_b: int, n: int, difference: float) -> float:
    """Tango's z with the likelihood maximized by search."""
    lowest, highest = max(0.0, -difference), (1 - difference) / 2

    def deviance(q: float) -> float:
        shares = np.array([q + difference, q, 1 - 2 * q - difference])
        counts = np.array([n_a, n_b, n - n_a - n_b])
        return -float((counts[counts > 0] * np.log(np.maximum(shares[counts > 0], 1e-300))).sum())

    q = minimize_scalar(deviance, bounds=(lowest, highest), method="bounded", options={"xatol": 1e-12}).x
    return (n_a - n_b - n * difference) / np.sqrt(n * (2 * q + difference - difference**2))


def exact_level(n: int, margin: float, only_second: float) -> float:
    """Chance that equivalence is found although the true difference is the margin, by enumeration."""
    differing = 2 * only_second + margin
    chance_of_first, level = (only_second + margin) / differing, 0.0
    for total, weight in enumerate(binom.pmf(np.arange(n + 1), n, differing).tolist()):
        if weight < 1e-9:
            continue
        first = np.arange(total + 1)
        rejected = [score_equivalence(a, total - a, n, margin=margin).is_equivalent for a in first.tolist()]
        level += weight * float(binom.pmf(first, total, chance_of_first)[rejected].sum())
    return level


def t_level(sizes: tuple[int, ...] | None, n: int, margin: float, n_tables: int) -> float:
    """The same for Student's t, by simulation: clusters that differ, or independent skewed scores."""
    rng = np.random.default_rng(5)
    n_rejected = 0
    for _ in range(n_tables):
        if sizes is None:
            d = margin + rng.gamma(2.0, 0.1, n) - 0.2
            estimate = estimate_mean(d, scale=1.0)
        else:
            codes = np.repeat(np.arange(len(sizes)), sizes)
            effect = margin + rng.normal(0, 0.03, len(sizes))[codes]
            u = rng.random(len(codes))
            d = np.where(u < 0.15 + effect / 2, 1.0, np.where(u > 0.85 + effect / 2, -1.0, 0.0))
            groups = Grouping(codes=codes, sizes=np.array(sizes), n_alone=0)
            correction = "CR1" if groups.is_even else "CR2"
            estimate = estimate_clustered_mean(d, groups, scale=1.0, correction=correction)
        n_rejected += t_equivalence(estimate, margin=margin).is_equivalent
    return n_rejected / n_tables


class TestAgainstReference:
    def test_t_is_that_of_statsmodels(self):
        d = np.random.default_rng(1).normal(0.01, 0.2, 400)
        test = t_equivalence(estimate_mean(d, scale=1.0), margin=0.03)
        reference = DescrStatsW(d)
        assert test.pvalue == pytest.approx(reference.ttost_mean(-0.03, 0.03)[0], rel=1e-9)
        assert (test.low, test.high) == pytest.approx(reference.tconfint_mean(alpha=0.1), rel=1e-9)

    @pytest.mark.parametrize("counts", [(12, 7, 100), (1, 4, 60), (0, 3, 50), (40, 10, 50)])
    @pytest.mark.parametrize("difference", [-0.2, -0.013, 0.05, 0.3])
    def test_the_statistic_maximizes_the_likelihood(self, counts, difference):
        assert score_statistic(*counts, difference) == pytest.approx(plain_statistic(*counts, difference), abs=1e-4)

    def test_the_interval_inverts_the_statistic(self):
        test = score_equivalence(12, 7, 100, margin=0.1)
        for end, bracket, sign in ((test.low, (-0.5, 0.04), 1), (test.high, (0.06, 0.5), -1)):
            expected = brentq(lambda x, sign=sign: plain_statistic(12, 7, 100, x) - sign * 1.6448536, *bracket)
            assert end == pytest.approx(expected, abs=1e-5)

    def test_the_published_example_has_its_interval(self):
        """Tango 1998: of 44 pairs in a cross-over trial of contact lenses, one differs."""
        low, high = (getattr(score_equivalence(1, 0, 44, margin=0.1, alpha=0.025), end) for end in ("low", "high"))
        assert (low, high) == pytest.approx((-0.060, 0.118), abs=2e-3)


class TestLaws:
    @pytest.mark.parametrize(("n_a", "n_b", "n"), [(0, 0, 50), (3, 1, 300), (25, 31, 400), (9, 9, 90)])
    def test_equivalence_is_an_interval_within_the_margin(self, n_a, n_b, n):
        for margin in (0.005, 0.02, 0.05, 0.1, 0.3):
            test = score_equivalence(n_a, n_b, n, margin=margin)
            assert test.is_equivalent == (-margin <= test.low and test.high <= margin)
            assert -1 <= test.low < test.high <= 1
            mirrored = score_equivalence(n_b, n_a, n, margin=margin)
            assert (mirrored.low, mirrored.high, mirrored.pvalue) == pytest.approx((-test.high, -test.low, test.pvalue))

    def test_few_equal_prompts_show_no_equivalence(self):
        assert not score_equivalence(0, 0, 100, margin=0.01).is_equivalent
        assert score_equivalence(0, 0, 1000, margin=0.01).is_equivalent
        estimate = estimate_mean(np.zeros(30), scale=1.0)
        assert not t_equivalence(estimate, margin=0.5).is_equivalent
        assert np.isnan(t_equivalence(estimate, margin=0.5).low)

    @pytest.mark.parametrize("mean", [0.0, 0.004, -0.004])
    @pytest.mark.parametrize("n", [100, 1000])
    def test_prompts_that_agree_show_equivalence_if_few_others_can_differ(self, n, mean):
        estimate = estimate_mean(np.full(n, mean), scale=1.0, largest=1.0)
        for margin in (0.001, 0.01, 0.03, 1.5):
            test = t_equivalence(estimate, margin=margin)
            assert test.is_equivalent == (-margin <= test.low and test.high <= margin)
            assert test.low < mean < test.high
            assert (test.pvalue == 1) == (margin <= abs(mean))
        assert t_equivalence(estimate, margin=0.01).is_equivalent == (n == 1000)


class TestLevel:
    def test_false_equivalence_is_rare_in_small_tables(self):
        assert max(exact_level(60, 0.1, share) for share in (0.0, 0.02)) <= 0.07
        assert t_level((25,) * 14, 0, 0.05, 300) <= 0.08


@pytest.mark.soak
class TestManyLevels:
    @pytest.mark.parametrize("n", [100, 200, 500])
    @pytest.mark.parametrize("margin", [0.02, 0.05, 0.1])
    def test_the_score_test_keeps_its_level_by_enumeration(self, n, margin):
        levels = {share: exact_level(n, margin, share) for share in (0.0, 0.003, 0.01, 0.03, 0.1)}
        print(f"\nequivalence within {margin}, {n} prompts: level at most {max(levels.values()):.2%}")
        assert max(levels.values()) <= 0.07

    @pytest.mark.parametrize(
        ("name", "sizes", "n"),
        [
            ("skewed scores, 200 prompts", None, 200),
            ("14 clusters of 80", (80,) * 14, 0),
            ("clusters of 20 to 460", (20, 40, 80, 120, 160, 230, 300, 460), 0),
            ("one cluster of 55 %", (660,) + (45,) * 12, 0),
        ],
    )
    def test_student_keeps_its_level(self, name, sizes, n):
        level = t_level(sizes, n, 0.05, 2000)
        print(f"\nequivalence within 0.05, {name}: level {level:.2%}")
        assert level <= 0.07
