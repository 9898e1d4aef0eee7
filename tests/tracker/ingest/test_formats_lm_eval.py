"""Output folders of lm-evaluation-harness, in old and new shapes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracker.errors import BadInputError
from tracker.ingest.measurement import Answers, ParsedFile, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.detection import find_files, parse_file

STAMP = "2026-01-02T03-04-05.678901"


def sample(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A multiple-choice sample as the harness writes it today."""
    doc = {"question": f"Question {number}?", "choices": ["yes", "no", "both"]}
    logged = {
        "doc_id": number,
        "doc": doc,
        "target": "1",
        "arguments": {f"gen_args_{k}": {"arg_0": "Q:", "arg_1": f" {item}"} for k, item in enumerate(doc["choices"])},
        "resps": [[["-1.0", "False"]], [["-2.0", "False"]], [["-3.0", "True"]]],
        "filtered_resps": [["-1.0", "False"], ["-2.0", "False"], ["-3.0", "True"]],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": f"hash{number}",
        "acc": 0.0,
    }
    return {**logged, **changes}


def written(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A sample for which the model was to write."""
    texts = {"arguments": {"gen_args_0": {"arg_0": "Q: 1+1?", "arg_1": {"until": ["\n"]}}}, "resps": [["It is 2."]]}
    return sample(number, **{**texts, "filtered_resps": ["2"], "target": "2", "metrics": ["exact_match"],
                             "exact_match": 1.0, **changes})  # fmt: skip


Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    def created(
        samples: Mapping[str, Sequence[Mapping[str, Any]]], results: Mapping[str, Any] | None = None, stamp: str = STAMP
    ) -> Path:
        for task, rows in samples.items():
            (tmp_path / f"samples_{task}_{stamp}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        if results is not None:
            result = {"results": {task: {"alias": task} for task in samples}, "model_name": "org/model", **results}
            (tmp_path / f"results_{stamp}.json").write_text(json.dumps(result))
        return tmp_path

    return created


def read(folder: Path, **options: Any) -> ParsedFile:
    (path,) = find_files([folder])
    return parse_file(path, ReadOptions(**options))


def blocks(reading: ParsedFile) -> dict[str, Any]:
    """Blocks by metric, or by extraction for answers."""
    return {
        block.metric.name if isinstance(block, (Scores, TaskScores)) else f"answers:{block.extraction}": block
        for block in reading.measurements
    }


class TestFirstReleases:
    """Releases 0.4.0 to 0.4.2: results.json, and for each task a list of samples named after the model's arguments."""

    def write(self, folder: Path, tasks: Mapping[str, int], **results: Any) -> Path:
        arguments = "pretrained=org/model,dtype=float"
        reported = {task: {"acc,none": 0.5, "alias": task} for task in tasks}
        data = {"results": reported, "config": {"model_args": arguments}, **results}
        (folder / "results.json").write_text(json.dumps(data, indent=2))
        for task, first in tasks.items():
            rows = [sample(first), sample(first + 1, acc=1.0)]
            for row in rows:
                del row["filter"], row["metrics"], row["doc_hash"]
            name = f"pretrained__org__model,dtype__float_{task}.jsonl"
            (folder / name).write_text(json.dumps(rows, indent=2))
        return folder / "results.json"

    def test_the_samples_of_a_task_are_read_from_its_list(self, tmp_path: Path) -> None:
        self.write(tmp_path, {"b": 0, "a_b": 2})
        reading = read(tmp_path)
        values = {
            block.run.benchmark: (block.prompts.tasks, block.values.tolist())
            for block in reading.measurements
            if isinstance(block, Scores) and block.metric.name == "acc"
        }
        assert values == {"b": (["b"] * 2, [0.0, 1.0]), "a_b": (["a_b"] * 2, [0.0, 1.0])}
        assert len(reading.files) == 3
        assert not reading.differences
        assert not reading.warnings

    def test_a_damaged_list_is_an_error(self, tmp_path: Path) -> None:
        self.write(tmp_path, {"t": 0})
        (path,) = tmp_path.glob("*_t.jsonl")
        path.write_text(path.read_text()[:-20])
        with pytest.raises(BadInputError, match="the JSON is invalid or truncated"):
            read(tmp_path)

    @pytest.mark.parametrize("membership", ["g", ["g", "other"]])
    def test_the_group_that_tasks_name_is_their_benchmark(self, tmp_path: Path, membership: Any) -> None:
        path = self.write(tmp_path, {"a": 0, "b": 2})
        data = json.loads(path.read_text())
        data["results"] = {"g": {"acc,none": 0.5}, **data["results"]}
        configs = {task: {"group": membership} for task in ("a", "b")}
        path.write_text(json.dumps(data | {"groups": {"g": {"acc,none": 0.5}}, "configs": configs}))
        reading = read(tmp_path)
        assert {block.run.benchmark for block in reading.measurements} == {"g"}
        assert not [block for block in reading.measurements if isinstance(block, TaskScores)]
        data["results"]["g"]["acc,none"] = 0.75
        path.write_text(json.dumps(data | {"groups": {"g": {"acc,none": 0.75}}, "configs": configs}))
        assert len(read(tmp_path).differences) == 1


class TestMultipleChoice:
    def test_scores_gold_probability_and_the_likeliest_option(self, folder: Folder) -> None:
        result = blocks(read(folder({"t": [sample(0), sample(1, target="0", acc=1.0)]}, {})))
        total = math.exp(-1) + math.exp(-2) + math.exp(-3)
        assert result["acc"].values.tolist() == [0.0, 1.0]
        assert result["gold_probability_likelihoods"].values == pytest.approx(
            [math.exp(-2) / total, math.exp(-1) / total]
        )
        assert list(result["answers:"].text) == ["A", "A"]
        assert result["answers:"].probability == pytest.approx([math.exp(-1) / total] * 2)
        prompts = result["acc"].prompts
        assert (prompts.namespace, prompts.keys, prompts.tasks) == ("lm_eval", ["hash0", "hash1"], ["t", "t"])
        assert (prompts.text[0], prompts.choices[0], prompts.answer) == (
            "Question 0?",
            ["yes", "no", "both"],
            ["B", "A"],
        )

    def test_the_number_of_a_document_is_a_detail_whatever_the_document_calls_its_own(self, folder: Folder) -> None:
        rows = [
            sample(4, doc={"question": "Q?", "choices": ["yes", "no", "both"], "doc_id": "own", "level": 3}),
            sample(2, doc={"question": "R?", "choices": ["yes", "no", "both"]}, doc_id="11"),
            sample(5, doc={"question": "S?", "choices": ["yes", "no", "both"]}, doc_id="none"),
        ]
        prompts = blocks(read(folder({"t": rows}, {})))["acc"].prompts
        assert prompts.details == [
            {"doc_id": "own", "level": 3, "lm_eval_doc_id": 4},
            {"lm_eval_doc_id": 11},
            None,
        ]

    def test_the_shape_of_old_versions_reports_the_same(self, folder: Folder, tmp_path: Path) -> None:
        old = sample(
            arguments=[["Q:", " yes"], ["Q:", " no"], ["Q:", " both"]],
            resps=[[[-1.0, False]], [[-2.0, False]], [[-3.0, True]]],
            filtered_resps=[[-1.0, False], [-2.0, False], [-3.0, True]],
        )
        del old["metrics"], old["filter"]
        (tmp_path / "sub").mkdir()
        new = blocks(read(folder({"t": [sample()]}, {})))
        path = tmp_path / "sub" / f"samples_t_{STAMP}.jsonl"
        path.write_text(json.dumps(old) + "\n")
        again = blocks(parse_file(path, ReadOptions(model="org/model")))
        assert new.keys() == again.keys()
        for name in ("acc", "gold_probability_likelihoods"):
            assert new[name].values.tolist() == again[name].values.tolist()
        assert new["acc"].prompts.choices == again["acc"].prompts.choices

    def test_mutual_information_requests_each_option_twice_and_counts_once(self, folder: Folder) -> None:
        texts = ["yes", "no", "yes", "no"]
        row = sample(
            doc={"question": "Why?"},
            arguments={
                f"gen_args_{k}": {"arg_0": "Q:" if k < 2 else "", "arg_1": f" {t}"} for k, t in enumerate(texts)
            },
            filtered_resps=[["-1", "False"], ["-1", "False"], ["-9", "False"], ["-2", "False"]],
            metrics=["acc", "acc_mutual_info"],
            acc_mutual_info=1.0,
        )
        result = blocks(read(folder({"t": [row]}, {})))
        assert result["gold_probability_likelihoods"].values == pytest.approx([0.5])
        assert result["acc"].prompts.choices == [["yes", "no"]]

    @pytest.mark.parametrize("target", ["[0, 2]", "7", "no", "-1"])
    def test_without_one_gold_option_there_is_no_gold_probability(self, folder: Folder, target: str) -> None:
        result = blocks(read(folder({"t": [sample(target=target)]}, {})))
        assert "gold_probability_likelihoods" not in result
        assert result["acc"].prompts.answer == [target]
        assert list(result["answers:"].text) == ["A"]


class TestWriting:
    def test_the_filter_is_in_the_name_of_the_metric(self, folder: Folder) -> None:
        rows = [
            written(0, filter="strict-match"),
            written(0, filter="flexible", filtered_resps=["[invalid]"], exact_match=0.0),
        ]
        result = blocks(read(folder({"t": rows}, {})))
        assert list(result) == [
            "exact_match,strict-match",
            "answers:strict-match",
            "exact_match,flexible",
            "answers:flexible",
        ]
        assert list(result["answers:strict-match"].text) == ["2"]
        assert list(result["answers:flexible"].text) == [None]
        assert result["exact_match,flexible"].prompts is result["exact_match,strict-match"].prompts
        assert result["exact_match,flexible"].metric.upper == 1.0

    def test_the_text_sent_is_the_question_only_without_worked_examples(self, folder: Folder) -> None:
        rows = [written(doc={"index": 3})]
        path = folder({"t": rows}, {"n-shot": {"t": 0}})
        assert blocks(read(path))["exact_match"].prompts.text == ["Q: 1+1?"]
        folder({"t": rows}, {"n-shot": {"t": 5}})
        result = blocks(read(path))["exact_match"]
        assert (result.prompts.text, result.run.few_shot) == ([None], 5)


class TestPrompts:
    def test_documents_that_are_equal_are_distinguished_by_their_order(self, folder: Folder) -> None:
        rows = [sample(number, doc_hash="same") for number in range(3)]
        assert blocks(read(folder({"t": rows}, {})))["acc"].prompts.keys == ["same", "same#1", "same#2"]

    def test_without_a_hash_it_is_made_as_the_harness_makes_it(self, folder: Folder) -> None:
        row = sample()
        del row["doc_hash"]
        bare = sample(7, doc=None)
        del bare["doc_hash"]
        expected = hashlib.sha256(json.dumps(row["doc"], indent=2, ensure_ascii=False).encode()).hexdigest()
        assert blocks(read(folder({"t": [row, bare]}, {})))["acc"].prompts.keys == [expected, "7"]

    def test_a_line_that_was_appended_again_counts_once(self, folder: Folder) -> None:
        path = folder({"t": [sample(0), sample(1), sample(0)]}, {})
        assert len(blocks(read(path))["acc"].values) == 2
        folder({"t": [sample(0), sample(0, acc=1.0)]}, {})
        with pytest.raises(BadInputError, match="line 2: prompt 0 has different scores in an earlier line"):
            read(path)


class TestRuns:
    def test_facts_of_the_run(self, folder: Folder) -> None:
        result = {
            "date": 1767323045.5,
            "lm_eval_version": "0.4.13",
            "n-shot": {"t": 5},
            "config": {"model": "hf", "limit": 10.0, "random_seed": 3, "model_num_parameters": 7},
            "higher_is_better": {"t": {"acc": False}},
            "configs": {"t": {"test_split": "test", "doc_to_text": "{{question}}"}},
        }
        reading = read(folder({"t": [sample()]}, result))
        block = blocks(reading)["acc"]
        run = block.run
        assert (run.model, run.benchmark, run.label, run.few_shot, run.limited) == ("org/model", "t", STAMP, 5, True)
        assert run.started == datetime.fromtimestamp(1767323045.5, UTC)
        assert (run.settings["random_seed"], run.model_facts) == (3, {"parameters": 7})
        assert (reading.harness, len(reading.files)) == ("lm-eval 0.4.13", 2)
        assert block.metric.higher_is_better is False
        assert block.prompts.split == ["test"]

    def test_tasks_belong_to_their_outermost_group(self, folder: Folder) -> None:
        outcome = {"group_subtasks": {"mmlu": ["mmlu_stem"], "mmlu_stem": ["a", "b"], "c": []}}
        reading = read(folder({"a": [sample()], "b": [sample()], "c": [sample()]}, outcome))
        result = {(block.run.benchmark, block.prompts.tasks[0]) for block in reading.measurements}
        assert result == {("mmlu", "a"), ("mmlu", "b"), ("c", "c")}
        reading = read(reading.path.parent, benchmark="mine")
        assert {block.run.benchmark for block in reading.measurements} == {"mine"}

    def test_a_name_that_the_harness_made_up_is_requested_for(self, folder: Folder) -> None:
        path = folder({"t": [sample()]}, {"model_name": "i82qcls7", "config": {"model_args": {}}})
        with pytest.raises(BadInputError, match="'i82qcls7' is a placeholder of the harness; add --model NAME"):
            read(path)
        assert blocks(read(path, model="mine"))["acc"].run.model == "mine"

    def test_the_model_may_stand_in_its_arguments(self, folder: Folder) -> None:
        result = {"model_name": None, "config": {"model_args": "pretrained=org/seven,dtype=float16"}}
        assert blocks(read(folder({"t": [sample()]}, result)))["acc"].run.model == "org/seven"

    def test_samples_alone_need_the_model(self, folder: Folder) -> None:
        path = folder({"t": [sample()]})
        with pytest.raises(BadInputError, match="add --model NAME"):
            read(path)
        run = blocks(read(path, model="mine"))["acc"].run
        assert (run.model, run.benchmark, run.label) == ("mine", "t", STAMP)

    def test_a_folder_of_the_harness_names_the_model(self, folder: Folder) -> None:
        path = folder({"t": [sample()]})
        moved = path / "org__my__model"
        moved.mkdir()
        for file in path.glob("samples_*"):
            file.rename(moved / file.name)
        assert blocks(read(moved))["acc"].run.model == "org/my__model"

    def test_results_alone_give_scores_of_whole_tasks(self, folder: Folder) -> None:
        result = {
            "results": {
                "g": {"acc,none": 0.6},
                "a": {"alias": "a", "sample_len": 4, "acc,none": 0.5, "acc_stderr,none": 0.1, "f1,x": "N/A"},
                "b": {"acc,none": 0.7, "acc_stderr,none": "N/A"},
            },
            "group_subtasks": {"g": ["a", "b"]},
            "n-samples": {"a": {"original": 9, "effective": 4}},
        }
        (block,) = read(folder({}, result)).measurements
        assert isinstance(block, TaskScores)
        assert (block.run.benchmark, list(block.tasks), block.values.tolist()) == ("g", ["a", "b"], [0.5, 0.7])
        assert block.stderr is not None
        assert (block.stderr[0], np.isnan(block.stderr[1]), block.n_prompts) == (0.1, True, [4, None])
        assert block.run.limited


class TestErrors:
    @pytest.mark.parametrize(
        ("row", "words"),
        [
            (sample(acc="good"), "line 2: acc is 'good', not a number"),
            (sample(acc=float("nan")), "line 2: acc is nan, not a finite number"),
            (sample(acc=float("inf")), "line 2: acc is inf"),
            (sample(acc=2.0), r"line 2: acc is 2, outside \[0, 1\]"),
            ([1, 2], "line 2: is not a sample of lm-evaluation-harness"),
            ({"doc": {}}, "line 2: is not a sample of lm-evaluation-harness: it has no doc_id"),
        ],
    )
    def test_what_is_wrong_is_reported_with_its_line(self, folder: Folder, row: Any, words: str) -> None:
        with pytest.raises(BadInputError, match=words):
            read(folder({"t": [sample(5), row]}, {}))

    def test_files_that_end_too_early(self, folder: Folder) -> None:
        path = folder({"t": [sample(0), sample(1)]}, {})
        samples = path / f"samples_t_{STAMP}.jsonl"
        whole = samples.read_bytes()
        samples.write_bytes(whole[:-50])
        with pytest.raises(BadInputError, match=r"samples_t.*line 2: the JSON is invalid or truncated"):
            read(path)
        samples.write_bytes(whole)
        results = path / f"results_{STAMP}.json"
        results.write_bytes(results.read_bytes()[:-20])
        with pytest.raises(BadInputError, match=r"results_.*line 1, column .*: the JSON is invalid or truncated"):
            read(path)

    def test_metrics_without_one_number_per_prompt_are_passed_over_with_a_warning(self, folder: Folder) -> None:
        reading = read(folder({"t": [sample(metrics=["acc", "f1"], f1=[0, 1])]}, {}))
        assert "f1" not in blocks(reading)
        assert "f1" in reading.warnings[0]


class TestRealData:
    def test_a_folder_without_one_for_the_model(self, shared: Path) -> None:
        path = next((shared / "samples" / "lm_eval").glob("results_*.json"))
        reading = parse_file(path, ReadOptions())
        result = blocks(reading)
        assert len(result["answers:"].text) == 10
        assert isinstance(reading.measurements[-1], TaskScores)
        assert reading.harness == "lm-eval 0.4.9.2"

    def test_both_kinds_of_task(self, shared: Path) -> None:
        folder = shared / "samples" / "lm_eval" / "generated_0.4.13"
        (path,) = find_files([folder])
        result = blocks(parse_file(path, ReadOptions(model="dummy")))
        assert {"acc", "acc_norm", "gold_probability_likelihoods", "exact_match,strict-match"} <= result.keys()
        lls = np.array([-0.10905784593110368, -0.5512672460905512, -0.7065614098668896])
        expected = np.exp(lls)[1] / np.exp(lls).sum()
        assert result["gold_probability_likelihoods"].values[0] == pytest.approx(expected)
        assert isinstance(result["answers:"], Answers)
