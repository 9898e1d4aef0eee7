from __future__ import annotations

import io

import matplotlib.image
import numpy as np
import pytest

from analyses.numerics.filtering.effects.agreement import measure_agreement, measure_random_agreement
from analyses.numerics.filtering.effects.ranking_change import compare_rankings
from analyses.numerics.filtering.step_flags import find_kept, make_flags
from analyses.smart_filtering import figures

pytestmark = pytest.mark.usefixtures("full_figures")

RNG = np.random.default_rng(10)


TASKS = np.array(["law"] * 4 + ["art"] * 5 + [""])
STEPS = {
    "easy": make_flags(np.array([1, 1, 0, 0, 1, 0, 0, 0, 0, 0], bool)),
    "contaminated": make_flags(np.zeros(10, bool)),
    "similar": make_flags(np.array([1, 0, 1, 0, 0, 0, 0, 0, 0, 0], bool)),
}


def answered(k: int, n: int = 60) -> np.ndarray:
    return np.where(RNG.random((n, k)) < 0.6, RNG.integers(0, 4, (n, 1)), RNG.integers(-1, 4, (n, k))).astype(np.int32)


def heatmaps(k: int, **options):
    answers = answered(k)
    before, after = measure_agreement(answers), measure_agreement(answers[:30])
    random = measure_random_agreement(answers, 30, n_draws=20, seed=0)
    return before, after, figures.draw_agreement(names(k), before, after, random, "answers", **options)


def names(k: int) -> list[str]:
    return [f"organisation/a-model-with-a-very-long-name-{i}-instruct" if i % 2 else f"model {i}" for i in range(k)]


def assert_drawn(figure) -> None:
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=60)
    written.seek(0)
    assert matplotlib.image.imread(written).std() > 0.01
    assert any(axes.get_xlabel() for axes in figure.axes)


class TestAgreement:
    def test_numbers_of_all_prompts_are_above_the_diagonal_and_of_kept_ones_below(self) -> None:
        order = np.array([3, 0, 4, 1, 2])
        before, after, figure = heatmaps(5, order=order)
        assert_drawn(figure)
        image = figure.axes[0].images[0]
        drawn = image.get_array()
        assert np.diag(np.ma.getmaskarray(drawn)).all()
        for part, result in ((np.triu_indices(5, 1), before), (np.tril_indices(5, -1), after)):
            assert np.asarray(drawn)[part] == pytest.approx(result.share[np.ix_(order, order)][part])
        assert image.get_clim()[0] <= drawn.min() <= drawn.max() <= image.get_clim()[1]
        written = [text.get_text() for text in figure.axes[0].texts]
        assert written[0] == f"{100 * before.share[3, 0]:.0f}"
        assert figure.axes[0].get_title().startswith(f"above the diagonal: all prompts, mean {before.mean_share:.1%}")
        labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        assert labels[1:3] == ["model 0", "model 4"]
        assert labels[3].startswith("organisation…")

    @pytest.mark.parametrize(("k", "n_names"), [(2, 2), (29, 29), (100, 34), (130, 0)])
    def test_any_number_of_models_can_be_drawn_and_many_with_fewer_names(self, k, n_names) -> None:
        _, _, figure = heatmaps(k)
        assert_drawn(figure)
        assert len(figure.axes[0].get_yticks()) == n_names

    def test_random_subsets_are_left_out_where_there_are_none(self) -> None:
        answers = answered(4)
        result = measure_agreement(answers)
        figure = figures.draw_agreement(names(4), result, result, None, "answers", measure="kappa")
        assert_drawn(figure)
        assert len(figure.axes) == 2  # the heat map and its scale
        assert f"mean {result.mean_kappa:.3f}" in figure.axes[0].get_title()

    def test_an_undefined_agreement_is_written(self) -> None:
        nothing = measure_agreement(np.full((5, 3), -1, np.int32))
        random = measure_random_agreement(np.full((5, 3), -1, np.int32), 2, n_draws=3, seed=0)
        figure = figures.draw_agreement(names(3), nothing, nothing, random, "answers")
        assert_drawn(figure)
        assert "none" in figure.axes[0].get_title()

    def test_one_agreement_for_all_pairs_has_a_scale(self) -> None:
        same = measure_agreement(np.zeros((5, 3), np.int32))
        assert_drawn(figures.draw_agreement(names(3), same, same, None, "answers"))


