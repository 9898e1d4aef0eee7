"""Rank intervals and groups on the leaderboard."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.typing import NDArray

from analyses.rank_intervals import analyze
from tracker.database import connect, transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking import leaderboard_intervals
from tracker.queries.ranking.interval_warnings import list_clustering_warnings
from tracker.queries.ranking.leaderboard import Leaderboard, load_leaderboard
from tracker.queries.ranking.ranked_means import RankingOptions, rank_by_prompts
from tracker.queries.selection import Selection

MODELS = ("far-ahead", "close-a", "close-b", "far-behind")


@pytest.fixture
def engine(sqlite_url: str) -> sa.Engine:
    return connect(sqlite_url)


def put(engine: sa.Engine, tmp_path: object, Q: NDArray[np.float64]) -> None:
    path = tmp_path / "wide.csv"  # type: ignore[operator]
    lines = ["task,prompt_id," + ",".join(MODELS)]
    lines += [
        f"t{i % 12},q{i}," + ",".join("" if np.isnan(value) else f"{value:g}" for value in row)
        for i, row in enumerate(Q)
    ]
    path.write_text("\n".join(lines) + "\n")
    ingest_file(engine, path, ReadOptions(benchmark="b", metric="accuracy"))


def scores() -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    return (rng.random((600, 4)) < np.array([0.9, 0.6, 0.59, 0.2])).astype(float)


def board(engine: sa.Engine, missing: str | None = None, **choices: object) -> Leaderboard:
    with transaction(engine, write=False) as session:
        return load_leaderboard(session, Selection(benchmark="b", missing=missing, **choices))  # type: ignore[arg-type]


def test_ranks_that_can_be_distinguished_are_single_and_the_others_share_an_interval(
    engine: sa.Engine, tmp_path: object
) -> None:
    put(engine, tmp_path, scores())
    result = board(engine)
    assert {name: (entry.low, entry.high) for name, entry in result.rank_intervals.items()} == {
        "far-ahead": (1, 1),
        "close-a": (2, 3),
        "close-b": (2, 3),
        "far-behind": (4, 4),
    }
    assert [set(group) for group in result.groups] == [{"close-a", "close-b"}]
    assert result.describe_groups()[0].startswith("Ranks 2 to 3 are not distinguishable: close-")
    assert result.contenders == ("far-ahead",)
    assert re.fullmatch(
        r"far-ahead is first by 0\.\d{4}; "
        r"no other of the 4 ranked models may be first \(95% confidence\)\. "
        r"On these tasks its rank is 1; on other tasks like these it is 1\.",
        result.describe_lead(),
    )
    item = result.rank_intervals["far-ahead"]
    assert (item.bootstrap_low, item.bootstrap_high) == (1, 1)


def test_the_verdict_names_the_rivals_ties_and_why_a_lead_is_not_tested(engine: sa.Engine, tmp_path: object) -> None:
    Q = scores()
    Q[:, 0], Q[:, 2] = Q[::-1, 1], Q[:, 1]
    put(engine, tmp_path, Q)
    shared = board(engine)
    assert shared.describe_lead() == (
        "close-a, close-b, far-ahead share the first place; no other of the 4 ranked models may be first "
        "(95% confidence)."
    )
    tied = replace(shared, rows=tuple(row for row in shared.rows if row.rank == shared.rows[0].rank))
    assert tied.describe_lead() == (
        "close-a, close-b, far-ahead share the first place: no ranked model is ahead of another."
    )
    ahead = replace(shared, rows=(replace(shared.rows[0], rank=1.0, mean=0.75), *shared.rows[1:]))
    gap = 0.75 - shared.rows[1].mean
    assert ahead.describe_lead() == (
        f"close-a is first by {gap:.4f}, but close-b, far-ahead may be first too: the difference is not significant. "
        "On these tasks its rank is 1–3; on other tasks like these it is 1–3."
    )
    untested = replace(ahead, rank_intervals={}, no_rank_intervals="prompts are weighted")
    assert untested.describe_lead().endswith(". Its significance is not tested: prompts are weighted.")
    assert replace(ahead, rows=ahead.rows[:1]).describe_lead() == "close-a is the only model with a rank."
    assert replace(ahead, rows=()).describe_lead() == "No model has a rank."


def test_a_model_without_a_rank_and_a_better_mean_is_named_beside_the_verdict(
    engine: sa.Engine, tmp_path: object
) -> None:
    Q = scores()
    Q[:60, 0] = np.nan
    put(engine, tmp_path, Q)
    result = board(engine)
    assert result.describe_better_excluded() == (
        "far-ahead is listed apart but has a better mean. To rank all of them: --min-coverage 0.9"
    )
    assert board(engine, min_coverage=0.9).describe_better_excluded() == ""
    assert replace(result, higher_is_better=False).describe_better_excluded() == ""


def test_every_interval_holds_its_rank(engine: sa.Engine, tmp_path: object) -> None:
    put(engine, tmp_path, scores())
    for cluster in (None, "none"):
        result = board(engine, cluster=cluster)
        for row in result.rows:
            assert result.rank_intervals[row.model].low <= row.rank <= result.rank_intervals[row.model].high


def test_a_model_without_a_rank_has_no_interval_and_narrows_no_other(engine: sa.Engine, tmp_path: object) -> None:
    Q = scores()
    Q[5:50, 1] = np.nan
    put(engine, tmp_path, Q)
    result = board(engine)
    assert set(result.rank_intervals) == {"far-ahead", "close-b", "far-behind"}
    assert result.rank_intervals["far-behind"].high == 3
    assert result.groups == ()
    common = board(engine, "common", min_coverage=0.5)
    assert set(common.rank_intervals) == set(MODELS)
    assert common.n_units == 555


def test_models_with_imputed_scores_have_rank_intervals(engine: sa.Engine, tmp_path: object) -> None:
    Q = scores()
    Q[5, 1] = np.nan
    put(engine, tmp_path, Q)
    guessed = board(engine, "impute")
    assert {row.rank for row in guessed.rows} == {1, 2, 3, 4}
    assert set(guessed.rank_intervals) == set(MODELS)
    assert set(board(engine, "worst").rank_intervals) == set(MODELS)


def test_only_the_models_named_are_ranked_against_each_other(engine: sa.Engine, tmp_path: object) -> None:
    put(engine, tmp_path, scores())
    result = board(engine, models=("close-a", "far-behind"))
    assert {name: (item.low, item.high) for name, item in result.rank_intervals.items()} == {
        "close-a": (1, 1),
        "far-behind": (2, 2),
    }


@pytest.mark.parametrize("nameless", [slice(0, 0), slice(0, 30), slice(0, 300)])
def test_the_same_prompts_depend_on_each_other_in_means_and_in_ranks(
    engine: sa.Engine, tmp_path: object, nameless: slice
) -> None:
    put(engine, tmp_path, scores())
    with transaction(engine, write=False) as session:
        board = load_leaderboard(session, Selection(benchmark="b"))
    assert board.scores is not None
    tasks = board.scores.tasks.copy()
    tasks[nameless] = ""
    requested = replace(board.scores, tasks=tasks)
    order = np.argsort(requested.prompt_ids)
    ids, names = requested.prompt_ids[order], tasks[order]
    clusters = Clusters(field="task", prompt_ids=ids, names=names, tasks=names)
    rows = {row["model"]: row for row in analyze(requested, clusters, n_resamples=0).tables["models"].to_pylist()}
    for row in rank_by_prompts(requested, options=RankingOptions(missing="common", clusters=clusters)).rows:
        assert row.stderr_clustered is not None
        assert (row.low, row.high) == pytest.approx((rows[row.model]["low"], rows[row.model]["high"]), abs=1e-12)


@pytest.mark.parametrize("effects", ["fixed", "random"])
def test_other_tasks_are_a_question_about_tasks_whatever_the_clusters(effects: str) -> None:
    rng = np.random.default_rng(1)
    tasks = np.repeat([f"t{n}" for n in range(6)], 100)
    passages = np.repeat([f"p{n}" for n in range(120)], 5)
    advantage = np.repeat(rng.normal(0.1, 0.25, 6), 100)
    chances = np.clip(np.column_stack([0.55 + advantage, np.full(600, 0.5)]), 0, 1)
    matrix = PerformanceMatrix(
        Q=(rng.random((600, 2)) < chances).astype(float), prompt_ids=np.arange(600), tasks=tasks, models=("a", "b"),
        run_ids=np.array([1, 2]), benchmark="b", metric="accuracy",
    )  # fmt: skip
    plain = Clusters.of_tasks(matrix.prompt_ids, matrix.tasks)
    by_passage = replace(plain, field="passage", names=passages, task_effects=effects)
    results = [
        leaderboard_intervals.add_rank_intervals(
            rank_by_prompts(matrix, options=RankingOptions(clusters=clusters, missing="common")), clusters,
            n_resamples=0, seed=0,
        )
        for clusters in (plain, by_passage)
    ]  # fmt: skip
    assert results[0].ranks_on_other_tasks == results[1].ranks_on_other_tasks
    assert results[0].task_spread == results[1].task_spread
    assert results[1].task_spread is not None
    assert results[1].task_spread.n_clusters == 6


@pytest.mark.parametrize(("span", "n_divided"), [(1, 0), (2, 30)])
def test_clusters_that_span_tasks_are_reported_under_fixed_tasks(span: int, n_divided: int) -> None:
    tasks = np.array([f"t{row // 30}" for row in range(60)])
    rows = np.arange(60)
    passages = np.array([f"p{row % 30}" if span == 2 else f"p{row // 2}" for row in rows])
    clusters = Clusters(field="passage", prompt_ids=rows, names=passages, tasks=tasks, task_effects="fixed")
    warnings = list_clustering_warnings(clusters.group(rows), "passage")
    assert [text.startswith(f"{n_divided} clusters (passage) have prompts in several tasks") for text in warnings] == (
        [True] * (span == 2)
    )
    assert list_clustering_warnings(replace(clusters, task_effects="none").group(rows), "passage") == []


def test_few_and_unequal_clusters_are_reported_beside_the_ranks(engine: sa.Engine, tmp_path: object) -> None:
    path = tmp_path / "wide.csv"  # type: ignore[operator]
    lines = [f"{'big' if i < 300 else f't{i % 5}'},q{i},{i % 2},{i % 3 // 2}" for i in range(400)]
    path.write_text("\n".join(["task,prompt_id,a,b", *lines]) + "\n")
    ingest_file(engine, path, ReadOptions(benchmark="b", metric="accuracy"))
    output = " ".join(board(engine, task_effects="random").cluster_warnings)
    assert "The 6 clusters (task) weigh as 1.7 of equal size" in output
    assert board(engine, cluster="none").cluster_warnings == ()


def test_weighted_ranks_and_single_models_report_why_they_have_no_intervals(
    engine: sa.Engine, tmp_path: object
) -> None:
    put(engine, tmp_path, scores())
    assert board(engine, weights="task-equal").no_rank_intervals == "prompts are weighted"
    assert board(engine, models=("close-a",)).no_rank_intervals == "fewer than two models have a rank"


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_largest_scores_have_errors_and_rank_intervals(engine: sa.Engine, tmp_path: object) -> None:
    path = tmp_path / "large.csv"  # type: ignore[operator]
    path.write_text("prompt_id,large,small\np,1e308,1\nq,-1e308,0\nr,1e308,1\ns,-1e308,1\n")
    ingest_file(engine, path, ReadOptions(benchmark="b", metric="points"))
    result = board(engine)
    large = next(row for row in result.rows if row.mean == 0)
    assert large.stderr == pytest.approx(1e308 / math.sqrt(3))
    assert result.no_rank_intervals == ""
    assert {row.rank for row in result.rows} == {1.0, 2.0}


def test_more_models_than_can_be_paired_have_ranks_without_intervals(
    engine: sa.Engine, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard_intervals, "MAX_TESTED_MODELS", 1)
    path = tmp_path / "two.csv"  # type: ignore[operator]
    path.write_text("prompt_id,a,b\np,1,0\nq,1,0\n")
    ingest_file(engine, path, ReadOptions(benchmark="b", metric="points"))
    result = board(engine)
    assert result.no_rank_intervals.startswith("2 models have 1 pairs, and at most 1 models are tested")
