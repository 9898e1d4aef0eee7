"""Every Eval Ever: aggregates, and the instances beside them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sound.every_eval_ever import (
    AGGREGATE,
    ALONE,
    FILES,
    OLD,
    RESULTS,
    ROWS,
    SAMPLES,
    aggregate,
    instance,
    lines,
    result,
    with_instances,
)

from tracker.errors import BadInputError
from tracker.ingest.files import block_builder as builder
from tracker.ingest.formats import every_eval_ever
from tracker.ingest.formats.every_eval_ever.vocabulary import sample_hash
from tracker.ingest.measurement import Answers, Measurement, ParsedFile, Prompts, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.detection import find_files, parse_file

Row = tuple[str, str, int]


def read(folder: Path, files: dict[str, bytes], name: str | None = None, **options: Any) -> ParsedFile:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return parse_file(folder / (name or next(iter(files))), ReadOptions(**options))


def alone(folder: Path, *results: Any, **changes: Any) -> ParsedFile:
    """An aggregate without instances."""
    options = changes.pop("options", {})
    return read(folder, {"a.json": json.dumps(aggregate(*results, **changes)).encode()}, **options)


def scores(reading: ParsedFile) -> dict[str, dict[Row, float]]:
    """By metric: score by task, prompt and trial, where there is one."""
    result: dict[str, dict[Row, float]] = {}
    for block in reading.measurements:
        if isinstance(block, Scores):
            trials = np.broadcast_to(block.trials, len(block.values)).tolist()
            rows = zip(block.prompts.tasks or (), block.prompts.keys, trials, block.values.tolist(), strict=True)
            result.setdefault(block.metric.name, {}).update({(t, k, n): v for t, k, n, v in rows if v == v})
    return result


def answers(reading: ParsedFile) -> dict[str, dict[Row, tuple[str | None, str]]]:
    """By extraction: text and status by task, prompt and trial."""
    result: dict[str, dict[Row, tuple[str | None, str]]] = {}
    for block in reading.measurements:
        if isinstance(block, Answers):
            assert block.predicted is not None
            assert block.status is not None
            trials = np.broadcast_to(block.trials, len(block.text)).tolist()
            output = result.setdefault(block.extraction, {})
            for row in np.flatnonzero(block.predicted).tolist():
                place = ((block.prompts.tasks or ())[row], block.prompts.keys[row], trials[row])
                output[place] = (block.text[row], block.status[row])
    return result


def of_tasks(reading: ParsedFile) -> dict[tuple[str, str], tuple[float, float | None, int | None]]:
    """Score, standard error and number of prompts by metric and task."""
    result = {}
    for block in reading.measurements:
        if isinstance(block, TaskScores):
            assert block.stderr is not None
            for row, task in enumerate(block.tasks):
                error = float(block.stderr[row])
                size = None if block.n_prompts is None else block.n_prompts[row]
                result[block.metric.name, task] = (float(block.values[row]), None if error != error else error, size)
    return result


def prompts(reading: ParsedFile) -> Prompts:
    return next(block.prompts for block in reading.measurements if isinstance(block, Scores))


class TestInstances:
    def test_rows_are_scores_of_the_result_they_point_to_and_rows_of_one_prompt_are_trials(
        self, tmp_path: Path
    ) -> None:
        assert scores(read(tmp_path, FILES)) == {
            "accuracy": {
                ("europe", "q0", 0): 1, ("europe", "q1", 0): 0, ("europe", "q1", 1): 1, ("asia", "q3", 0): 0,
            },
            "f1": {("europe", "q0", 0): 0.25, ("europe", "q1", 0): 0.75},
        }  # fmt: skip

    def test_results_without_rows_are_scores_of_whole_tasks_percent_as_proportion(self, tmp_path: Path) -> None:
        reading = read(tmp_path, FILES)
        assert of_tasks(reading) == {("acc", "africa"): (0.715, 0.032, 200)}
        assert "acc: percentages converted to proportions" in reading.warnings

    def test_text_choices_reference_and_metadata_are_the_prompt(self, tmp_path: Path) -> None:
        result = prompts(read(tmp_path, FILES))
        assert (result.text or ())[0] == "Which is right, 0?"
        assert (result.choices or ())[0] == ["no", "yes"]
        assert (result.answer or ())[0] == "B", "the letter of the option that the reference is"
        assert (result.details or ())[0] == {"subject": "geography"}

    @pytest.mark.parametrize(
        ("reference", "choices", "gold"),
        [
            (["yes"], None, "yes"),
            (["B"], ["no", "yes"], "B"),
            (["B"], ["B", "A"], "B"),
            (["maybe"], ["no", "yes"], "maybe"),
            ([], ["no", "yes"], None),
            ([7], None, "7"),
        ],
    )
    def test_a_reference_that_is_no_option_stays_what_it_is(
        self, tmp_path: Path, reference: list[Any], choices: Any, gold: str | None
    ) -> None:
        row = instance(0, "t", 1.0, input={"reference": reference, "choices": choices})
        assert (prompts(read(tmp_path, with_instances(lines(row), result("t", 1.0)))).answer or ())[0] == gold

    def test_several_references_are_kept(self, tmp_path: Path) -> None:
        row = instance(0, "t", 1.0, input={"reference": ["four", "4"], "choices": None}, metadata=None)
        outcome = prompts(read(tmp_path, with_instances(lines(row), result("t", 1.0))))
        assert (outcome.answer or ())[0] == "four"
        assert (outcome.details or ())[0] == {"accepted_answers": ["four", "4"]}

    def test_the_same_id_with_other_content_is_another_prompt(self, tmp_path: Path) -> None:
        rows = [instance(0, "t", 1.0), instance(0, "t", 0.0, input={"raw": "Other?"}), instance(0, "t", 0.0)]
        reading = read(tmp_path, with_instances(lines(*rows), result("t", 0.25)))
        assert scores(reading)["accuracy"] == {("t", "q0", 0): 1, ("t", "q0#1", 0): 0, ("t", "q0", 1): 0}
        assert not reading.warnings, "trials are averaged before prompts: (1/2 + 0)/2"

    def test_answers_are_what_was_extracted_else_what_was_reported(self, tmp_path: Path) -> None:
        rows = [instance(0, "t", 1.0), instance(1, "t", 1.0, answer_attribution=[]), instance(2, "t", 0.0, answer=" ")]
        outcome = answers(read(tmp_path, with_instances(lines(*rows), result("t", 2 / 3))))
        assert outcome == {
            "regex": {("t", "q0", 0): ("B", "ok"), ("t", "q2", 0): (" ", "empty")},
            "": {("t", "q1", 0): ("It is B.", "ok")},
        }

    def test_what_was_read_off_for_several_metrics_is_distinguished(self, tmp_path: Path) -> None:
        rows = [instance(0, "t", 1.0, answer="A"), instance(0, "t", 0.0, "f1", answer="B")]
        outcome = answers(read(tmp_path, with_instances(lines(*rows), result("t", 1.0), result("t", 0.0, "f1"))))
        assert outcome == {"regex,accuracy": {("t", "q0", 0): ("A", "ok")}, "regex,f1": {("t", "q0", 0): ("B", "ok")}}

    def test_an_error_is_missing_or_wrong_and_an_empty_answer_wrong_or_missing(self, tmp_path: Path) -> None:
        reading = read(tmp_path, FILES, errored="wrong", empty="missing")
        result = scores(reading)["accuracy"]
        assert result["asia", "q2", 0] == 0
        assert ("asia", "q3", 0) not in result
        assert answers(reading)["regex"]["asia", "q2", 0] == (None, "error")
        outcome = " ".join(reading.warnings)
        assert "1 instance failed: counted as wrong" in outcome
        assert "1 answer is empty: counted as missing" in outcome

    def test_a_row_without_a_score_counts_by_is_correct(self, tmp_path: Path) -> None:
        rows = [instance(0, "t", 1.0, evaluation={"is_correct": True}), instance(1, "t", 0, evaluation={"score": None})]
        reading = read(tmp_path, with_instances(lines(*rows), result("t", 1.0)))
        assert scores(reading) == {"accuracy": {("t", "q0", 0): 1}}

    @pytest.mark.parametrize(("values", "stored"), [((0, 100), (0, 1)), ((0, 1), (0, 1)), ((50, 100), (0.5, 1))])
    def test_instances_of_a_metric_in_percent_are_percent_where_one_is_larger_than_one(
        self, tmp_path: Path, values: tuple[float, float], stored: tuple[float, float]
    ) -> None:
        outcome = [{"score": value, "is_correct": value == max(values)} for value in values]
        rows = [instance(number, "t", 0, evaluation=item) for number, item in enumerate(outcome)]
        whole = result("t", 50 * (stored[0] + stored[1]), config={"metric_unit": "percent", "max_score": 100})
        reading = read(tmp_path, with_instances(lines(*rows), whole))
        assert list(scores(reading)["accuracy"].values()) == list(stored)
        assert reading.warnings == ["accuracy: percentages converted to proportions"]

    def test_only_the_splits_requested_for_are_ingested(self, tmp_path: Path) -> None:
        rows = [instance(0, "t", 1.0, metadata={"split": "test"}), instance(1, "t", 0.0, metadata={"split": "train"})]
        reading = read(tmp_path, with_instances(lines(*rows), result("t", 1.0)), splits=("test",))
        assert scores(reading) == {"accuracy": {("t", "q0", 0): 1}}
        assert "1 instances of other splits were skipped (--split)" in reading.warnings

    def test_blocks_of_any_size_report_the_same(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = read(tmp_path, FILES)
        monkeypatch.setattr(builder, "PROMPTS_PER_BLOCK", 1)
        separate = read(tmp_path, FILES)
        assert len(separate.measurements) > len(whole.measurements)
        assert (scores(separate), answers(separate), separate.warnings) == (
            scores(whole),
            answers(whole),
            whole.warnings,
        )

    def test_rows_without_an_aggregate_are_ingested_with_a_warning(self, tmp_path: Path) -> None:
        reading = read(tmp_path, FILES, ALONE)
        assert scores(reading) == {"score": {("sums", "q0", 0): 1, ("sums", "q1", 0): 0.5}}
        assert "the aggregate file is missing" in " ".join(reading.warnings)

    def test_rows_and_aggregate_are_one_file_whichever_is_named(self, tmp_path: Path) -> None:
        first, second = read(tmp_path, FILES, AGGREGATE), read(tmp_path, FILES, SAMPLES)
        assert scores(first) == scores(second)
        assert of_tasks(first) == of_tasks(second)
        assert [path.relative_to(tmp_path).as_posix() for path in find_files([tmp_path])] == [
            "old.json",
            AGGREGATE,
            ALONE,
        ]


class TestAggregates:
    def test_the_version_before_is_read_and_metrics_without_a_name_are_labelled_score(self, tmp_path: Path) -> None:
        reading = read(tmp_path, {"old.json": json.dumps(OLD).encode()})
        assert of_tasks(reading) == {("score", "IFEval"): (0.4486, None, 541), ("score", "BBH"): (0.4224, None, None)}
        names = read(tmp_path, {"old.json": json.dumps(OLD).encode()}, metric="mine")
        assert {metric for metric, _ in of_tasks(names)} == {"mine"}

    def test_model_benchmark_label_time_and_facts(self, tmp_path: Path) -> None:
        block = alone(tmp_path, result("t", 1.0)).measurements[0]
        assert isinstance(block, TaskScores)
        run = block.run
        assert (run.model, run.benchmark, run.label) == ("org/model", "capitals", "1750000000.5")
        assert run.started == datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC)
        facts = {"organization": "Organization", "open_weights": True, "parameters": 7_500_000_000}
        assert run.model_facts == facts

    @pytest.mark.parametrize(
        ("changes", "benchmark"),
        [
            ({}, "capitals"),
            ({"evaluation_id": "one"}, "Capitals"),
            ({"evaluation_id": "one", "source_metadata": {}}, "t"),
            ({"options": {"benchmark": "mine"}}, "mine"),
        ],
    )
    def test_the_benchmark_is_the_collection_else_the_source_else_the_only_evaluation(
        self, tmp_path: Path, changes: dict[str, Any], benchmark: str
    ) -> None:
        block = alone(tmp_path, result("t", 1.0), **changes).measurements[0]
        assert isinstance(block, TaskScores)
        assert block.run.benchmark == benchmark

    @pytest.mark.parametrize(
        ("config", "lower", "upper", "higher"),
        [
            ({"lower_is_better": True, "max_score": "Infinity"}, 0, None, False),
            ({"score_type": "binary", "min_score": None, "max_score": None}, 0, 1, True),
            ({"min_score": 10, "max_score": 0}, None, None, True),
            ({"min_score": -1, "max_score": 100}, -1, 100, True),
        ],
    )
    def test_direction_and_bounds_are_the_metrics(
        self, tmp_path: Path, config: dict[str, Any], lower: float | None, upper: float | None, higher: bool
    ) -> None:
        block = alone(tmp_path, result("t", 0.5, "elo", config=config)).measurements[0]
        assert isinstance(block, TaskScores)
        outcome = block.metric
        assert (outcome.name, outcome.lower, outcome.upper, outcome.higher_is_better) == ("elo", lower, upper, higher)

    @pytest.mark.parametrize(
        ("config", "value"),
        [
            ({"metric_unit": "percent"}, 0.5),
            ({"metric_unit": "%", "min_score": None}, 0.5),
            ({"metric_kind": "accuracy"}, 0.5),
            ({"metric_kind": "accuracy", "metric_unit": "proportion"}, 50),
            ({"metric_kind": "judge"}, 50),
            ({"metric_kind": "accuracy", "min_score": -100}, 50),
        ],
    )
    def test_percent_is_what_reports_so_or_a_share_from_0_to_100(
        self, tmp_path: Path, config: dict[str, Any], value: float
    ) -> None:
        reading = alone(tmp_path, result("t", 50, "m", config={"max_score": 100, **config}))
        assert of_tasks(reading)["m", "t"][0] == value

    def test_the_unknown_level_is_missing(self, tmp_path: Path) -> None:
        levels = {"score_type": "levels", "level_names": ["low", "high"], "has_unknown_level": True, "min_score": None}
        reading = alone(tmp_path, result("t", -1, config=levels), result("u", 1, config=levels))
        assert of_tasks(reading) == {("accuracy", "u"): (1, None, None)}

    def test_metrics_that_disagree_on_bounds_keep_what_all_report_and_on_direction_get_two_names(
        self, tmp_path: Path
    ) -> None:
        wide = result("u", 7, None, config={"max_score": 10})
        down = result("v", 3, None, config={"lower_is_better": True, "max_score": 10})
        reading = alone(tmp_path, result("t", 0.5, None), wide, down)
        outcome = {block.metric.name: block.metric for block in reading.measurements if isinstance(block, TaskScores)}
        assert set(outcome) == {"score", "score (lower is better)"}
        assert (outcome["score"].lower, outcome["score"].upper) == (0, None)
        assert "disagree" in " ".join(reading.warnings)

    def test_a_second_result_of_a_task_under_one_metric_has_a_name_of_its_own(self, tmp_path: Path) -> None:
        reading = alone(tmp_path, result("t", 0.5), result("t", 0.6, evaluation_result_id="strict"))
        assert {key: row[0] for key, row in of_tasks(reading).items()} == {("accuracy", "t"): 0.5, ("strict", "t"): 0.6}
        assert "t has a second result for accuracy; it is stored as strict" in reading.warnings

    def test_another_mean_than_that_of_the_rows_is_reported(self, tmp_path: Path) -> None:
        (difference,) = read(tmp_path, with_instances(lines(*ROWS[:1]), result("capitals.europe", 0.75))).differences
        expected = "the file reports accuracy (capitals.europe) of europe as 0.75, but its scores give 1"
        assert difference.text == expected

    def test_instances_that_are_not_there_are_reported(self, tmp_path: Path) -> None:
        outcome = {"format": "jsonl", "file_path": SAMPLES, "checksum": "00", "total_rows": 7}
        reading = alone(tmp_path, result("t", 0.5), detailed_evaluation_results=outcome)
        assert of_tasks(reading) == {("accuracy", "t"): (0.5, None, None)}
        assert "_samples.jsonl is missing" in " ".join(reading.warnings)

    def test_the_library_is_the_harness(self, tmp_path: Path) -> None:
        assert alone(tmp_path, result("t", 1.0)).harness == "asker 1.2"
        assert alone(tmp_path, result("t", 1.0), eval_library={"name": "unknown", "version": "unknown"}).harness is None


class TestSubtasks:
    @pytest.mark.parametrize(
        "metrics",
        [
            ("mmlu_pro.biology.accuracy", "mmlu_pro/law accuracy", "mmlu_pro.overall.accuracy"),
            ("mmlu_pro/biology", "mmlu_pro/law", "mmlu_pro (overall)"),
            ("accuracy", "accuracy", "accuracy"),
        ],
    )
    def test_results_of_subtasks_are_tasks_of_one_benchmark_under_one_metric(
        self, tmp_path: Path, metrics: tuple[str, str, str]
    ) -> None:
        names = ("mmlu_pro/biology", "mmlu_pro/law", "mmlu_pro (overall)")
        results = []
        for name, metric, value in zip(names, metrics, (0.75, 0.5, 0.6), strict=True):
            config = {"metric_id": metric, "metric_kind": "accuracy", "lower_is_better": False}
            results.append({"evaluation_name": name, "metric_config": config, "score_details": {"score": value}})
        for identifier in ("mmlu_pro/org_model/17", "17"):
            (block,) = alone(tmp_path, *results, evaluation_id=identifier).measurements
            assert isinstance(block, TaskScores)
            assert (block.run.benchmark, block.metric.name) == ("mmlu_pro", "accuracy")
            assert dict(zip(block.tasks, block.values.tolist(), strict=True)) == {"biology": 0.75, "law": 0.5}


class TestErrors:
    def test_instances_that_are_not_those_of_the_checksum_are_refused_once_they_were_read(self, tmp_path: Path) -> None:
        files = {**FILES, SAMPLES: lines(*ROWS[:3])}
        with pytest.raises(BadInputError, match=r"has the sha256 .* but the aggregate reports"):
            read(tmp_path, files)
        result: list[Measurement | str] = []
        with pytest.raises(BadInputError):
            result.extend(every_eval_ever.read(tmp_path / AGGREGATE, ReadOptions()))
        assert isinstance(result[0], Scores)

    def test_md5_is_understood(self, tmp_path: Path) -> None:
        result = {"format": "jsonl", "file_path": SAMPLES, "hash_algorithm": "md5", "checksum": "0" * 32}
        main = json.dumps(aggregate(*RESULTS, detailed_evaluation_results=result)).encode()
        with pytest.raises(BadInputError, match="has the md5"):
            read(tmp_path, {AGGREGATE: main, SAMPLES: lines(*ROWS)})

    def test_fewer_rows_than_the_aggregate_counts_are_refused(self, tmp_path: Path) -> None:
        result = {"format": "jsonl", "file_path": SAMPLES, "total_rows": 9}
        main = json.dumps(aggregate(*RESULTS, detailed_evaluation_results=result)).encode()
        with pytest.raises(BadInputError, match=r"holds 7 rows, but .* reports 9"):
            read(tmp_path, {AGGREGATE: main, SAMPLES: lines(*ROWS)})

    @pytest.mark.parametrize(
        ("row", "output"),
        [
            ({"evaluation_id": "x/y/z"}, "line 2: its evaluation_id is 'x/y/z'"),
            ({"model_id": "other"}, "line 2: its model_id is 'other', but the file has 'org/model'"),
            ({"evaluation": {"score": "high"}}, "line 2: evaluation.score is 'high', not a number"),
            ({"evaluation": {"score": 2**70}}, "line 2: evaluation.score is .* too large"),
            ({"sample_id": None, "sample_hash": None}, "line 2: has neither sample_id nor sample_hash"),
            ({"evaluation_name": 7}, "line 2: has no evaluation_name"),
        ],
    )
    def test_rows_that_belong_elsewhere_or_report_nothing_are_refused_with_their_line(
        self, tmp_path: Path, row: dict[str, Any], output: str
    ) -> None:
        rows = lines(instance(0, "t", 1.0), instance(1, "t", 1.0, **row))
        with pytest.raises(BadInputError, match=output):
            read(tmp_path, with_instances(rows, result("t", 1.0)))

    def test_an_aggregate_without_a_model_names_the_option(self, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match="--model NAME"):
            alone(tmp_path, result("t", 1.0), model_info={})
        assert alone(tmp_path, result("t", 1.0), model_info={}, options={"model": "m"}).measurements

    @pytest.mark.parametrize("name", ["eval.schema.json", "x_samples.jsonl", "README.md"])
    def test_schemas_and_other_files_are_declined(self, tmp_path: Path, name: str) -> None:
        fields = {"$schema": "x", "schema_version": 1, "evaluation_id": 1, "model_info": 1, "source_metadata": 1}
        (tmp_path / name).write_text(json.dumps(fields))
        assert every_eval_ever.mismatch_reason(tmp_path / name, ReadOptions())


def test_the_hash_of_a_prompt_is_that_of_the_real_rows(shared: Path) -> None:
    paths = list((shared / "samples" / "every_eval_ever").rglob("*_samples.jsonl"))
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    assert rows
    for row in rows:
        assert sample_hash(row["input"]["raw"], row["input"]["reference"]) == row["sample_hash"]


def test_every_real_file_gives_the_scores_that_it_reports_or_is_none(shared: Path) -> None:
    folder = shared / "samples" / "every_eval_ever"
    reasons = {"README.md": "the name does not end in", "schema.json": "it is a JSON schema, not results"}
    results = 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        why = every_eval_ever.mismatch_reason(path, ReadOptions())
        if path.name.endswith(tuple(reasons)):
            assert why is not None
            assert why.startswith(next(output for end, output in reasons.items() if path.name.endswith(end)))
            continue
        assert why is None
        if path.suffix == ".jsonl":
            continue  # read with its aggregate
        outcome = json.loads(path.read_text())
        reading = parse_file(path, ReadOptions())
        result = {task: value for (_, task), (value, _, _) in of_tasks(reading).items()}
        for item in outcome["evaluation_results"]:
            results += 1
            name, value = item["evaluation_name"], item["score_details"]["score"]
            if name in result:
                assert result[name] == value
            else:  # the one row of the authors' example is right, and its aggregate says 0.75: not its mean, so told
                assert [*scores(reading)["accuracy"].values()] == [1]
                (difference,) = reading.differences
                assert f"accuracy ({name})" in difference.text
    assert results == 7
