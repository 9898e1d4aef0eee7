"""Trials of stored runs: variance, pass rates, and what is reported of them."""

from __future__ import annotations

import io
import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import scipy.stats
import sqlalchemy as sa
from click.testing import CliRunner

from analyses.trials import analyze
from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import SelectionError
from tracker.queries.clusters import Clusters
from tracker.queries.comparing.study_plan import plan_comparison
from tracker.queries.comparing.trial_scores import TrialScores
from tracker.queries.selection import Selection
from tracker.recording.finding import Undefined

N, TRIALS = 48, {"org/a": 4, "org/b": 4, "org/single": 1}
RNG = np.random.default_rng(8)
TABLES = {name: (RNG.random((N, k)) < RNG.beta(2, 1, (N, 1))).astype(int) for name, k in TRIALS.items()}
TABLES["org/b"] = (RNG.random((N, 4)) < 0.5).astype(int)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of two models with four trials and one with one; scores of `rating` are 0 to 2, of `huge` to 1e200."""
    folder: Path = tmp_path_factory.mktemp("trials")
    for metric, factor in (("accuracy", 1), ("rating", 2), ("huge", 1e200)):
        rows = [
            f"{name},p{i},t{i % 12},{trial},{factor * value}"
            for name, table in TABLES.items()
            for i, row in enumerate(table.tolist())
            for trial, value in enumerate(row)
        ]
        (folder / f"{metric}.csv").write_text("\n".join([f"model,prompt_id,task,trial,{metric}", *rows]) + "\n")
    result = f"sqlite:///{folder}/suffrage.db"
    for metric in ("accuracy", "rating", "huge"):
        options = ["ingest", str(folder / f"{metric}.csv"), "--benchmark", metric, "--no-mlflow", "--database", result]
        assert CliRunner().invoke(suffrage, options).exit_code == 0
    return result


def report(url: str, benchmark: str = "accuracy", cluster: str | None = "none", **options: object):
    selection = Selection(benchmark=benchmark, cluster=cluster, task_effects="none" if cluster == "none" else "random")
    with transaction(connect(url), write=False) as session:
        return analyze(TrialScores.load(session, selection), Clusters.load(session, selection), **options)


class TestAgainstReference:
    def test_cells_hold_what_was_stored(self, url: str) -> None:
        with transaction(connect(url), write=False) as session:
            trials = TrialScores.load(session, Selection(benchmark="accuracy"))
            names = session.execute(sa.text("SELECT prompt_id, key FROM prompt_alias")).all()
        prompt = {key: int(name[1:]) for key, name in names}
        rows = [prompt[key] for key in trials.scores.prompt_ids.tolist()]
        for column, name in enumerate(trials.scores.models):
            table = TABLES[name][rows]
            assert trials.count[:, column].tolist() == [TRIALS[name]] * N
            assert trials.passed[:, column].tolist() == table.sum(axis=1).tolist()
            np.testing.assert_allclose(trials.scores.Q[:, column], table.mean(axis=1))
            np.testing.assert_allclose(trials.squares[:, column], TRIALS[name] * table.var(axis=1), atol=1e-12)
        assert trials.is_unit
        assert trials.scores.n_trials == 4

    def test_scores_of_any_size_have_the_same_parts(self, url: str) -> None:
        plain, huge = report(url, "rating"), report(url, "huge")
        for row, same in zip(plain.tables["models"].to_pylist(), huge.tables["models"].to_pylist(), strict=True):
            assert same["trial_share"] == pytest.approx(row["trial_share"], nan_ok=True)
            for name in ("mean", "stderr", "low", "high") if row["most_trials"] > 1 else ("mean", "stderr"):
                assert same[name] == pytest.approx(row[name] / 2 * 1e200)
        assert huge.finding.metrics["sufficient_trials"] == plain.finding.metrics["sufficient_trials"]
        assert huge.finding.metrics["variance.within"] == Undefined("it is too large for a float64 number")
        with transaction(connect(url), write=False) as session:
            plans = [
                plan_comparison(session, Selection(benchmark=name, task_effects="none"), effect=effect)
                for name, effect in (("rating", 0.2), ("huge", 1e199))
            ]
        for row, same in zip(plans[0].rows, plans[1].rows, strict=True):
            assert same.median.n_prompts == row.median.n_prompts
            assert same.median.detectable == pytest.approx(row.median.detectable / 2 * 1e200)

    def test_pass_rates_have_the_error_of_a_mean(self, url: str) -> None:
        rows = report(url).tables["pass"].to_pylist()
        assert {(row["k"], row["model"]) for row in rows} == {(k, m) for k in (1, 2, 4) for m in ("org/a", "org/b")}
        for row in rows:
            if row["k"] != 4:
                continue
            table = TABLES[row["model"]]
            solved = table.max(axis=1) if row["measure"] == "pass@k" else table.min(axis=1)
            assert row["rate"] == pytest.approx(solved.mean())
            assert row["stderr"] == pytest.approx(scipy.stats.sem(solved))
            assert 0 <= row["low"] < row["rate"] < row["high"] <= 1

    def test_clusters_widen_errors_and_leave_variances(self, url: str) -> None:
        plain, clustered = report(url), report(url, cluster="task")
        for name in ("variance.within", "variance.between", "trial_share"):
            assert plain.finding.metrics[name] == clustered.finding.metrics[name]
        first, second = (each.tables["models"].to_pylist()[0]["stderr"] for each in (plain, clustered))
        assert first != second


class TestTexts:
    def test_the_leader_by_each_rule_is_named(self, url: str) -> None:
        result = report(url)
        assert "leads by the mean" in result.summary.headline
        assert any("pass@4:" in text for text in result.summary.evidence)
        assert set(result.rankings) == {"pass@4", "pass^4"}
        assert "2 of 3 models have 4 trials per prompt." in result.summary.evidence

    def test_the_headline_covers_all_models_and_ties(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(5)
        coins = np.repeat([[1, 0, 1, 0]], 40, axis=0)
        spiky = (rng.random((40, 4)) < np.where(np.arange(40) < 20, 0.95, 0.05)[:, None]).astype(int)
        spiky.flat[np.flatnonzero(spiky.ravel())[: max(spiky.sum() - 80, 0)]] = 0
        spiky.flat[np.flatnonzero(spiky.ravel() == 0)[: max(80 - spiky.sum(), 0)]] = 1
        rows = [
            f"{name},p{i},{trial},{value}"
            for name, table in (("even", coins), ("spiky", spiky))
            for (i, trial), value in np.ndenumerate(table)
        ]
        (tmp_path / "s.csv").write_text("\n".join(["model,prompt_id,trial,accuracy", *rows]) + "\n")
        url = f"sqlite:///{tmp_path}/store.db"
        options = ["ingest", str(tmp_path / "s.csv"), "--benchmark", "b", "--no-mlflow", "--database", url]
        assert CliRunner().invoke(suffrage, options).exit_code == 0
        headline = report(url, "b").summary.headline
        assert re.match(r"\d+ trials? per prompt suffices? for 1 of 2 models; for the others each further", headline)
        assert "; even, spiky lead by the mean" in headline

    def test_leaders_by_pass_rates_have_as_many_trials_as_the_others(self, tmp_path: Path) -> None:
        rows = [f"{name},p{i},{trial},{int(trial < n_right)}" for name, n, n_right in (("strong", 4, 3), ("weak", 8, 2))
                for i in range(20) for trial in range(n)]  # fmt: skip
        (tmp_path / "s.csv").write_text("\n".join(["model,prompt_id,trial,accuracy", *rows]) + "\n")
        url = f"sqlite:///{tmp_path}/store.db"
        options = ["ingest", str(tmp_path / "s.csv"), "--benchmark", "b", "--no-mlflow", "--database", url]
        assert CliRunner().invoke(suffrage, options).exit_code == 0
        result = report(url, "b")
        assert (result.finding.list_k(), result.finding.shared_k) == ([1, 2, 4, 8], 4)
        assert result.summary.headline.endswith("; strong leads by the mean.")
        assert any(text.startswith("pass@4: strong leads with 1.0000 (") for text in result.summary.evidence)
        assert "pass^4: strong, weak lead with 0.0000." in result.summary.evidence
        assert not any("pass@8" in text for text in result.summary.evidence)

    def test_scores_beyond_one_have_no_pass_rates(self, url: str) -> None:
        result = report(url, "rating")
        assert result.tables["pass"].num_rows == 0
        assert "pass@k and pass^k are undefined: scores lie outside 0 to 1, so no trial passes." in result.warnings
        assert result.finding.metrics["trial_share"] == pytest.approx(report(url).finding.metrics["trial_share"])

    def test_one_trial_is_reported_as_such(self, url: str) -> None:
        selection = Selection(benchmark="accuracy", models=("org/single",))
        with transaction(connect(url), write=False) as session:
            result = analyze(TrialScores.load(session, selection), Clusters.load(session, selection))
        assert result.summary.headline.startswith("No prompt has several trials")
        assert isinstance(result.finding.metrics["trial_share"], Undefined)
        assert not result.figures

    def test_the_leaderboard_points_to_the_trials(self, url: str) -> None:
        message = CliRunner().invoke(suffrage, ["leaderboard", "accuracy", "--database", url]).stderr
        assert "averages over up to 4 trials per prompt: `suffrage analyze trials accuracy`" in message

    @pytest.mark.usefixtures("full_figures")
    def test_pictures_are_drawn(self, url: str) -> None:
        for draw in report(url).figures.values():
            written = io.BytesIO()
            figure = draw()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert figure.axes[0].get_xlabel()


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "text"),
        [({"k": (0,)}, "at least 1"), ({"tolerance": 0.0}, "tolerance is 0"), ({"level": 1.0}, "between 0 and 1")],
    )
    def test_options_out_of_range_are_rejected(self, url: str, options: dict, text: str) -> None:
        with pytest.raises(SelectionError, match=text):
            report(url, **options)
