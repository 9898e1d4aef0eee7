from __future__ import annotations

import inspect
import sys
from typing import get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from performance_matrices import matrix
from strategies import binary_tables_with_gaps, continuous_tables_with_gaps

from analyses.numerics.similarity.engine import KERNELS
from analyses.prompt_correlation import analyze, devices, method
from analyses.prompt_correlation.method import permutation_test
from analyses.prompt_correlation.summary import summarize
from tracker.errors import MissingExtraError, SelectionError
from tracker.recording.finding import Device, Undefined

RNG = np.random.default_rng(3)
SOLVABLE = RNG.normal(0, 1.5, (80, 1)) + RNG.normal(0, 1, (1, 9))
TABLE = (RNG.random((80, 9)) < 1 / (1 + np.exp(-SOLVABLE))).astype(float)


@pytest.fixture(scope="module")
def by_columns(mmlu_pro):
    return analyze(mmlu_pro).finding


@pytest.fixture(scope="module")
def by_margins(mmlu_pro):
    return analyze(mmlu_pro, null="margins").finding


def close(metric, value):
    """Equal to the digits printed in the reference."""
    digits = len(str(value).split(".")[1])
    return metric == pytest.approx(value, abs=0.5000001 * 10**-digits)


class TestAgainstReference:
    def test_counts_of_the_real_table(self, by_columns, expected):
        values, metrics = expected["mmlu_pro_1200x12"], by_columns.metrics
        assert metrics["n_all_wrong"] == values["all_wrong_prompts"]
        assert metrics["n_all_right"] == values["all_right_prompts"]
        assert metrics["n_distinct"] == values["distinct_rows"]
        assert close(metrics["row_sum.variance"], values["row_sum_variance"])
        assert close(metrics["kr20"], values["kr20"])

    @pytest.mark.parametrize(
        ("similarity", "section"),
        [
            ("hamming", "hamming"),
            ("cosine", "cosine_zero_rows_as_0"),
            ("cosine_nonzero", "cosine_zero_rows_dropped"),
            ("jaccard", "jaccard_empty_pairs_as_1"),
            ("jaccard_empty0", "jaccard_empty_pairs_as_0"),
        ],
    )
    def test_binary_values_and_permuted_means(self, by_columns, expected, similarity, section):
        values, metrics = expected["mmlu_pro_1200x12"][section], by_columns.metrics
        checked = {"mean_note"}
        for statistic in ("mean", "p75", "p95", "variance"):
            name = f"{similarity}.{statistic}"
            for suffix in {statistic, f"{statistic}_permuted", f"{statistic}_permuted_mean", f"{statistic}_p"} & {
                *values
            }:
                checked.add(suffix)
                if suffix == statistic:
                    assert close(metrics[name], values[suffix])
                elif suffix.endswith("_p"):
                    assert metrics[f"{name}.pvalue"] == pytest.approx(values[suffix], abs=5e-5)
                else:
                    # Both means are of 1,000 draws; the reference is printed to five digits or six.
                    error = metrics[f"{name}.null_sd"] * np.sqrt(2 / 1000)
                    assert metrics[f"{name}.null_mean"] == pytest.approx(values[suffix], abs=4 * error + 6e-6)
        assert {*values} <= checked

    def test_agreements_behind_the_mean_hamming_similarity(self, by_columns, expected):
        arrays = by_columns.arrays
        agreements = 12 * arrays["hamming.values"] @ arrays["hamming.observed_pairs"]
        assert f"{agreements:,.0f} agreements" in expected["mmlu_pro_1200x12"]["hamming"]["mean_note"]
        assert agreements == pytest.approx(round(agreements), abs=1e-6)

    @pytest.mark.parametrize("similarity", ["hamming", "cosine", "jaccard"])
    def test_distance_from_the_pool(self, by_columns, expected, similarity):
        value = expected["mmlu_pro_1200x12"]["ks_D_observed_vs_pooled_permuted"][similarity]
        assert by_columns.metrics[f"{similarity}.ks_d"] == pytest.approx(value, abs=0.002)

    def test_null_with_both_margins(self, by_margins, expected):
        values = expected["mmlu_pro_1200x12"]["null_with_row_and_column_sums_fixed"]
        metrics = by_margins.metrics
        assert close(metrics["hamming.variance"], values["observed"])
        sd = values["hamming_variance_sd"]
        assert metrics["hamming.variance.null_sd"] == pytest.approx(sd, rel=0.25)
        # The reference has 150 draws.
        assert metrics["hamming.variance.null_mean"] == pytest.approx(
            values["hamming_variance_mean"], abs=4 * sd / np.sqrt(150) + 5e-6
        )

    @pytest.mark.parametrize("n", [250, pytest.param(1000, marks=pytest.mark.soak)])
    def test_continuous_values_and_permuted_means(self, alpaca_eval, expected, n):
        values = expected["alpaca_eval_797x57"]["cosine"]
        metrics = analyze(alpaca_eval, n_permutations=n).finding.metrics
        assert {*values} == {"mean", "mean_permuted", "p75", "p75_permuted", "p95", "p95_permuted"}
        for statistic in ("mean", "p75", "p95"):
            name = f"cosine.{statistic}"
            assert close(metrics[name], values[statistic])
            error = metrics[f"{name}.null_sd"] * np.sqrt(1 / n + 1 / 1000)
            assert metrics[f"{name}.null_mean"] == pytest.approx(values[f"{statistic}_permuted"], abs=4 * error + 6e-6)
            assert metrics[f"{name}.pvalue"] == pytest.approx(1 / (n + 1))

    def test_missing_cells_of_the_full_table_are_compared_over_shared_models(self, mmlu_pro_full, expected):
        values = expected["mmlu_pro_full"]
        result = permutation_test(mmlu_pro_full.Q, n_permutations=2)
        assert (result.n_prompts, result.n_models) == (values["prompts"], values["models"])
        assert result.n_missing == values["missing_cells"]
        missing = np.isnan(mmlu_pro_full.Q)
        assert (~missing.any(axis=1)).sum() == values["complete_prompts"]
        most = np.delete(mmlu_pro_full.Q, missing.sum(axis=0).argmax(), axis=1)
        most = permutation_test(most[~np.isnan(most).any(axis=1)], n_permutations=1)
        assert (most.n_prompts, most.n_models, most.n_missing) == (12002, 28, 0)
        assert most.n_all_right == values["all_right_of_12002x28"]
        assert most.n_all_wrong == values["all_wrong_of_12002x28"]
        some = RNG.choice(mmlu_pro_full.n_prompts, 60, replace=False)
        part = mmlu_pro_full.Q[some]
        agree = (part[:, None] == part[None]).sum(axis=2) / (~np.isnan(part[:, None]) & ~np.isnan(part[None])).sum(
            axis=2
        )
        mean = permutation_test(part, n_permutations=1).metrics["hamming.mean"]
        assert mean == pytest.approx(agree[np.triu_indices(60, 1)].mean(), abs=1e-12)


