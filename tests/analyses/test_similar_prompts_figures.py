from __future__ import annotations

import io

import matplotlib.image
import numpy as np
import pytest

from analyses.numerics.filtering.similar_prompts.density import estimate_density, find_threshold
from analyses.presentation import similar_prompts_figures as similar_prompts

pytestmark = pytest.mark.usefixtures("full_figures")

RNG = np.random.default_rng(2)
NEAR = np.abs(RNG.normal(0.06, 0.02, 500))
FAR = np.clip(RNG.normal(0.45, 0.12, 9500), 0.001, 2)
SAMPLES = {
    "two crowds": np.r_[NEAR, FAR],
    "crowd at 0": np.r_[NEAR / 100, FAR],
    "one far away": np.r_[RNG.normal(0.3, 0.001, 1000), 1.9],
    "few": RNG.uniform(0, 1, 12),
    "equal": np.full(5, 0.3),
    "none": np.empty(0),
}


def drawn(figure) -> np.ndarray:
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=40)
    written.seek(0)
    image = matplotlib.image.imread(written)
    assert image.std() > 0.01
    return image


def marks(axes) -> np.ndarray:
    (dots,) = [line for line in axes.lines if line.get_marker() == "o"]
    return np.asarray(dots.get_xdata())


class TestDensity:
    @pytest.mark.parametrize("name", SAMPLES)
    def test_pictures_are_drawn_whatever_the_distances(self, name):
        result = estimate_density(SAMPLES[name])
        text = find_threshold(result)
        for value in (text.value, None, 0.25):
            figure = similar_prompts.draw_density(result, value, text.reason)
            lines = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
            assert [line.get_xdata()[0] for line in lines] == ([] if value is None else [value])
            assert text.reason in figure.axes[0].get_title(loc="left")
            assert figure.axes[1].get_xlabel()
        drawn(similar_prompts.draw_density(result, text.value, text.reason))

    @pytest.mark.parametrize("name", ["two crowds", "crowd at 0", "one far away", "few"])
    def test_every_maximum_has_a_mark_on_the_curve(self, name):
        result = estimate_density(SAMPLES[name], 0.05)
        for axes in similar_prompts.draw_density(result, 0.1, "given").axes:
            assert list(marks(axes)) == list(result.maxima)
            left, right = axes.get_xlim()
            assert left == 0
            assert right > result.maxima[-1]

    def test_no_peak_is_lost_between_the_points_of_a_long_grid(self):
        result = estimate_density(np.r_[RNG.normal(0.3, 1e-4, 3000), RNG.normal(0.31, 1e-4, 3000), 1.9], 0.02)
        assert result.grid.size > 10 * similar_prompts.MAX_POINTS
        x, y = similar_prompts._curve(result, 0.3)
        assert x.size < 5 * similar_prompts.MAX_POINTS
        assert y.max() == pytest.approx(result.density.max(), rel=1e-3)
        assert np.trapezoid(y, x) == pytest.approx(1, abs=0.05)


class TestPath:
    def test_lines_are_the_values_and_missing_ones_are_crosses(self):
        bandwidths, n_neighbours = np.array([0.3, 0.05, 0.15]), np.array([25, 100])
        thresholds = np.array([[0.4, 0.5], [0.1, np.nan], [0.2, 0.3]])
        shares = np.where(thresholds > 0.25, np.nan, thresholds**2)
        figure = similar_prompts.draw_path(bandwidths, n_neighbours, thresholds, shares, (2, 1))
        drawn(figure)
        left, right, none, refused = figure.axes
        line = left.lines[0]
        assert list(line.get_xdata()) == [0.05, 0.15, 0.3]
        assert list(line.get_ydata()) == [0.1, 0.2, 0.4]
        assert [line.get_label() for line in left.lines] == ["25", "100", "used"]
        assert list(left.lines[2].get_xdata()) == [0.15]
        assert [list(line.get_xdata()) for line in none.lines] == [[], [0.05]]
        assert [list(line.get_xdata()) for line in refused.lines] == [[0.3], [0.05, 0.15, 0.3], [0.15]]
        assert "rejected" in refused.get_ylabel()
        assert right.get_ylim()[0] == 0

    @pytest.mark.parametrize(("b", "k", "value"), [(1, 1, 0.0), (2, 12, np.nan), (20, 3, 0.3)])
    def test_pictures_are_drawn_for_every_number_of_settings(self, b, k, value):
        table = np.full((b, k), value)
        figure = similar_prompts.draw_path(
            np.geomspace(0.02, 1, b), np.arange(1, k + 1) * 10, table, table, (b - 1, k - 1)
        )
        drawn(figure)
        labels = [text.get_text() for text in figure.legends[0].get_texts()]
        assert sorted(labels) == sorted([str(10 * number) for number in range(1, k + 1)] + ["used"])
