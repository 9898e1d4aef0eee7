from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gaussian_kde
from statsmodels.nonparametric.kde import KDEUnivariate

from analyses.numerics.filtering.similar_prompts.density import (
    REACH,
    Density,
    _maxima,
    _tops,
    estimate_density,
    find_threshold,
)

RNG = np.random.default_rng(3)


def mixture(n: int, rng: np.random.Generator = RNG) -> np.ndarray:
    """Near-duplicates around 0.06 besides all others around 0.45."""
    near = np.abs(rng.normal(0.06, 0.02, n // 20))
    return np.concatenate([near, np.clip(rng.normal(0.45, 0.12, n - len(near)), 0.001, 2)])


SAMPLES = {
    "two crowds": mixture(500),
    "crowd at 0": RNG.exponential(0.1, 400),
    "exact zeros": np.r_[np.zeros(30), RNG.normal(0.5, 0.1, 300)],
    "on a lattice": np.round(mixture(500), 2),
    "one far away": np.r_[RNG.normal(0.3, 0.001, 400), 1.9],
    "all far from 0": RNG.normal(0.5, 1e-6, 300),
    "two": np.array([0.2, 0.3]),
    "up to 2": np.r_[0.0, 2.0, RNG.uniform(0, 2, 200)],
}


def summed(distances: np.ndarray, bandwidth: float, at: np.ndarray) -> np.ndarray:
    """The density by its definition."""
    known = distances[~np.isnan(distances)]
    both = np.concatenate([known, -known])
    z = (at[:, None] - both) / bandwidth
    return np.exp(-0.5 * z**2).sum(axis=1) / (len(known) * bandwidth * np.sqrt(2 * np.pi))


def tops_one_by_one(values: np.ndarray, least: float) -> list[int]:
    """Places from which one must go down by more than ``least``, left and right, before getting higher.

    The values are mirrored around the first. Of equals the first counts; if that is a mirror image alone, the top is
    in the middle of both.
    """
    mirrored = np.concatenate([values[:0:-1], values])
    tops = set()
    for place, value in enumerate(mirrored):
        falls = [0.0, 0.0]
        for neighbour_value in mirrored[place + 1 :]:
            if neighbour_value > value:
                break
            falls[0] = max(falls[0], value - neighbour_value)
        for neighbour_value in mirrored[:place][::-1]:
            if neighbour_value >= value:
                break
            falls[1] = max(falls[1], value - neighbour_value)
        if min(falls) > least:
            tops.add(place - len(values) + 1)
    return sorted({top if top >= 0 else 0 for top in tops if top >= 0 or -top not in tops})


def make_density(maxima: list[float], bandwidth: float = 0.01) -> Density:
    grid = np.linspace(0, 1, 101)
    return Density(grid=grid, density=np.ones(101), bandwidth=bandwidth, maxima=np.array(maxima))


class TestAgainstReference:
    @pytest.mark.parametrize("factor", [0.02, 0.07, 0.15, 0.4, 1.0])
    @pytest.mark.parametrize("name", SAMPLES)
    def test_the_density_is_scipys_reflected_at_zero(self, name, factor):
        distances = SAMPLES[name]
        result = estimate_density(distances, factor)
        assert result.bandwidth == pytest.approx(factor * distances.std(ddof=1), rel=1e-12)
        places = np.unique(np.concatenate([
            RNG.integers(0, result.grid.size, 150),
            np.searchsorted(result.grid, np.append(result.maxima, distances[:30])) - 1,
            [0, result.grid.size - 1],
        ]).clip(0, result.grid.size - 1))  # fmt: skip
        peer = gaussian_kde(distances, bw_method=factor)
        at = result.grid[places]
        assert np.abs(result.density[places] - peer(at) - peer(-at)).max() < 1e-6 * result.density.max()

    def test_the_density_of_very_many_is_scipys(self):
        distances = mixture(200_000)
        result = estimate_density(distances)
        places = np.linspace(0, result.grid.size - 1, 15).astype(int)
        peer = gaussian_kde(distances, bw_method=0.15)
        at = result.grid[places]
        assert np.abs(result.density[places] - peer(at) - peer(-at)).max() < 1e-6 * result.density.max()

    def test_the_density_is_that_of_statsmodels_by_fft(self):
        distances = mixture(3000)
        result = estimate_density(distances)
        peer = KDEUnivariate(np.concatenate([distances, -distances]))
        peer.fit(kernel="gau", fft=True, bw=result.bandwidth, gridsize=2**14, cut=REACH)
        expected = 2 * np.interp(result.grid, peer.support, peer.density)
        assert np.abs(result.density - expected).max() < 1e-4 * result.density.max()

    @settings(max_examples=25)
    @given(
        distances=st.lists(st.floats(0, 2), min_size=2, max_size=12, unique=True).filter(lambda d: np.ptp(d) > 1e-6),
        factor=st.floats(0.02, 1),
    )
    def test_every_set_of_distances_has_the_density_of_the_definition(self, distances, factor):
        result = estimate_density(np.array(distances), factor)
        at = np.concatenate([result.grid[:: max(1, result.grid.size // 300)], result.maxima])
        expected = summed(np.array(distances), result.bandwidth, at)
        assert np.abs(np.interp(at, result.grid, result.density) - expected).max() < 2e-4 * result.density.max()
        on_grid = expected[: -len(result.maxima)]
        assert np.abs(result.density[:: max(1, result.grid.size // 300)] - on_grid).max() < 1e-6 * result.density.max()

    @settings(max_examples=80)
    @given(st.lists(st.integers(0, 6), min_size=1, max_size=14))
    def test_tops_are_those_that_a_walk_in_both_directions_finds(self, heights):
        """A slight slope leaves no ties."""
        values = np.append(np.array(heights) + 1e-3 * np.arange(len(heights)), -9.0)
        assert list(_tops(values, 1.5)) == tops_one_by_one(values, 1.5)

    @pytest.mark.parametrize("name", ["two crowds", "crowd at 0", "two", "up to 2", "one far away"])
    def test_maxima_are_where_the_density_of_the_definition_is_highest(self, name):
        result = estimate_density(SAMPLES[name], 0.15)
        assert len(result.maxima) > 0
        for position in result.maxima:
            near = np.abs(position + np.linspace(-0.05, 0.05, 2001) * result.bandwidth)
            best = near[np.argmax(summed(SAMPLES[name], result.bandwidth, near))]
            assert abs(best - position) < 5e-3 * result.bandwidth


class TestLaws:
    @settings(max_examples=20)
    @given(seed=st.integers(0, 999), scale=st.sampled_from([1e-4, 0.5, 3.0]), factor=st.sampled_from([0.05, 0.15, 0.6]))
    def test_order_and_unit_of_the_distances_change_nothing_but_the_unit(self, seed, scale, factor):
        rng = np.random.default_rng(seed)
        distances = mixture(150, rng)
        first, second = (
            estimate_density(distances, factor),
            estimate_density(scale * rng.permutation(distances), factor),
        )
        assert second.maxima == pytest.approx(scale * first.maxima, rel=1e-6, abs=1e-6 * second.bandwidth)
        assert second.bandwidth == pytest.approx(scale * first.bandwidth, rel=1e-12)

    @pytest.mark.parametrize("factor", [0.02, 0.15, 1.0, 30.0])
    @pytest.mark.parametrize("name", SAMPLES)
    def test_a_density_integrates_to_one_and_is_never_negative(self, name, factor):
        result = estimate_density(SAMPLES[name], factor)
        assert result.grid[0] == 0
        assert (np.diff(result.grid) > 0).all()
        assert (result.density >= 0).all()
        assert np.trapezoid(result.density, result.grid) == pytest.approx(1, abs=1e-9)
        assert (np.diff(result.maxima) > 0).all()

    def test_shape_and_single_precision_make_no_difference(self):
        distances = mixture(600).astype(np.float32)
        first, second = estimate_density(distances), estimate_density(distances.reshape(20, 30).astype(np.float64))
        assert (first.density == second.density).all()

    def test_distances_that_are_not_known_are_left_out(self):
        distances = mixture(300)
        with_gaps = np.insert(distances, [0, 100, 300], np.nan)
        assert (estimate_density(with_gaps).density == estimate_density(distances).density).all()

    def test_rounding_below_zero_counts_as_its_reflection(self):
        distances = np.r_[-1e-16, 0.0, 3e-17, RNG.normal(0.5, 0.1, 50)]
        assert estimate_density(distances).maxima[0] == 0

    def test_flat_stretches_have_their_maximum_in_the_middle(self):
        values = np.array([0.0, 1, 5, 5, 5, 5, 1, 7, 7, 0])
        assert list(_maxima(values)) == [3.5, 7.5]

    def test_noise_of_the_transform_makes_no_maximum(self):
        """Evenly spaced distances have a flat density, its ripple far below what the transform resolves."""
        result = estimate_density(np.linspace(0.5, 1.5, 2001), 0.15)
        assert len(result.maxima) == 1
        wavy = 1 + 1e-8 * np.sin(np.arange(200.0))
        assert len(_maxima(np.r_[0.0, wavy, 0.0])) == 1

    def test_a_dip_at_zero_within_rounding_leaves_the_maximum_at_zero(self):
        assert list(_maxima(np.array([1.0, 1 + 4e-7, 1 + 6e-7, 0.5, 0]))) == [0.0]
        assert len(_maxima(np.array([1.0, 1 + 4e-6, 1.0, 0.5, 0]))) == 1
        assert _maxima(np.array([1.0, 1 + 4e-6, 1.0, 0.5, 0]))[0] == pytest.approx(1, abs=0.5)


class TestThreshold:
    def test_the_threshold_is_the_first_maximum(self):
        result = find_threshold(estimate_density(SAMPLES["two crowds"]))
        assert result.value == pytest.approx(0.06, abs=0.01)
        assert result.n_usable > 1
        assert not result.is_unimodal
        assert result.reason == f"the first of {result.n_usable} local maxima of the density"

    def test_one_maximum_is_kept_or_halved(self):
        single = make_density([0.4])
        assert find_threshold(single).value == pytest.approx(0.4, abs=1e-4)
        assert find_threshold(single, unimodal="half").value == pytest.approx(0.2, abs=1e-4)
        assert find_threshold(single).is_unimodal
        assert "half of the only local maximum" in find_threshold(single, unimodal="half").reason

    def test_of_several_maxima_none_is_halved(self):
        assert (
            find_threshold(make_density([0.2, 0.4]), unimodal="half").value
            == find_threshold(make_density([0.2, 0.4])).value
        )

    def test_a_maximum_at_zero_is_passed_over(self):
        result = find_threshold(make_density([0.0, 0.3, 0.5]))
        assert result.value == pytest.approx(0.3, abs=1e-4)
        assert result.is_crowded_at_zero
        assert result.n_usable == 2
        assert find_threshold(make_density([0.0, 0.3]), unimodal="half").value == pytest.approx(0.15, abs=1e-4)

    def test_a_maximum_at_zero_alone_gives_no_threshold_and_a_reason(self):
        result = find_threshold(estimate_density(np.abs(RNG.normal(0, 0.01, 500)), 1.0))
        assert result.value is None
        assert result.is_crowded_at_zero
        assert "smaller bandwidth" in result.reason

    @pytest.mark.parametrize("distances", [[], [0.3], [0.0, 0.0], [0.3] * 7, [np.nan, 0.3], [0.1 + 0.2, 0.3]])
    def test_distances_that_do_not_spread_have_no_density_and_no_threshold(self, distances):
        result = estimate_density(np.array(distances))
        assert result.bandwidth == 0
        assert result.grid.size == result.density.size == result.maxima.size == 0
        none = find_threshold(result)
        assert none.value is None
        assert not none.is_unimodal
        assert "all equal" in none.reason

    @settings(max_examples=20)
    @given(st.floats(0.05, 0.25))
    def test_a_pair_that_makes_a_maximum_by_itself_does_not_lie_below_it(self, alone):
        distances = np.r_[alone, alone, RNG.normal(0.7, 0.05, 2000)]
        result = find_threshold(estimate_density(distances))
        assert result.value is not None
        assert result.value <= alone < result.value + 0.011 * estimate_density(distances).bandwidth

    @settings(max_examples=20)
    @given(seed=st.integers(0, 999), factor=st.sampled_from([0.05, 0.15, 0.5]))
    def test_a_threshold_stands_just_below_its_maximum(self, seed, factor):
        result = estimate_density(mixture(100, np.random.default_rng(seed)), factor)
        value = find_threshold(result).value
        if value is not None:
            assert 0 < value <= result.maxima[result.maxima > 0][0] < value + 0.0101 * result.bandwidth


class TestErrors:
    @pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
    def test_a_factor_is_a_positive_number(self, factor):
        with pytest.raises(ValueError, match="bandwidth factor must be a positive number"):
            estimate_density(SAMPLES["two"], factor)

    def test_infinite_distances_are_refused(self):
        with pytest.raises(ValueError, match="infinite"):
            estimate_density(np.array([0.1, np.inf]))

    def test_a_bandwidth_without_end_is_refused_with_one_that_works(self, monkeypatch):
        with pytest.raises(ValueError, match="Choose a factor of"):
            estimate_density(SAMPLES["two crowds"], 1e-7)
        monkeypatch.setattr("analyses.numerics.filtering.similar_prompts.density.MAX_POINTS", 20_000)
        with pytest.raises(ValueError, match="Choose a factor of") as refused:
            estimate_density(SAMPLES["two crowds"], 1e-4)
        enough = float(str(refused.value).split("Choose a factor of ")[1].split()[0])
        assert 15_000 < estimate_density(SAMPLES["two crowds"], enough).grid.size < 20_500
