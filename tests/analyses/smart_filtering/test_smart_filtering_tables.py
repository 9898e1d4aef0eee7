from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analyses.numerics.filtering.effects.agreement import measure_agreement
from analyses.numerics.filtering.effects.correlation_change import compare_correlations
from analyses.numerics.filtering.effects.ranking_change import compare_rankings
from analyses.numerics.filtering.step_flags import find_kept, make_flags
from analyses.smart_filtering import tables

RNG = np.random.default_rng(9)
TASKS = np.array(["law", "law", "law", "art", "art", "", "", ""])
EASY = np.array([1, 1, 0, 1, 1, 0, 0, 1], bool)
REMOVED = np.array([1, 1, 0, 1, 0, 0, 0, 0], bool)
SIMILAR = np.array([1, 0, 1, 1, 0, 0, 0, 0], bool)
STEPS = {
    "easy": make_flags(EASY, REMOVED),
    "similar": make_flags(
        SIMILAR, np.array([0, 0, 1, 1, 0, 0, 0, 0], bool), np.array([0, -1, 0, 7, *[-1] * 4], np.int32)
    ),
    "suspect-label": make_flags(np.arange(8) == 6, np.zeros(8, bool)),
}
KEPT = find_kept(STEPS.values(), 8)


def rows(table) -> list[dict]:
    return table.to_pylist()


class TestBySteps:
    def test_every_step_is_counted_by_hand(self) -> None:
        result = {row.pop("step"): row for row in rows(tables.list_by_step(STEPS, KEPT))}
        assert [*result] == ["easy", "similar", "suspect-label", "all steps"]
        counts = {name: [row[f"n_{count_name}"] for count_name in ("flagged", "retained", "removed", "removed_alone")]
                  for name, row in result.items()}  # fmt: skip
        assert counts == {
            "easy": [5, 2, 3, 2],
            "similar": [3, 1, 2, 1],
            "suspect-label": [1, 1, 0, 0],
            "all steps": [7, 3, 4, None],
        }
        for row in result.values():
            for count_name in ("flagged", "retained", "removed", "removed_alone"):
                share = None if row[f"n_{count_name}"] is None else row[f"n_{count_name}"] / 8
                assert row[f"share_{count_name}"] == share

    def test_a_skipped_step_has_no_numbers(self) -> None:
        result = {row.pop("step"): row for row in rows(tables.list_by_step(STEPS, KEPT, {"similar": "no vectors"}))}
        assert set(result["similar"].values()) == {None}
        assert result["easy"]["n_flagged"] == 5

    def test_without_prompts_all_shares_are_nought(self) -> None:
        result = tables.list_by_step({"easy": make_flags(np.zeros(0, bool))}, np.zeros(0, bool))
        assert [row["share_removed"] for row in rows(result)] == [0, 0]


class TestByTask:
    def test_tasks_that_lose_most_come_first_and_are_counted_by_hand(self) -> None:
        result = tables.list_by_task(TASKS, STEPS, KEPT)
        assert result["task"].to_pylist() == ["law", "art", ""]
        assert result["n_prompts"].to_pylist() == [3, 2, 3]
        assert result["n_kept"].to_pylist() == [0, 1, 3]
        assert result["n_removed"].to_pylist() == [3, 1, 0]
        assert result["share_removed"].to_pylist() == [1, 0.5, 0]
        assert result["n_easy_flagged"].to_pylist() == [2, 2, 1]
        assert result["n_easy_removed"].to_pylist() == [2, 1, 0]
        assert result["n_similar_removed"].to_pylist() == [1, 1, 0]
        assert result["n_suspect_label_flagged"].to_pylist() == [0, 0, 1]


