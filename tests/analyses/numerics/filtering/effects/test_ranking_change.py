from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from analyses.numerics.filtering.effects.ranking_change import compare_rankings
from tracker.statistics.ranking import kendall_tau_b, mean_ranks

GOLDEN = Path(__file__).parents[4] / "golden"
RNG = np.random.default_rng(6)
Q = (RNG.random((80, 9)) < RNG.random((80, 1)) * 0.5 + np.linspace(0, 0.5, 9)).astype(float)
NOBODY = np.zeros(9, bool)

IN_TABLE_2 = (
    "Qwen2-72B-Instruct",
    "Meta-Llama-3.1-70B-Instruct",
    "Meta-Llama-3-70B-Instruct",
    "gemma-2-27b-it",
    "Phi-3.5-MoE-instruct",
    "Mixtral-8x22B-Instruct-v0.1",
    "dbrx-instruct",
    "Yi-34B",
    "Meta-Llama-3-8B-Instruct",
    "Qwen-7B-Chat",
    "gemma-7b-it",
)
PRINTED = {
    "arc": (
        (93.9, 93.4, 93.3, 92.5, 92.0, 91.6, 90.5, 90.2, 88.3, 76.4, 73.8),
        (83.0, 81.9, 81.9, 78.8, 78.5, 76.2, 73.2, 72.4, 72.1, 51.8, 53.1),
    ),
    "mmlu": (
        (84.1, 82.3, 80.3, 76.2, 78.7, 77.9, 73.2, 75.8, 66.4, 56.3, 51.7),
        (74.3, 71.4, 69.2, 63.9, 67.0, 65.3, 60.0, 62.4, 50.5, 41.5, 38.9),
    ),
    "commonsense_qa": (
        (88.5, 81.5, 83.3, 79.4, 80.9, 75.9, 78.6, 79.7, 76.5, 65.2, 68.8),
        (84.5, 74.1, 77.1, 71.9, 73.9, 67.2, 70.4, 71.8, 68.0, 55.7, 59.4),
    ),
}
"""Table 2 of the paper: percent right on all prompts, and on the kept ones."""


def printed(name: str) -> pd.DataFrame:
    return pd.read_csv(GOLDEN / f"smart_{name}.csv", comment="#")


class TestPublishedFigures:
    @pytest.mark.parametrize(
        ("name", "n_models", "tau"), [("arc", 29, 0.9617), ("mmlu", 30, 0.9758), ("commonsense_qa", 30, 0.9735)]
    )
    def test_tau_of_the_printed_accuracies(self, name, n_models, tau) -> None:
        table = printed(name)
        before, after = table["accuracy"].to_numpy(), table["accuracy_filtered"].to_numpy()
        result = kendall_tau_b(mean_ranks(before), mean_ranks(after))
        assert len(table) == n_models
        assert round(result, 4) == tau
        assert result == pytest.approx(stats.kendalltau(before, after).statistic, abs=1e-12)

    @pytest.mark.parametrize("name", [*PRINTED])
    def test_the_printed_tables_agree_with_each_other(self, name) -> None:
        table = printed(name).set_index("model")
        assert table.index.is_unique
        assert table["accuracy"].is_monotonic_decreasing
        assert ((table > 0.3) & (table < 0.95)).all(axis=None)
        assert table["accuracy"].sub(table["accuracy_filtered"]).between(0.03, 0.27).all()
        accuracy, filtered = 100 * table.loc[list(IN_TABLE_2)].to_numpy().T
        assert accuracy == pytest.approx(PRINTED[name][0])
        assert filtered == pytest.approx(PRINTED[name][1])

    def test_the_same_models_are_in_all_tables_but_one(self) -> None:
        arc, mmlu, commonsense = (set(printed(name)["model"]) for name in PRINTED)
        assert mmlu == commonsense
        assert mmlu - arc == {"Yi-1.5-34B-Chat"}
        assert arc < mmlu


