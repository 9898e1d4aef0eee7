"""What each policy for missing scores means to commands that compare pairs, runs and trials, by plain references."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from filled_stores import add_scores

from analyses.trials import analyze as analyze_trials
from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.queries.clusters import Clusters
from tracker.queries.comparing.study_plan import list_pairs
from tracker.queries.comparing.trial_scores import TrialScores
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.history import RunHistory
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.related_models.related_pairs import list_pairs as list_pairs_of
from tracker.queries.related_models.related_pairs import load_related
from tracker.queries.selection import Selection
from tracker.recording.comparing.histories import load_histories
from tracker.recording.pipeline import compute_report
from tracker.statistics.related.error_agreement import compare_errors

N, MODELS = 80, ("a", "b", "c", "d")
RNG = np.random.default_rng(5)
Q = (RNG.random((N, 4)) < 0.2 + 0.6 * RNG.random((N, 1))).astype(float)
Q[RNG.random((N, 4)) < [0.15, 0.1, 0.0, 0.05]] = np.nan
TRIALS = np.where(np.isnan(Q), np.nan, np.abs(Q - (RNG.random((3, N, 4)) < 0.3)))
RUNS = 0.4 + 0.2 * (RNG.random((N, 3)) < 0.5)
RUNS[RNG.random((N, 3)) < 0.15] = np.nan


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> sa.Engine:
    """Four models on `b`, of three trials on `t`, and three runs of a model on `r`; gaps in each."""
    folder: Path = tmp_path_factory.mktemp("policies")
    engine = connect(f"sqlite:///{folder}/suffrage.db")
    tasks = [f"t{i % 4}" for i in range(N)]
    add_scores(engine, Q, models=MODELS, tasks=tasks)
    for trial, table in enumerate(TRIALS):
        add_scores(engine, table, models=MODELS, benchmark="t", trial=trial, tasks=tasks)
    for number in range(3):
        add_scores(engine, RUNS[:, [number]], models=["a"], benchmark="r", label=str(number), tasks=tasks)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE metric SET lower = 0, upper = 1"))
    return engine


def chosen(benchmark: str, missing: str, **options: object) -> Selection:
    defaults = {"min_coverage": 0.0, "task_effects": "none", "cluster": "none"}
    return Selection(benchmark=benchmark, missing=missing, **{**defaults, **options})


def columns_by_dummies(table: np.ndarray) -> np.ndarray:
    """Effects of the columns in a regression on dummies of rows and columns."""
    p, j = np.nonzero(~np.isnan(table))
    design = np.hstack([np.eye(len(table))[p], np.eye(table.shape[1])[j]])
    return np.asarray(np.linalg.lstsq(design, table[p, j], rcond=None)[0][len(table) :])


class TestPairsAmongModels:
    """The analysis loads all models; the command loads two.

    Under ``worst``, the analysis also has the prompts that both models lack, like the leaderboard of all models.
    """

    PARAMETERS: ClassVar = {"model_a": "a", "model_b": "b", "n_resamples": 50}

    @pytest.mark.parametrize("policy", ["bounds", "common", "impute"])
    def test_no_policy_depends_on_the_models_that_are_not_compared(self, store: sa.Engine, policy: str) -> None:
        every, pair = (
            compute_report(store, "comparison", chosen("b", policy, models=models), self.PARAMETERS).finding.metrics
            for models in ((), ("a", "b"))
        )
        assert every == pair
        assert every["n_prompts"] == (~np.isnan(Q[:, :2])).all(axis=1).sum()

    def test_a_pair_fails_by_what_it_lacks_alone(self, store: sa.Engine) -> None:
        measured = ~np.isnan(Q[:, :2])
        n_a, n_b = (~measured[measured.any(axis=1)]).sum(axis=0)
        with pytest.raises(SelectionError, match=rf"Scores are missing.*: (a {n_a}, b {n_b}|b {n_b}, a {n_a})\."):
            compute_report(store, "comparison", chosen("b", "fail"), self.PARAMETERS)

    def test_a_pair_without_gaps_does_not_fail(self, sqlite_store: sa.Engine) -> None:
        table = Q.copy()
        table[:, :2] = np.nan_to_num(table[:, :2])
        add_scores(sqlite_store, table, models=MODELS)
        report = compute_report(sqlite_store, "comparison", chosen("b", "fail"), self.PARAMETERS)
        assert report.finding.metrics["n_prompts"] == N


@pytest.mark.parametrize("policy", ["bounds", "worst", "impute"])
def test_the_history_has_the_means_and_intervals_of_the_leaderboard(store: sa.Engine, policy: str) -> None:
    with transaction(store, write=False) as session:
        board = load_leaderboard(session, chosen("b", policy), n_resamples=0)
    history = load_histories(store, chosen("b", policy))
    expected = {row.model: (row.mean, row.low, row.high) for row in board.rows}
    means = {row["model"]: (row["mean"], row["mean_low"], row["mean_high"]) for row in history.list_records()}
    assert set(means) == set(MODELS)
    for model, numbers in means.items():
        assert numbers == pytest.approx(expected[model])


class TestImpute:
    def test_a_comparison_has_the_difference_of_the_leaderboard(self, store: sa.Engine) -> None:
        with transaction(store, write=False) as session:
            board = load_leaderboard(session, chosen("b", "impute"), n_resamples=0)
        means = {row.model: row.mean for row in board.rows}
        parameters = {"model_a": "a", "model_b": "b", "n_resamples": 50}
        selection = chosen("b", "impute", models=("a", "b"))
        report = compute_report(store, "comparison", selection, parameters)
        metrics = report.finding.metrics
        assert metrics["difference"] == pytest.approx(means["a"] - means["b"])
        assert (metrics["n_prompts"], metrics["all.n_prompts"]) == ((~np.isnan(Q[:, :2])).all(axis=1).sum(), N)
        assert metrics["all.n_missing"] == np.isnan(Q[:, :2]).sum()
        plain = compute_report(store, "comparison", chosen("b", "common", models=("a", "b")), parameters)
        assert metrics["shared.difference"] == plain.finding.metrics["difference"]
        assert metrics["stderr"] > (1 - 2 * np.isnan(Q[:, :2]).any(axis=1).mean()) * plain.finding.metrics["stderr"]
        assert "imputed, on 80 prompts. On the" in report.summary.caveats[0]

    def test_the_leaderboard_tests_pairs_with_the_errors_of_the_imputation(self, store: sa.Engine) -> None:
        with transaction(store, write=False) as session:
            board = load_leaderboard(session, chosen("b", "impute"), n_resamples=0)
        complete = next(row for row in board.rows if row.model == "c")
        assert complete.stderr == pytest.approx(Q[:, 2].std(ddof=1) / np.sqrt(N))
        filled = next(row for row in board.rows if row.model == "a")
        assert board.scores is not None
        assert filled.stderr > board.scores.Q[:, 0].std(ddof=1) / np.sqrt(N)
        assert set(board.rank_intervals) == set(MODELS)
        assert any("include the imputation" in warning for warning in board.warnings)

    def test_runs_differ_by_the_effects_of_a_regression_on_dummies(self, store: sa.Engine) -> None:
        report = compute_report(store, "drift", chosen("r", "impute"))
        effects = columns_by_dummies(RUNS)
        with transaction(store, write=False) as session:
            scores = RunHistory.load(session, chosen("r", "impute")).scores
        assert np.isnan(scores.Q).sum(axis=0).tolist() == np.isnan(RUNS).sum(axis=0).tolist()
        steps = report.tables["runs"]["change"].to_pylist()[1:]
        assert steps == pytest.approx(np.diff(effects).tolist())
        assert any("imputed from all runs" in warning for warning in report.warnings)

    def test_related_models_agree_on_measured_prompts(self, store: sa.Engine) -> None:
        with transaction(store, write=False) as session:
            related = load_related(session, chosen("b", "impute"))
            scores = load_performance_matrix(session, chosen("b", "bounds"))
        assert related.errors is not None
        expected = compare_errors(scores.Q)
        assert np.array_equal(related.errors.n, expected.n)
        assert related.errors.excess == pytest.approx(expected.excess, nan_ok=True)

    def test_bounds_of_agreement_are_those_of_extreme_tables(self, store: sa.Engine) -> None:
        with transaction(store, write=False) as session:
            related = load_related(session, chosen("b", "bounds"))
            pairs = {(pair.model, pair.other_model): pair for pair in list_pairs_of(related)}
        common = Q[~np.isnan(Q).any(axis=1)]
        leads = np.arange(4) == np.argmax(common.mean(axis=0))
        extremes = [np.where(np.isnan(Q), value, Q) for value in (0.0, 1.0, ~leads, leads)]
        tables = [compare_errors(table) for table in (common, *extremes)]
        for i, j in zip(*np.triu_indices(4, 1), strict=True):
            pair = pairs[MODELS[i], MODELS[j]]
            excess = [errors.excess[i, j] for errors in tables]
            assert pair.excess == pytest.approx(excess[0])
            assert (pair.excess_low, pair.excess_high) == pytest.approx((min(excess), max(excess)))
            assert pair.pvalue == pytest.approx(max(errors.holm[i, j] for errors in tables))
            assert pair.near_copy == all(errors.near_copies[i, j] for errors in tables)
        assert any("4 extreme completions" in text for text in related.warnings)

    @pytest.mark.tampers
    def test_near_copies_are_such_on_every_table(self, sqlite_store: sa.Engine) -> None:
        table = (RNG.random((300, 6)) < 0.5).astype(float)
        table[:, 1] = table[:, 0]
        table[:240, 1] = np.nan
        add_scores(sqlite_store, table)
        with sqlite_store.begin() as connection:
            connection.execute(sa.text("UPDATE metric SET lower = 0, upper = 1"))
        with transaction(sqlite_store, write=False) as session:
            common, bounds = (load_related(session, chosen("b", missing)) for missing in ("common", "bounds"))
        assert common.near_copies[0, 1]
        assert common.n_families < bounds.n_families == 6
        assert not bounds.near_copies.any()


class TestPlan:
    def pairs(self, store: sa.Engine, missing: str) -> dict[tuple[str, str], float]:
        with transaction(store, write=False) as session:
            trials = TrialScores.load(session, chosen("b", missing))
            groups = Clusters.load(session, chosen("b", missing)).group(trials.scores.prompt_ids)
        bounds = None if trials.scores.bounds is None else np.array(trials.scores.bounds)
        return {pair.models: pair.stderr for pair in list_pairs(trials, groups, bounds)}

    def test_bounds_take_a_variance_that_no_completion_exceeds(self, store: sa.Engine) -> None:
        pairs, worst = self.pairs(store, "bounds"), self.pairs(store, "worst")
        for i, j in ((0, 1), (0, 2), (1, 3)):
            bound, largest = pairs[MODELS[i], MODELS[j]], 0.0
            for _ in range(100):
                whole = np.where(np.isnan(Q), RNG.integers(0, 2, Q.shape), Q)
                largest = max(largest, (whole[:, i] - whole[:, j]).std(ddof=1) / np.sqrt(N))
            assert largest <= bound < 1.5 * largest
            assert worst[MODELS[i], MODELS[j]] <= bound

    def test_worst_and_impute_are_the_errors_of_filled_scores(self, store: sa.Engine) -> None:
        worst, whole = self.pairs(store, "worst"), np.nan_to_num(Q)
        assert worst["a", "b"] == pytest.approx((whole[:, 0] - whole[:, 1]).std(ddof=1) / np.sqrt(N))
        with transaction(store, write=False) as session:
            filled = load_performance_matrix(session, chosen("b", "impute")).for_errors
        expected = (filled[:, 0] - filled[:, 1]).std(ddof=1) / np.sqrt(N)
        assert self.pairs(store, "impute")["a", "b"] == pytest.approx(expected)


class TestTrials:
    def models(self, store: sa.Engine, missing: str) -> dict[str, dict[str, float]]:
        with transaction(store, write=False) as session:
            selection = chosen("t", missing)
            report = analyze_trials(TrialScores.load(session, selection), Clusters.load(session, selection))
        rates = {
            (row["model"], row["k"]): row for row in report.tables["pass"].to_pylist() if row["measure"] == "pass@k"
        }
        return {
            row["model"]: {**row, "pass": rates[row["model"], 2]["rate"], "pass_low": rates[row["model"], 2]["low"]}
            for row in report.tables["models"].to_pylist()
        }

    def test_the_worst_is_as_many_failed_trials(self, store: sa.Engine) -> None:
        row, whole = self.models(store, "worst")["a"], np.nan_to_num(TRIALS[:, :, 0])
        assert row["mean"] == pytest.approx(whole.mean())
        assert row["within"] == pytest.approx(whole.var(axis=0, ddof=1).mean())
        assert row["n"] == N
        passed = whole.sum(axis=0)
        assert row["pass"] == pytest.approx(np.mean(1 - (3 - passed) * (2 - passed) / 6))

    def test_bounds_hold_every_completion_of_the_parts(self, store: sa.Engine) -> None:
        row, gaps = self.models(store, "bounds")["a"], np.isnan(TRIALS[:, :, 0])
        for _ in range(100):
            prompts = RNG.integers(0, 2, (3, N)) if RNG.random() < 0.7 else np.tile(RNG.integers(0, 2, N), (3, 1))
            whole = np.where(gaps, prompts, TRIALS[:, :, 0])
            within = whole.var(axis=0, ddof=1).mean()
            between = max(whole.mean(axis=0).var(ddof=1) - within / 3, 0.0)
            assert row["within_low"] - 1e-12 <= within <= row["within_high"] + 1e-12
            assert row["between_low"] - 1e-12 <= between <= row["between_high"] + 1e-12
            assert row["low"] < whole.mean() < row["high"]
        assert row["within_low"] < row["within"] < row["within_high"]
        assert row["pass_low"] < self.models(store, "common")["a"]["pass_low"] + 0.2

    def test_imputed_scores_have_no_trials(self, store: sa.Engine) -> None:
        row = self.models(store, "impute")["a"]
        seen = ~np.isnan(TRIALS[0, :, 0])
        assert row["n"] == seen.sum()
        assert row["within"] == row["within_low"] == pytest.approx(TRIALS[:, seen, 0].var(axis=0, ddof=1).mean())
        with transaction(store, write=False) as session:
            board = load_leaderboard(session, chosen("t", "impute"), n_resamples=0)
        assert row["mean"] == pytest.approx(next(item.mean for item in board.rows if item.model == "a"))


PAIR = {"model_a": "a", "model_b": "c", "n_resamples": 20}


class TestExport:
    @pytest.mark.parametrize("policy", ["worst", "impute"])
    def test_filled_scores_are_marked_and_are_not_imported(self, store: sa.Engine, policy: str, tmp_path: Path) -> None:
        file = tmp_path / "scores.csv"
        words = ("export", "scores", "b", "--missing", policy, "--min-coverage", "0", "--output", str(file))
        result = CliRunner().invoke(suffrage, [*words, "--database", store.url.render_as_string()])
        n_missing = int(np.isnan(Q[~np.isnan(Q).all(axis=1)]).sum())
        assert f"{n_missing} scores are not measured" in result.stderr
        rows = pd.read_csv(file, keep_default_na=False)
        with transaction(store, write=False) as session:
            treated = load_performance_matrix(session, chosen("b", policy))
            stored = load_performance_matrix(session, Selection(benchmark="b"))
        exported = rows.pivot(index="prompt_id", columns="model", values="score").loc[treated.prompt_ids.tolist()]
        assert exported.to_numpy() == pytest.approx(treated.Q)
        marks = rows.pivot(index="prompt_id", columns="model", values="filled_by").loc[treated.prompt_ids.tolist()]
        assert np.array_equal(marks.to_numpy() == policy, np.isnan(stored.Q))
        assert np.array_equal(marks.to_numpy() == "", ~np.isnan(stored.Q))

        engine = connect(f"sqlite:///{tmp_path}/again.db")
        imported = ingest_file(engine, file, ReadOptions())
        assert any(f"left out {n_missing} scores that are not measured" in text for text in imported.changes.warnings)
        with transaction(engine, write=False) as session:
            again = load_performance_matrix(session, Selection(benchmark="b"))
        assert np.isnan(again.Q).sum() == n_missing
        assert np.nansum(again.Q, axis=0).tolist() == np.nansum(stored.Q, axis=0).tolist()
        engine.dispose()

    def test_worst_needs_bounds(self, sqlite_store: sa.Engine, tmp_path: Path) -> None:
        add_scores(sqlite_store, Q, models=MODELS)
        words = ("export", "scores", "b", "--missing", "worst", "--min-coverage", "0", "-o", str(tmp_path / "s.csv"))
        result = CliRunner().invoke(suffrage, [*words, "--database", sqlite_store.url.render_as_string()])
        assert isinstance(result.exception, SelectionError)
        assert "no bounds" in str(result.exception)
        assert not (tmp_path / "s.csv").exists()


class TestLeastCoverage:
    """`a` has scores for 85 % of the prompts. A comparison uses any share, other commands at least 95 %."""

    def test_a_comparison_has_a_default_and_a_selection_replaces_it(self, store: sa.Engine) -> None:
        assert compute_report(store, "comparison", Selection(benchmark="b"), PAIR).summary.headline
        for share in (0.95, 1.0):
            with pytest.raises(NotFoundError, match=r"No model 'a' with scores on b\. Known: c"):
                compute_report(store, "comparison", Selection(benchmark="b", min_coverage=share), PAIR)

    @pytest.mark.parametrize("share", [0.0, 0.95])
    def test_a_setting_has_the_effect_of_the_option(
        self, store: sa.Engine, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        words = ["compare", "b", "a", "c", "--resamples", "20", "--database", store.url.render_as_string()]
        monkeypatch.chdir(tmp_path)
        option = CliRunner().invoke(suffrage, [*words, "--min-coverage", str(share)])
        Path("suffrage.toml").write_text(f"min-coverage = {share}\n")
        setting = CliRunner().invoke(suffrage, words)
        assert (setting.stdout, str(setting.exception)) == (option.stdout, str(option.exception))
        assert (setting.exception is None) == (share == 0.0)
        monkeypatch.setenv("SUFFRAGE_MIN_COVERAGE", "0")
        assert CliRunner().invoke(suffrage, words).exception is None
