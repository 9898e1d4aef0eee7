"""`suffrage compare MODEL_A MODEL_B`: every shared benchmark, and the overall difference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tracker.cli import suffrage
from tracker.errors import NotFoundError, SelectionError
from tracker.recording.comparing.shared_benchmarks import SharedBenchmark, pool_rows
from tracker.statistics.pooling.random_effects import pool_differences

FEW = ("--resamples", "99")
METRICS = ("accuracy", "accuracy", "accuracy", "rating")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four benchmarks of two models, one under a metric without bounds; a fifth where the two share no prompt."""
    folder: Path = tmp_path_factory.mktemp("shared")
    rng, result = np.random.default_rng(7), f"sqlite:///{folder}/suffrage.db"
    files = {}
    for place, metric in enumerate(METRICS):
        n = 60 + 40 * place
        scores = (rng.random((n, 2)) < [0.8, 0.5]).astype(float) * (1 if metric == "accuracy" else 7.5)
        rows = [f"{model},p{i},t{i % 12},{scores[i, j]:g}" for j, model in enumerate("ab") for i in range(n)]
        files[f"bench{place}"] = [f"model,prompt_id,task,{metric}", *rows]
    files["apart"] = ["model,prompt_id,task,accuracy", *(f"{'ab'[i % 2]},p{i},t{i % 3},{i % 5 % 2}" for i in range(12))]
    files["single"] = ["model,prompt_id,task,accuracy", *(f"a,p{i},t,{i % 2}" for i in range(4))]
    for name, lines in files.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        call(result, "ingest", str(folder / f"{name}.csv"), "--benchmark", name, "--no-mlflow")
    return result


def call(url: str, *arguments: str) -> Result:
    result = CliRunner().invoke(suffrage, (*arguments, "--database", url))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def compare(url: str, *arguments: str) -> dict:
    return json.loads(call(url, "compare", *arguments, *FEW, "--format", "json").stdout)


class TestNumbers:
    def test_each_benchmark_has_the_numbers_of_its_own_comparison(self, url: str) -> None:
        rows = compare(url, "a", "b")["benchmarks"]
        assert [row["benchmark"] for row in rows] == ["bench0", "bench1", "bench2", "bench3"]
        metrics = compare(url, "bench1", "a", "b")["metrics"]
        assert {name: rows[1][name] for name in ("difference", "stderr", "low", "high", "pvalue")} == {
            name: metrics[name] for name in ("difference", "stderr", "low", "high", "pvalue")
        }

    def test_benchmarks_with_equal_bounds_are_pooled(self, url: str) -> None:
        stored = compare(url, "a", "b")
        pooled = [row for row in stored["benchmarks"] if not row["unpooled"]]
        assert [row["benchmark"] for row in pooled] == ["bench0", "bench1", "bench2"]
        expected = pool_differences(
            np.array([row["difference"] for row in pooled]), np.array([row["stderr"] for row in pooled])
        )
        (overall,) = stored["overall"]
        assert overall["bounds"] == [0, 1]
        assert (overall["mean"], overall["low"]) == pytest.approx((expected.mean, expected.low))
        assert stored["benchmarks"][3]["unpooled"] == "rating has no known bounds"

    def test_the_order_of_the_models_turns_the_signs(self, url: str) -> None:
        first, second = compare(url, "a", "b")["overall"][0], compare(url, "b", "a")["overall"][0]
        assert (second["mean"], second["low"]) == pytest.approx((-first["mean"], -first["high"]))


class TestTexts:
    def test_the_verdict_comes_first_and_names_what_is_left_out(self, url: str) -> None:
        text = " ".join(call(url, "compare", "a", "b", *FEW).stdout.split())
        assert text.startswith("a is better than b by 0.")
        assert "overall on 3 benchmarks" in text
        assert "Not in the overall difference: bench3 (rating has no known bounds)." in text
        assert "Not compared: apart (a and b have no prompt in common" in text

    def test_two_benchmarks_have_no_overall_difference(self, url: str) -> None:
        stored = compare(url, "a", "b", "--metric", "rating")
        assert stored["overall"] == []
        assert "no overall difference" in stored["summary"]["headline"]
        assert stored["benchmarks"][0]["benchmark"] == "bench3"

    def test_rows_are_written_as_csv(self, url: str) -> None:
        lines = call(url, "compare", "a", "b", *FEW, "--format", "csv").stdout.splitlines()
        assert len(lines) == 5
        assert lines[0].startswith("benchmark,metric,n,mean_a,mean_b,difference,low,high,holm,unpooled")


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["a"], "Name two models, or a benchmark and two models, not 1 name"),
            (["w", "x", "y", "z"], "not 4 names"),
            (["bench0", "a"], "bench0 is a benchmark, so a second model is missing: suffrage compare bench0 a MODEL_B"),
            (["a", "bench0"], "suffrage compare bench0 a MODEL_B"),
            (["run:1", "run:2"], "A run belongs to one benchmark"),
            (["a", "a"], "Both models are a"),
            (["a", "b", "--record"], "--record needs a benchmark: suffrage compare BENCHMARK a b"),
            (["a", "b", "--margin", "0.1"], "--margin needs a benchmark"),
            (["a", "b", "--tasks", "t1"], "--tasks needs a benchmark"),
        ],
    )
    def test_a_wrong_command_line_shows_the_right_one(self, url: str, arguments: Sequence[str], text: str) -> None:
        result = call(url, "compare", *arguments)
        assert result.exit_code == 2
        assert text in " ".join(result.stderr.split())

    def test_models_without_a_shared_benchmark_are_rejected(self, url: str) -> None:
        with pytest.raises(SelectionError, match="cannot be compared on any benchmark"):
            call(url, "compare", "a", "b", "--metric", "f1")
        with pytest.raises(NotFoundError, match="No model 'c'"):
            call(url, "compare", "a", "c")


class TestMissingScores:
    def row(self, difference: float, gap: float) -> SharedBenchmark:
        extremes = ((difference - gap, 0.02), (difference + gap, 0.02)) if gap else None
        return SharedBenchmark(
            benchmark=f"b{difference}",
            metric="accuracy",
            n=100,
            mean_a=0.5,
            mean_b=0.5 - difference,
            difference=difference,
            stderr=0.02,
            low=None,
            high=None,
            pvalue=None,
            extremes=extremes,
        )

    def test_the_overall_difference_holds_for_every_value_of_missing_scores(self) -> None:
        differences = (0.1, 0.12, 0.14, 0.16)
        complete = pool_rows([self.row(value, 0.0) for value in differences])
        assert complete.low == pool_differences(np.array(differences), np.full(4, 0.02)).low
        few, many = (pool_rows([self.row(value, gap) for value in differences]) for gap in (0.02, 0.2))
        assert (few.mean, many.mean) == (complete.mean, complete.mean)
        assert few.low == pytest.approx(complete.low - 0.02)
        assert few.high == pytest.approx(complete.high + 0.02)
        assert complete.pvalue < few.pvalue < 0.05
        assert many.pvalue == 1.0
