"""Results and predictions of OpenCompass."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sound.opencompass import DETAILS, FILES, RUN, conditional, perplexity, turn, written

from tracker.errors import BadInputError
from tracker.ingest.files import block_builder as builder
from tracker.ingest.formats.opencompass import mismatch_reason
from tracker.ingest.measurement import Answers, ParsedFile, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.detection import find_files, parse_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path / RUN


def put(folder: Path, name: str, content: Any, kind: str = "results") -> Path:
    path = folder / "20260102_030405" / kind / "m" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def read(path: Path, **options: Any) -> ParsedFile:
    return parse_file(path, ReadOptions(**options))


def scores(reading: ParsedFile) -> dict[str, dict[tuple[str, int], float]]:
    """By metric: score by prompt and trial, where there is one."""
    result: dict[str, dict[tuple[str, int], float]] = {}
    for block in reading.measurements:
        if isinstance(block, Scores):
            trials = np.broadcast_to(block.trials, len(block.values)).tolist()
            rows = zip(block.prompts.keys, trials, block.values.tolist(), strict=True)
            result.setdefault(block.metric.name, {}).update({(k, t): v for k, t, v in rows if not math.isnan(v)})
    return result


def answers(reading: ParsedFile) -> Answers:
    (block,) = (block for block in reading.measurements if isinstance(block, Answers))
    return block


def noted(reading: ParsedFile, part: str) -> str:
    return next(warning for warning in reading.warnings if part in warning)


class TestDetails:
    def test_the_harness_reports_what_is_right(self, root: Path) -> None:
        reading = read(root / "results/model-7b/sums_gen.json")
        assert scores(reading) == {"accuracy": {("0", 0): 1, ("1", 0): 0}}
        block = answers(reading)
        assert (list(block.text), block.prompts.answer) == (["4", "1"], ["4", "0"])
        assert block.prompts.text == ["2+2?", "2-2?"]
        assert "sums_gen: percentages converted to proportions: accuracy 50 to 0.5" in reading.warnings

    def test_perplexity_has_answers_and_no_text(self, root: Path) -> None:
        reading = read(root / "results/model-7b/ice_ppl.json")
        assert scores(reading) == {"accuracy": {("0", 0): 1}}
        assert (list(answers(reading).text), answers(reading).prompts.text) == (["B"], [None])

    def test_several_runs_of_a_dataset_are_trials(self, root: Path) -> None:
        reading = read(root / "results/model-7b/sums_repeated.json")
        assert scores(reading) == {"accuracy": {("0", 0): 1, ("0", 1): 0, ("1", 0): 1, ("1", 1): 1}}
        assert answers(reading).prompts.answer == ["4", "4", "0", "0"]
        assert "accuracy (2 runs average) 75 to 0.75" in noted(reading, "percent")

    def test_details_in_a_list_with_several_right_answers(self, root: Path) -> None:
        block = answers(read(root / "results/model-7b/cities.json"))
        assert block.prompts.details is not None
        assert block.prompts.details[0] == {"accepted": ["Paris", "paris"]}

    def test_another_reported_accuracy_is_reported(self, tmp_path: Path) -> None:
        reading = read(put(tmp_path, "d.json", {**DETAILS, "accuracy": 62.5}))
        assert [difference.text for difference in reading.differences] == [
            "the file reports accuracy of d as 0.625, but its scores give 0.5"
        ]

    def test_without_a_judgement_answers_are_compared(self, tmp_path: Path) -> None:
        rows = {
            "type": "GEN",
            "0": {"predictions": "0", "references": "0"},
            "1": {"predictions": "1", "references": ""},
        }
        reading = read(put(tmp_path, "d.json", {"accuracy": 50.0, "details": rows}))
        assert scores(reading) == {"exact_match": {("0", 0): 1}}
        assert "1 prompts have no reference answer and were not scored" in noted(reading, "no reference answer")
        assert "exact_match was computed" in noted(reading, "exact_match was")

    @pytest.mark.parametrize(("result", "score"), [(True, 1), (1, 1), (0.25, 0.25), (0, 0)])
    def test_judgements_are_truth_values_or_shares(self, tmp_path: Path, result: Any, score: float) -> None:
        path = put(tmp_path, "d.json", {"details": {"0": {"pred": "a", "is_correct": result}}})
        assert scores(read(path)) == {"accuracy": {("0", 0): score}}

    @pytest.mark.parametrize("result", ["yes", 7, {"a": 1}, 10**30, []])
    def test_other_judgements_are_not_ingested(self, tmp_path: Path, result: Any) -> None:
        rows = {"0": {"pred": "a", "correct": result}, "1": {"pred": "a", "correct": True}}
        reading = read(put(tmp_path, "d.json", {"details": rows}))
        assert scores(reading) == {"accuracy": {("1", 0): 1}}
        assert result == [] or "1 scores are not numbers from 0 to 1" in noted(reading, "not numbers")

    def test_empty_answers_are_wrong_or_missing(self, root: Path) -> None:
        path = root / "results/model-7b/cities.json"
        assert scores(read(path)) == {"accuracy": {("0", 0): 1, ("1", 0): 0}}
        assert scores(read(path, empty="missing")) == {"accuracy": {("0", 0): 1}}
        assert "1 answer is empty: counted as missing" in noted(read(path, empty="missing"), "empty")


class TestPredictions:
    def test_results_without_details_are_read_from_the_parts_of_the_predictions(self, root: Path) -> None:
        reading = read(root / "results/model-7b/no_details.json")
        assert [file.name for file in reading.files] == ["no_details.json", "no_details_0.json", "no_details_1.json"]
        assert scores(reading) == {"exact_match": {("0", 0): 1, ("2", 0): 1, ("2", 1): 0, ("3", 0): 0}}, (
            "a reference answer of 0 is dropped by the harness, and its prompt not scored"
        )
        warning = noted(reading, "exact_match was computed")
        assert warning.endswith("Their mean is 0.5")
        assert "accuracy 66.6667 to 0.666667" in noted(reading, "percent")
        assert ("1", 0) not in scores(reading)["exact_match"]

    def test_predictions_alone_report_the_same(self, root: Path) -> None:
        whole = scores(read(root / "results/model-7b/no_details.json"))
        reading = read(root / "predictions/model-7b/no_details_0.json")
        assert scores(reading) == whole
        assert len(reading.files) == 2

    def test_perplexities(self, root: Path) -> None:
        reading = read(root / "predictions/model-7b/ice_ppl_alone.json")
        assert scores(reading) == {"exact_match": {("0", 0): 1, ("1", 0): 0}}

    def test_probabilities_of_options_by_place_or_by_name(self, root: Path) -> None:
        reading = read(root / "predictions/model-7b/ice_clp.json")
        assert scores(reading) == {"exact_match": {("0", 0): 1, ("1", 0): 0}}
        block = answers(reading)
        assert (list(block.text), block.prompts.answer) == (["B", "A", "A"], ["B", "B", None])
        assert block.probability is not None
        assert block.probability.tolist() == [0.75, 0.5, 0.5]
        assert block.prompts.choices == [["no", "yes"]] * 3

    def test_a_gold_answer_of_place_0_counts_where_it_is_kept(self, tmp_path: Path) -> None:
        path = put(tmp_path, "d.json", {"0": conditional([0.75, 0.25], 0)}, "predictions")
        assert scores(read(path)) == {"exact_match": {("0", 0): 1}}

    def test_a_plain_text_is_not_ingested_for_the_question(self, tmp_path: Path) -> None:
        plain = {"origin_prompt": "1+1? 2\n2+2?", "prediction": "4", "gold": "4"}
        path = put(tmp_path, "d.json", {"0": plain, "1": written("2+2?", "4", "4")}, "predictions")
        assert answers(read(path)).prompts.text == [None, "2+2?"]

    def test_several_rounds_are_not_scored(self, tmp_path: Path) -> None:
        rounds = {"origin_prompt": [turn("a"), turn("b")], "prediction": ["x", "y"], "gold": ["x", "z"]}
        path = put(tmp_path, "d.json", {"0": rounds, "1": perplexity("A", "A")}, "predictions")
        reading = read(path)
        assert scores(reading) == {"exact_match": {("1", 0): 1}}
        assert "1 answers of several rounds" in noted(reading, "rounds")

    def test_unfinished_predictions_are_part_of_a_run(self, root: Path) -> None:
        path = root / "predictions/model-7b/tmp_going_on.jsonl"
        reading = read(path)
        assert scores(reading) == {"exact_match": {(str(k), 0): 1 for k in range(3)}}
        assert answers(reading).run.limited
        assert answers(reading).run.benchmark == "going_on"
        assert "did not finish" in noted(reading, "finish")
        (path.parent / "going_on.json").write_text(json.dumps({"0": written("0+1?", "1", "1")}))
        assert mismatch_reason(path, ReadOptions()) == "it is a temporary file of a run that has finished since"


class TestWhole:
    def test_reported_percentages_become_proportions_of_the_dataset(self, root: Path) -> None:
        reading = read(root / "results/model-7b/only_accuracy.json")
        result = {block.metric.name: block for block in reading.measurements if isinstance(block, TaskScores)}
        assert {name: block.values.tolist() for name, block in result.items()} == {"accuracy": [0.125], "rouge1": [0.4]}
        assert result["accuracy"].tasks == ["only_accuracy"]
        assert "accuracy 12.5 to 0.125, rouge1 40 to 0.4" in noted(reading, "proportions")
        assert noted(reading, "skipped").endswith("n, note")

    def test_a_report_without_percentages_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match="holds neither details nor percentages"):
            read(put(tmp_path, "d.json", {"total": 5, "accuracy": 500}))


class TestRun:
    def test_folders_report_whose_it_is_and_when(self, root: Path) -> None:
        block = answers(read(root / "results/model-7b/sums_gen.json"))
        assert (block.run.model, block.run.benchmark, block.run.label) == ("model-7b", "sums_gen", "20260102_030405")
        assert block.prompts.tasks == ["sums_gen"] * 2

    def test_the_word_of_the_user_goes_before_theirs(self, root: Path) -> None:
        block = answers(read(root / "results/model-7b/sums_gen.json", model="org/m", benchmark="sums"))
        assert (block.run.model, block.run.benchmark, block.prompts.tasks) == ("org/m", "sums", ["sums_gen"] * 2)

    def test_a_folder_gives_each_dataset_once(self, root: Path) -> None:
        result = [path.relative_to(root).as_posix() for path in find_files([root.parent])]
        assert sorted(result) == [
            "predictions/model-7b/ice_clp.json",
            "predictions/model-7b/ice_ppl_alone.json",
            "predictions/model-7b/tmp_going_on.jsonl",
            *(f"results/model-7b/{name}.json" for name in (
                "cities", "ice_ppl", "no_details", "only_accuracy", "sums_gen", "sums_repeated")),
        ]  # fmt: skip

    def test_a_dataset_whose_name_ends_in_a_number_is_no_part(self, tmp_path: Path) -> None:
        for name in ("d_0.json", "d_1.json"):
            put(tmp_path, name, {"accuracy": 100.0})
            put(tmp_path, name, {"0": written("1+1?", "2", "2")}, "predictions")
        block = answers(read(put(tmp_path, "d_1.json", {"accuracy": 100.0})))
        assert (block.run.benchmark, list(block.prompts.keys)) == ("d_1", ["0"])

    def test_elsewhere_it_takes_the_format_by_name(self, tmp_path: Path) -> None:
        path = tmp_path / "m" / "d.json"
        path.parent.mkdir()
        path.write_text(json.dumps(DETAILS))
        assert mismatch_reason(path, ReadOptions()) == "its folder is not results/<model>/ or predictions/<model>/"
        block = answers(parse_file(path, ReadOptions(), format="opencompass"))
        assert (block.run.model, block.run.benchmark) == ("m", "d")


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "text", "kind"),
        [
            ("d.json", '{"results": {"t": {"acc": 1}}}', "results"),
            ("d.json", '{"config_general": {}}', "results"),
            ("d.json", "[1]", "results"),
            ("d.json", '{"a": {}}', "predictions"),
            ("tmp_d.jsonl", '{"doc_id": 1}', "predictions"),
        ],
    )
    def test_other_json_in_folders_of_these_names_is_declined(
        self, tmp_path: Path, name: str, text: str, kind: str
    ) -> None:
        assert mismatch_reason(put(tmp_path, name, text, kind), ReadOptions())

    def test_results_outside_a_run_folder_are_declined(self, tmp_path: Path) -> None:
        path = tmp_path / "results" / "m" / "d.json"
        path.parent.mkdir(parents=True)
        path.write_text('{"accuracy": 5.0}')
        assert mismatch_reason(path, ReadOptions()) == "results/ is not in a folder of OpenCompass, <date>_<time>/"
        (tmp_path / "configs").mkdir()
        assert mismatch_reason(path, ReadOptions()) is None

    def test_what_precedes_the_damage_is_read(self, tmp_path: Path) -> None:
        path = put(tmp_path, "d.json", json.dumps(DETAILS)[:-120])
        reading = parse_file(path, ReadOptions(), partial=True)
        assert scores(reading) == {"accuracy": {("0", 0): 1}}
        assert "truncated" in reading.damage

    def test_a_number_that_stands_twice_with_other_answers_is_refused(self, tmp_path: Path) -> None:
        rows = [{"idx": 0, "prediction": output, "gold": "a"} for output in ("a", "b")]
        path = put(tmp_path, "tmp_d.jsonl", "".join(json.dumps(row) + "\n" for row in rows), "predictions")
        with pytest.raises(BadInputError, match="'0' is a duplicate"):
            read(path)

    @pytest.mark.parametrize(
        ("name", "text", "problem"),
        [
            ("d.json", '{"0": {"prediction": "a"}, "x": {}}', "'x' is not a prediction of OpenCompass"),
            ("d.json", '{"0": {"prediction": "a"}, "1": []}', "'1' is not a prediction of OpenCompass"),
            ("tmp_d.jsonl", '{"idx": 0, "prediction": "a"}\n{"prediction": "b"}\n', "line 2: .* it has no idx"),
        ],
    )
    def test_what_is_no_prediction_is_named(self, tmp_path: Path, name: str, text: str, problem: str) -> None:
        with pytest.raises(BadInputError, match=problem):
            read(put(tmp_path, name, text, "predictions"))

    def test_a_failed_evaluation_is_refused_with_its_reason(self, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match="the evaluation failed: lengths differ"):
            read(put(tmp_path, "d.json", {"accuracy": 0.0, "error": "lengths differ"}))


class TestLaws:
    def test_blocks_do_not_grow_with_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(builder, "PROMPTS_PER_BLOCK", 50)
        rows = {str(k): written(f"{k}?", "a", "a") for k in range(60)}
        reading = read(put(tmp_path, "d.json", rows, "predictions"))
        assert [len(block.values) for block in reading.measurements if isinstance(block, Scores)] == [
            50, 10,
        ]  # fmt: skip


def test_every_real_file_gives_the_accuracy_that_it_reports(shared: Path) -> None:
    paths = find_files([shared / "samples" / "opencompass"])
    assert [path.parts[-3] for path in paths] == ["results"] * 2
    for path in paths:
        content = json.loads(path.read_text())
        reading = read(path)
        (result,) = scores(reading).values()
        assert len(result) == len(content["details"]) - 1
        assert 100 * np.mean(list(result.values())) == pytest.approx(content["accuracy"], rel=1e-12)
        predicted = read(path.parents[2] / "predictions" / path.parent.name / path.name)
        (recomputed,) = scores(predicted).values()
        assert recomputed == result, "these need no extraction, so that comparing them here gives the same"
