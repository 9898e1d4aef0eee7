"""What weights change in prompt correlation, and what equal ones leave as it is."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from performance_matrices import matrix
from strategies import binary_tables_with_gaps, continuous_tables_with_gaps

from analyses.prompt_correlation import analyze
from analyses.prompt_correlation.method import permutation_test
from analyses.prompt_correlation.summary import summarize
from tracker.errors import SelectionError
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Undefined

GOLDEN = Path(__file__).parents[1] / "golden" / "prompt_correlation.json"
RNG = np.random.default_rng(31)
TABLE = (RNG.random((60, 7)) < RNG.random((60, 1))).astype(float)
WEIGHTS = RNG.gamma(2, 1, 60)


def chosen(values: np.ndarray, *, made_by: str = "custom-weights") -> PromptWeights:
    """Weights of the prompts of `matrix`, which have the numbers from 100 on; NaN: it has none."""
    ids = np.arange(100, 100 + len(values), dtype=np.int64)
    present = ~np.isnan(values)
    return PromptWeights(
        name="12:by-hand", finding_id=12, prompt_ids=ids[present], values=values[present], made_by=made_by
    )


def golden_reports() -> dict:
    """A small table of every kind, drawn from nothing but uniform numbers."""
    rng = np.random.default_rng(11)
    binary = (rng.random((30, 5)) < rng.random((30, 1))).astype(float)
    gaps = np.where(rng.random((30, 5)) < 0.1, np.nan, binary)
    scores = np.round(rng.random((25, 4)), 3) * binary[:25, :4]
    return {
        "complete": analyze(matrix(binary), n_permutations=20, seed=5),
        "margins": analyze(matrix(binary), n_permutations=20, seed=5, null="margins"),
        "gaps": analyze(matrix(gaps), n_permutations=20, seed=5),
        "continuous": analyze(matrix(scores), n_permutations=20, seed=5),
        "continuous_gaps": analyze(matrix(scores + np.where(np.isnan(gaps[:25, :4]), np.nan, 0.1)), n_permutations=20),
    }


def written(report) -> dict:
    """A report as it is kept in the golden file; of bins only those that hold something."""
    arrays = {name: a for name, a in report.finding.arrays.items() if not name.endswith(".values")}
    return {
        "metrics": {name: None if isinstance(v, Undefined) else v for name, v in report.finding.metrics.items()},
        "arrays": {name: a[a != 0].tolist() for name, a in arrays.items()},
        "prompt_values": {name: v.values.tolist() for name, v in report.prompt_values.items()},
    }


def everything(report) -> bytes:
    """The numbers of a report."""
    finding = report.finding
    parts = [repr(sorted(finding.metrics.items())), str(summarize(finding)), repr(finding.main_metrics)]
    arrays = [*finding.arrays.items(), *((name, v.values) for name, v in report.prompt_values.items())]
    parts += [f"{name} {array.dtype} {array.tobytes().hex()}" for name, array in arrays]
    return "\n".join([*parts, repr(report.tables["statistics"].to_pylist())]).encode()


class TestAgainstReference:
    def test_without_weights_results_are_those_of_the_release_before_weights(self):
        kept = orjson.loads(GOLDEN.read_bytes())
        for name, report in golden_reports().items():
            result, expected = written(report), kept[name]
            for part in ("metrics", "arrays", "prompt_values"):
                names = {name for name in result[part] if not name.startswith(("one_per_family.", "model_pairs."))}
                assert names == expected[part].keys()
                for key, value in expected[part].items():
                    if value is None:
                        assert result[part][key] is None
                    else:
                        assert result[part][key] == pytest.approx(value, rel=1e-12, abs=1e-14)

    def test_kr20_is_that_of_prompts_repeated(self):
        times = RNG.integers(1, 4, 60)
        first = permutation_test(TABLE, n_permutations=2, weights=times.astype(float)).metrics
        second = permutation_test(np.repeat(TABLE, times, axis=0), n_permutations=2).metrics
        for name in ("kr20", "row_sum.variance"):
            assert first[name] == pytest.approx(second[name], rel=1e-12)

    def test_the_effective_number_of_prompts_is_kishs(self):
        metrics = permutation_test(TABLE, n_permutations=2, weights=WEIGHTS).metrics
        assert metrics["n_effective"] == pytest.approx(WEIGHTS.sum() ** 2 / (WEIGHTS**2).sum())
        assert metrics["n_prompts"] == 60


class TestLaws:
    @pytest.mark.parametrize("scale", [1.0, 0.5])
    @pytest.mark.parametrize("unit", [1.0, 0.1, 7.0])
    def test_equal_weights_give_the_bytes_of_none(self, scale, unit):
        plain = analyze(matrix(TABLE * scale), n_permutations=20)
        same = analyze(matrix(TABLE * scale), chosen(np.full(60, unit)), n_permutations=20)
        assert everything(plain) == everything(same)
        assert same.warnings == ["Prompts are weighted by 12:by-hand.", *plain.warnings]
        assert "n_effective" not in plain.finding.metrics

    @pytest.mark.parametrize("null", ["columns", "margins"])
    def test_the_unit_of_weights_does_not_matter(self, null):
        first = permutation_test(TABLE, n_permutations=30, null=null, weights=WEIGHTS).metrics
        second = permutation_test(TABLE, n_permutations=30, null=null, weights=7.3 * WEIGHTS).metrics
        assert first.keys() == second.keys()
        for name, value in first.items():
            if isinstance(value, Undefined):
                assert second[name] == value
            else:
                assert second[name] == pytest.approx(value, abs=1e-12)

    def test_prompts_without_weight_are_not_there(self):
        weights = WEIGHTS.copy()
        weights[:5], weights[5:9] = 0, np.nan
        report = analyze(matrix(TABLE), chosen(weights), n_permutations=20)
        alone = permutation_test(TABLE[9:], n_permutations=20, weights=WEIGHTS[9:]).metrics
        names = [name for name in report.finding.metrics if not name.startswith(("one_per_family.", "model_pairs."))]
        assert names == list(alone)
        for name in names:
            value = report.finding.metrics[name]
            assert alone[name] == (value if isinstance(value, Undefined) else pytest.approx(value, abs=1e-12))
        assert report.prompt_values["n_right"].prompt_ids.tolist() == list(range(109, 160))
        warnings = " ".join(report.warnings)
        assert "4 of 60 prompts have no weight in 12:by-hand and are left out" in warnings
        assert "5 of 60 prompts have weight 0 and are left out" in warnings

    def test_models_that_only_lighter_prompts_had_are_left_out(self):
        Q = np.column_stack([TABLE, np.full(60, np.nan)])
        Q[:5, 7] = 1
        weights = WEIGHTS.copy()
        weights[:5] = 0
        report = analyze(matrix(Q), chosen(weights), n_permutations=5)
        assert report.finding.n_models == 7
        assert "Left out 1 models without any score: model 7." in report.warnings

    def test_what_is_a_test_under_weights(self):
        """The mean Hamming similarity becomes one, of another question; row sums under `margins` do not."""
        for null in ("columns", "margins"):
            report = analyze(matrix(TABLE), chosen(WEIGHTS), n_permutations=50, null=null)
            metrics = report.finding.metrics
            assert 0 < metrics["hamming.mean.pvalue"] <= 1
            assert isinstance(metrics["row_sum.variance.pvalue"], Undefined) == (null == "margins")
            assert any("reflects which prompts are heavy" in warning for warning in report.warnings)
            assert "is no test" not in str(report.summary)

    @pytest.mark.parametrize("null", ["columns", "margins"])
    def test_weights_made_of_scores_have_no_pvalues_and_the_same_statistics(self, null):
        tested, derived = (
            analyze(matrix(TABLE), chosen(WEIGHTS, made_by=by), n_permutations=20, null=null)
            for by in ("custom-weights", "prompt-weighting")
        )
        for name, value in tested.finding.metrics.items():
            if name.startswith("one_per_family."):
                continue
            if "pvalue" in name:
                assert derived.finding.metrics[name].reason.startswith("the weights are computed from scores"), name
            elif not isinstance(value, Undefined):
                assert derived.finding.metrics[name] == value, name
        assert "there is nothing to test (the weights are" in str(summarize(derived.finding))
        assert any(
            warning.startswith("There is no p-value: the weights 12:by-hand are computed from scores")
            for warning in derived.warnings
        )

    def test_equal_weights_made_of_scores_are_no_weights(self):
        derived = analyze(matrix(TABLE), chosen(np.full(60, 2.0), made_by="prompt-weighting"), n_permutations=5)
        assert derived.finding.metrics == analyze(matrix(TABLE), n_permutations=5).finding.metrics

    def test_weights_from_a_file_are_warned_of_and_rules_are_not(self):
        brought = analyze(matrix(TABLE), chosen(WEIGHTS), n_permutations=5)
        assert any("do not depend on these scores" in warning for warning in brought.warnings)
        rule = PromptWeights(name="task-equal", finding_id=None, prompt_ids=np.empty(0, np.int64), values=np.empty(0))
        scores = matrix(TABLE)
        scores.tasks[:20] = "small"
        ruled = analyze(scores, rule, n_permutations=5)
        assert ruled.finding.n_effective == pytest.approx(60**2 / (30**2 / 20 + 30**2 / 40))
        stored = replace(
            chosen(rule.align(scores.prompt_ids, scores.tasks), made_by="prompt-weighting"), name="12:task-equal"
        )
        for first in (ruled, analyze(scores, stored, n_permutations=5)):
            assert not any("without looking" in warning for warning in first.warnings)
            assert not isinstance(first.finding.metrics["hamming.variance.pvalue"], Undefined)

    def test_weights_made_of_the_same_scores_do_call_chance_unlikely(self):
        """Why they are not tested: here heavy prompts are those unlike the others, in this table and in no draw."""
        low = 0
        for seed in range(40):
            table = (np.random.default_rng(seed).random((40, 8)) < np.linspace(0.2, 0.8, 8)).astype(float)
            equal = (table @ table.T + (1 - table) @ (1 - table).T) / 8
            unlike = 1 - (equal.sum(axis=1) - 1) / 39
            result = permutation_test(table, n_permutations=39, seed=seed, weights=unlike**4, similarities=("hamming",))
            low += result.comparisons["hamming.ks_d"].pvalue <= 0.05
        assert low > 20

    def test_the_summary_states_that_prompts_are_weighted(self):
        text = str(summarize(permutation_test(TABLE, n_permutations=99, weights=WEIGHTS)))
        assert "60 prompts (weighted, worth " in text
        assert "over weighted pairs of prompts" in text
        assert "difficulty of heavy and light prompts" in text
        margins = str(summarize(permutation_test(TABLE, n_permutations=99, weights=WEIGHTS, null="margins")))
        assert "heavy and light prompts" not in margins

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("scale", [1.0, 0.5])
    def test_pictures_are_drawn_of_weights_of_any_size(self, scale):
        heavy = np.full(60, 1e-6)
        heavy[:2] = 1, 2
        report = analyze(matrix(TABLE * scale), chosen(heavy), n_permutations=10)
        for draw in report.figures.values():
            png = io.BytesIO()
            draw().savefig(png, format="png", dpi=40)
            png.seek(0)
            assert matplotlib.image.imread(png).std() > 0.01
        visible = report.figures["observed_and_permuted"]()
        assert visible.axes[0].get_ylabel() == "share of weighted pairs"

    @settings(max_examples=30)
    @given(table=st.one_of(binary_tables_with_gaps(), continuous_tables_with_gaps()), seed=st.integers(0, 99))
    def test_every_table_that_can_be_tested_is(self, table, seed):
        weights = np.random.default_rng(seed).gamma(0.5, 1, len(table)) + 1e-6
        report = analyze(matrix(table), chosen(weights), n_permutations=5)
        assert str(report.summary)
        for name, value in report.finding.metrics.items():
            assert value.reason if isinstance(value, Undefined) else np.isfinite(value), name
            if ".pvalue" in name and not isinstance(value, Undefined):
                assert 0 < value <= 1

    def test_few_tables_that_obey_the_null_get_small_pvalues(self):
        """A coarse guard; the finer one needs thousands of tables."""
        names = ("hamming.mean", "hamming.variance", "cosine.mean", "jaccard.ks_d", "row_sum.variance")
        low, n = dict.fromkeys(names, 0), 200
        weights = np.random.default_rng(1).gamma(1, 1, 30)
        for seed in range(n):
            table = (np.random.default_rng(seed).random((30, 6)) < np.linspace(0.3, 0.8, 6)).astype(float)
            result = permutation_test(table, n_permutations=99, seed=seed, weights=weights).comparisons
            for name in low:
                low[name] += result[name].pvalue <= 0.1
        # Four standard errors around 10 %.
        assert all(n * 0.015 < count < n * 0.185 for count in low.values()), low


class TestErrors:
    def test_too_few_prompts_with_weight_are_refused(self):
        weights = np.zeros(60)
        weights[:2] = 1, 2
        with pytest.raises(SelectionError, match="from 3 prompts on, here: 2"):
            analyze(matrix(TABLE), chosen(weights), n_permutations=3)

    def test_weights_of_other_prompts_are_refused(self):
        with pytest.raises(SelectionError, match="no weight to any selected prompt"):
            analyze(matrix(TABLE), chosen(np.zeros(60)), n_permutations=3)

    def test_prompts_with_weight_on_which_no_model_differs_are_refused(self):
        table = TABLE.copy()
        table[:4] = 1
        weights = np.zeros(60)
        weights[:4] = 1, 2, 3, 4
        with pytest.raises(SelectionError, match="same score on every prompt"):
            analyze(matrix(table), chosen(weights), n_permutations=3)
