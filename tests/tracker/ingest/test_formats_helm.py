"""Run folders of HELM."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sound.helm import FILES, JOINT, JOINT_STATES, OPTIONS_AB, TYPOS, entry, folder, spec, stat, state

from tracker.errors import BadInputError, SelectionError
from tracker.ingest.files import block_builder as builder
from tracker.ingest.formats.helm import run_folder
from tracker.ingest.formats.helm.metrics import describe_metric
from tracker.ingest.measurement import Answers, ParsedFile, Prompts, ReadOptions, Scores
from tracker.ingest.parsing.detection import find_files, parse_file

JOINT_SPEC = spec("mmlu:subject=cities,method=multiple_choice_joint,model=org_model", "multiple_choice_joint")
Rows = dict[tuple[str, str, str, int], float]


def put(root: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def run(
    root: Path, entries: Sequence[Any] = JOINT, states: Sequence[Any] = JOINT_STATES, result: Any = JOINT_SPEC
) -> Path:
    put(root, folder("run", entries, states, result))
    return root / "run" / "per_instance_stats.json"


def read(path: Path, **options: Any) -> ParsedFile:
    return parse_file(path, ReadOptions(**options))


def scores(reading: ParsedFile) -> Rows:
    """Scores by metric, variant, instance and trial."""
    result: Rows = {}
    for block in reading.measurements:
        if isinstance(block, Scores):
            trials = np.broadcast_to(block.trials, len(block.values)).tolist()
            for key, trial, value in zip(block.prompts.keys, trials, block.values.tolist(), strict=True):
                if not math.isnan(value):
                    assert (block.metric.name, block.run.variant, key, trial) not in result
                    result[block.metric.name, block.run.variant, key, trial] = value
    return result


def under(reading: ParsedFile, metric: str, variant: str = "") -> dict[tuple[str, int], float]:
    """Scores of one metric by instance and trial."""
    return {(key, trial): value for (name, result, key, trial), value in scores(reading).items()
            if (name, result) == (metric, variant)}  # fmt: skip


def output(reading: ParsedFile, variant: str = "") -> dict[str, tuple[str | None, str]]:
    """Answer and status by instance."""
    return {
        key: (text, status)
        for block in reading.measurements
        if isinstance(block, Answers) and block.run.variant == variant
        for key, text, status in zip(block.prompts.keys, block.text, block.status or (), strict=True)
    }


def prompts(reading: ParsedFile) -> dict[str, dict[str, Any]]:
    """Content by instance, as far as the blocks have it."""
    result: dict[str, dict[str, Any]] = {}
    for block in reading.measurements:
        outcome = block if isinstance(block, Prompts) else getattr(block, "prompts", None)
        for row, key in enumerate(outcome.keys if outcome is not None else ()):
            assert outcome is not None
            for name in ("text", "choices", "answer", "split", "details"):
                column = getattr(outcome, name)
                if column is not None and column[row] is not None:
                    result.setdefault(key, {})[name] = column[row]
    return result


def noted(reading: ParsedFile, part: str) -> str:
    return next(warning for warning in reading.warnings if part in warning)


class TestScores:
    def test_scores_are_ingested_and_costs_passed_over(self, tmp_path: Path) -> None:
        reading = read(run(tmp_path))
        assert {metric for metric, *_ in scores(reading)} == {"exact_match", "exact_match@5"}
        assert under(reading, "exact_match") == {("id1", 0): 1, ("id2", 0): 0, ("id5", 0): 0}
        assert noted(reading, "not scores").startswith("3 statistics that are not scores were skipped (num_prompt_tok")

    def test_a_statistic_that_the_user_names_is_ingested_too(self, tmp_path: Path) -> None:
        reading = read(run(tmp_path), metric="logprob")
        assert under(reading, "logprob")[("id1", 0)] == -1.5
        assert under(reading, "exact_match")

    def test_training_trials_are_trials(self, tmp_path: Path) -> None:
        put(tmp_path, FILES)
        reading = read(tmp_path / "story" / "per_instance_stats.json")
        assert under(reading, "f1_score") == {("id7", 0): 0.5, ("id8", 0): 1, ("id7", 1): 0.25, ("id8", 1): 0.5}
        assert not any("stats.json differs" in warning for warning in reading.warnings)

    def test_an_instance_may_stand_once_for_each_metric_class(self, tmp_path: Path) -> None:
        separate = [entry("id1", {"exact_match": 1.0}), entry("id1", {"f1_score": 0.5})]
        reading = read(run(tmp_path, separate, JOINT_STATES[:1]))
        assert scores(reading) == {("exact_match", "", "id1", 0): 1, ("f1_score", "", "id1", 0): 0.5}

    def test_a_perturbation_is_a_run_of_the_same_prompts(self, tmp_path: Path) -> None:
        reading = read(run(tmp_path))
        assert under(reading, "exact_match", "typos(prob=0.1)") == {("id1", 0): 0}
        assert output(reading, "typos(prob=0.1)") == {"id1": ("B", "ok")}
        assert prompts(reading)["id1"]["text"] == "Question of id1?"

    def test_perturbations_with_other_parameters_are_other_runs(self, tmp_path: Path) -> None:
        entries = [entry("id1", {"exact_match": p}, perturbation={**TYPOS, "prob": p}) for p in (0.25, 0.5)]
        reading = read(run(tmp_path, entries, []))
        assert [key[1] for key in scores(reading)] == ["typos(prob=0.25)", "typos(prob=0.5)"]

    def test_what_helm_computes_over_several_perturbations_is_no_score_of_a_prompt(self, tmp_path: Path) -> None:
        worst = [entry("id1", {"exact_match": 0.0}, perturbation={**TYPOS, "computed_on": "worst"})]
        reading = read(run(tmp_path, [*JOINT, *worst]))
        assert under(reading, "exact_match", "typos(prob=0.1)") == {("id1", 0): 0}

    def test_the_mean_or_else_sum_over_count(self, tmp_path: Path) -> None:
        item = entry("id1", {})
        item["stats"] = [{"name": {"name": "exact_match", "split": "test"}, "count": 4, "sum": 3}]
        two = entry("id2", {})
        two["stats"] = [{"name": {"name": "exact_match", "split": "test"}, "count": 0, "sum": 0}]
        three = entry("id3", {})
        three["stats"] = [{"name": {"name": "exact_match", "split": "test"}, "mean": math.nan}]
        path = run(tmp_path, [item, two, three], [])
        path.with_name("stats.json").unlink()
        assert under(read(path), "exact_match") == {("id1", 0): 0.75}

    def test_other_means_in_stats_json_are_reported(self, tmp_path: Path) -> None:
        path = run(tmp_path)
        assert not read(path).differences
        (path.parent / "stats.json").write_text(json.dumps([stat("exact_match", 0.9, "test")]))
        (difference,) = read(path).differences
        assert difference.text.endswith("as 0.9, but its scores give 0.25")

    @pytest.mark.parametrize(
        ("name", "bounds"),
        [
            ("exact_match", (0, 1, True)), ("rouge_2", (0, 1, True)), ("NDCG@10", (0, 1, True)),
            ("final_number_exact_match", (0, 1, True)), ("math_equiv_chain_of_thought@3", (0, 1, True)),
            ("wildbench_score", (None, None, True)), ("medec_error_accuracy", (None, None, True)),
            ("absolute_value_difference", (0, None, False)), ("cer_score", (0, None, False)),
            ("num_references", None), ("max_prob", None), ("perplexity", None), ("finish_reason_stop", None),
            ("exact_match@many", None),
        ],
    )  # fmt: skip
    def test_scores_are_known_by_name(self, name: str, bounds: tuple[Any, ...] | None) -> None:
        result = describe_metric(name, ReadOptions())
        assert (result and (result.lower, result.upper, result.higher_is_better)) == bounds


class TestSplits:
    def test_the_test_split_is_ingested_and_others_named(self, tmp_path: Path) -> None:
        reading = read(run(tmp_path))
        assert ("id3", 0) not in under(reading, "exact_match")
        assert noted(reading, "read the split") == "read the split test, skipped valid (choose with --split)"

    def test_the_user_chooses_others(self, tmp_path: Path) -> None:
        path = run(tmp_path)
        assert under(read(path, splits=("valid",)), "exact_match", "split valid") == {("id3", 0): 1}
        both = read(path, splits=("valid", "test"))
        variants = {block.run.variant for block in both.measurements if isinstance(block, Scores)}
        assert "split test+valid" in variants
        assert "" not in variants
        assert "" in {
            block.run.variant for block in read(path, splits=("test",)).measurements if isinstance(block, Scores)
        }
        assert prompts(both)["id3"]["split"] == "valid"
        assert prompts(both)["id1"]["split"] == "test"

    def test_without_a_test_split_all_is_ingested(self, tmp_path: Path) -> None:
        put(tmp_path, FILES)
        assert noted(read(tmp_path / "story" / "per_instance_stats.json"), "no test split").endswith(
            "read the splits valid"
        )

    def test_a_text_that_speaks_of_splits_names_none(self, tmp_path: Path) -> None:
        item = entry('"split": "test"', {"exact_match": 1.0}, "valid")
        assert under(read(run(tmp_path, [item], [])), "exact_match") == {('"split": "test"', 0): 1}

    def test_a_split_that_is_not_there_is_refused_with_those_that_are(self, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match=r"no split 'train'. Splits of this run: test, valid\."):
            read(run(tmp_path), splits=("train",))


class TestPromptsAndAnswers:
    def test_letters_of_joint_options(self, tmp_path: Path) -> None:
        reading = read(run(tmp_path))
        assert output(reading)["id2"] == ("A", "ok")
        assert prompts(reading)["id2"] == {
            "text": "Question of id2?", "choices": OPTIONS_AB, "answer": "B", "split": "test",
        }  # fmt: skip

    def test_the_likeliest_completion_counts_as_for_helm_and_no_probability_is_made_of_zero(
        self, tmp_path: Path
    ) -> None:
        sure = state("id2", " B", OPTIONS_AB, [1], lettered=True)
        sure["result"]["completions"] = [{"text": " B", "logprob": 0.0}]
        reading = read(run(tmp_path, states=[JOINT_STATES[0], sure]))
        (block,) = (measurement for measurement in reading.measurements if isinstance(measurement, Answers))
        assert block.probability is not None
        assert block.probability.tolist() == pytest.approx([math.exp(-0.5), math.nan], nan_ok=True)

    def test_options_requested_separate_are_one_prompt_whose_answer_helm_names(self, tmp_path: Path) -> None:
        put(tmp_path, FILES)
        reading = read(tmp_path / "two" / "per_instance_stats.json")
        assert output(reading) == {"id1": ("B", "ok"), "id2": ("A", "ok")}
        assert prompts(reading)["id1"]["choices"] == OPTIONS_AB

    def test_several_right_references_are_all_kept(self, tmp_path: Path) -> None:
        put(tmp_path, FILES)
        result = prompts(read(tmp_path / "story" / "per_instance_stats.json"))["id7"]
        assert (result["answer"], result["details"]) == ("a cat", {"accepted": ["a cat", "the cat"]})

    def test_failed_requests_are_missing_and_empty_answers_wrong_unless_the_user_reports_otherwise(
        self, tmp_path: Path
    ) -> None:
        path = run(tmp_path)
        reading = read(path)
        result = under(reading, "exact_match")
        assert ("id4", 0) not in result
        assert result[("id5", 0)] == 0
        assert (output(reading)["id4"], output(reading)["id5"]) == ((None, "error"), (None, "empty"))
        assert noted(reading, "failed").startswith("1 request failed: counted as missing")
        assert noted(reading, "empty").startswith("1 answer is empty: counted as wrong")
        second = under(read(path, errored="wrong", empty="missing"), "exact_match")
        assert second[("id4", 0)] == 0
        assert ("id5", 0) not in second

    def test_a_failed_request_without_statistics_can_count_as_wrong(self, tmp_path: Path) -> None:
        entries = [item for item in JOINT if item["instance_id"] != "id4"]
        path = run(tmp_path, entries)
        assert ("id4", 0) not in under(read(path), "exact_match")
        assert under(read(path, errored="wrong"), "exact_match")[("id4", 0)] == 0

    def test_messages_and_media_have_text(self, tmp_path: Path) -> None:
        chat, media = (state(key, "A", OPTIONS_AB, [0]) for key in ("id1", "id2"))
        chat["instance"]["input"] = {"text": "", "messages": [{"role": "user", "content": "Why?"}]}
        media["instance"]["input"] = {
            "multimedia_content": {"media_objects": [{"text": "Look:"}, {"location": "a.png"}, {"text": "what?"}]}
        }
        result = prompts(read(run(tmp_path, states=[chat, media])))
        assert (result["id1"]["text"], result["id2"]["text"]) == ("Why?", "Look:\nwhat?")


class TestRun:
    def test_model_scenario_and_settings_come_from_the_specification(self, tmp_path: Path) -> None:
        (block, *_) = (
            measurement for measurement in read(run(tmp_path)).measurements if isinstance(measurement, Scores)
        )
        result = block.run
        assert (result.model, result.benchmark, result.label, result.few_shot, result.limited) == (
            "org/model",
            "mmlu",
            "",
            5,
            False,
        )
        assert set(block.prompts.tasks or ()) == {"cities"}
        assert result.settings["model_deployment"] == "host/model"
        assert result.settings["run_spec"].startswith("mmlu:subject=cities")

    def test_as_many_instances_as_may_be_requested_are_a_part_of_the_benchmark(self, tmp_path: Path) -> None:
        put(tmp_path, FILES)
        (block, *_) = (
            measurement
            for measurement in read(tmp_path / "story/per_instance_stats.json").measurements
            if isinstance(measurement, Scores)
        )
        assert block.run.limited

    @pytest.mark.parametrize(
        ("name", "benchmark", "task"),
        [
            ("story:model=org_model", "story", "story"),
            ("two:dataset=x,level=1,method=m,model=org_model", "two", "dataset=x,level=1"),
            ("legal:subset=a b,model=m", "legal", "a b"),
        ],
    )
    def test_the_task_is_the_argument_of_the_scenario(
        self, tmp_path: Path, name: str, benchmark: str, task: str
    ) -> None:
        (block, *_) = read(run(tmp_path, result=spec(name, "generation"))).measurements
        assert isinstance(block, Answers)
        assert (block.run.benchmark, block.prompts.tasks and block.prompts.tasks[0]) == (benchmark, task)

    def test_without_a_specification_the_requests_and_the_folder_report_it(self, tmp_path: Path) -> None:
        path = run(tmp_path / "x")
        path.with_name("run_spec.json").unlink()
        path = path.parent.rename(tmp_path / "mmlu-subject=cities,model=other_name") / path.name
        (block, *_) = read(path).measurements
        assert isinstance(block, Answers)
        assert (block.run.model, block.run.benchmark) == ("org/model", "mmlu")
        assert block.prompts.tasks
        assert block.prompts.tasks[0] == "cities"

    def test_statistics_alone_need_the_model_from_the_user(self, tmp_path: Path) -> None:
        put(tmp_path, FILES)
        path = tmp_path / "math:subject=sums,model=org_model/per_instance_stats.json.gz"
        with pytest.raises(BadInputError, match=r"does not name the model.*add --model NAME"):
            read(path)
        assert scores(read(path, model="m")) == {("math_equiv", "", "id1", 0): 1}

    def test_the_other_files_belong_to_the_statistics(self, tmp_path: Path) -> None:
        path, unknown = run(tmp_path), dict[str, str]()
        assert find_files([tmp_path], skipped=lambda file, reason: unknown.update({file.name: reason})) == [path]
        assert not unknown, "they are not called unknown"
        names = [file.name for file in read(path).files]
        assert names == [
            "per_instance_stats.json",
            "run_spec.json",
            "scenario.json",
            "scenario_state.json",
            "stats.json",
        ]


class TestErrors:
    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"instance_id": None}, r"entry 1: it has no instance_id"),
            ({"train_trial_index": -1}, r"entry 1: train_trial_index is not a whole number of at least 0"),
            ({"stats": {}}, r"entry 1: it has no list stats"),
            ({"stats": [{"name": {}}]}, r"entry 1 \(instance 'id1'\): a statistic without a name"),
            ({"stats": [stat("exact_match", 2.0, "test")]}, r"exact_match is 2, outside \[0, 1\]"),
            ({"stats": [stat("cider", 2**60, "test")]}, r"cider is 1152921504606846976, too large to be a score"),
            ({"stats": [stat("cider", 1e-300, "test") | {"mean": "x"}]}, r"cider is 'x', not a number"),
            (
                {"stats": [stat("f1_score", v, "test") for v in (0.5, 0.25)]},
                r"two scores for f1_score in the same trial: 0.5 and 0.25",
            ),
        ],
    )
    def test_entries_that_are_not_sound_are_named(self, tmp_path: Path, change: dict[str, Any], problem: str) -> None:
        path = run(tmp_path)
        path.write_text(json.dumps([{**JOINT[0], **change}, *JOINT[1:]]))
        with pytest.raises(BadInputError, match=problem):
            parse_file(path, ReadOptions(), format="helm")

    def test_what_precedes_the_damage_is_read(self, tmp_path: Path) -> None:
        path = run(tmp_path)
        path.write_bytes(path.read_bytes()[:-900])
        reading = parse_file(path, ReadOptions(), format="helm", partial=True)
        assert under(reading, "exact_match")[("id1", 0)] == 1
        assert "truncated" in reading.damage

    def test_an_unknown_condition_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SelectionError, match="condition is 'half'; choose from: None, full, answer_only"):
            read(run(tmp_path), condition="half")


class TestLaws:
    def test_it_does_not_matter_where_reading_pauses(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = run(tmp_path)
        whole = read(path)
        monkeypatch.setattr(run_folder, "CHUNK", 7)
        separate = read(path)
        assert scores(separate) == scores(whole)
        assert separate.warnings == whole.warnings
        assert output(separate) == output(whole)

    def test_blocks_do_not_grow_with_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(builder, "PROMPTS_PER_BLOCK", 50)
        n = 60
        entries = [{"instance_id": f"id{k}", "train_trial_index": 0, "stats": [stat("exact_match", k % 2, "test")]}
                   for k in range(n)]  # fmt: skip
        reading = read(run(tmp_path, entries, []))
        sizes = [len(block.values) for block in reading.measurements if isinstance(block, Scores)]
        assert sizes == [50, 10]


def test_every_real_run_gives_the_counts_and_means_that_it_reports(shared: Path) -> None:
    paths = find_files([shared / "samples" / "helm"])
    assert len(paths) == 3
    for path in paths:
        specification = json.loads((path.parent / "run_spec.json").read_text())
        entries = json.loads(path.read_text())
        splits = {stat["name"]["split"] for entry in entries for stat in entry["stats"]}
        for split in splits:
            reading = read(path, splits=(split,))
            variant = "" if split == "test" or splits == {split} else f"split {split}"
            requested = {item["instance_id"] for item in entries if item["stats"][0]["name"]["split"] == split}
            checked = 0
            for outcome in json.loads((path.parent / "stats.json").read_text()):
                name = outcome["name"]
                if (
                    name.get("perturbation")
                    or name["split"] != split
                    or describe_metric(name["name"], ReadOptions()) is None
                ):
                    continue
                result = under(reading, name["name"], variant)
                assert {key for key, _ in result} == requested
                assert np.mean(list(result.values())) == pytest.approx(outcome["mean"], rel=1e-12, abs=1e-300)
                checked += 1
            assert checked >= 6
            assert set(output(reading, variant)) == requested
            assert all(reported["text"] for reported in prompts(reading).values())
            assert not any("stats.json differs" in warning for warning in reading.warnings)
            (block, *_) = reading.measurements
            assert isinstance(block, Answers)
            assert block.run.model == specification["adapter_spec"]["model"]
