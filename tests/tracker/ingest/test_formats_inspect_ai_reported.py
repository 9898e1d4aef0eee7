"""Numbers that a log of Inspect reports: each is compared with the samples by Inspect's own rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from inspect_logs import read, scores, write
from sound.inspect_ai import reported, sample

from tracker.ingest.measurement import ParsedFile, TaskScores


@pytest.fixture(params=["log.eval", "log.json"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def entry(scorer: str = "match", name: str = "", reducer: str | None = None, **metrics: Any) -> dict[str, Any]:
    """The results of a scorer; a metric is a value, or a mapping with its value and parameters."""
    entries = {
        key: {"name": key, "params": {}, **(value if isinstance(value, dict) else {"value": value})}
        for key, value in metrics.items()
    }
    return {"name": name or scorer, "scorer": scorer, "reducer": reducer, "metrics": entries}


def task_scores(reading: ParsedFile) -> dict[tuple[str, str], float]:
    """Task scores by metric and task."""
    return {
        (block.metric.name, task): value
        for block in reading.measurements
        if isinstance(block, TaskScores)
        for task, value in zip(block.tasks, block.values.tolist(), strict=True)
    }


def grouped(**values: float) -> dict[str, Any]:
    params = {"group_key": "subject", "metric": {"type": "metric", "name": "accuracy", "params": {}}}
    return {key: {"value": value, "group": "grouped", "params": params} for key, value in values.items()}


SUBJECTS = [
    sample(i, value=value, metadata={"subject": subject})
    for i, (subject, value) in enumerate([("law", "C"), ("law", "I"), ("history", "C")])
]


class TestGroups:
    def test_numbers_of_groups_are_task_scores_and_compared(self, path: Path) -> None:
        reading = read(write(path, SUBJECTS, entry(**grouped(law=0.5, history=1.0, all=2 / 3))))
        assert not reading.differences
        assert task_scores(reading) == {("match/subject", "law"): 0.5, ("match/subject", "history"): 1.0}

    @pytest.mark.parametrize("changed", ["law", "history", "all"])
    def test_a_changed_number_is_named(self, path: Path, changed: str) -> None:
        values = {"law": 0.5, "history": 1.0, "all": 2 / 3, changed: 0.25}
        (difference,) = read(write(path, SUBJECTS, entry(**grouped(**values)))).differences
        assert f"reports match {changed} of" in difference.text
        assert "as 0.25, but its scores give" in difference.text

    def test_the_number_of_all_samples_is_stored_once(self, path: Path) -> None:
        rows = [{**row, "epoch": epoch} for row in SUBJECTS for epoch in (1, 2)]
        for metrics in (grouped(all=2 / 3), {**grouped(all=2 / 3), "accuracy": 2 / 3}):
            reading = read(write(path, rows, entry(reducer="max", **metrics)))
            assert not reading.differences
            assert task_scores(reading) == {("match/max", "sums"): 2 / 3}

    def test_the_mean_of_groups_is_compared(self, path: Path) -> None:
        values = grouped(law=0.5, all=0.75)
        values["all"]["params"] = {**values["all"]["params"], "all": "groups"}
        assert not read(write(path, SUBJECTS, entry(**values))).differences
        values["all"]["value"] = 0.5
        assert read(write(path, SUBJECTS, entry(**values))).differences

    def test_names_of_groups_follow_their_template(self, path: Path) -> None:
        values = grouped(**{"of law/mean": 0.5})
        values["of law/mean"]["params"]["name_template"] = "of {group_name}/mean"
        reading = read(write(path, SUBJECTS, entry(**values)))
        assert not reading.differences
        assert task_scores(reading) == {("match/subject", "law"): 0.5}

    def test_a_clustered_standard_error_is_compared(self, path: Path) -> None:
        stderr = {"value": 1 / 9 * 2**0.5 * 2**0.5, "params": {"cluster": "subject"}}
        assert not read(write(path, SUBJECTS, entry(accuracy=2 / 3, stderr=stderr))).differences
        assert read(write(path, SUBJECTS, entry(accuracy=2 / 3, stderr={**stderr, "value": 0.3}))).differences


class TestEpochs:
    def test_only_a_full_score_passes(self, path: Path) -> None:
        rows = [sample(1, 1, "P"), sample(1, 2, "P"), sample(1, 3, "C"), sample(1, 4, "I")]
        assert not read(write(path, rows, entry(reducer="pass_at_2", accuracy=0.5))).differences
        assert read(write(path, rows, entry(reducer="pass_at_2", accuracy=5 / 6))).differences

    def test_scores_beyond_one_do_not_count_twice(self, path: Path) -> None:
        rows = [sample(1, 1, 3.25), sample(1, 2, 3.25), sample(1, 3, -1)]
        assert not read(write(path, rows, entry(reducer="pass_at_1", mean=2 / 3))).differences

    def test_spread_is_that_of_the_combined_epochs(self, path: Path) -> None:
        rows = [sample(1, 1, "C"), sample(1, 2, "I"), sample(2, 1, "I"), sample(2, 2, "I")]
        exact = entry(reducer="max", accuracy=0.5, stderr=0.5, std=0.5**0.5, var=0.5)
        assert not read(write(path, rows, exact)).differences
        for name in ("stderr", "std", "var"):
            exact["metrics"][name]["value"] += 0.1
            (difference,) = read(write(path, rows, exact)).differences
            assert f"match max {name} of sums" in difference.text
            exact["metrics"][name]["value"] -= 0.1

    def test_epochs_that_are_not_combined_count_as_samples(self, path: Path) -> None:
        rows = [sample(1, 1, "C"), sample(1, 2, "I"), sample(2, 1, "I"), sample(2, 2, "I")]
        assert not read(write(path, rows, entry(accuracy=0.25, stderr=0.25))).differences

    def test_a_mode_of_different_grades_with_equal_numbers_is_not_compared(self, path: Path) -> None:
        rows = [sample(1, 1, "C"), sample(1, 2, "I"), sample(1, 3, "N")]
        assert not read(write(path, rows, entry(reducer="mode", accuracy=1.0))).differences


class TestValues:
    def test_words_and_nulls_count_as_zero_where_a_mean_is_reported(self, path: Path) -> None:
        rows = [sample(1, value="C"), sample(2, value="unsure")]
        reading = read(write(path, rows, reported(0.5)))
        assert not reading.differences
        assert list(scores(reading)["match"].values()) == [1.0, 0.0]
        assert any("count as 0" in warning for warning in reading.warnings)
        rows = [sample(1, value={"a": 1}, scorer="judge"), sample(2, value={"a": None}, scorer="judge")]
        reading = read(write(path, rows, entry("judge", "a", mean=0.5)))
        assert not reading.differences
        assert list(scores(reading)["judge/a"].values()) == [1.0, 0.0]

    def test_words_are_skipped_where_no_mean_is_reported(self, path: Path) -> None:
        reading = read(write(path, [sample(1, value="C"), sample(2, value="unsure")], entry(frequency=0.5)))
        assert list(scores(reading)["match"].values()) == [1.0]

    def test_a_key_with_the_name_of_its_scorer_is_that_of_the_samples(self, path: Path) -> None:
        rows = [
            sample(1, value={"judge": 1, "b": 0}, scorer="judge"),
            sample(2, value={"judge": 0, "b": 0}, scorer="judge"),
        ]
        reading = read(write(path, rows, entry("judge", "judge", mean=0.5), entry("judge", "b", mean=0.0)))
        assert not reading.differences
        assert not task_scores(reading)
        assert read(write(path, rows, entry("judge", "judge", mean=0.75))).differences

    def test_each_of_two_equal_means_is_compared(self, path: Path) -> None:
        (difference,) = read(write(path, [sample(1)], entry(accuracy=1.0, mean=0.5))).differences
        assert "match mean of sums as 0.5" in difference.text


class TestCounts:
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("total_samples", "reports 7 samples, but holds 2"),
            ("completed_samples", "reports 7 completed samples, but holds 2"),
        ],
    )
    def test_numbers_of_samples_are_compared(self, tmp_path: Path, name: str, text: str) -> None:
        path = write(tmp_path / "log.json", [sample(1), sample(2)], reported(1.0))
        assert not read(path).differences
        path.write_text(path.read_text().replace(f'"{name}": 2', f'"{name}": 7'))
        (difference,) = read(path).differences
        assert text in difference.text

    def test_numbers_of_scored_prompts_are_compared(self, path: Path) -> None:
        rows = [sample(1), sample(2), sample(3, value=float("nan"))]
        exact = {**reported(1.0), "scored_samples": 2, "unscored_samples": 1}
        assert not read(write(path, rows, exact)).differences
        (difference,) = read(write(path, rows, {**exact, "scored_samples": 3})).differences
        assert "scored_samples of sums as 3, but its scores give 2" in difference.text
        (difference,) = read(write(path, rows, {**exact, "unscored_samples": 0})).differences
        assert "0 samples without a score of match, but holds 1" in difference.text