class TestLaws:
    def test_mean_hamming_has_a_value_and_no_pvalue(self):
        for null in ("columns", "margins"):
            metrics = permutation_test(TABLE, n_permutations=30, null=null).metrics
            assert isinstance(metrics["hamming.mean"], float)
            for suffix in ("pvalue", "pvalue_lower", "pvalue_mid", "pvalue_two_sided"):
                value = metrics[f"hamming.mean.{suffix}"]
                assert isinstance(value, Undefined)
                assert "column sums" in value.reason

    def test_mean_hamming_is_a_test_where_cells_are_missing(self):
        gaps = TABLE.copy()
        gaps[:20, 0] = np.nan
        assert 0 < permutation_test(gaps, n_permutations=30).metrics["hamming.mean.pvalue"] <= 1

    def test_row_sums_are_no_test_where_they_are_kept(self):
        assert isinstance(
            permutation_test(TABLE, n_permutations=9, null="margins").metrics["row_sum.variance.pvalue"], Undefined
        )
        assert permutation_test(TABLE, n_permutations=9).metrics["row_sum.variance.pvalue"] == 0.1

    def test_nothing_is_a_test_where_no_draw_can_differ(self):
        staircase = np.tril(np.ones((6, 4)))
        for table, null in ((staircase, "margins"), (np.column_stack([TABLE[:, 0], np.ones(80)]), "columns")):
            result = permutation_test(table, n_permutations=20, null=null)
            pvalues = [v for name, v in result.metrics.items() if ".pvalue" in name]
            assert pvalues
            assert all(isinstance(value, Undefined) for value in pvalues)
            assert "nothing to test" in str(summarize(result))

    def test_what_no_draw_changes_is_no_test(self):
        """With equally many right everywhere, the mean cosine is a multiple of the fixed sum of common ones."""
        rng = np.random.default_rng(0)
        equal = np.array([rng.permutation([1.0, 1, 0, 0, 0]) for _ in range(30)])
        result = permutation_test(equal, n_permutations=50, null="margins").comparisons
        assert result["cosine.mean"].reason == result["cosine_nonzero.mean"].reason == "no draw changed it"
        assert not result["hamming.variance"].reason
        assert not result["jaccard.mean"].reason
        one_each = permutation_test(np.eye(5)[rng.integers(0, 5, 30)], n_permutations=50, null="margins")
        assert "nothing to test (no draw changed it)" in str(summarize(one_each))
        assert all(c.reason for c in one_each.comparisons.values())

    def test_percentiles_on_one_atom_are_flagged(self, mmlu_pro):
        metrics = permutation_test(mmlu_pro.Q, n_permutations=100).metrics
        assert metrics["hamming.p75.discrete"] == 1
        assert metrics["hamming.p75.pvalue"] == 1
        assert metrics["hamming.variance.discrete"] == 0

    def test_summary_reports_when_the_conventions_for_zero_rows_disagree(self, mmlu_pro):
        text = str(summarize(permutation_test(mmlu_pro.Q, n_permutations=100)))
        assert "98 prompts" in text
        assert "`cosine` 0.43386" in text
        assert "`cosine_nonzero` 0.51449" in text
        assert "has no test" in text
        assert "convention" not in str(
            summarize(permutation_test(mmlu_pro.Q[mmlu_pro.Q.any(axis=1)], n_permutations=50))
        )

    def test_summary_calls_a_result_what_it_is(self):
        solved = str(summarize(permutation_test(TABLE, n_permutations=99)))
        assert solved.startswith("Some prompts agree more, others less, than chance allows (p = 0.02).")
        assert "p = 0.02 (two-sided; upper tail 0.01, lower tail 1, discrete)" in solved
        assert "0.02 is the smallest possible p-value" in solved
        assert "permutations are too few" in str(summarize(permutation_test(TABLE, n_permutations=38)))
        chance = permutation_test((RNG.random((80, 9)) < 0.5).astype(float), n_permutations=99, seed=4)
        assert 0.05 < chance.metrics["hamming.variance.pvalue"] < 0.95
        assert "Chance can explain how evenly prompts agree" in str(summarize(chance))
        assert "smallest" not in str(summarize(chance))

    def test_too_small_a_statistic_is_reported_at_the_two_sided_level_only(self):
        verdicts = set()
        for seed in range(60):
            table = (np.random.default_rng(seed).random((40, 8)) < 0.5).astype(float)
            result = permutation_test(table, n_permutations=99, seed=seed)
            test = result.comparisons["hamming.variance"]
            assert ("more evenly than chance" in str(summarize(result))) == (
                test.pvalue_two_sided <= 0.05 and test.pvalue > 0.05
            )
            verdicts.add((test.pvalue_lower <= 0.05, "more evenly" in str(summarize(result))))
        assert {(True, False), (True, True), (False, False)} <= verdicts

    def test_margins_are_recommended_only_where_they_exist(self):
        assert "`margins`" in str(summarize(permutation_test(TABLE, n_permutations=5)))
        assert "`margins`" not in str(summarize(permutation_test(TABLE, n_permutations=5, null="margins")))
        assert "`margins`" not in str(summarize(permutation_test(TABLE / 2, n_permutations=5)))

    def test_headline_names_are_metrics_and_at_most_fifty(self):
        result = permutation_test(TABLE, n_permutations=5)
        assert set(result.main_metrics) <= set(result.metrics)
        assert 20 <= len(result.main_metrics) <= 50
        for name in ("hamming.variance.pvalue_two_sided", "cosine.mean", "jaccard.p95", "cosine.ks_d.pvalue"):
            assert name in result.main_metrics

    @pytest.mark.usefixtures("full_figures")
    def test_report_holds_values_tables_and_pictures(self):
        report = analyze(matrix(TABLE), n_permutations=20)
        assert set(report.prompt_values) == {
            "hamming.mean_to_others", "cosine.mean_to_others", "jaccard.mean_to_others", "n_right",
        }  # fmt: skip
        assert (report.prompt_values["n_right"].values == TABLE.sum(axis=1)).all()
        assert report.prompt_values["n_right"].prompt_ids.tolist() == list(range(100, 180))
        rows = report.tables["statistics"].to_pylist()
        assert len(rows) == 26
        mean_hamming = rows[0]
        assert (mean_hamming["similarity"], mean_hamming["statistic"]) == ("hamming", "mean")
        assert mean_hamming["pvalue"] is None
        assert mean_hamming["reason"]
        assert report.finding.arrays["hamming.variance.null"].shape == (20,)
        assert set(report.figures) == {"observed_and_permuted", "null_distributions"}

    def test_options_are_of_simple_types_with_help(self):
        hints = get_type_hints(analyze, include_extras=True)
        options = [p for p in inspect.signature(analyze).parameters.values() if p.kind is p.KEYWORD_ONLY]
        assert [p.name for p in options] == ["n_permutations", "null", "similarities", "seed", "device"]
        assert hints["device"] is Device
        assert all(isinstance(get_args(hints[p.name])[1], str) for p in options if p.name != "device")

    def test_models_and_prompts_without_scores_are_left_out_with_a_warning(self):
        Q = np.column_stack([TABLE, np.full(80, np.nan)])
        Q[5] = np.nan
        report = analyze(matrix(Q), n_permutations=5)
        assert (report.finding.n_prompts, report.finding.n_models) == (79, 9)
        assert report.warnings[0] == "Left out 1 models without any score: model 9."
        assert report.warnings[1] == "Left out 1 prompts without any score."
        assert 105 not in report.prompt_values["n_right"].prompt_ids

    def test_hundreds_of_models_are_compared_without_the_cosine(self):
        """Agreements of repeated columns are repeated, so the Hamming similarities are those of the columns once."""
        wide = np.tile(TABLE, (1, 36))
        report = analyze(matrix(wide), n_permutations=3)
        assert {test.name for test in report.finding.similarities.tests} == {"hamming", "jaccard", "jaccard_empty0"}
        assert "The cosine is left out" in " ".join(report.warnings)
        assert set(report.prompt_values) == {"hamming.mean_to_others", "jaccard.mean_to_others", "n_right"}
        once = permutation_test(TABLE, n_permutations=3).metrics
        for name in ("hamming.mean", "hamming.variance", "jaccard.mean", "jaccard.p95", "jaccard_empty0.variance"):
            assert report.finding.metrics[name] == pytest.approx(once[name], abs=1e-12)
        with pytest.raises(SelectionError, match="up to 300 models, here: 324"):
            analyze(matrix(wide), similarities=("cosine",))

    def test_warnings_name_constant_models_and_missing_cells(self):
        Q = TABLE.copy()
        Q[:, 2] = 1
        Q[0, :5] = np.nan
        Q[1, 5:] = np.nan
        warnings = " ".join(analyze(matrix(Q), n_permutations=5, null="margins").warnings)
        assert "model 2" in warnings
        assert "9 cells" in warnings
        assert "1 pairs of prompts share no model" in warnings
        assert "may not reach every table" in warnings
        assert "Use at least 39" in warnings

    @settings(max_examples=30)
    @given(table=binary_tables_with_gaps())
    def test_every_table_that_can_be_tested_is(self, table):
        report = analyze(matrix(table), n_permutations=5)
        assert str(report.summary)
        pvalues = [v for name, v in report.finding.metrics.items() if ".pvalue" in name]
        assert all(isinstance(p, Undefined) or 0 < p <= 1 for p in pvalues)
        for name, value in report.finding.metrics.items():
            assert value.reason if isinstance(value, Undefined) else np.isfinite(value), name

    @settings(max_examples=30)
    @given(table=continuous_tables_with_gaps())
    def test_every_continuous_table_that_can_be_tested_is(self, table):
        report = analyze(matrix(table), n_permutations=5)
        assert str(report.summary)
        assert report.tables["statistics"].num_rows >= 5

    @pytest.mark.parametrize("null", ["columns", "margins"])
    def test_few_tables_that_obey_the_null_get_small_pvalues(self, null):
        """A coarse guard; the finer one needs thousands of tables."""
        low = dict.fromkeys(("hamming.variance", "cosine.mean", "jaccard.mean", "cosine.ks_d"), 0)
        n = 200
        for seed in range(n):
            rng = np.random.default_rng(seed)
            odds = rng.normal(0, 1, (30, 1)) * (null == "margins") + rng.normal(0, 0.7, (1, 6))
            table = (rng.random((30, 6)) < 1 / (1 + np.exp(-odds))).astype(float)
            comparisons = permutation_test(table, n_permutations=99, null=null, seed=seed).comparisons
            for name in low:
                low[name] += comparisons[name].pvalue <= 0.1
        # Four standard errors around 10 %.
        assert all(n * 0.015 < count < n * 0.185 for count in low.values()), low


