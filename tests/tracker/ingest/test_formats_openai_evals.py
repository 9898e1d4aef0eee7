"""Logs of openai/evals."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sound.openai_evals import MATCHES, METRICS, RUN, event, lines, requested, spec

from tracker.errors import BadInputError
from tracker.ingest.files import block_builder as builder
from tracker.ingest.formats import openai_evals
from tracker.ingest.measurement import Answers, Measurement, ParsedFile, Prompts, ReadOptions, Scores
from tracker.ingest.parsing.detection import parse_file


def read(folder: Path, *events: Any, **options: Any) -> ParsedFile:
    path = folder / "log.jsonl"
    path.write_bytes(lines(*events))
    return parse_file(path, ReadOptions(**options))


Row = tuple[str, int]


def scores(reading: ParsedFile) -> dict[str, dict[Row, float]]:
    """By metric: score by sample and trial, where there is one."""
    result: dict[str, dict[Row, float]] = {}
    for block in reading.measurements:
        if isinstance(block, Scores):
            trials = np.broadcast_to(block.trials, len(block.values)).tolist()
            rows = zip(block.prompts.keys, trials, block.values.tolist(), strict=True)
            result.setdefault(block.metric.name, {}).update({(k, t): v for k, t, v in rows if v == v})
    return result


def answers(reading: ParsedFile) -> dict[Row, tuple[str | None, str]]:
    """Text and status by sample and trial."""
    result = {}
    for block in reading.measurements:
        if isinstance(block, Answers):
            assert block.predicted is not None
            assert block.status is not None
            trials = np.broadcast_to(block.trials, len(block.text)).tolist()
            for row in np.flatnonzero(block.predicted).tolist():
                result[block.prompts.keys[row], trials[row]] = (block.text[row], block.status[row])
    return result


def contents(reading: ParsedFile) -> dict[str, tuple[str | None, str | None]]:
    """Text and reference answer by sample."""
    result: dict[str, tuple[str | None, str | None]] = {}
    for block in reading.measurements:
        prompts = block if isinstance(block, Prompts) else block.prompts  # type: ignore[union-attr]
        assert prompts.text is not None
        assert prompts.answer is not None
        for key, text, answer in zip(prompts.keys, prompts.text, prompts.answer, strict=True):
            before = result.get(key, (None, None))
            result[key] = (before[0] or text, before[1] or answer)
    return result


class TestMatches:
    def test_events_are_joined_by_sample_and_several_matches_are_trials(self, tmp_path: Path) -> None:
        reading = read(tmp_path, *MATCHES)
        assert scores(reading) == {
            "match": {("capitals.0", 0): 1, ("capitals.1", 0): 0, ("capitals.0", 1): 0, ("capitals.3", 0): 0}
        }
        assert contents(reading) == {
            "capitals.0": ("Capital of Peru?", "Lima"),
            "capitals.1": ("Capital of Chad?", "N'Djamena"),
            "capitals.2": ("Capital of Fiji?", "Suva"),
            "capitals.3": (None, "Oslo"),
        }

    def test_what_was_picked_is_the_answer_else_what_was_sampled(self, tmp_path: Path) -> None:
        assert answers(read(tmp_path, *MATCHES)) == {
            ("capitals.0", 0): ("Lima", "ok"),
            ("capitals.1", 0): ("Cairo", "ok"),
            ("capitals.0", 1): ("Quito", "ok"),
            ("capitals.2", 0): (None, "error"),
            ("capitals.3", 0): (None, "empty"),
        }

    def test_an_error_is_missing_or_wrong_and_nothing_reported_wrong_or_missing(self, tmp_path: Path) -> None:
        reading = read(tmp_path, *MATCHES, errored="wrong", empty="missing")
        result = scores(reading)["match"]
        assert result["capitals.2", 0] == 0
        assert ("capitals.3", 0) not in result
        assert "1 sample failed: counted as wrong" in " ".join(reading.warnings)
        assert "1 answer is empty: counted as missing" in " ".join(reading.warnings)

    def test_a_sample_that_succeeds_after_an_error_has_not_failed(self, tmp_path: Path) -> None:
        reading = read(
            tmp_path, spec(), event("s", "error", type="T"), event("s", "match", correct=True), errored="wrong"
        )
        assert scores(reading) == {"match": {("s", 0): 1}}
        assert not any("failed" in warning for warning in reading.warnings)

    def test_several_right_answers_are_kept(self, tmp_path: Path) -> None:
        details = [
            block.prompts.details for block in read(tmp_path, *MATCHES).measurements if isinstance(block, Scores)
        ]
        assert details[0] is not None
        assert details[0][1] == {"accepted_answers": ["N'Djamena", "Ndjamena"]}


class TestMetrics:
    def test_every_number_of_an_event_is_a_metric_and_words_are_none(self, tmp_path: Path) -> None:
        assert scores(read(tmp_path, *METRICS)) == {
            "f1": {("e.0", 0): 0.5, ("e.1", 0): 1},
            "length": {("e.0", 0): 4, ("e.1", 0): 1},
            "kept": {("e.0", 0): 1, ("e.1", 0): 0},
        }

    def test_the_first_thing_sampled_is_the_answer_not_what_a_grader_reports_later(self, tmp_path: Path) -> None:
        grader = requested("e.0", "Is it good?", ["Y"])
        reading = read(tmp_path, spec(), requested("e.0", "Write.", ["Once"]), grader, event("e.0", "metrics", f1=1.0))
        assert answers(reading) == {("e.0", 0): ("Once", "ok")}
        assert contents(reading)["e.0"][0] == "Write."


class TestRun:
    def test_model_benchmark_label_and_time_come_from_the_specification(self, tmp_path: Path) -> None:
        block = read(tmp_path, *MATCHES).measurements[0]
        assert isinstance(block, Scores)
        run = block.run
        assert (run.model, run.benchmark, run.label) == ("org/model", "capitals", RUN)
        assert run.started == datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC)
        assert run.settings["run_config"] == {"seed": 7, "eval_spec": {"cls": "a:B"}}
        assert set(block.prompts.split or ()) == {"test"}

    def test_without_base_eval_the_benchmark_is_the_eval(self, tmp_path: Path) -> None:
        block = read(tmp_path, *METRICS).measurements[0]
        assert isinstance(block, Scores)
        assert (block.run.model, block.run.benchmark) == ("m", "essays")

    def test_without_a_model_the_option_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match="--model NAME"):
            read(tmp_path, spec(completion_fns=[]), *MATCHES[1:])

    def test_a_log_that_breaks_off_is_what_there_is_with_a_warning(self, tmp_path: Path) -> None:
        reading = read(tmp_path, *MATCHES[:4])
        assert scores(reading) == {"match": {("capitals.0", 0): 1}}
        assert answers(reading)["capitals.1", 0] == ("Cairo", "ok")
        assert "no final report" in " ".join(reading.warnings)
        assert "1 samples have a response but no score" in " ".join(reading.warnings)

    def test_the_accuracy_of_the_final_report_is_that_of_the_events_or_a_warning(self, tmp_path: Path) -> None:
        assert not read(tmp_path, *MATCHES).differences
        (warning,) = read(tmp_path, *MATCHES[:-3], {"final_report": {"accuracy": 0.9}}).warnings
        assert warning == (
            "the file reports accuracy of capitals as 0.9, but its scores give 0.333333; the run is unverified"
        )


class TestStream:
    def test_samples_whose_score_comes_in_a_later_block_keep_text_answer_and_trial(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = read(tmp_path, *MATCHES)
        monkeypatch.setattr(builder, "PROMPTS_PER_BLOCK", 1)
        separate = read(tmp_path, *MATCHES)
        assert len(separate.measurements) > len(whole.measurements)
        for part in (scores, answers, contents):
            assert part(separate) == part(whole)  # type: ignore[operator]

    def test_what_precedes_the_damage_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "log.jsonl"
        path.write_bytes(lines(*MATCHES[:5])[:-30])
        result: list[Measurement | str] = []
        with pytest.raises(BadInputError, match="line 5: the JSON is invalid or truncated"):
            result.extend(openai_evals.read(path, ReadOptions()))
        assert isinstance(result[0], Scores)
        assert result[0].values.tolist() == [1]


class TestErrors:
    @pytest.mark.parametrize(
        ("events", "output"),
        [
            ([MATCHES[1]], "line 1: is not a run specification"),
            ([spec(), 7], "line 2: is not a JSON object"),
            ([spec(), event("s", "match", correct="yes")], "line 2, sample 's': a score is 'yes', not a number"),
            (
                [spec(), event("s", "metrics", f1=2**60)],
                "line 2, sample 's': a score is 1152921504606846976, too large",
            ),
            ([spec(), MATCHES[1], spec()], "line 3: a second run starts here"),
        ],
    )
    def test_lines_that_are_no_events_are_refused_with_their_number(
        self, tmp_path: Path, events: list[Any], output: str
    ) -> None:
        path = tmp_path / "log.jsonl"
        path.write_bytes(lines(*events))
        with pytest.raises(BadInputError, match=output):
            parse_file(path, ReadOptions(), format="openai-evals")


def test_every_real_log_gives_the_accuracy_that_it_reports(shared: Path) -> None:
    paths = sorted((shared / "samples" / "openai_evals").rglob("*.jsonl"))
    assert paths
    for path in paths:
        reading = parse_file(path, ReadOptions())
        outcome = json.loads(path.read_text().splitlines()[-1])["final_report"]["accuracy"]
        result = scores(reading)["match"]
        assert len(result) == path.read_text().count('"type": "match"')
        assert np.mean(list(result.values())) == pytest.approx(outcome, abs=1e-12)
        assert not reading.warnings
