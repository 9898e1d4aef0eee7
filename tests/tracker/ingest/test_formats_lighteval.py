"""Details and results of lighteval."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from sound.lighteval import (
    CHOSEN,
    DETAILS,
    FILES,
    OLD,
    OLD_DETAILS,
    OLD_STAMP,
    OLD_WRITTEN,
    RESULTS,
    STAMP,
    SUMS,
    UNDERLINED,
    flat,
    options,
    parquet,
    written,
)

from tracker.errors import BadInputError
from tracker.ingest.files import block_builder as builder
from tracker.ingest.formats.lighteval import mismatch_reason
from tracker.ingest.formats.lighteval.results import TaskName
from tracker.ingest.measurement import Answers, ParsedFile, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.detection import find_files, parse_file

RESULTS_FILE = f"out/results/org/model/results_{STAMP}.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def details(folder: Path, rows: Sequence[Mapping[str, Any]], task: str = "t|0", model: str = "org/m") -> Path:
    path = folder / "details" / model / STAMP / f"details_{task}_{STAMP}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(parquet(rows))
    return path


def read(path: Path, **result: Any) -> ParsedFile:
    return parse_file(path, ReadOptions(**result))


def scores(reading: ParsedFile) -> dict[str, list[float]]:
    """Scores by metric, in the order of the file, those of first trials."""
    result: dict[str, list[float]] = {}
    for block in reading.measurements:
        if isinstance(block, Scores):
            first = np.broadcast_to(block.trials, len(block.values)) == 0
            result.setdefault(block.metric.name, []).extend(block.values[first].tolist())
    return result


def answers(reading: ParsedFile) -> Answers:
    (block,) = (block for block in reading.measurements if isinstance(block, Answers))
    return block


class TestMultipleChoice:
    def test_scores_gold_probability_and_the_likeliest_option(self, tmp_path: Path) -> None:
        reading = read(details(tmp_path, CHOSEN))
        result = scores(reading)
        assert result["acc"] == pytest.approx([1, 0, 1, math.nan], nan_ok=True)
        total = math.exp(-2) + math.exp(-0.5) + math.exp(-3)
        assert result["gold_probability_likelihoods"][0] == pytest.approx(math.exp(-0.5) / total)
        block = answers(reading)
        assert list(block.text) == ["B", "B", "A", "A"]
        assert block.probability is not None
        assert block.probability[3] == pytest.approx(1 / 3)

    def test_the_question_stands_without_the_instruction_and_the_gold_answer_is_a_letter(self, tmp_path: Path) -> None:
        result = answers(read(details(tmp_path, CHOSEN))).prompts
        assert result.text
        assert result.text[0] == "Colour 0?"
        assert result.choices
        assert result.choices[0] == ["red", "green", "blue"]
        assert result.answer
        assert list(result.answer) == ["B", "A", "A", "C"]
        assert result.details == [{"lighteval_id": str(number)} for number in (0, 1, 1, 3)]

    def test_columns_between_underscores_report_the_same(self, tmp_path: Path) -> None:
        plain = [options(0, 1, [-2.0, -0.5, -3.0], 1.0, task_name="shapes|0")]
        item, second = (read(details(tmp_path / str(k), rows)) for k, rows in enumerate((plain, UNDERLINED)))
        assert scores(item) == scores(second)
        assert list(answers(item).prompts.keys) == list(answers(second).prompts.keys)

    def test_what_was_requested_twice_is_distinguished_by_its_number(self, tmp_path: Path) -> None:
        result = answers(read(details(tmp_path, CHOSEN))).prompts
        assert result.keys[2] == f"{result.keys[1]}#1"
        assert result.disambiguated_by == "lighteval_id"
        assert len(set(result.keys)) == 4

    def test_several_right_options_have_no_letter(self, tmp_path: Path) -> None:
        row = options(0, 1, [-1.0, -2.0], 1.0)
        row["doc"]["gold_index"] = [0, 1]
        reading = read(details(tmp_path, [row]))
        assert answers(reading).prompts.answer == [None]
        assert "gold_probability_likelihoods" not in scores(reading)

    def test_likelihoods_that_are_not_one_for_each_option_are_no_answer(self, tmp_path: Path) -> None:
        row = options(0, 1, [-1.0, -2.0], 1.0)
        row["model_response"]["logprobs"] = [-1.0]
        reading = read(details(tmp_path, [row]))
        assert list(scores(reading)) == ["acc", "acc_norm"]


class TestWritten:
    def test_each_sample_is_a_trial_and_the_score_is_of_the_prompt(self, tmp_path: Path) -> None:
        reading = read(details(tmp_path, SUMS))
        assert scores(reading)["em"] == [0.5, 0, 1]
        block = answers(reading)
        trials = np.broadcast_to(block.trials, len(block.text)).tolist()
        assert list(zip(block.text, trials, strict=True)) == [
            ("2", 0), ("3", 1), (None, 0), (None, 1), ("4", 0), ("4", 1),
        ]  # fmt: skip

    def test_right_answers_are_texts_and_all_are_kept(self, tmp_path: Path) -> None:
        result = answers(read(details(tmp_path, SUMS))).prompts
        assert result.answer is not None
        assert result.details is not None
        assert (result.answer[2], result.details[2]) == ("3", {"lighteval_id": "2", "accepted": ["3", "three"]})
        assert result.choices == [None] * 6

    def test_without_post_processing_the_text_itself_is_the_answer(self, tmp_path: Path) -> None:
        row = written(1, ["2"], ["2"], 1.0)
        row["model_response"] |= {"text_post_processed": None}
        assert list(answers(read(details(tmp_path, [row]))).text) == ["It is 2"]

    def test_an_empty_answer_is_wrong_or_missing_and_a_warning_reports_which(self, tmp_path: Path) -> None:
        path = details(tmp_path, SUMS)
        reading = read(path)
        assert "t: 1 answer is empty: counted as wrong (change with --empty missing)" in reading.warnings
        assert answers(reading).status == ["ok", "ok", "empty", "empty", "ok", "ok"]
        assert scores(read(path, empty="missing"))["em"] == pytest.approx([0.5, math.nan, 1], nan_ok=True)


class TestEarlierVersions:
    def test_pairs_of_likelihood_and_greediness(self, root: Path) -> None:
        reading = read(root / f"{OLD_DETAILS}/details_harness|colours:bright|5_{OLD_STAMP}.parquet")
        assert scores(reading)["acc"] == [1, 0]
        block = answers(reading)
        assert list(block.text) == ["B", "A"]
        assert (block.run.model, block.run.benchmark, block.run.few_shot) == ("org/old", "colours", 5)
        assert (block.prompts.tasks, block.prompts.answer) == (["bright"] * 2, ["B", "B"])

    def test_written_answers(self, tmp_path: Path) -> None:
        block = answers(read(details(tmp_path, OLD_WRITTEN)))
        assert (list(block.text), block.prompts.answer) == (["4", None], ["4", "5"])

    @pytest.mark.parametrize("predictions", [[-2.0, -1.0], "[-2.0, -1.0]", "[(-2.0, False), [-1.0, True]]"])
    def test_lists_may_be_spelled_out(self, tmp_path: Path, predictions: Any) -> None:
        rows = [flat(0, 1.0, predictions, choices="['red', 'green']")]
        assert list(answers(read(details(tmp_path, rows))).text) == ["B"]

    def test_both_generations_name_the_same_prompt_equal(self, tmp_path: Path) -> None:
        new = options(0, 1, [-2.0, -1.0], 1.0)
        new["doc"] |= {"query": "Colour 0?", "instruction": ""}
        item, second = (read(details(tmp_path / str(k), [row])) for k, row in enumerate((new, OLD[0])))
        assert list(answers(item).prompts.keys) == list(answers(second).prompts.keys)


class TestRun:
    @pytest.mark.parametrize(
        ("written", "parts"),
        [
            ("mmlu:abstract_algebra|5", ("", "mmlu", "abstract_algebra", 5)),
            ("leaderboard|mmlu:abstract_algebra|5", ("leaderboard", "mmlu", "abstract_algebra", 5)),
            ("leaderboard|gsm8k|5|0", ("leaderboard", "gsm8k", "gsm8k", 5)),
            ("gsm8k", ("", "gsm8k", "gsm8k", None)),
            ("|", ("", "|", "|", None)),
        ],
    )
    def test_a_task_is_suite_name_part_and_examples(self, written: str, parts: tuple[Any, ...]) -> None:
        result = TaskName.parsed(written)
        assert (result.suite, result.benchmark, result.task, result.few_shot) == parts

    def test_results_are_read_with_their_details(self, root: Path) -> None:
        reading = read(root / RESULTS_FILE)
        assert [file.name.partition("_")[0] for file in reading.files] == ["results", "details", "details"]
        runs = {block.run.benchmark: block.run for block in reading.measurements if isinstance(block, Scores)}
        assert runs.keys() == {"colours", "sums"}
        result = runs["colours"]
        assert (result.model, result.label, result.few_shot, result.limited) == ("org/model", STAMP, 5, True)
        assert result.settings["model_dtype"] == "bfloat16"
        assert reading.harness == "lighteval 0123456789abcdef"

    def test_tasks_without_details_have_a_score_as_a_whole(self, root: Path) -> None:
        reading = read(root / RESULTS_FILE)
        result = {block.metric.name: block for block in reading.measurements if isinstance(block, TaskScores)}
        assert result["acc"].tasks == ["dark"]
        assert (result["acc"].values.tolist(), result["acc"].stderr, result["acc"].n_prompts) == ([0.25], [0.1], [8])
        assert result["acc_norm"].values.tolist() == [0.5]
        assert any("no details for colours:dark|5" in warning for warning in reading.warnings)

    def test_the_means_of_the_details_are_those_of_the_results(self, root: Path) -> None:
        assert not read(root / RESULTS_FILE).differences
        second = {**RESULTS, "results": {"sums|0": {"em": 0.75}}}
        (root / RESULTS_FILE).write_text(json.dumps(second))
        (difference,) = read(root / RESULTS_FILE).differences
        assert difference.text == "the file reports em of sums as 0.75, but its scores give 0.5"

    def test_a_perplexity_is_that_of_the_results_and_its_rows_are_likelihoods(self, tmp_path: Path) -> None:
        rows = [
            {**written(n, ["a"], ["a"], 0.0), "metric": {"ppl": {"logprobs": value, "weights": n}}}
            for n, value in ((1, -1.0), (2, -2.0))
        ]
        path = tmp_path / f"results/org/m/results_{STAMP}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"config_general": {}, "results": {"t|0": {"ppl": math.exp(1.5), "ppl_stderr": 1}}}))
        details(tmp_path, rows).rename(path.parents[3] / "details/org/m" / STAMP / f"details_t|0_{STAMP}.parquet")
        reading = read(path)
        (stored,) = (block for block in reading.measurements if isinstance(block, TaskScores))
        assert (stored.metric.name, stored.metric.higher_is_better) == ("ppl", False)
        assert stored.values == pytest.approx([math.exp(1.5)])
        assert scores(reading) == {"loglikelihood": [-1.0, -2.0]}
        assert not reading.differences

    def test_details_alone_take_model_and_settings_from_the_results_of_their_time(self, root: Path) -> None:
        (root / RESULTS_FILE).write_text(json.dumps({**RESULTS, "config_general": {"model_name": "told/there"}}))
        (block, *_) = read(root / f"{DETAILS}/details_sums|0_{STAMP}.parquet").measurements
        assert isinstance(block, Scores)
        assert block.run.model == "told/there"

    def test_else_the_folders_name_the_model(self, root: Path) -> None:
        path = root / f"new/details/org/new/{STAMP}/details_shapes|0_{STAMP}.parquet"
        (block, *_) = read(path).measurements
        assert isinstance(block, Scores)
        assert block.run.model == "org/new"

    def test_a_file_in_no_such_folder_needs_the_model_from_the_user(self, tmp_path: Path) -> None:
        path = tmp_path / "renamed.parquet"
        path.write_bytes(parquet(CHOSEN))
        with pytest.raises(BadInputError, match="add --model NAME"):
            read(path)
        (block, *_) = read(path, model="m").measurements
        assert isinstance(block, Scores)
        assert (block.run.model, block.run.benchmark, block.prompts.tasks, block.run.few_shot) == (
            "m", "colours", ["bright"] * 4, 5,
        )  # fmt: skip

    def test_one_task_requested_in_two_methods_at_a_time_is_two_runs(self, tmp_path: Path) -> None:
        paths = [details(tmp_path, CHOSEN, task) for task in ("a|mmlu:x|0", "b|mmlu:x|5", "a|mmlu:y|0")]
        labels = [next(b.run.label for b in read(path).measurements if isinstance(b, Scores)) for path in paths]
        assert labels == [f"{STAMP} a|0", f"{STAMP} b|5", STAMP]

    def test_a_folder_gives_the_results_and_the_details_that_have_none(self, root: Path) -> None:
        assert {path.relative_to(root).parts[0] for path in find_files([root])} == {
            f"{OLD_DETAILS.split('/')[0]}",
            "new",
            "out",
        }
        assert len(find_files([root])) == 4


class TestErrors:
    def test_other_parquet_and_other_json_are_declined(self, tmp_path: Path) -> None:
        table, second = tmp_path / f"details_t_{STAMP}.parquet", tmp_path / f"results_{STAMP}.json"
        pa.parquet.write_table(pa.table({"doc": [1], "metric": [2]}), table)
        second.write_text('{"results": {}}')
        assert (
            mismatch_reason(table, ReadOptions())
            == "no columns doc, metric and model_response, or those of earlier versions"
        )
        assert mismatch_reason(second, ReadOptions()) == 'it does not start with {"config_general":'

    def test_scores_that_are_none_are_named_with_their_row(self, tmp_path: Path) -> None:
        rows = [options(0, 1, [-1.0, -2.0], 1.0), options(1, 1, [-1.0, -2.0], 7.0)]
        rows[0]["metric"]["cider"], rows[1]["metric"]["cider"] = math.inf, 1.0
        with pytest.raises(BadInputError) as caught:
            read(details(tmp_path, rows))
        assert caught.value.problems[:2] == [
            "row 1: cider is inf, too large to be a score",
            "row 2: acc is 7, outside [0, 1]",
        ]

    def test_metrics_without_one_number_per_prompt_are_passed_over_with_a_warning(self, tmp_path: Path) -> None:
        warnings = read(details(tmp_path, CHOSEN)).warnings
        assert "t: no scores per prompt, at most task scores, of pairs" in warnings

    def test_damaged_parquet_is_refused(self, tmp_path: Path) -> None:
        path = details(tmp_path, CHOSEN)
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(BadInputError, match="is not a readable Parquet file, or is truncated"):
            parse_file(path, ReadOptions(), format="lighteval")

    def test_results_that_are_none_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / f"results_{STAMP}.json"
        path.write_text('{"config_general": {}, "results": []}')
        with pytest.raises(BadInputError, match="has no task results"):
            read(path)


class TestLaws:
    def test_blocks_do_not_grow_with_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(builder, "PROMPTS_PER_BLOCK", 50)
        rows = [options(number, 0, [-1.0, -2.0], 1.0) for number in range(60)]
        sizes = [len(b.values) for b in read(details(tmp_path, rows)).measurements if isinstance(b, Scores)]
        assert sizes == [50] * 3 + [10] * 3

    def test_columns_that_are_not_used_are_not_read(self, tmp_path: Path) -> None:
        row = options(0, 1, [-1.0, -2.0], 1.0)
        row["model_response"]["logits"] = [[0.5] * 10]
        row["doc"]["fewshot_samples"] = [{"query": "x"}]
        plain = scores(read(details(tmp_path / "a", [options(0, 1, [-1.0, -2.0], 1.0)])))
        assert scores(read(details(tmp_path / "b", [row]))) == plain


def test_every_real_file_gives_the_scores_that_it_holds(shared: Path) -> None:
    paths = find_files([shared / "samples" / "lighteval"])
    assert paths
    for path in paths:
        reading = read(path)
        rows = pa.parquet.read_table(path).to_pylist()
        assert scores(reading)["acc"] == [float(row["metric"]["acc"]) for row in rows]
        block = answers(reading)
        assert block.run.model == "org/model"
        assert (block.prompts.text or [])[0] == rows[0]["doc"]["query"]
        right = [output == gold for output, gold in zip(block.text, block.prompts.answer or (), strict=True)]
        assert right == [bool(row["metric"]["acc"]) for row in rows], "the likeliest option is what acc judges"
