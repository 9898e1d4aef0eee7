"""Logs of Inspect AI: archives and JSON, of whatever the scorers returned."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inspect_logs import prompts, read, scores, until_damage, write
from sound.inspect_ai import DEFLATED, STORED, ZSTD, archive, header, reported, sample, whole

from tracker.errors import BadInputError
from tracker.ingest.formats import inspect_ai
from tracker.ingest.measurement import Answers, ReadOptions, Scores, TaskScores

NAN = float("nan")
VALUES = [
    *[("C", 1.0), ("I", 0.0), ("P", 0.5), ("N", 0.0), ("yes", 1.0), ("No", 0.0), ("TRUE", 1.0), (True, 1.0)],
    *[(False, 0.0), (0.25, 0.25), (7, 7.0), ("0.75", 0.75), ("-3", -3.0), (NAN, NAN), (None, NAN)],
    *[("good", NAN), (2**60, NAN), ("1e99", NAN), ([1, 0], NAN), ("inf", NAN)],
]


@pytest.fixture(params=["log.eval", "log.json"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log in each of its shapes."""
    return tmp_path / str(request.param)


class TestScores:
    def test_each_value_counts_as_inspect_counts_it_and_what_is_none_is_missing(self, path: Path) -> None:
        reading = read(write(path, [sample(n, value=value) for n, (value, _) in enumerate(VALUES)]))
        expected = {(str(n), 0): number for n, (_, number) in enumerate(VALUES) if not math.isnan(number)}
        assert scores(reading) == {"match": expected}
        assert "match: 5 values that are not numbers were skipped" in "\n".join(reading.warnings)

    def test_epochs_are_trials(self, path: Path) -> None:
        reading = read(write(path, [sample(1, 1, "C"), sample(1, 2, "I"), sample(1, 3, "P")]))
        assert scores(reading) == {"match": {("1", 0): 1.0, ("1", 1): 0.0, ("1", 2): 0.5}}

    def test_a_scorer_that_returns_several_values_is_several_metrics(self, path: Path) -> None:
        rows = [sample(1, value={"right": "C", "brief": 0.5, "list": [1]}, scorer="judge"), sample(2, value="I")]
        reading = read(write(path, rows))
        assert scores(reading) == {
            "judge/right": {("1", 0): 1.0},
            "judge/brief": {("1", 0): 0.5},
            "match": {("2", 0): 0.0},
        }
        assert any(warning.startswith("judge/list: 1 values") for warning in reading.warnings)

    @pytest.mark.parametrize(("counts_as", "required"), [(None, {}), ("missing", {}), ("wrong", {("2", 0): 0.0})])
    def test_an_error_is_missing_unless_the_user_reports_wrong(
        self, path: Path, counts_as: str | None, required: dict[Any, Any]
    ) -> None:
        rows = [sample(1), sample(2, error="Connection lost", value="I")]
        reading = read(write(path, rows), errored=counts_as)
        assert scores(reading) == {"match": {("1", 0): 1.0, **required}}
        assert any("1 samples ended with an error (1 of them have scores)" in n for n in reading.warnings)

    @pytest.mark.parametrize(("counts_as", "required"), [(None, {("2", 0): 1.0}), ("missing", {})])
    def test_an_empty_answer_is_as_scored_unless_the_user_reports_missing(
        self, path: Path, counts_as: str | None, required: dict[Any, Any]
    ) -> None:
        rows = [sample(1), sample(2, scores={"match": {"value": "C", "answer": "  "}})]
        reading = read(write(path, rows), empty=counts_as)
        assert scores(reading) == {"match": {("1", 0): 1.0, **required}}
        assert any("1 answers are empty" in warning for warning in reading.warnings)

    def test_the_later_of_two_samples_with_one_id_and_epoch_counts(self, path: Path) -> None:
        rows = [sample(1, value="I", uuid="a"), sample(2), sample(1, value="C", uuid="b"), sample("1", 2, "P")]
        reading = read(write(path, rows))
        assert scores(reading) == {"match": {("1", 0): 1.0, ("2", 0): 1.0, ("1", 1): 0.5}}
        assert "1 samples were retried with the same id and epoch; the last attempt counts" in reading.warnings

    def test_an_id_that_stands_for_several_contents_is_several_prompts(self, path: Path) -> None:
        rows = [sample(1, input="Why?"), sample(1, input="How?", value="I"), sample(1, 2, input="Why?", value="P")]
        reading = read(write(path, rows))
        assert scores(reading) == {"match": {("1", 0): 1.0, ("1#1", 0): 0.0, ("1", 1): 0.5}}
        assert "1 prompts share their id with another prompt; they are stored as id#1, id#2, …" in reading.warnings

    def test_bounds_are_known_of_the_scorers_of_inspect_unless_the_log_has_other_scores(self, path: Path) -> None:
        def bounds(*rows: Mapping[str, Any]) -> list[tuple[Any, Any]]:
            blocks = read(write(path, rows)).measurements
            return [(block.metric.lower, block.metric.upper) for block in blocks if isinstance(block, Scores)]

        assert bounds(sample(1)) == [(0.0, 1.0)]
        assert bounds(sample(1, value=5)) == [(None, None)]
        assert bounds(sample(1, scorer="mine")) == [(None, None)]

    def test_the_user_names_the_metric_of_the_scorer_that_the_log_reports(self, path: Path) -> None:
        rows = [sample(1, scores={"other": {"value": 2}, "judge": {"value": 3}})]
        reading = read(write(path, rows, reported(3, scorer="judge")), metric="accuracy")
        assert scores(reading) == {"other": {("1", 0): 2.0}, "accuracy": {("1", 0): 3.0}}