class TestByModel:
    def test_models_stand_in_order_of_rank_with_what_changes(self) -> None:
        Q = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 1, 1]], float)
        change = compare_rankings(Q, np.arange(5) > 1, np.array([False, True, False]))
        result = rows(tables.list_by_model(["b", "c", "a"], change, np.array([False, True, False])))
        assert [row["model"] for row in result] == ["c", "a", "b"]
        assert [row["is_filter_model"] for row in result] == [True, False, False]
        assert [row["score_change"] for row in result] == pytest.approx([2 / 3 - 4 / 5, 2 / 5, 1 / 3 - 3 / 5])
        assert [(row["rank_before"], row["rank_after"], row["rank_change"]) for row in result] == [
            (1, 2, 1),
            (2.5, 1, -1.5),
            (2.5, 3, 0.5),
        ]

    def test_where_nothing_is_kept_there_is_no_number(self) -> None:
        change = compare_rankings(np.eye(3), np.zeros(3, bool), np.zeros(3, bool))
        for row in rows(tables.list_by_model(["a", "b", "c"], change, np.zeros(3, bool))):
            assert row["score_after"] is row["rank_after"] is row["rank_change"] is None
            assert row["rank_before"] == 2


class TestAgreement:
    def test_every_pair_has_a_row_with_its_own_numbers(self) -> None:
        answers = RNG.integers(-1, 3, (40, 4)).astype(np.int32)
        answers[:20, 3] = -1
        before, after = measure_agreement(answers), measure_agreement(answers[:20])
        result = rows(tables.list_agreement(list("wxyz"), before, after))
        assert len(result) == 6
        for row in result:
            i, j = "wxyz".index(row["model"]), "wxyz".index(row["other"])
            assert i < j
            assert row["share_before"] == before.share[i, j]
            assert row["kappa_before"] == before.kappa[i, j]
            assert row["kappa_after"] == (None if j == 3 else after.kappa[i, j])
            assert (row["share_after"] is None) == (j == 3)


class TestCorrelations:
    def test_every_correlation_has_a_row_and_no_number_where_it_is_not_defined(self) -> None:
        before, external_scores = RNG.random(12), RNG.random(12)
        changes = compare_correlations(before, np.ones(12), external_scores, n_draws=20, seed=0)
        result = rows(tables.list_correlations(changes))
        assert [row["correlation"] for row in result] == ["pearson", "spearman"]
        for row in result:
            assert row["before"] == changes[row["correlation"]].before
            assert row["after"] is row["low"] is row["share_not_above"] is None
            assert (row["n_models"], row["n_draws"], row["n_undefined"]) == (12, 20, 20)
        assert tables.list_correlations({}).num_rows == 0


class TestDecisions:
    def test_every_prompt_has_its_reasons_and_its_groups(self) -> None:
        result = tables.tabulate_decisions([f"p{i}" for i in range(8)], TASKS, STEPS, KEPT)
        assert result["prompt"].to_pylist() == [f"p{i}" for i in range(8)]
        assert result["task"].to_pylist() == TASKS.tolist()
        assert result["kept"].to_pylist() == KEPT.tolist()
        assert result["reasons"].to_pylist() == [
            "easy; similar", "easy", "similar", "easy; similar", "easy", "", "suspect-label", "easy",
        ]  # fmt: skip
        assert result["removed_by"].to_pylist() == ["easy", "easy", "similar", "easy; similar", "", "", "", ""]
        assert result["similar_group"].to_pylist() == [0, None, 0, 7, None, None, None, None]
        assert "easy_group" not in result.column_names

    def test_many_prompts_are_what_a_loop_makes_of_them(self) -> None:
        flags = RNG.random((3, 500)) < 0.4
        steps = dict(zip("abc", map(make_flags, flags), strict=True))
        result = tables.tabulate_decisions(
            [""] * 500, np.full(500, "t"), steps, find_kept(steps.values(), 500)
        ).to_pandas()
        expected = ["; ".join(name for name, flag in zip("abc", flags[:, p], strict=True) if flag) for p in range(500)]
        pd.testing.assert_series_equal(result["reasons"], pd.Series(expected), check_names=False, check_dtype=False)
        assert (result["kept"] == ~flags.any(axis=0)).all()

    def test_without_prompts_the_table_is_empty(self) -> None:
        nobody = np.zeros(0, bool)
        assert tables.tabulate_decisions([], np.empty(0, str), {"easy": make_flags(nobody)}, nobody).num_rows == 0
