"""Logs of Inspect AI: archives and JSON, finished, broken off and damaged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sound.inspect_ai import DEFLATED, STORED, ZSTD, archive, header, reported, sample, start, whole

from tracker.errors import BadInputError
from tracker.ingest.discovery import prepare
from tracker.ingest.formats import inspect_ai
from tracker.ingest.measurement import Answers, Measurement, Prompts, Reading, ReadOptions, Scores, TaskScores

NAN = float("nan")
NOT_READ = ("messages", "output", "events", "attachments", "scores")
VALUES = [
    *[("C", 1.0), ("I", 0.0), ("P", 0.5), ("N", 0.0), ("yes", 1.0), ("No", 0.0), ("TRUE", 1.0), (True, 1.0)],
    *[(False, 0.0), (0.25, 0.25), (7, 7.0), ("0.75", 0.75), ("-3", -3.0), (NAN, NAN), (None, NAN)],
    *[("good", NAN), (2**60, NAN), ("1e99", NAN), ([1, 0], NAN), ("inf", NAN)],
]


def write(path: Path, samples: Sequence[Mapping[str, Any]], *scores: Mapping[str, Any], **told: Any) -> Path:
    """A log in the shape that the name of the file says."""
    head = header(*scores, **told)
    if path.suffix == ".json":
        path.write_text(json.dumps({**head, "samples": [whole(one) for one in samples]}))
    else:
        path.write_bytes(archive({"summaries.json": list(samples), "header.json": head}, ZSTD))
    return path


def read(path: Path, **options: Any) -> Reading:
    return prepare(path, ReadOptions(**options))


def until_damage(path: Path, **options: Any) -> tuple[list[Measurement | str], str]:
    """What a reading yields, and what is wrong with the file."""
    found: list[Measurement | str] = []
    try:
        for block in inspect_ai.read(path, ReadOptions(**options)):
            found.append(block)
    except BadInputError as error:
        return found, str(error)
    return found, ""


def scores(reading: Reading | Sequence[Measurement | str]) -> dict[str, dict[tuple[str, int], float]]:
    """Scores by metric, prompt and trial; those that are missing are left out."""
    found: dict[str, dict[tuple[str, int], float]] = {}
    for block in reading.measurements if isinstance(reading, Reading) else reading:
        if isinstance(block, Scores):
            trials = np.broadcast_to(block.trials, block.values.shape)
            for key, trial, value in zip(block.prompts.keys, trials.tolist(), block.values.tolist(), strict=True):
                if not math.isnan(value):
                    found.setdefault(block.metric.name, {})[key, trial] = value
    return found


def prompts(reading: Reading) -> Prompts:
    block = reading.measurements[0]
    assert isinstance(block, (Scores, Answers))
    return block.prompts


@pytest.fixture(params=["log.eval", "log.json"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log in each of its shapes."""
    return tmp_path / str(request.param)