class TestErrors:
    @pytest.mark.parametrize(
        ("Q", "words"),
        [
            (TABLE[:, :1], "at least 2"),
            (TABLE[:1], "here: 1"),
            (TABLE[:2], "here: 2"),
            (np.zeros((9, 4)), "same score on every prompt"),
            (np.tile([0.0, 1.0, 1.0], (5, 1)), "same score on every prompt"),
            (np.full((4, 4), np.nan), "No prompt has a score"),
            (np.where(TABLE > 0, np.inf, 0.5), "infinite"),
            (np.tile(TABLE, (1, 223)), "2007 models are more than the 2000"),
        ],
    )
    def test_tables_without_information_are_rejected(self, Q, words):
        with pytest.raises(SelectionError, match=words):
            analyze(matrix(Q), n_permutations=3)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"n_permutations": 0}, "at least 1"),
            ({"seed": -1}, "at least 0"),
            ({"null": "rows"}, "Known: columns, margins"),
            ({"similarities": ("hamming", "pearson")}, "'pearson'. Known: hamming, cosine, jaccard"),
            ({"similarities": ()}, "Known"),
        ],
    )
    def test_options_that_mean_nothing_are_refused(self, options, words):
        with pytest.raises(SelectionError, match=words):
            analyze(matrix(TABLE), **options)

    def test_continuous_scores_reject_what_is_for_right_and_wrong(self):
        with pytest.raises(SelectionError, match="Use `columns`"):
            analyze(matrix(TABLE / 2), null="margins")
        with pytest.raises(SelectionError, match="cosine only"):
            analyze(matrix(TABLE / 2), similarities=("jaccard",))


