from __future__ import annotations

import io

import matplotlib.image
import numpy as np
import pytest
from performance_matrices import matrix
from PIL import Image

from analyses.prompt_correlation import analyze
from analyses.prompt_correlation.figures import bin_shares
from analyses.prompt_correlation.method import permutation_test
from tracker.figures.canvas import create_figure
from tracker.recording.artifacts import render_figure

pytestmark = pytest.mark.usefixtures("full_figures")

RNG = np.random.default_rng(11)
BINARY = (RNG.random((60, 7)) < RNG.random((60, 1))).astype(float)


def texts(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


class TestLaws:
    @pytest.mark.parametrize("table", [BINARY, RNG.random((40, 5)), RNG.normal(size=(40, 5))])
    def test_pictures_are_drawn_with_labelled_axes(self, table):
        for figure in (draw() for draw in analyze(matrix(table), n_permutations=20).figures.values()):
            written = io.BytesIO()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            visible = [axes for axes in figure.axes if axes.get_visible()]
            assert any(axes.get_xlabel() for axes in visible)
            assert any(axes.get_ylabel() for axes in visible)

    def test_no_pvalue_is_written_where_there_is_none(self):
        drawn = analyze(matrix(BINARY), n_permutations=20).figures["null_distributions"]()
        mean_hamming = drawn.axes[0].texts[0].get_text()
        assert mean_hamming == "no test"
        assert sum(text.startswith("p = ") for text in texts(drawn)) == 24

    def test_axes_show_what_they_hold(self):
        narrow = 70 + RNG.normal(size=(40, 5))
        for table in (BINARY, narrow):
            drawn = {name: draw() for name, draw in analyze(matrix(table), n_permutations=50).figures.items()}
            for axes in (a for a in drawn["observed_and_permuted"].axes if a.get_visible()):
                ticks = axes.get_yticks()
                written = [float(axes.yaxis.get_major_formatter()(tick).rstrip("%")) / 100 for tick in ticks]
                assert written == pytest.approx(ticks, abs=1e-9)
                assert np.count_nonzero(axes.patches[0].get_data().values) > 3
            panels = drawn["null_distributions"].axes
            assert len(panels) in (5, 25)
            for axes in panels:
                heights = axes.patches[0].get_data().values
                if "discrete" not in axes.texts[0].get_text() and axes.texts[0].get_text() != "no test":
                    assert np.count_nonzero(heights) > 3

    def test_bars_hold_every_pair_once(self):
        for table in (BINARY, RNG.normal(size=(40, 5))):
            for test in permutation_test(table, n_permutations=5).similarities.tests:
                edges, observed, drawn = bin_shares(test)
                assert np.diff(edges) == pytest.approx(edges[1] - edges[0])
                assert observed.sum() == pytest.approx(1)
                assert drawn.sum() == pytest.approx(1)


class TestTitles:
    def test_a_figure_has_its_title_in_its_file(self):
        drawn = analyze(matrix(BINARY), n_permutations=20).figures["null_distributions"]
        with Image.open(io.BytesIO(render_figure(drawn))) as opened:
            assert opened.info["Title"] == "Statistics of similarity, observed and under the null"

    def test_a_long_title_is_broken_into_lines_that_fit(self):
        figure = create_figure(5.0, 2.0, "word " * 40)
        lines = figure.get_suptitle().split("\n")
        assert max(map(len, lines)) <= 58
        assert figure.get_figheight() > 2.0 + 0.2 * len(lines)