class TestScores:
    def test_each_value_counts_as_inspect_counts_it_and_what_is_none_is_missing(self, path: Path) -> None:
        reading = read(write(path, [sample(n, value=value) for n, (value, _) in enumerate(VALUES)]))
        wanted = {(str(n), 0): number for n, (_, number) in enumerate(VALUES) if not math.isnan(number)}
        assert scores(reading) == {"match": wanted}
        assert "match: 5 values that are no number were passed over" in "\n".join(reading.notes)

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
        assert any(note.startswith("judge/list: 1 values") for note in reading.notes)

    @pytest.mark.parametrize(("counts_as", "wanted"), [(None, {}), ("missing", {}), ("wrong", {("2", 0): 0.0})])
    def test_an_error_is_missing_unless_the_user_says_wrong(
        self, path: Path, counts_as: str | None, wanted: dict[Any, Any]
    ) -> None:
        rows = [sample(1), sample(2, error="Connection lost", value="I")]
        reading = read(write(path, rows), errored=counts_as)
        assert scores(reading) == {"match": {("1", 0): 1.0, **wanted}}
        assert any("1 samples ended with an error (1 of them were scored nevertheless)" in n for n in reading.notes)

    @pytest.mark.parametrize(("counts_as", "wanted"), [(None, {("2", 0): 1.0}), ("missing", {})])
    def test_an_empty_answer_is_as_scored_unless_the_user_says_missing(
        self, path: Path, counts_as: str | None, wanted: dict[Any, Any]
    ) -> None:
        rows = [sample(1), sample(2, scores={"match": {"value": "C", "answer": "  "}})]
        reading = read(write(path, rows), empty=counts_as)
        assert scores(reading) == {"match": {("1", 0): 1.0, **wanted}}
        assert any("1 answers hold nothing" in note for note in reading.notes)

    def test_the_later_of_two_samples_with_one_id_and_epoch_counts(self, path: Path) -> None:
        rows = [sample(1, value="I", uuid="a"), sample(2), sample(1, value="C", uuid="b"), sample("1", 2, "P")]
        reading = read(write(path, rows))
        assert scores(reading) == {"match": {("1", 0): 1.0, ("2", 0): 1.0, ("1", 1): 0.5}}
        assert "1 samples were asked again, with the same id and epoch; the later one of each counts" in reading.notes

    def test_an_id_that_stands_for_several_contents_is_several_prompts(self, path: Path) -> None:
        rows = [sample(1, input="Why?"), sample(1, input="How?", value="I"), sample(1, 2, input="Why?", value="P")]
        reading = read(write(path, rows))
        assert scores(reading) == {"match": {("1", 0): 1.0, ("1#1", 0): 0.0, ("1", 1): 0.5}}
        assert "1 prompts share their id with another and are called id#1, id#2, …" in reading.notes

    def test_bounds_are_known_of_the_scorers_of_inspect_unless_the_log_has_other_scores(self, path: Path) -> None:
        def bounds(*rows: Mapping[str, Any]) -> list[tuple[Any, Any]]:
            blocks = read(write(path, rows)).measurements
            return [(one.metric.lower, one.metric.upper) for one in blocks if isinstance(one, Scores)]

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
        assert not any("reports" in note for note in read(write(path, rows, reported(0.75))).notes)

    def test_another_is(self, path: Path) -> None:
        notes = read(write(path, [sample(1), sample(2, value="I")], reported(0.75, "mean"))).notes
        said = "the log reports match mean = 0.75, and the mean of its own samples, as they were taken, is 0.5 over"
        assert notes == [f"{said} 2 prompts"]

    def test_another_reducer_of_the_epochs_is_spoken_of(self, path: Path) -> None:
        (note,) = read(write(path, [sample(1, 1), sample(1, 2, "I")], reported(1.0, reducer="max"))).notes
        assert "accuracy = 1 with max of the epochs" in note

    def test_keys_of_a_mapping_are_compared_one_by_one(self, path: Path) -> None:
        rows = [sample(1, value={"a": 1, "b": 0}, scorer="judge"), sample(2, value={"a": 0, "b": 0}, scorer="judge")]
        told = [{**reported(0.5, "mean", "judge"), "name": name} for name in "ab"]
        (note,) = read(write(path, rows, *told)).notes
        assert "judge/b mean = 0.5" in note

    def test_a_log_without_samples_gives_scores_of_the_whole_task(self, path: Path) -> None:
        reading = read(write(path, [], reported(0.25, scored_samples=8), reported(3.5, "words", "judge")))
        one, other = reading.measurements
        assert isinstance(one, TaskScores)
        assert isinstance(other, TaskScores)
        assert (one.metric.name, list(one.values), list(one.tasks), one.n_prompts) == ("match", [0.25], ["sums"], [8])
        assert one.stderr is not None
        assert list(one.stderr) == [0.1]
        assert (other.metric.name, list(other.values)) == ("judge/words", [3.5])