class TestReported:
    def test_a_mean_that_the_samples_come_to_is_not_spoken_of(self, path: Path) -> None:
        rows = [sample(1, 1, "C"), sample(1, 2, "I"), sample(2, 1, "C"), sample(2, 2, NAN)]
        assert not any("reports" in warning for warning in read(write(path, rows, reported(0.75))).warnings)

    def test_another_is(self, path: Path) -> None:
        warnings = read(write(path, [sample(1), sample(2, value="I")], reported(0.75, "mean"))).warnings
        assert warnings == [
            "the file reports match mean of sums as 0.75, but its scores give 0.5; the run is unverified"
        ]

    def test_the_standard_error_of_a_mean_is_compared(self, path: Path) -> None:
        rows = [sample(1), sample(2, value="I")]
        assert read(write(path, rows, reported(0.5, error=0.5))).differences == []
        (difference,) = read(write(path, rows, reported(0.5, error=0.4))).differences
        assert difference.text.endswith("reports match stderr of sums as 0.4, but its scores give 0.5")

    def test_another_reducer_of_the_epochs_is_spoken_of(self, path: Path) -> None:
        rows = [sample(1, 1), sample(1, 2, "I")]
        reading = read(write(path, rows, reported(1.0, reducer="max")))
        assert not reading.warnings
        (block,) = (block for block in reading.measurements if isinstance(block, TaskScores))
        assert (block.metric.name, list(block.values)) == ("match/max", [1.0])
        assert read(write(path, rows, reported(0.5, reducer="max"))).differences

    def test_keys_of_a_mapping_are_compared_one_by_one(self, path: Path) -> None:
        rows = [sample(1, value={"a": 1, "b": 0}, scorer="judge"), sample(2, value={"a": 0, "b": 0}, scorer="judge")]
        result = [{**reported(0.5, "mean", "judge"), "name": name} for name in "ab"]
        (warning,) = read(write(path, rows, *result)).warnings
        assert "judge/b mean of sums as 0.5, but its scores give 0" in warning

    def test_a_log_without_samples_gives_scores_of_the_whole_task(self, path: Path) -> None:
        reading = read(write(path, [], reported(0.25, error=0.1, scored_samples=8), reported(3.5, "words", "judge")))
        item, second = reading.measurements
        assert isinstance(item, TaskScores)
        assert isinstance(second, TaskScores)
        assert (item.metric.name, list(item.values), list(item.tasks), item.n_prompts) == (
            "match",
            [0.25],
            ["sums"],
            [8],
        )
        assert item.stderr is not None
        assert list(item.stderr) == [0.1]
        assert (second.metric.name, list(second.values)) == ("judge/words", [3.5])


