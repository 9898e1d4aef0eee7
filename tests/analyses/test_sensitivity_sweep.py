"""How far weights of tasks move the ranking as the least weight grows."""

from __future__ import annotations

import io
import json

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from performance_matrices import task_matrix

from analyses.sensitivity_sweep import EPSILONS, analyze
from tracker.errors import SelectionError
from tracker.recording.finding import Undefined

RNG = np.random.default_rng(21)
SCORES = (RNG.normal(0, 1, (6, 1)) + np.linspace(0, 2, 12) + RNG.normal(0, 0.8, (6, 12))).round(2)
NAN = float("nan")


def report(T, **options):
    return analyze(task_matrix(T), **({"time_limit": 0.0} | options))


class TestAgainstReference:
    @pytest.mark.parametrize("name", ["vtab", "superglue", "openllm"])
    def test_values_of_real_leaderboards(self, shared, name):
        known = json.loads((shared / "reference/social_choice.json").read_text())["cardinal"][f"cardinal_{name}.csv"]
        frame = pd.read_csv(shared / f"data/leaderboards/cardinal_{name}.csv").drop(columns="model")
        metrics = report(frame.to_numpy().T, epsilons=("0.01",), time_limit=60.0).finding.metrics
        for value, expected in ((metrics["tau.at_0.01"], "tau"), (metrics["mrc.at_0.01"], "MRC")):
            if expected in known["raw"]:
                assert value == pytest.approx(known["raw"][expected], abs=6e-5)
            else:
                assert value >= known["raw"][f"{expected}_at_least"] - 6e-5
        assert metrics["exact"] == 1

    def test_limits_are_those_that_can_be_seen(self):
        """The first is ahead of the second by 2 and behind by 1, of the third by 8 and behind by 1."""
        result = report([[9.0, 7.0, 1.0], [1.0, 2.0, 2.0]], epsilons=("0.49", "0.5"), time_limit=5.0)
        metrics = result.finding.metrics
        assert metrics["epsilon.first_safe"] == metrics["epsilon.first_safe_leader"] == 0.5
        assert "0.5 (1/2)" in str(result.summary)
        assert (metrics["tau.at_0.49"], metrics["tau.at_0.5"]) == (pytest.approx(1 / 3), 0)
        assert result.tables["pairs"].to_pylist()[0] == {"model": "model 0", "other": "model 1", "safe_from": 0.5}

    def test_the_limit_in_the_summary_is_rounded_up_so_that_it_is_safe_itself(self):
        result = report([[9.0000001, 7.0, 1.0], [1.0, 2.00023, 2.0]], epsilons=("0.5001", "0.5002"))
        assert 0.5001 < result.finding.metrics["epsilon.first_safe"] < 0.50015
        assert (result.finding.metrics["tau.at_0.5001"], result.finding.metrics["tau.at_0.5002"]) == (
            pytest.approx(1 / 3),
            0,
        )
        assert result.summary.headline.endswith("if every task weight is at least 0.5002 of the largest.")

    def test_models_that_share_the_first_place_have_a_limit_too(self):
        """Of the third, the first is ahead by 8 and behind by 3, the second ahead by 7 and behind by 2."""
        result = report([[10.0, 0.0, 2.0], [0.0, 10.0, 3.0]], epsilons=("0.1",))
        metrics = result.finding.metrics
        assert metrics["epsilon.first_safe_leader"] == metrics["epsilon.first_safe"] == 0.375
        assert result.summary.headline == (
            "No other model gets ahead of model 0, model 1, and no pair of models reverses, if every task weight is at "
            "least 0.375 (3/8) of the largest."
        )

    def test_smaller_may_be_better(self):
        result, turned = (
            analyze(task_matrix(SCORES), time_limit=0.0),
            analyze(task_matrix(-SCORES, higher_is_better=False), time_limit=0.0),
        )
        assert dict(result.finding.metrics) == dict(turned.finding.metrics)
        assert (turned.rankings["mean"].score == -result.rankings["mean"].score).all()