class TestAccuracy:
    def test_every_model_has_both_scores_and_both_ranks_in_order(self) -> None:
        Q = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 1, 1]], float)
        marked = np.array([False, True, False])
        change = compare_rankings(Q, np.arange(5) > 1, marked)
        figure = figures.draw_accuracy(["b", "c", "a"], change, marked, metric="accuracy")
        assert_drawn(figure)
        axes = figure.axes[0]
        assert [text.get_text() for text in axes.get_yticklabels()] == ["c", "a", "b"]
        assert [text.get_fontweight() for text in axes.get_yticklabels()] == ["bold", "normal", "normal"]
        assert [text.get_text() for text in axes.texts] == ["1 → 2 ▼", "2.5 → 1 ▲", "2.5 → 3 ▼", "rank"]
        drawn = sorted(tuple(point) for dots in axes.collections[1:] for point in dots.get_offsets() if len(point))
        expected = sorted([(0.8, 0), (2 / 3, 0), (0.6, 1), (1, 1), (0.6, 2), (1 / 3, 2)])
        assert np.array(drawn) == pytest.approx(np.array(expected))

    @pytest.mark.parametrize("k", [1, 130])
    def test_any_number_of_models_can_be_drawn(self, k) -> None:
        Q = (RNG.random((50, k)) < 0.5).astype(float)
        change = compare_rankings(Q, np.arange(50) % 2 == 0, np.zeros(k, bool))
        figure = figures.draw_accuracy(names(k), change, np.zeros(k, bool))
        assert_drawn(figure)
        assert len(figure.axes[0].get_yticks()) == min(k, figures.MAX_MODELS)
        assert ("of 130" in figure.axes[0].get_ylabel()) == (k == 130)

    def test_where_nothing_is_kept_the_ranks_before_are_shown(self) -> None:
        change = compare_rankings(np.tri(4), np.zeros(4, bool), np.zeros(4, bool))
        figure = figures.draw_accuracy(names(4), change, np.zeros(4, bool))
        assert_drawn(figure)
        assert [text.get_text() for text in figure.axes[0].texts] == ["1", "2", "3", "4", "rank"]


class TestSharesByTask:
    def test_parts_of_each_bar_add_up_to_what_is_written(self) -> None:
        figure = figures.draw_shares_by_task(TASKS, STEPS, find_kept(STEPS.values(), 10))
        assert_drawn(figure)
        axes = figure.axes[0]
        assert [text.get_text() for text in axes.get_yticklabels()] == ["law", "art", "no task"]
        assert [text.get_text() for text in axes.texts] == ["75.0%  (3 of 4)", "20.0%  (1 of 5)", "0.0%  (0 of 1)"]
        widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}
        assert widths == {"easy": [0.25, 0.2, 0], "similar": [0.25, 0, 0], "several steps": [0.25, 0, 0]}
        ends = [max(bar.get_x() + bar.get_width() for bars in axes.containers for bar in [bars[row]]) for row in (0, 1)]
        assert ends == pytest.approx([0.75, 0.2])

    def test_a_step_has_its_colour_whichever_others_remove_something(self) -> None:
        def colours(steps) -> dict:
            figure = figures.draw_shares_by_task(TASKS, steps, find_kept(steps.values(), 10))
            return {bars.get_label(): bars[0].get_facecolor() for bars in figure.axes[0].containers}

        without = STEPS | {"easy": make_flags(np.zeros(10, bool))}
        assert colours(without)["similar"] == colours(STEPS)["similar"]

    @pytest.mark.parametrize("n_tasks", [1, 130])
    def test_any_number_of_tasks_can_be_drawn(self, n_tasks) -> None:
        tasks = np.array([f"a task of many words and with a long name, number {i}" for i in range(n_tasks)]).repeat(3)
        steps = {"easy": make_flags(RNG.random(len(tasks)) < 0.5)}
        figure = figures.draw_shares_by_task(tasks, steps, ~steps["easy"].removed)
        assert_drawn(figure)
        assert len(figure.axes[0].texts) == min(n_tasks, figures.MAX_TASKS)

    def test_a_filter_that_removes_nothing_can_be_drawn(self) -> None:
        assert_drawn(figures.draw_shares_by_task(TASKS, {"easy": make_flags(np.zeros(10, bool))}, np.ones(10, bool)))
