"""Formats of published leaderboards and their judges: each gives the numbers that the leaderboard publishes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from sound import (
    alpaca_eval,
    alpaca_eval_leaderboard,
    arena_hard,
    bfcl,
    live_bench,
    live_code_bench,
    mteb,
    swe_bench_experiments,
)

from tracker.errors import BadInputError
from tracker.ingest.measurement import Answers, ParsedFile, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.detection import find_files, parse_file
from tracker.ingest.parsing.recognition import check_formats


def read(folder: Path, files: dict[str, bytes], name: str = "", options: ReadOptions | None = None) -> ParsedFile:
    """Lay out the files of a format, and read the first or the named one."""
    for file, data in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
    return parse_file(folder / (name or next(iter(files))), options or ReadOptions())


def scores(parsed: ParsedFile) -> dict[tuple[str, str, int], float]:
    """Scores by model, prompt and trial."""
    return {
        (block.run.model, key, block.trials if isinstance(block.trials, int) else int(block.trials[row])): value
        for block in parsed.measurements
        if isinstance(block, Scores)
        for row, (key, value) in enumerate(zip(block.prompts.keys, block.values.tolist(), strict=True))
        if not math.isnan(value)
    }


def first_scores(parsed: ParsedFile) -> Scores:
    return next(block for block in parsed.measurements if isinstance(block, Scores))


def task_scores(parsed: ParsedFile) -> TaskScores:
    (block,) = parsed.measurements
    assert isinstance(block, TaskScores)
    return block


class TestAlpacaEval:
    def test_a_preference_is_a_win_rate_and_draws_are_one_half(self, tmp_path: Path) -> None:
        block = first_scores(read(tmp_path, alpaca_eval.FILES))
        assert block.values.tolist() == pytest.approx([0.7328323962, 0, 1, 0.5, 0.5, 0.0000001])
        assert (block.run.model, block.run.benchmark, block.metric.name) == ("model-9b", "alpaca_eval_2", "win_rate")
        assert block.prompts.tasks == ["helpful_base"] * 6
        assert (block.prompts.text or [])[0] == "Question 0?"

    def test_other_judges_and_baselines_are_never_mixed_with_those_of_the_leaderboard(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, alpaca_eval.FILES, "old/annotations.json", ReadOptions(errored="wrong"))
        seen = {(block.run.benchmark, block.metric.name) for block in parsed.measurements if isinstance(block, Scores)}
        assert seen == {("alpaca_eval", "win_rate (claude)"), ("alpaca_eval_2", "win_rate")}
        assert "1 annotation has no preference: counted as wrong" in " ".join(parsed.warnings)

    def test_an_instruction_that_occurs_twice_is_two_prompts(self, tmp_path: Path) -> None:
        twice = [alpaca_eval.annotation("Why?", 2.0), alpaca_eval.annotation("Why?", 1.0)]
        parsed = read(tmp_path, {"annotations.json": json.dumps(twice).encode()})
        assert sorted(scores(parsed).values()) == [0, 1]

    def test_two_outputs_for_an_instruction_are_an_error(self, tmp_path: Path) -> None:
        annotations = [
            alpaca_eval.annotation("Why?", 2.0, annotator=judge, output_2=output)
            for judge, output in (("claude", "because"), ("gpt4", "so"))
        ]
        with pytest.raises(BadInputError, match="annotation 2: two answers in the same trial: 'because' and 'so'"):
            read(tmp_path, {"annotations.json": json.dumps(annotations).encode()})


class TestAlpacaEvalLeaderboard:
    def test_win_rates_are_metrics_of_one_task_as_proportions(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, alpaca_eval_leaderboard.FILES)
        blocks = [block for block in parsed.measurements if isinstance(block, TaskScores)]
        values = {(block.run.model, block.metric.name): block.values.item() for block in blocks}
        assert values["model-1", "win_rate"] == pytest.approx(0.769)
        assert values["model-1", "length_controlled_winrate"] == pytest.approx(0.864)
        assert len(values) == 6
        assert {(block.run.benchmark, *block.tasks, *(block.n_prompts or ())) for block in blocks} == {
            ("alpaca_eval_2", "alpaca_eval_2", 805)
        }
        assert blocks[0].stderr is not None
        assert blocks[0].stderr.item() == pytest.approx(0.009)

    def test_annotators_have_separate_metrics_and_lines_of_one_model_separate_runs(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, alpaca_eval_leaderboard.FILES, "data_AlpacaEval/claude_leaderboard.csv")
        blocks = [block for block in parsed.measurements if isinstance(block, TaskScores)]
        assert {block.metric.name for block in blocks} == {"win_rate (claude)", "length_controlled_winrate (claude)"}
        assert {block.run.label for block in blocks} == {"", "line 3"}


class TestArenaHard:
    def test_a_strong_verdict_counts_three_times_and_sides_are_swapped(self, tmp_path: Path) -> None:
        name = "arena-hard-v2.0/model_judgment/judge-1/model-9b.jsonl"
        parsed = read(tmp_path, arena_hard.FILES, name)
        assert scores(parsed) == pytest.approx(
            {("model-9b", "u1", 0): 1 / 4, ("model-9b", "u2", 0): 3 / 4, ("model-9b", "u3", 0): 1.0}
        )
        # As in the leaderboard: (0, 0, 0, 1), (1, .5), (1, 1, 1, 1, 1, 1).
        assert "Arena-Hard's own score is 70.8%" in " ".join(parsed.warnings)
        assert "1 prompt has no verdict: counted as missing" in " ".join(parsed.warnings)
        block = first_scores(parsed)
        assert (block.run.benchmark, (block.prompts.text or [])[0]) == ("arena-hard-v2.0", "Prove it.")

    def test_version_0_1_has_its_baseline_and_its_questions(self, tmp_path: Path) -> None:
        block = first_scores(read(tmp_path, arena_hard.FILES, "arena-hard-v0.1/model_judgment/judge-1/old-model.jsonl"))
        assert block.values.tolist() == [0.5]
        assert block.run.settings["baseline"] == "gpt-4-0314"
        assert block.prompts.text == ["Write it."]

    def test_an_unknown_verdict_is_an_error(self, tmp_path: Path) -> None:
        row = json.dumps(arena_hard.judgment("u", "A>B", "C>A")).encode()
        with pytest.raises(BadInputError, match="line 1: unknown verdict 'C>A'"):
            read(tmp_path, {"model.jsonl": row})


class TestLiveBench:
    def test_every_model_has_its_scores_and_the_latest_judgment_counts(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, live_bench.FILES, "math/math_comp/model_judgment/ground_truth_judgment.jsonl")
        assert scores(parsed) == {
            ("model-1", "q1", 0): 1, ("model-1", "q2", 0): 1, ("model-2", "q1", 0): 0.25, ("model-2", "q2", 0): 1,
        }  # fmt: skip
        assert "1 judgments are superseded" in " ".join(parsed.warnings)
        block = first_scores(parsed)
        assert (block.prompts.tasks, block.prompts.text) == (["math_comp"] * 2, ["1 + 1?", None])
        assert block.prompts.details == [{"category": "math"}] * 2


class TestLiveCodeBench:
    def test_the_mean_over_problems_is_pass_at_1(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, live_code_bench.FILES)
        by_trial = scores(parsed)
        assert by_trial["Model-9B", "2727", 0] == 1
        assert math.fsum(by_trial.values()) / len(by_trial) == pytest.approx(4 / 9)
        assert not parsed.warnings
        assert first_scores(parsed).run.settings == {"temperature": "0.2", "n": "3"}

    def test_scenarios_are_separate_benchmarks(self, tmp_path: Path) -> None:
        block = first_scores(
            read(tmp_path, live_code_bench.FILES, "output/Model-9B/testoutputprediction_1_0.0_cot_eval_all.json")
        )
        assert (block.run.benchmark, block.run.variant) == ("livecodebench_testoutputprediction", "chain of thought")
        assert block.prompts.keys == ["1/0", "1/1"]

    def test_the_summary_beside_it_names_the_file_to_import(self, tmp_path: Path) -> None:
        path = tmp_path / "x_eval.json"
        path.write_text('[{"pass@1": 0.5, "detail": {}}, {}, []]')
        assert "ingest the file beside it" in (check_formats(path, ReadOptions())[0].reason or "")


class TestBfcl:
    def test_cases_that_did_not_fail_are_solved(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, bfcl.FILES)
        values = {key: value for (_, key, _), value in scores(parsed).items()}
        assert values == {"simple_0": 1, "simple_1": 0, "simple_2": 1, "simple_3": 1}
        block = first_scores(parsed)
        assert (block.run.model, block.run.benchmark) == ("model-9b-FC", "bfcl_v4")
        assert set(block.prompts.tasks or ()) == {"simple"}

    def test_one_id_may_name_two_cases_that_the_response_distinguishes(self, tmp_path: Path) -> None:
        name, results = list(bfcl.FILES)[:2]
        rows = [{"id": case, "result": result} for case, result in (("a", "x"), ("b", "x"), ("b", "y"), ("c", "x"))]
        head = {"accuracy": 0.75, "correct_count": 3, "total_count": 4}
        failed = {**bfcl.FAILED, "id": "b", "model_result": "y"}
        parsed = read(tmp_path, {name: bfcl.lines([head, failed]), results: bfcl.lines(rows)}, name)
        values = {key: value for (_, key, _), value in scores(parsed).items()}
        assert values == {"a": 1, "b": 1, "b#2": 0, "c": 1}
        twice = bfcl.lines([head, *[{**failed, "id": "c"}] * 2])
        with pytest.raises(BadInputError, match="c failed more often than the result file lists it"):
            read(tmp_path, {name: twice, results: bfcl.lines(rows)}, name)

    def test_without_results_the_accuracy_is_a_task_score(self, tmp_path: Path) -> None:
        block = task_scores(read(tmp_path, bfcl.FILES, "score/model-9b-FC/BFCL_v3_live_multiple_score.json"))
        assert (block.tasks, block.values.tolist(), block.n_prompts) == (["live_multiple"], [0.5], [2])

    @pytest.mark.parametrize(
        ("head", "message"),
        [
            ({"accuracy": 0.75, "correct_count": 3, "total_count": 5}, "total_count is 5, but .* has 4"),
            ({"accuracy": "?", "correct_count": 3, "total_count": 4}, "no accuracy"),
        ],
    )
    def test_files_that_contradict_each_other_are_errors(self, tmp_path: Path, head: dict, message: str) -> None:
        name = next(iter(bfcl.FILES))
        with pytest.raises(BadInputError, match=message):
            read(tmp_path, {**bfcl.FILES, name: bfcl.lines([head, bfcl.FAILED])}, name)

    def test_an_accuracy_that_differs_is_reported(self, tmp_path: Path) -> None:
        name = next(iter(bfcl.FILES))
        head = {"accuracy": 0.99, "correct_count": 3, "total_count": 4}
        parsed = read(tmp_path, {**bfcl.FILES, name: bfcl.lines([head, bfcl.FAILED])}, name)
        assert all(value in parsed.differences[0].text for value in ("0.99", "0.75"))


class TestMteb:
    def test_a_task_is_the_mean_of_the_subsets_of_split_test(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, mteb.FILES, f"{mteb.FOLDER}/Massive.json")
        block = task_scores(parsed)
        assert (block.tasks, block.values.tolist()) == (["Massive"], [0.4])
        assert (block.run.model, block.run.label) == ("org/model", "8b32")
        assert block.run.model_facts == {"parameters": 22713216, "open_weights": True}
        assert "read the split test, not validation" in " ".join(parsed.warnings)

    def test_split_selects_and_no_split_test_must_be_selected(self, tmp_path: Path) -> None:
        block = task_scores(
            read(tmp_path, mteb.FILES, f"{mteb.FOLDER}/Massive.json", ReadOptions(splits=("validation",)))
        )
        assert block.values.tolist() == pytest.approx([0.15])
        assert block.run.variant == "split validation"
        path = tmp_path / "x.json"
        path.write_text(json.dumps(mteb.result("T", dev=[1.0], train=[0.5])))
        with pytest.raises(BadInputError, match="--split"):
            parse_file(path, ReadOptions())

    def test_a_folder_of_results_has_one_run_of_all_tasks(self, tmp_path: Path) -> None:
        read(tmp_path, mteb.FILES)
        files = find_files([tmp_path / mteb.FOLDER], ReadOptions())
        assert [file.name for file in files] == ["Banking77.json", "Massive.json"]
        assert len({task_scores(parse_file(file, ReadOptions())).run for file in files}) == 1


class TestSweBenchExperiments:
    def test_predictions_name_the_unresolved_instances_and_all_count_as_on_the_leaderboard(
        self, tmp_path: Path
    ) -> None:
        parsed = read(tmp_path, swe_bench_experiments.FILES)
        values = {key: value for (_, key, _), value in scores(parsed).items()}
        assert values == {"org__tool-1": 1, "org__tool-2": 1, "org__tool-3": 0, "a__b__c-4": 0, "other__lib-x-5": 0}
        run = first_scores(parsed).run
        assert (run.model, run.benchmark) == ("Agent 1.0 (Model 4)", "swe-bench-verified")
        assert run.label == "20250227_agent_model4"
        assert str(run.started)[:10] == "2025-02-27"
        assert "495 of 500 instances are in no list" in " ".join(parsed.warnings)
        statuses = [block.status for block in parsed.measurements if isinstance(block, Answers)]
        assert {status for row in statuses for status in row or ()} == {"ok", "empty", "error"}

    def test_without_predictions_the_resolved_share_of_the_split_is_a_task_score(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, swe_bench_experiments.FILES, f"{swe_bench_experiments.SECOND}/results/results.json")
        block = task_scores(parsed)
        assert (block.run.model, block.tasks, block.n_prompts) == ("RAG + Model 2", ["swe-bench-lite"], [300])
        assert block.values.tolist() == [2 / 300]

    def test_details_of_instances_have_a_score_each(self, tmp_path: Path) -> None:
        path = tmp_path / "bash-only" / "20250720_mini_x" / "per_instance_details.json"
        path.parent.mkdir(parents=True)
        path.write_text('{"org__tool-1": {"cost": 1, "resolved": true}, "org__tool-2": {"cost": 2, "resolved": false}}')
        (block,) = parse_file(path, ReadOptions()).measurements
        assert isinstance(block, Scores)
        assert dict(zip(block.prompts.keys, block.values.tolist(), strict=True)) == {"org__tool-1": 1, "org__tool-2": 0}
        assert (block.run.model, block.run.benchmark) == ("mini_x", "swe-bench-bash-only")

    def test_an_unknown_number_of_instances_is_an_error_that_names_the_missing_file(self, tmp_path: Path) -> None:
        data = json.dumps(swe_bench_experiments.RESULTS).encode()
        with pytest.raises(BadInputError, match=r"Add all_preds\.jsonl"):
            read(tmp_path, {"mine/results/results.json": data})

    def test_an_instance_in_two_lists_is_an_error(self, tmp_path: Path) -> None:
        wrong = {**swe_bench_experiments.RESULTS, "no_logs": swe_bench_experiments.RESOLVED}
        name = next(iter(swe_bench_experiments.FILES))
        with pytest.raises(BadInputError, match="listed as resolved and as failed"):
            read(tmp_path, {**swe_bench_experiments.FILES, name: json.dumps(wrong).encode()})