class TestLaws:
    def test_everything_is_reported(self):
        result = report(SCORES)
        finding = result.finding
        assert len(finding.main_metrics) <= 50
        assert set(finding.main_metrics) <= set(finding.metrics)
        assert finding.labels == EPSILONS
        assert finding.metrics["tau.at_1"] == finding.metrics["mrc_upper.at_1"] == 0
        sweep = result.tables["sweep"]
        assert sweep["tau"].to_pylist() == finding.arrays["tau"].tolist()
        assert (sweep["n_reversible"].to_numpy() >= sweep["n_reversed"].to_numpy()).all()
        assert result.tables["weights"].num_rows == 13 * 6
        assert result.tables["pairs"].num_rows == 66
        assert finding.arrays["mrc_ranks"].shape == (13, 12)
        assert "a significance test" in str(result.summary)

    def test_epsilons_may_come_in_any_order_and_twice(self):
        expected_points, plain = report(SCORES, epsilons=("1", "0.10", "1e-1")), report(SCORES, epsilons=("0.1", "1"))
        assert expected_points.finding.labels == ("0.1", "1")
        assert dict(expected_points.finding.metrics) == dict(plain.finding.metrics)

    def test_many_epsilons_keep_the_headline_short(self):
        result = report(SCORES[:2], epsilons=tuple(f"{i / 100:g}" for i in range(1, 101)))
        assert len(result.finding.main_metrics) <= 50
        assert result.finding.main_metrics[-1] == "mrc.at_1"

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("options", [{}, {"columns": "standardised"}, {"epsilons": ("0.5",)}, {"epsilons": ("1",)}])
    def test_the_picture_has_labelled_axes(self, options):
        drawn = report(SCORES, **options).figures["sweep"]()
        written = io.BytesIO()
        drawn.savefig(written, format="png", dpi=40)
        written.seek(0)
        assert matplotlib.image.imread(written).std() > 0.01
        upper, lower = drawn.axes
        assert "tau" in upper.get_ylabel()
        assert "MRC" in lower.get_ylabel()
        assert "epsilon" in lower.get_xlabel()
        assert lower.get_xticklabels()[0].get_text() == (options.get("epsilons") or EPSILONS)[-1]

    def test_standardised_tasks_at_one_are_explained(self):
        T = [[0.0, 10.0, 20.0], [3.0, 2.0, 1.0], [3.0, 2.5, 1.0]]
        result = report(T, columns="standardised")
        assert result.finding.metrics["tau.at_1"] == 1
        assert isinstance(result.finding.metrics["epsilon.first_safe"], Undefined)
        assert any("--columns raw" in warning for warning in result.warnings)
        assert "already reverse" in str(result.summary)

    def test_results_that_are_not_proven_are_a_warning(self):
        result = report(np.random.default_rng(0).random((9, 30)), epsilons=("0.01", "1"))
        assert result.finding.metrics["n_exact"] == 1
        assert any("not proven without exact search" in warning for warning in result.warnings)


class TestDegenerate:
    def test_tasks_with_gaps_are_excluded_with_a_warning(self):
        T = np.vstack([SCORES, SCORES[:1]])
        T[-1, 3] = NAN
        result = report(T)
        assert dict(result.finding.metrics) == dict(report(SCORES).finding.metrics)
        assert result.warnings[0].startswith("Excluded: 1 task without")

    def test_one_task_moves_nothing(self):
        metrics = report(SCORES[:1]).finding.metrics
        assert metrics["exact"] == 1
        assert metrics["tau_upper.at_0.001"] == metrics["mrc_upper.at_0.001"] == metrics["epsilon.first_safe"] == 0

    def test_where_all_models_are_tied_limits_are_undefined(self):
        result = report(np.ones((3, 4)))
        assert result.finding.metrics["epsilon.first_safe"] == Undefined("the mean ties all models")
        assert result.finding.metrics["mrc_upper.at_0.001"] == 0
        assert "ties all models" in str(result.summary)
        assert result.figures["sweep"]().axes

    def test_tasks_without_weight_and_proportional_tasks_are_named(self):
        result = report([[1.0, 2.0, 3.0], [4.0, 4.0, 4.0], [10.0, 20.0, 30.0]])
        assert "task 1" in result.warnings[0]
        assert "same proportions" in result.warnings[1]
        assert np.isnan(result.finding.arrays["tau_weights"][:, 1]).all()


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"epsilons": ("a",)}, "decimal number from 1e-9 to 1"),
            ({"epsilons": ("0",)}, "decimal number from 1e-9 to 1"),
            ({"epsilons": ("1.1",)}, "decimal number"),
            ({"epsilons": ("nan",)}, "decimal number"),
            ({"epsilons": ()}, "give 1 to 100"),
            ({"columns": "both"}, "Known: raw, standardised"),
            ({"time_limit": -1.0}, "number of seconds"),
            ({"time_limit": NAN}, "number of seconds"),
        ],
    )
    def test_options_out_of_range_are_refused(self, options, words):
        with pytest.raises(SelectionError, match=words):
            report(SCORES, **options)

    @pytest.mark.parametrize(
        ("T", "words"),
        [
            (SCORES[:, :2], "at least 3"),
            (np.where(SCORES[0, 0] == SCORES, np.inf, SCORES), "infinite"),
            (np.where(np.eye(6, 12) == 1, NAN, SCORES), "None of the 6 tasks"),
        ],
    )
    def test_tables_that_cannot_be_weighed_are_refused(self, T, words):
        with pytest.raises(SelectionError, match=words):
            report(T)