class TestRun:
    def test_is_what_the_head_reports(self, path: Path) -> None:
        block = read(write(path, [sample()])).measurements[0]
        assert isinstance(block, Scores)
        run = block.run
        assert (run.model, run.benchmark, run.few_shot, run.limited) == ("org/model", "sums", 5, False)
        assert run.label == "2026-01-02T01:04:05+00:00 e1"
        assert run.started == datetime(2026, 1, 2, 1, 4, 6, tzinfo=UTC)
        assert run.settings["generate_config"] == {"temperature": 0.5}
        assert run.settings["model_args"] == {"device": "cpu", "api_key": "(omitted)"}
        assert list(block.prompts.tasks or ()) == ["sums"]

    def test_logs_that_the_user_gathers_in_one_benchmark_bear_no_labels_that_would_part_them(self, path: Path) -> None:
        block = read(write(path, [sample()]), benchmark="suite").measurements[0]
        assert isinstance(block, Scores)
        assert block.run.label == ""

    @pytest.mark.parametrize(
        "result",
        [
            {"config": {"limit": 2}},
            {"config": {"sample_id": [1, 2]}},
            {"dataset": {"samples": 9, "sample_ids": [1, 2]}},
            {"status": "error"},
            {"status": "cancelled"},
            {"status": "started"},
        ],
    )
    def test_a_part_of_the_benchmark_is_limited(self, path: Path, result: dict[str, Any]) -> None:
        reading = read(write(path, [sample()], **result))
        block = reading.measurements[0]
        assert isinstance(block, Scores)
        assert block.run.limited
        assert any("limited" in warning for warning in reading.warnings) == ("status" in result)

    def test_a_log_that_does_not_name_the_model_requests_for_it(self, path: Path) -> None:
        write(path, [sample()], model=None)
        with pytest.raises(BadInputError, match="add --model NAME"):
            read(path)
        assert scores(read(path, model="m")) == {"match": {("1", 0): 1.0}}


class TestPrompts:
    def test_text_choices_and_gold_answer(self, path: Path) -> None:
        messages = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "image", "image": "data:"}]},
        ]
        rows = [
            sample(1, input="Why? ", choices=["a", "b"], target="B"),
            sample(2, input=messages, target=["x"]),
            sample(3, input="attachment://0123", target=["x", "y"]),
            sample(4, choices=["cat", "dog"], target="dog"),
            sample(5, input="A" * 10 + "...\n(content truncated)"),
        ]
        reading = read(write(path, rows))
        result = prompts(reading)
        assert result.namespace == "inspect"
        assert result.text == ["Why?", "Look:\n(Image)", None, "What is 4 + 4?", None]
        assert result.choices == [["a", "b"], None, None, ["cat", "dog"], None]
        assert result.answer == ["B", "x", None, "B", "2"]
        assert result.details is not None
        assert result.details[0] == {"level": 1}
        assert result.details[2] == {"level": 1, "target": ["x", "y"]}
        assert any("the log truncates the text of 1 samples" in warning for warning in reading.warnings)

    def test_answers_are_those_of_the_scorers(self, path: Path) -> None:
        result = {"match": {"value": "C", "answer": " 4 \n or so"}, "silent": {"value": 1}}
        rows = [
            sample(1, scores=result),
            sample(2, scores={"match": {"value": "I", "answer": ""}}),
            sample(3, error="E"),
        ]
        (block,) = [
            measurement for measurement in read(write(path, rows)).measurements if isinstance(measurement, Answers)
        ]
        assert (block.extraction, list(block.text)) == ("match", ["4 or so", None, None])
        assert list(block.status or ()) == ["ok", "empty", "error"]
        assert block.predicted is not None
        assert block.predicted.tolist() == [True, True, True]


