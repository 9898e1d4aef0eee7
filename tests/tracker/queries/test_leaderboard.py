"""The leaderboard: means, standard errors, ranks, and what is missing."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores, add_task_scores, add_weights
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tracker.database import transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.leaderboard import Leaderboard, load_leaderboard, rank_by_prompts
from tracker.queries.ranking.ranked_means import RankingOptions
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.queries.weights import PromptWeights
from tracker.statistics.grouping import group_rows
from tracker.statistics.student_t import t_quantile

NAN = float("nan")


def matrix(Q: NDArray[np.float64], tasks: list[str], *, higher_is_better: bool = True) -> PerformanceMatrix:
    return PerformanceMatrix(
        Q=Q,
        prompt_ids=np.arange(len(Q)),
        tasks=np.array(tasks, dtype=np.str_),
        models=tuple(f"m{j}" for j in range(Q.shape[1])),
        run_ids=np.arange(Q.shape[1]),
        higher_is_better=higher_is_better,
    )


def chosen(values: NDArray[np.float64]) -> PromptWeights:
    """Weights of the prompts of `matrix`; NaN = none."""
    has = ~np.isnan(values)
    return PromptWeights(name="1:w", finding_id=1, prompt_ids=np.flatnonzero(has).astype(np.int64), values=values[has])


def board(store: sa.Engine, **choices: object) -> Leaderboard:
    with transaction(store, write=False) as session:
        return load_leaderboard(session, Selection(benchmark="b", **choices))


class TestAgainstReference:
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    @pytest.mark.parametrize("is_weighted", [False, True])
    def test_standard_errors_are_those_of_statsmodels(self, missing: float, is_weighted: bool) -> None:
        from statsmodels.regression.linear_model import WLS

        rng = np.random.default_rng(2)
        tasks = [f"t{g}" for g in rng.integers(0, 7, 120)]
        Q = rng.random((120, 4)) + np.array([hash_of(task) for task in tasks])[:, None]
        Q[rng.random(Q.shape) < missing] = NAN
        weights = rng.gamma(0.7, size=120) if is_weighted else np.ones(120)
        weights[:10] = 0
        weights[10:15] = NAN
        table = matrix(Q, tasks)
        for row in rank_by_prompts(table, chosen(weights), by_task(table)).rows:
            y = Q[:, row.run_id]
            seen = ~np.isnan(y) & (weights > 0)
            w = weights[seen] / weights[seen].sum()
            fit = WLS(y[seen], np.ones(seen.sum()), weights=w).fit
            assert row.n == seen.sum()
            assert row.mean == pytest.approx(fit().params[0], rel=1e-12)
            assert row.stderr == pytest.approx(fit(cov_type="HC2").bse[0], rel=1e-10)
            assert row.n_effective == pytest.approx(1 / (w**2).sum(), rel=1e-12)
            groups = np.array(tasks)[seen]
            parts = [
                ((w * (y[seen] - row.mean))[groups == g].sum(), w[groups == g].sum()) for g in set(groups.tolist())
            ]
            assert row.stderr_clustered == pytest.approx(np.sqrt(sum(x**2 / (1 - share) for x, share in parts)))
            share = np.array([share for _, share in parts])
            u = share**2 / (1 - share)
            degrees = 1 / ((share**2).sum() + u.sum() ** 2 - (u**2).sum())
            if is_weighted:
                degrees = group_rows(groups).weighted_degrees(w)
            assert row.high - row.mean == pytest.approx(t_quantile(0.95, degrees) * row.stderr_clustered, rel=1e-10)
            assert row.mean - row.low == pytest.approx(row.high - row.mean, rel=1e-10)

    def test_task_equal_is_the_mean_of_the_tasks_means(self) -> None:
        rng = np.random.default_rng(4)
        tasks = np.array([f"t{g}" for g in np.repeat([0, 1, 2], [3, 10, 27])])
        Q = rng.random((40, 3))
        nothing = np.empty(0)
        weights = PromptWeights(name="task-equal", finding_id=None, prompt_ids=nothing.astype(np.int64), values=nothing)
        result = rank_by_prompts(matrix(Q, tasks.tolist()), weights)
        expected = np.mean([Q[tasks == task].mean(axis=0) for task in np.unique(tasks)], axis=0)
        assert {row.run_id: row.mean for row in result.rows} == pytest.approx(dict(enumerate(expected)), rel=1e-13)
        assert result.n_effective == pytest.approx(9 / (1 / 3 + 1 / 10 + 1 / 27))

    def test_clustering_widens_the_errors_of_real_data_as_published(self, shared: Path) -> None:
        import json

        import pandas as pd

        published = json.loads((shared / "reference/prompt_level.json").read_text())
        with open(shared / "data/mmlu_pro/scores_1200x12.csv") as file:
            head, *rows = csv.reader(file)
        Q = np.array([[float(x) for x in row[1:]] for row in rows])
        prompts = pd.read_parquet(shared / "data/mmlu_pro/prompts.parquet").set_index("prompt_id")
        keys = [key if prompts.index.dtype == object else int(key) for key in (row[0] for row in rows)]
        tasks = prompts.loc[keys, "category"].tolist()
        table = matrix(Q, tasks)
        ratios = [row.stderr_clustered / row.stderr for row in rank_by_prompts(table, options=by_task(table)).rows]
        expected = published["clustered_standard_error_over_naive"]["by_category_14"]["CR1"]
        assert len(head) == 13
        assert [min(ratios), max(ratios)] == pytest.approx(expected, abs=0.07)  # those are CR1

    def test_the_quantile_is_that_of_scipy(self) -> None:
        from scipy.stats import t

        for degrees in (*range(1, 60), 119, 120, 1999, 12_031):
            assert t_quantile(0.95, degrees) == pytest.approx(t.ppf(0.975, degrees), rel=1e-12)
        assert t_quantile(0.99, 5) == pytest.approx(t.ppf(0.995, 5), rel=1e-12)


def by_task(scores: PerformanceMatrix) -> RankingOptions:
    """Random task effects."""
    return RankingOptions(missing="common", clusters=Clusters.of_tasks(scores.prompt_ids, scores.tasks, "random"))


def hash_of(task: str) -> float:
    return int(task[1:]) / 10


class TestLaws:
    @given(
        hnp.arrays(np.float64, st.tuples(st.integers(2, 8), st.integers(1, 6)), elements=st.sampled_from([0.0, 1.0])),
        st.randoms(use_true_random=False),
    )
    def test_neither_the_order_of_prompts_nor_that_of_models_matters(
        self, Q: NDArray[np.float64], random: object
    ) -> None:
        tasks = [f"t{i % 3}" for i in range(len(Q))]
        first = rank_by_prompts(matrix(Q, tasks)).rows
        order = list(range(len(Q)))
        random.shuffle(order)
        second = rank_by_prompts(matrix(Q[order], [tasks[i] for i in order])).rows
        assert [(r.model, r.rank, r.mean) for r in first] == [(r.model, r.rank, r.mean) for r in second]

    @given(hnp.arrays(np.float64, (7, 5), elements=st.sampled_from([0.0, 1.0, NAN])))
    def test_ranks_are_those_of_exact_counts(self, Q: NDArray[np.float64]) -> None:
        from scipy.stats import rankdata

        rows = {row.model: row for row in rank_by_prompts(matrix(Q, [""] * 7)).rows}
        whole = [j for j in range(5) if not np.isnan(Q[:, j]).any()]
        expected = rankdata(-Q[:, whole].sum(axis=0)) if whole else []
        assert [rows[f"m{j}"].rank for j in whole] == list(expected)
        assert all(row.rank is None and row.excluded for name, row in rows.items() if int(name[1:]) not in whole)

    @given(
        hnp.arrays(
            np.float64, st.tuples(st.integers(2, 8), st.integers(1, 5)), elements=st.sampled_from([0.0, 0.3, 1.0, NAN])
        ),
        st.sampled_from([0.1, 1.0, 7.0, 1e-300]),
    )
    def test_equal_weights_change_nothing_byte_for_byte(self, Q: NDArray[np.float64], weight: float) -> None:
        scores = matrix(Q, [f"t{i % 3}" for i in range(len(Q))])
        assert rank_by_prompts(scores, chosen(np.full(len(Q), weight))).rows == rank_by_prompts(scores).rows

    @example(
        Q=np.array([[1, 1, 1], [1, 1, 1], [1, 0.5, 1], [1, 1, 1], [1, 1, 1], [0.5, 1, 1]]),
        times=np.array([2, 2, 2, 1, 2, 2]),
    )
    @given(
        hnp.arrays(np.float64, (6, 3), elements=st.sampled_from([0.0, 0.5, 1.0])),
        hnp.arrays(np.int64, 6, elements=st.integers(0, 3)).filter(lambda times: times.sum() > 1),
    )
    def test_a_whole_weight_counts_a_prompt_so_many_times(
        self, Q: NDArray[np.float64], times: NDArray[np.int64]
    ) -> None:
        tasks = ["a", "a", "b", "b", "c", "c"]
        table, copies = matrix(Q, tasks), matrix(np.repeat(Q, times, axis=0), np.repeat(tasks, times).tolist())
        weighted = rank_by_prompts(table, chosen(times.astype(np.float64)), by_task(table)).rows
        repeated = rank_by_prompts(copies, options=by_task(copies)).rows
        assert [row.rank for row in weighted] == [row.rank for row in repeated]
        for item, second in zip(weighted, repeated, strict=True):
            assert item.mean == pytest.approx(second.mean, abs=1e-13)
            if item.stderr_clustered is not None:
                assert item.stderr_clustered == pytest.approx(second.stderr_clustered, abs=1e-13)

    @given(st.floats(1e-6, 1e6))
    def test_the_unit_of_weights_does_not_matter(self, unit: float) -> None:
        rng = np.random.default_rng(5)
        scores, weights = matrix(rng.random((20, 3)), [f"t{i % 4}" for i in range(20)]), rng.random(20) + 0.1
        for item, second in zip(
            rank_by_prompts(scores, chosen(weights)).rows,
            rank_by_prompts(scores, chosen(unit * weights)).rows,
            strict=True,
        ):
            assert (item.model, item.rank) == (second.model, second.rank)
            assert (item.mean, item.stderr, item.low) == pytest.approx(
                (second.mean, second.stderr, second.low), rel=1e-11
            )

    def test_turning_the_scale_round_turns_the_order_round(self) -> None:
        Q = np.random.default_rng(0).random((9, 4))
        up = rank_by_prompts(matrix(Q, [""] * 9)).rows
        down = rank_by_prompts(matrix(Q, [""] * 9, higher_is_better=False)).rows
        assert [row.model for row in up] == [row.model for row in reversed(down)]
        assert [row.rank for row in down] == [1, 2, 3, 4]

    def test_sums_of_thirds_that_are_equal_are_tied(self) -> None:
        Q = np.array([[0.1, 0.3], [0.2, 0.2], [0.3, 0.1]])
        assert [row.rank for row in rank_by_prompts(matrix(Q, [""] * 3)).rows] == [1.5, 1.5]


class TestMissing:
    @pytest.fixture
    def store(self, sqlite_store: sa.Engine) -> sa.Engine:
        """What is counted here is counted by arrays, whatever the engine."""
        return sqlite_store

    def test_a_model_that_lacks_prompts_is_shown_last_without_a_rank(self, store: sa.Engine) -> None:
        Q = np.array([[0.0, 1.0, 1.0], [0.0, 1.0, NAN], [1.0, 1.0, 1.0]])
        add_scores(store, Q, tasks=["x", "x", "y"])
        result = board(store)
        assert [(row.model, row.rank) for row in result.rows] == [("m1", 1), ("m0", 2), ("m2", None)]
        assert result.rows[2].excluded == "1 of 3 prompts are missing"
        assert result.rows[2].coverage == pytest.approx(2 / 3)
        assert (result.n_units, result.n_tasks, result.unit) == (3, 2, "prompt")

    def test_naming_models_does_not_hide_what_they_lack(self, store: sa.Engine) -> None:
        Q = np.array([[0.0, 1.0, 1.0], [0.0, 1.0, NAN], [1.0, 1.0, NAN]])
        add_scores(store, Q)
        result = board(store, models=("m2", "m0"))
        assert [(row.model, row.rank, row.coverage) for row in result.rows] == [("m0", 1, 1), ("m2", None, 1 / 3)]

    def test_a_model_that_lacks_a_whole_task_is_not_ranked(self, store: sa.Engine) -> None:
        add_task_scores(store, np.array([[0.5, 0.9], [0.7, NAN]]), tasks=["a", "b"], models=["x", "y"])
        result = board(store)
        assert [(row.model, row.rank) for row in result.rows] == [("x", 1), ("y", None)]
        assert result.rows[1].excluded == "1 of 2 tasks are missing"
        assert result.unit == "task"
        assert result.rows[0].stderr == pytest.approx(0.1)
        assert result.rows[0].stderr_clustered is None
        assert result.rows[0].unclustered == "scores are of whole tasks"

    def test_models_with_scores_of_whole_tasks_only_are_named(self, store: sa.Engine) -> None:
        add_scores(store, np.array([[0.0], [1.0]]), tasks=["a", "b"])
        add_task_scores(store, np.array([[0.5]]), tasks=["a"], models=["published"])
        assert "published" in board(store).warnings[0]

    @pytest.mark.parametrize(
        ("tasks", "why"), [(["", ""], "no prompt has a cluster"), (["a", "a"], "all prompts are in one cluster")]
    )
    def test_without_two_tasks_there_is_no_clustered_error(self, store: sa.Engine, tasks: list[str], why: str) -> None:
        add_scores(store, np.array([[0.0], [1.0]]), tasks=tasks)
        row, alone = board(store, cluster="task").rows[0], board(store, task_effects="none").rows[0]
        assert row.stderr_clustered is None
        assert why in row.unclustered
        assert row.stderr == pytest.approx(0.5)
        assert (row.low, row.high) == (alone.low, alone.high)

    def test_prompts_without_a_task_are_each_one_of_their_own(self) -> None:
        Q = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, NAN]])
        table = matrix(Q, ["a", "a", "b", ""])
        result = rank_by_prompts(table, options=by_task(table))
        some, none = (next(row for row in result.rows if row.model == name) for name in ("m0", "m1"))
        assert result.n_tasks == 2
        assert some.stderr_clustered == pytest.approx(np.sqrt((0.5**2 + 0.5**2) / (1 - 1 / 4)) / 4)
        assert result.warnings[1:] == ("1 of 4 prompts have no task; each of them is a separate cluster.",)
        expected = (2 / 3) ** 2 / (1 - 2 / 3) + (2 / 3) ** 2 / (1 - 1 / 3)
        assert none.stderr_clustered == pytest.approx(np.sqrt(expected) / 3)

    def test_one_prompt_has_no_error_at_all(self, store: sa.Engine) -> None:
        add_scores(store, np.array([[1.0]]))
        row = board(store).rows[0]
        assert (row.stderr, row.rank) == (None, 1)
        assert (row.low, row.high) == pytest.approx((0.05, 1))

    def test_a_misspelt_model_is_met_with_the_known_ones(self, store: sa.Engine) -> None:
        add_scores(store, np.array([[1.0]]), models=["gpt-4o"])
        with pytest.raises(NotFoundError, match="Did you mean 'gpt-4o"):
            board(store, models=("gpt-4",))


class TestWeights:
    """Stored weights, on both engines."""

    def test_who_lacks_only_prompts_without_weight_is_ranked(self, store: sa.Engine) -> None:
        Q = np.array([[0.0, 1.0, NAN], [1.0, 1.0, NAN], [1.0, 0.0, 1.0], [0.0, NAN, 1.0]])
        add_scores(store, Q, tasks=["x", "x", "y", "y"])
        key = add_weights(store, [NAN, 0.0, 3.0, 1.0])
        result = board(store, weights=str(key))
        assert [(row.model, row.rank) for row in result.rows] == [("m2", 1), ("m0", 2), ("m1", None)]
        assert [row.mean for row in result.rows] == pytest.approx([1, 0.75, 0])
        assert (result.n_units, result.weights) == (2, f"{key}:custom")
        assert result.rows[2].excluded == "1 of 2 prompts are missing"
        assert result.n_effective == pytest.approx(1.6)
        assert result.warnings[:3] == (
            f"Prompts are weighted by {key}:custom.",
            f"1 of 4 prompts have no weight in {key}:custom and are left out.",
            "1 of 4 prompts have weight 0 and are left out.",
        )

    def test_scores_of_whole_tasks_have_no_prompts_to_weigh(self, store: sa.Engine) -> None:
        add_scores(store, np.array([[0.0], [1.0]]), benchmark="b", metric="other")
        add_task_scores(store, np.array([[0.5, 0.9], [0.7, 0.1]]), tasks=["a", "b"], models=["x", "y"])
        key = add_weights(store, [1.0, 2.0])
        with pytest.raises(
            SelectionError, match=r"scores of whole tasks only.*Leave --weights out; .* with task-equal"
        ):
            board(store, metric="accuracy", weights=str(key))
        assert board(store, metric="accuracy", weights="task-equal") == board(store, metric="accuracy")

    def test_naming_models_or_tasks_keeps_the_weights(self, store: sa.Engine) -> None:
        add_scores(store, np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]), tasks=["x", "x", "y"])
        key = add_weights(store, [3.0, 1.0, 1.0])
        assert [row.mean for row in board(store, weights=str(key), models=("m0",)).rows] == pytest.approx([0.4])
        [first, second] = board(store, weights=str(key), tasks=("x",)).rows
        assert (first.mean, second.mean) == pytest.approx((1.0, 0.25))


class TestAgainstTheView:
    def test_complete_data_have_the_same_means_and_order(self, store: sa.Engine) -> None:
        Q = np.random.default_rng(3).integers(0, 2, (30, 5)).astype(float)
        add_scores(store, Q, tasks=[f"t{i % 4}" for i in range(30)])
        with store.connect() as connection:
            view = dict(connection.execute(sa.text("SELECT model, mean FROM leaderboard WHERE rank IS NOT NULL")).all())
        assert {row.model: row.mean for row in board(store).rows} == pytest.approx(view)

    @pytest.mark.tampers
    @pytest.mark.parametrize("bounds", [(0.0, 1.0), (None, None)])
    def test_models_with_few_missing_scores_are_ranked_within_bounds(
        self, store: sa.Engine, bounds: tuple[float | None, float | None]
    ) -> None:
        Q = (np.arange(40)[:, None] < [30, 20, 39, 10]).astype(float)
        Q[39, 0] = Q[:3, 2] = np.nan  # m2 has the best mean of all, over too few prompts
        add_scores(store, Q)
        with store.begin() as connection:
            connection.execute(sa.update(tables.metric).values(lower=bounds[0], upper=bounds[1]))
            rows = connection.execute(sa.text("SELECT model, rank FROM leaderboard WHERE rank IS NOT NULL"))
            view = {row.model: row.rank for row in rows}
        assert view == ({"m0": 1, "m1": 2, "m3": 3} if bounds[0] is not None else {"m1": 1, "m3": 2})
        if bounds[0] is not None:
            assert {row.model: row.rank for row in board(store).rows if not row.excluded} == view
