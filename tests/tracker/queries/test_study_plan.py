"""`suffrage plan`: from stored variances to prompts and trials."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from filled_stores import add_scores
from statsmodels.stats.power import TTestPower

from tracker.cli import suffrage
from tracker.database import connect
from tracker.errors import NotFoundError, SelectionError

N = 300
RNG = np.random.default_rng(4)
Q = (RNG.random((N, 3)) < RNG.beta(2, 2, (N, 1))).astype(float)
AGAIN = np.abs(Q[:, :2] - (RNG.random((N, 2)) < 0.2))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three models without trials on `b`, two models with two trials on `twice`."""
    result = f"sqlite:///{tmp_path_factory.mktemp('plan') / 'suffrage.db'}"
    engine = connect(result)
    add_scores(engine, Q, models=["a", "b", "c"], tasks=[f"t{i % 15}" for i in range(N)])
    for trial, table in enumerate((Q[:, :2], AGAIN)):
        add_scores(engine, table, models=["a", "b"], benchmark="twice", trial=trial)
    return result


def call(url: str, *arguments: str) -> str:
    result = CliRunner().invoke(suffrage, ("plan", *arguments, "--database", url))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def rows(url: str, *arguments: str) -> list[dict[str, float]]:
    return json.loads(call(url, *arguments, "--format", "json"))["rows"]


class TestAgainstReference:
    @pytest.mark.parametrize(("effect", "power", "level"), [(0.05, 0.8, 0.95), (0.1, 0.9, 0.99)])
    def test_prompts_are_those_of_statsmodels(self, url: str, effect: float, power: float, level: float) -> None:
        deviation = (Q[:, 0] - Q[:, 1]).std(ddof=1)
        expected = TTestPower().solve_power(effect / deviation, alpha=1 - level, power=power)
        options = ("--effect", str(effect), "--power", str(power), "--level", str(level))
        row = rows(url, "b", "--models", "a,b", "--task-effects", "none", *options)[0]
        assert row["prompts"] == row["prompts_90"] == np.ceil(expected)
        detectable = TTestPower().solve_power(nobs=N, alpha=1 - level, power=power) * deviation
        assert row["detectable"] == pytest.approx(detectable, rel=1e-3)

    def test_rows_by_trials_are_of_the_pairs_with_several_trials(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path / 'suffrage.db'}"
        engine = connect(url)
        for trial, table in enumerate((Q, AGAIN)):
            add_scores(engine, table, models=["a", "b", "c"][: table.shape[1]], trial=trial)
        pair, every = ("b", "--effect", "0.05", "--models", "a,b"), ("b", "--effect", "0.05")
        assert [row["prompts"] for row in rows(url, *every)[1:]] == [row["prompts"] for row in rows(url, *pair)[1:]]
        stored = rows(url, *pair)[0]["prompts"]
        text = " ".join(call(url, *every).split())
        assert f"the median of the pair with several trials, which needs {stored:,} prompts with the stored" in text
        text = " ".join(call(url, *every, "--trials", "2").split())
        assert "for a and b: " in text
        assert "2 pairs are left out: a model has one trial of each prompt." in text


class TestTexts:
    def test_the_verdict_comes_first(self, url: str) -> None:
        assert call(url, "b", "--effect", "0.01").startswith("300 prompts are too few to detect a difference of 0.01")
        assert "prompts as independent within 15 tasks" in " ".join(call(url, "b", "--effect", "0.01").split())
        text = " ".join(call(url, "b", "--effect", "0.4", "--task-effects", "random").split())
        assert "300 prompts are enough" in text
        assert "clustered by task" in text
        assert "for the median of 3 pairs of models" in text

    def test_trials_are_listed_if_they_are_stored(self, url: str) -> None:
        by_trials = rows(url, "twice", "--effect", "0.05")
        assert [row["trials"] for row in by_trials] == [None, 1, 2, 4, 8]
        assert by_trials[0]["prompts"] == pytest.approx(by_trials[2]["prompts"], rel=0.01)
        needed = [row["prompts"] for row in by_trials[1:]]
        assert needed == sorted(needed, reverse=True)
        assert rows(url, "twice", "--effect", "0.05", "--trials", "4") == [by_trials[3]]


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "text"),
        [
            (("b", "--effect", "0"), "it must be a positive number, such as 0.01"),
            (("b", "--effect", "0.1", "--power", "0.01"), "must be between 0.05 and 1"),
            (("b", "--effect", "0.1", "--level", "95"), "between 0 and 1, such as 0.95"),
            (("b", "--effect", "0.1", "--trials", "4"), "have several trials of a prompt"),
            (("b", "--effect", "0.1", "--models", "a"), "needs two models"),
        ],
    )
    def test_what_cannot_be_planned_is_rejected(self, url: str, options: tuple[str, ...], text: str) -> None:
        with pytest.raises(SelectionError, match=text):
            call(url, *options)

    def test_an_effect_beyond_the_bounds_is_rejected(self, tmp_path: Path) -> None:
        rows = [f"{model},q{i},{int(i % (3 + place) == 0)}" for place, model in enumerate("ab") for i in range(40)]
        (tmp_path / "s.csv").write_text("\n".join(["model,prompt_id,correct", *rows]))
        url = f"sqlite:///{tmp_path}/store.db"
        options = ["ingest", str(tmp_path / "s.csv"), "--benchmark", "quiz", "--no-mlflow", "--database", url]
        assert CliRunner().invoke(suffrage, options).exit_code == 0
        assert "impossible" not in call(url, "quiz", "--effect", "1")
        with pytest.raises(SelectionError, match=r"The effect 1\.5 is impossible: accuracy is between 0 and 1"):
            call(url, "quiz", "--effect", "1.5")

    def test_a_wrong_name_is_answered_with_near_ones(self, url: str, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match="twice"):
            call(url, "twise", "--effect", "0.1")