def has_cuda() -> bool:
    torch = pytest.importorskip("torch", reason="the extra `gpu` is not installed")
    return torch.cuda.is_available()


def same_reports(first, second) -> None:
    """Equal metrics, arrays, tables, values of prompts and text."""
    assert repr(first.finding.metrics) == repr(second.finding.metrics)
    assert first.finding.arrays.keys() == second.finding.arrays.keys()
    for name, array in first.finding.arrays.items():
        assert array.dtype == second.finding.arrays[name].dtype
        assert array.tobytes() == second.finding.arrays[name].tobytes()
    assert first.tables == second.tables
    for name, values in first.prompt_values.items():
        assert values.values.tobytes() == second.prompt_values[name].values.tobytes()
    assert (first.summary, first.warnings) == (second.summary, second.warnings)


class TestDevices:
    @pytest.mark.parametrize("null", ["columns", "margins"])
    @pytest.mark.parametrize("gaps", [0, 0.05])
    def test_the_report_is_equal_in_every_byte(self, null, gaps, monkeypatch):
        """PyTorch computes on the CPU what it computes on a CUDA device."""
        pytest.importorskip("torch", reason="the extra `gpu` is not installed")
        from analyses.numerics.similarity.devices import device_engine

        create, created = device_engine.create_engine, []
        monkeypatch.setattr(devices, "check_device", lambda *_: None)
        monkeypatch.setattr(device_engine, "create_engine", lambda name: created.append(name) or create("cpu"))
        Q = np.where(np.random.default_rng(1).random(TABLE.shape) < gaps, np.nan, TABLE)
        options = {"n_permutations": 60, "null": null, "seed": 2}
        same_reports(analyze(matrix(Q), **options), analyze(matrix(Q), device="cuda", **options))
        assert set(created) == {"cuda"}

    def test_on_a_cuda_device(self):
        if not has_cuda():
            pytest.skip("there is no CUDA device")
        same_reports(analyze(matrix(TABLE), seed=2), analyze(matrix(TABLE), device="cuda", seed=2))

    def test_a_device_that_is_not_there_is_an_error_with_the_alternative(self):
        if has_cuda():
            pytest.skip("there is a CUDA device")
        with pytest.raises(SelectionError, match=r"Device 'cuda' is not available \(.+\). Try --device cpu."):
            analyze(matrix(TABLE), device="cuda")

    def test_without_pytorch_the_error_names_the_extra(self, monkeypatch):
        for name in [name for name in sys.modules if name.startswith("analyses.numerics.similarity.devices")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(MissingExtraError, match=r"The device cuda needs packages .+\n.+pip install '\.\[gpu\]'"):
            analyze(matrix(TABLE), device="cuda")

    @pytest.mark.parametrize("device", ["tpu", "", "mps", "auto"])
    def test_an_unknown_device_is_an_error(self, device):
        with pytest.raises(SelectionError, match=f"Device '{device}' is neither cpu nor a CUDA device"):
            analyze(matrix(TABLE), device=device)

    def test_tables_that_only_kernels_can_compare_are_an_error(self):
        with pytest.raises(SelectionError, match=r"Only scores of 0 and 1 .+ device cuda. Use --device cpu\."):
            analyze(matrix(TABLE / 2), similarities=("cosine",), device="cuda")
        with pytest.raises(SelectionError, match=r"with weights .+ device cuda. Use --device cpu, or no --weights\."):
            permutation_test(TABLE, weights=np.arange(1.0, 81), device="cuda")

    def test_equal_weights_are_none(self, monkeypatch):
        seen = []
        monkeypatch.setattr(method, "choose_engine", lambda device, table: seen.append(table.weights) or KERNELS)
        permutation_test(TABLE, weights=np.ones(80), device="cuda", n_permutations=1)
        assert seen == [None]

    def test_too_little_memory_is_an_error_with_the_fix(self, monkeypatch):
        torch = pytest.importorskip("torch", reason="the extra `gpu` is not installed")

        def lack_memory(*_):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

        monkeypatch.setattr(method, "choose_engine", lambda *_: KERNELS._replace(create_counter=lack_memory))
        with pytest.raises(
            SelectionError, match=r"device cuda does not suffice\. Use fewer --workers, or --device cpu"
        ):
            permutation_test(TABLE, device="cuda", n_permutations=1)

    def test_other_errors_are_raised_as_they_are(self, monkeypatch):
        pytest.importorskip("torch", reason="the extra `gpu` is not installed")

        def fail(*_):
            raise RuntimeError("another error")

        monkeypatch.setattr(method, "choose_engine", lambda *_: KERNELS._replace(create_counter=fail))
        with pytest.raises(RuntimeError, match="another error"):
            permutation_test(TABLE, device="cuda", n_permutations=1)