class TestRun:
    def test_is_what_the_head_says(self, path: Path) -> None:
        block = read(write(path, [sample()])).measurements[0]
        assert isinstance(block, Scores)
        run = block.run
        assert (run.model, run.benchmark, run.few_shot, run.limited) == ("org/model", "sums", 5, False)
        assert run.label == "2026-01-02T01:04:05+00:00 e1"
        assert run.started == datetime(2026, 1, 2, 1, 4, 6, tzinfo=UTC)
        assert run.settings["generate_config"] == {"temperature": 0.5}
        assert run.settings["model_args"] == {"device": "cpu", "api_key": "(left out)"}
        assert list(block.prompts.tasks or ()) == ["sums"]

    def test_logs_that_the_user_gathers_in_one_benchmark_bear_no_labels_that_would_part_them(self, path: Path) -> None:
        block = read(write(path, [sample()]), benchmark="suite").measurements[0]
        assert isinstance(block, Scores)
        assert block.run.label == ""

    @pytest.mark.parametrize(
        "told",
        [
            {"config": {"limit": 2}},
            {"config": {"sample_id": [1, 2]}},
            {"dataset": {"samples": 9, "sample_ids": [1, 2]}},
            {"status": "error"},
            {"status": "cancelled"},
            {"status": "started"},
        ],
    )
    def test_a_part_of_the_benchmark_is_limited(self, path: Path, told: dict[str, Any]) -> None:
        reading = read(write(path, [sample()], **told))
        block = reading.measurements[0]
        assert isinstance(block, Scores)
        assert block.run.limited
        assert any("limited" in note for note in reading.notes) == ("status" in told)

    def test_a_log_that_does_not_name_the_model_asks_for_it(self, path: Path) -> None:
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
        found = prompts(reading)
        assert found.namespace == "inspect"
        assert found.text == ["Why?", "Look:\n(Image)", None, "What is 4 + 4?", None]
        assert found.choices == [["a", "b"], None, None, ["cat", "dog"], None]
        assert found.answer == ["B", "x", None, "B", "2"]
        assert found.details is not None
        assert found.details[0] == {"level": 1}
        assert found.details[2] == {"level": 1, "target": ["x", "y"]}
        assert any("of 1 samples the log holds only the beginning of the text" in note for note in reading.notes)

    def test_answers_are_those_of_the_scorers(self, path: Path) -> None:
        told = {"match": {"value": "C", "answer": " 4 \n or so"}, "silent": {"value": 1}}
        rows = [sample(1, scores=told), sample(2, scores={"match": {"value": "I", "answer": ""}}), sample(3, error="E")]
        (block,) = [one for one in read(write(path, rows)).measurements if isinstance(one, Answers)]
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
    def test_archives_of_every_compression_and_json_say_the_same(
        self, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], method: int
    ) -> None:
        folder = tmp_path_factory.mktemp("shapes")
        made = [sample(key, epoch, value, input=f"{key}?{text}") for key, epoch, value, text in rows]
        (folder / "a.eval").write_bytes(archive({"summaries.json": made, "header.json": header()}, method))
        journal = {f"_journal/summaries/{n + 1}.json": [one] for n, one in enumerate(made)}
        (folder / "b.eval").write_bytes(archive({**journal, "header.json": header()}, method))
        write(folder / "c.json", made)
        found = [list(inspect_ai.read(folder / name, ReadOptions())) for name in ("a.eval", "b.eval", "c.json")]
        assert scores(found[0]) == scores(found[1]) == scores(found[2])
        assert [one for one in found[0] if isinstance(one, str)] == [one for one in found[2] if isinstance(one, str)]
        expected: dict[tuple[int, int, str], Any] = {(k, e, t.strip()): v for k, e, v, t in rows}  # the later wins
        assert sum(len(of) for of in scores(found[0]).values()) == sum(v == v for v in expected.values())

    def test_blocks_do_not_grow_with_the_log(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracker.ingest.formats.inspect_ai.blocks.PROMPTS_PER_BLOCK", 3)
        reading = read(write(path, [sample(n, value=n % 2) for n in range(8)], reported(0.5)))
        sizes = [len(one.prompts) for one in reading.measurements if isinstance(one, Scores)]
        assert sizes == [3, 3, 2]
        assert scores(reading) == {"match": {(str(n), 0): float(n % 2) for n in range(8)}}
        assert not reading.notes

    def test_the_first_versions_had_one_score(self, tmp_path: Path) -> None:
        one = {name: part for name, part in whole(sample()).items() if name != "scores"} | {"score": {"value": "C"}}
        head = header() | {"results": {"scorer": {"name": "score"}, "metrics": {"accuracy": {"value": 0.5}}}}
        path = tmp_path / "first.json"
        path.write_text(json.dumps({**head, "samples": [one]}))
        reading = read(path)
        assert scores(reading) == {"score": {("1", 0): 1.0}}
        assert "the log reports score accuracy = 0.5" in reading.notes[0]


class TestDamage:
    def test_a_log_without_head_is_of_an_evaluation_that_was_cut_off(self, tmp_path: Path) -> None:
        path = tmp_path / "x.eval"
        journal = {"_journal/summaries/2.json": [sample(1, value="I")], "_journal/summaries/10.json": [sample(2)]}
        path.write_bytes(archive({"_journal/start.json": start(), **journal}, ZSTD))
        reading = read(path)
        assert scores(reading) == {"match": {("1", 0): 0.0, ("2", 0): 1.0}}
        assert "cut off" in reading.notes[0]

    @pytest.mark.parametrize("method", [DEFLATED, ZSTD])
    def test_of_an_archive_that_breaks_off_the_journal_is_read(self, tmp_path: Path, method: int) -> None:
        members = {
            "_journal/start.json": start(),
            "samples/1_epoch_1.json": whole(sample(1)),
            "_journal/summaries/1.json": [sample(1), sample(2, value="I")],
            "samples/3_epoch_1.json": whole(sample(3)),
            "_journal/summaries/2.json": [sample(3)],
        }
        data = archive(members, method)
        path = tmp_path / "x.eval"
        path.write_bytes(data[: data.index(b"_journal/summaries/2.json") + 60])
        found, told = until_damage(path)
        assert scores(found) == {"match": {("1", 0): 1.0, ("2", 0): 0.0}}
        assert "breaks off" in told
        assert "2 samples precede the damage" in told

    def test_of_a_json_log_that_breaks_off_the_samples_before_are_read(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.json", [sample(1), sample(2), sample(3)])
        data = path.read_bytes()
        path.write_bytes(data[: data.index(b'"id": 3') + 40])
        found, told = until_damage(path)
        assert scores(found) == {"match": {("1", 0): 1.0, ("2", 0): 1.0}}
        assert "ends too early" in told

    def test_a_byte_that_changed_is_found(self, tmp_path: Path) -> None:
        path = tmp_path / "x.eval"
        data = archive({"summaries.json": [sample(1), sample(2)], "header.json": header()}, STORED)
        path.write_bytes(data.replace(b'"value": "C"', b'"value": "I"', 1))
        found, told = until_damage(path)
        assert len(scores(found)["match"]) == 2
        assert "summaries.json: is damaged: its checksum differs" in told

    def test_a_damaged_head_gives_way_to_the_start_of_the_journal(self, tmp_path: Path) -> None:
        path = tmp_path / "x.eval"
        members = {"_journal/start.json": start(), "summaries.json": [sample()], "header.json": b"{"}
        path.write_bytes(archive(members))
        found, told = until_damage(path)
        assert scores(found) == {"match": {("1", 0): 1.0}}
        assert "header.json in the archive is damaged" in told

    @pytest.mark.parametrize(
        ("name", "data", "words"),
        [
            ("x.eval", b"PK\x03\x04nonsense", "nothing in it can be read"),
            ("x.eval", archive({"other.json": {}}), "neither header.json nor _journal/start.json"),
            ("x.eval", archive({"summaries.json": [3], "header.json": header()}), "sample 1 is no sample"),
            ("x.eval", archive({"summaries.json": [{"epoch": 1}], "header.json": header()}), "sample 1 has no id"),
            ("x.eval", archive({"summaries.json": [sample(1, 0)], "header.json": header()}), "its epoch is '0'"),
            ("x.eval", archive({"summaries.json": {}, "header.json": header()}), "does not begin as it should"),
            ("x.eval", archive({"summaries.json": [], "header.json": []}), "is no head of a log"),
            ("x.eval", archive({"header.json": header()}, 14), "compressed in a way that is not known"),
            ("x.json", b'{"version": 2, "status": "success", "eval": {"model": "m', "ends too early"),
            ("x.json", b'{"status": "success", "eval": {}, "samples": []} x', "more after its end"),
        ],
    )
    def test_what_cannot_be_read_is_refused_in_words(self, tmp_path: Path, name: str, data: bytes, words: str) -> None:
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(BadInputError, match=words):
            list(inspect_ai.read(path, ReadOptions()))

    def test_an_encrypted_archive_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "x.eval"
        data = bytearray(archive({"header.json": header()}))
        data[6] |= 1
        data[data.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(data)
        with pytest.raises(BadInputError, match="is encrypted"):
            list(inspect_ai.read(path, ReadOptions()))


class TestDeclines:
    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("x.eval", b"not a zip"),
            ("x.zip", archive({"header.json": header()})),
            ("x.json", b'{"results": {"version": 3}}'),
            ("x.json", b'{"status": "done", "eval": {}}'),
            ("x.jsonl", b'{"status": "success", "eval": {}}'),
        ],
    )
    def test_what_is_no_log(self, tmp_path: Path, name: str, data: bytes) -> None:
        path = tmp_path / name
        path.write_bytes(data)
        assert inspect_ai.declines(path, ReadOptions())