class TestAgainstReference:
    @given(
        arrays(np.float64, (7, 5), elements=st.integers(0, 2).map(float)),
        arrays(np.bool_, 7),
        arrays(np.bool_, 5),
        st.booleans(),
    )
    @settings(max_examples=60)
    def test_everything_is_as_scipy_has_it(self, scores, kept, is_filter_model, higher) -> None:
        result = compare_rankings(scores, kept, is_filter_model, higher_is_better=higher)
        sign = -1 if higher else 1
        assert result.score_before == pytest.approx(scores.mean(axis=0))
        assert result.rank_before.tolist() == stats.rankdata(sign * scores.sum(axis=0)).tolist()
        rest = ~is_filter_model
        assert result.n_without_filter_models == rest.sum()
        if not kept.any():
            assert np.isnan(
                [*result.score_after, *result.rank_after, result.tau, result.tau_without_filter_models]
            ).all()
            return
        assert result.score_after == pytest.approx(scores[kept].mean(axis=0))
        assert result.rank_after.tolist() == stats.rankdata(sign * scores[kept].sum(axis=0)).tolist()
        totals = scores.sum(axis=0), scores[kept].sum(axis=0)
        assert result.tau == pytest.approx(stats.kendalltau(*totals).statistic, abs=1e-12, nan_ok=True)
        if rest.sum() < 2:
            assert np.isnan(result.tau_without_filter_models)
        else:
            expected = stats.kendalltau(totals[0][rest], totals[1][rest]).statistic
            assert result.tau_without_filter_models == pytest.approx(expected, abs=1e-12, nan_ok=True)


class TestLaws:
    def test_a_filter_that_keeps_everything_changes_nothing(self) -> None:
        result = compare_rankings(Q, np.ones(80, bool), NOBODY)
        assert result.score_after.tobytes() == result.score_before.tobytes()
        assert result.rank_after.tolist() == result.rank_before.tolist()
        assert result.tau == result.tau_without_filter_models == 1

    def test_taking_out_what_a_weak_model_got_right_hurts_it_and_only_the_tau_of_all(self) -> None:
        result = compare_rankings(Q, Q[:, 8] == 0, np.arange(9) == 8)
        assert result.score_after[8] == 0
        assert result.rank_after[8] == 9
        assert result.tau < result.tau_without_filter_models

    def test_turning_scores_and_direction_round_leaves_the_ranks(self) -> None:
        kept = np.arange(80) % 3 > 0
        change, turned = compare_rankings(Q, kept, NOBODY), compare_rankings(-Q, kept, NOBODY, higher_is_better=False)
        assert change.rank_after.tolist() == turned.rank_after.tolist()
        assert (change.tau, change.tau_without_filter_models) == (turned.tau, turned.tau_without_filter_models)


class TestDegenerate:
    def test_one_model_or_none_that_is_no_filter_model_has_no_tau(self) -> None:
        kept = np.arange(80) < 40
        change = compare_rankings(Q[:, :1], kept, NOBODY[:1])
        assert change.rank_after.tolist() == [1]
        assert np.isnan([change.tau, change.tau_without_filter_models]).all()
        everybody = compare_rankings(Q, kept, ~NOBODY)
        assert not np.isnan(everybody.tau)
        assert (everybody.n_without_filter_models, np.isnan(everybody.tau_without_filter_models)) == (0, True)

    def test_models_that_are_all_tied_on_what_is_kept_have_no_tau(self) -> None:
        result = compare_rankings(Q, (Q[:, :1] == Q).all(axis=1), NOBODY)
        assert result.rank_after.tolist() == [5] * 9
        assert np.isnan(result.tau)

    def test_without_prompts_there_are_no_scores(self) -> None:
        result = compare_rankings(np.empty((0, 3)), np.empty(0, bool), NOBODY[:3])
        assert np.isnan([*result.score_before, *result.rank_before, *result.rank_after, result.tau]).all()
