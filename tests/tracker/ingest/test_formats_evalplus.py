"""Results of EvalPlus."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sound.evalplus import CODE, OLD, solution

from tracker.errors import BadInputError
from tracker.ingest.formats import evalplus
from tracker.ingest.measurement import Answers, Measurement, ParsedFile, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.detection import parse_file

NAME = "org--model_vllm_temp_0.8.eval_results.json"


def read(folder: Path, content: Any = CODE, name: str = NAME, **options: Any) -> ParsedFile:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
    return parse_file(path, ReadOptions(**options))


def scores(reading: ParsedFile) -> dict[str, dict[tuple[str, int], float]]:
    """By metric: score by problem and trial, where there is one."""
    result: dict[str, dict[tuple[str, int], float]] = {}
    for block in reading.measurements:
        if isinstance(block, Scores):
            trials = np.broadcast_to(block.trials, len(block.values)).tolist()
            rows = zip(block.prompts.keys, trials, block.values.tolist(), strict=True)
            result[block.metric.name] = {(key, trial): value for key, trial, value in rows if value == value}
    return result


def pass_at_1(solved: dict[tuple[str, int], float]) -> float:
    problems = {key for key, _ in solved}
    return float(np.mean([np.mean([v for (key, _), v in solved.items() if key == problem]) for problem in problems]))


class TestScores:
    def test_a_solution_passes_the_added_tests_only_if_it_passes_the_own(self, tmp_path: Path) -> None:
        result = scores(read(tmp_path))
        assert result["pass_base"] == {
            ("HumanEval/0", 0): 1, ("HumanEval/0", 1): 1, ("HumanEval/1", 0): 0, ("HumanEval/1", 1): 0,
            ("HumanEval/2", 1): 0,
        }  # fmt: skip
        assert result["pass_plus"] == {
            ("HumanEval/0", 0): 1, ("HumanEval/0", 1): 0, ("HumanEval/1", 0): 0, ("HumanEval/1", 1): 0,
            ("HumanEval/2", 1): 0,
        }  # fmt: skip

    def test_the_means_over_problems_are_the_reported_pass_at_1(self, tmp_path: Path) -> None:
        reading = read(tmp_path)
        result = scores(reading)
        assert pass_at_1(result["pass_base"]) == pytest.approx(CODE["pass_at_k"]["base"]["pass@1"])
        assert pass_at_1(result["pass_plus"]) == pytest.approx(CODE["pass_at_k"]["plus"]["pass@1"])
        assert not any("reports" in warning for warning in reading.warnings)

    def test_another_reported_pass_at_1_is_reported(self, tmp_path: Path) -> None:
        content = copy.deepcopy(CODE) | {"pass_at_k": {"base": {"pass@1": 0.9}, "plus": {"pass@1": 1 / 6}}}
        (warning,) = (message for message in read(tmp_path, content).warnings if "reports" in message)
        assert warning == ("the file reports pass@1 (base) as 0.9, but its scores give 0.333333; the run is unverified")

    def test_a_reported_pass_at_1_without_a_status_is_a_warning(self, tmp_path: Path) -> None:
        content = {"eval": {"Mbpp/2": [solution("Mbpp/2", "pass", None)]}, "pass_at_k": {"plus": {"pass@1": 0.5}}}
        reading = read(tmp_path, content)
        assert scores(reading) == {"pass_base": {("Mbpp/2", 0): 1}}
        assert not any(isinstance(block, TaskScores) for block in reading.measurements)
        expected = "pass@1 (plus): reported as 0.5, but the file has no scores to compute it from; not stored"
        assert expected in reading.warnings

    def test_no_status_is_missing_or_wrong_and_an_empty_solution_wrong_or_missing(self, tmp_path: Path) -> None:
        reading = read(tmp_path, errored="wrong", empty="missing")
        result = scores(reading)
        assert result["pass_base"][("HumanEval/2", 0)] == 0
        assert ("HumanEval/2", 1) not in result["pass_base"]
        assert ("HumanEval/2", 0) not in result["pass_plus"], "it was not run on the added tests"
        assert "1 solution has no status: counted as wrong" in " ".join(reading.warnings)
        assert "1 solution is empty: counted as missing" in " ".join(reading.warnings)

    def test_own_tests_alone_give_one_metric(self, tmp_path: Path) -> None:
        content = {"date": "2026", "eval": {"Mbpp/2": [solution("Mbpp/2", "pass", None)]}}
        assert scores(read(tmp_path, content)) == {"pass_base": {("Mbpp/2", 0): 1}}

    def test_versions_before_0_2_list_statuses_side_by_side(self, tmp_path: Path) -> None:
        result = scores(read(tmp_path, OLD))
        assert result == {"pass_base": {("Mbpp/2", 0): 1, ("Mbpp/2", 1): 0}, "pass_plus": {("Mbpp/2", 0): 0}}

    def test_the_code_is_the_answer(self, tmp_path: Path) -> None:
        (block,) = (block for block in read(tmp_path).measurements if isinstance(block, Answers))
        assert block.text[:2] == ["return 1", "return 2"]
        assert block.status is not None
        assert list(block.status[4:]) == ["error", "empty"]


class TestNames:
    @pytest.mark.parametrize(
        ("name", "model"),
        [
            (NAME, "org/model"),
            ("org--model_hf_temp_0.0_eval_results.json", "org/model"),
            ("gpt-9-samples_eval_results.json", "gpt-9"),
        ],
    )
    def test_the_model_is_in_the_name(self, tmp_path: Path, name: str, model: str) -> None:
        block = read(tmp_path, name=name).measurements[0]
        assert isinstance(block, Scores)
        assert block.run.model == model

    @pytest.mark.parametrize("name", ["eval_results.json", "samples_eval_results.json", "samples.eval_results.json"])
    def test_without_one_the_option_is_named(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(BadInputError, match="--model NAME"):
            read(tmp_path, name=name)
        assert read(tmp_path, name=name, model="m").measurements

    @pytest.mark.parametrize(("content", "benchmark"), [(CODE, "humaneval+"), (OLD, "mbpp+")])
    def test_the_benchmark_is_reported_from_the_problems(self, tmp_path: Path, content: Any, benchmark: str) -> None:
        block = read(tmp_path, content).measurements[0]
        assert isinstance(block, Scores)
        assert block.run.benchmark == benchmark

    def test_date_and_sampling_are_kept(self, tmp_path: Path) -> None:
        block = read(tmp_path).measurements[0]
        assert isinstance(block, Scores)
        assert (block.run.label, block.run.started) == ("2026-05-06 07:08", datetime(2026, 5, 6, 7, 8, tzinfo=UTC))
        assert block.run.settings == {"backend": "vllm", "temperature": "0.8", "dataset_hash": "0123abcd"}


class TestErrors:
    def test_an_unknown_status_is_refused_with_its_problem(self, tmp_path: Path) -> None:
        content = {"eval": {"HumanEval/7": [solution("HumanEval/7", "maybe", "pass")]}}
        with pytest.raises(BadInputError, match="HumanEval/7: base_status has the unknown status 'maybe'"):
            read(tmp_path, content)

    def test_what_precedes_the_damage_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / NAME
        path.write_text(json.dumps({"eval": {"Mbpp/1": [solution("Mbpp/1", "pass", "pass")], "Mbpp/2": 7}}))
        result: list[Measurement | str] = []
        with pytest.raises(BadInputError, match="Mbpp/2: its results are not a list"):
            result.extend(evalplus.read(path, ReadOptions()))
        assert isinstance(result[0], Scores)
        assert list(result[0].prompts.keys) == ["Mbpp/1"]


def test_every_real_file_gives_the_pass_at_1_that_it_reports(shared: Path) -> None:
    paths = sorted((shared / "samples" / "evalplus").rglob("*.json"))
    assert paths
    for path in paths:
        reading, outcome = parse_file(path, ReadOptions()), json.loads(path.read_text())
        result = scores(reading)
        assert {key for key, _ in result["pass_base"]} == set(outcome["eval"])
        for name, at_k in outcome["pass_at_k"].items():
            assert pass_at_1(result[f"pass_{name}"]) == pytest.approx(at_k["pass@1"], abs=1e-12)