class TestShapes:
    """Whatever the shape of the log, the same is read."""

    @settings(max_examples=40)
    @given(
        rows=st.lists(
            st.tuples(st.integers(1, 3), st.integers(1, 2), st.sampled_from(["C", "I", 0.5, NAN, {"a": 1}]), st.text()),
            min_size=1,
            max_size=8,
        ),
        method=st.sampled_from([STORED, DEFLATED, ZSTD]),
    )
    def test_archives_of_every_compression_and_json_report_the_same(
        self, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], method: int
    ) -> None:
        folder = tmp_path_factory.mktemp("shapes")
        created = [sample(key, epoch, value, input=f"{key}?{text}") for key, epoch, value, text in rows]
        (folder / "a.eval").write_bytes(archive({"summaries.json": created, "header.json": header()}, method))
        journal = {f"_journal/summaries/{n + 1}.json": [item] for n, item in enumerate(created)}
        (folder / "b.eval").write_bytes(archive({**journal, "header.json": header()}, method))
        write(folder / "c.json", created)
        result = [list(inspect_ai.read(folder / name, ReadOptions())) for name in ("a.eval", "b.eval", "c.json")]
        assert scores(result[0]) == scores(result[1]) == scores(result[2])
        assert [element for element in result[0] if isinstance(element, str)] == [
            entry for entry in result[2] if isinstance(entry, str)
        ]
        expected: dict[tuple[int, int, str], Any] = {(k, e, t.strip()): v for k, e, v, t in rows}  # the later wins
        assert sum(len(of) for of in scores(result[0]).values()) == sum(v == v for v in expected.values())

    @pytest.mark.parametrize("whole_table", [True, False])
    def test_archives_in_the_form_for_very_large_files(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_table: bool
    ) -> None:
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
        monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
        path = tmp_path / "x.eval"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, outcome in (("summaries.json", [sample(n) for n in range(20)]), ("header.json", header())):
                with file.open(name, "w", force_zip64=True) as member:
                    member.write(json.dumps(outcome).encode())
        if not whole_table:
            data = path.read_bytes()
            path.write_bytes(data[: data.index(b"PK\x01\x02") + 5])
        result, reported_damage = until_damage(path)
        assert len(scores(result)["match"]) == 20
        assert bool(reported_damage) != whole_table

    @pytest.mark.parametrize("kept", [0, 10_000, 1_000_000])
    def test_blocks_do_not_grow_with_the_log(self, path: Path, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
        monkeypatch.setattr("tracker.ingest.formats.inspect_ai.blocks.PROMPTS_PER_BLOCK", 3)
        monkeypatch.setattr("tracker.ingest.formats.inspect_ai.log_index.KEPT", kept)
        reading = read(write(path, [sample(n, value=n % 2) for n in range(8)], reported(0.5)))
        sizes = [len(measurement.prompts) for measurement in reading.measurements if isinstance(measurement, Scores)]
        assert sizes == [3, 3, 2]
        assert scores(reading) == {"match": {(str(n), 0): float(n % 2) for n in range(8)}}
        assert not reading.warnings

    def test_the_first_versions_had_one_score(self, tmp_path: Path) -> None:
        item = {name: part for name, part in whole(sample()).items() if name != "scores"} | {"score": {"value": "C"}}
        head = header() | {"results": {"scorer": {"name": "score"}, "metrics": {"accuracy": {"value": 0.5}}}}
        path = tmp_path / "first.json"
        path.write_text(json.dumps({**head, "samples": [item]}))
        reading = read(path)
        assert scores(reading) == {"score": {("1", 0): 1.0}}
        assert "the file reports score accuracy of sums as 0.5, but its scores give 1" in reading.warnings[0]

    @pytest.mark.parametrize("lacking", ["scores", "value"])
    def test_a_log_that_reports_scores_but_whose_samples_hold_none_is_refused(self, path: Path, lacking: str) -> None:
        row = sample(1)
        row = {**row, "scores": {"match": {}}} if lacking == "value" else {n: v for n, v in row.items() if n != lacking}
        with pytest.raises(BadInputError, match=r"reports match accuracy of sums = 0\.5, but its 1 prompts have no"):
            read(write(path, [row], reported(0.5)))

    def test_an_unknown_version_is_a_warning(self, tmp_path: Path) -> None:
        path = tmp_path / "log.json"
        path.write_text(json.dumps({**header(), "version": 3, "results": {}, "samples": [whole(sample())]}))
        assert read(path).warnings == ["unknown log version 3; read as 2"]
