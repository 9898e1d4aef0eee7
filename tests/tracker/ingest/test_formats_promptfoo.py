"""Results of promptfoo: models, prompt templates, repeated tests, errors."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from sound.promptfoo import BRIEF, FILES, GPT, LLAMA, PLAIN, SEVERAL, failed, old, output, result

from tracker.errors import BadInputError
from tracker.ingest.formats import lm_eval, promptfoo
from tracker.ingest.measurement import Answers, ParsedFile, Prompts, ReadOptions, Scores
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.pipeline import ingest_file

Run = tuple[str, str]


def write(folder: Path, results: Sequence[Mapping[str, Any]], version: int = 3, **stats: Any) -> Path:
    path = folder / "out.json"
    path.write_text(json.dumps(output(results, version, **stats)))
    return path


def read(path: Path, **options: Any) -> ParsedFile:
    return parse_file(path, ReadOptions(**options))


def scores(reading: ParsedFile, metric: str) -> dict[Run, dict[tuple[str, int], float]]:
    """Scores by model and variant, and by text and trial; those that are missing are left out."""
    result: dict[Run, dict[tuple[str, int], float]] = {}
    for block in reading.measurements:
        if isinstance(block, Scores) and block.metric.name == metric:
            local = result.setdefault((block.run.model, block.run.variant), {})
            trials = np.broadcast_to(block.trials, block.values.shape).tolist()
            texts = [str(text) for text in block.prompts.text or ()]
            for text, trial, value in zip(texts, trials, block.values.tolist(), strict=True):
                if not math.isnan(value):
                    local[text, trial] = value
    return result


def prompts(reading: ParsedFile) -> Prompts:
    block = reading.measurements[0]
    assert isinstance(block, (Scores, Answers))
    return block.prompts


class TestOutputFormats:
    @pytest.mark.parametrize("name", ["lines.jsonl", "results.yaml"])
    def test_json_lines_and_yaml_hold_what_json_holds(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(FILES[name])
        reading, expected = read(tmp_path / name), read(write(tmp_path, SEVERAL))
        for metric in ("score", "pass", "tone"):
            assert scores(reading, metric) == scores(expected, metric)
        assert prompts(reading).answer == prompts(expected).answer

    def test_a_table_has_the_scores_of_each_provider(self, tmp_path: Path) -> None:
        (tmp_path / "table.csv").write_bytes(FILES["table.csv"])
        reading = read(tmp_path / "table.csv", benchmark="sums")
        assert scores(reading, "score") == {
            ("openai:gpt", ""): {("0+1", 0): 1.0, ("1+1", 0): 1.0},
            ("local:llama", ""): {("0+1", 0): 0.25},
        }
        assert scores(reading, "tone") == {("openai:gpt", ""): {("0+1", 0): 0.5, ("1+1", 0): 0.5}}
        assert "1 results are provider errors" in " ".join(reading.warnings)

    def test_a_table_of_earlier_versions_has_the_scores_of_its_cells(self, tmp_path: Path) -> None:
        (tmp_path / "old-table.csv").write_bytes(FILES["old-table.csv"])
        reading = read(tmp_path / "old-table.csv", benchmark="sums")
        assert scores(reading, "score") == {("openai:gpt", ""): {("0+1", 0): 1.0, ("1+1", 0): 0.25}}
        assert scores(reading, "pass") == {("openai:gpt", ""): {("0+1", 0): 1.0, ("1+1", 0): 0.0}}


class TestScores:
    def test_of_each_model_and_template_and_what_errors_is_missing(self, tmp_path: Path) -> None:
        reading = read(write(tmp_path, SEVERAL))
        right = {("0+1", 0): 1.0, ("1+1", 0): 1.0, ("2+1", 0): 1.0}
        assert scores(reading, "pass") == {
            ("openai:gpt", PLAIN[1]): {("0+1", 0): 1.0, ("1+1", 0): 0.0},
            ("local:llama", PLAIN[1]): {**right, ("2+1", 0): 0.0},
            ("openai:gpt", BRIEF[1]): right,
            ("local:llama", BRIEF[1]): dict.fromkeys(right, 0.0),
        }
        assert scores(reading, "score")["openai:gpt", PLAIN[1]] == {("0+1", 0): 1.0, ("1+1", 0): 0.25}
        assert set(scores(reading, "tone")["local:llama", PLAIN[1]].values()) == {0.5}
        assert reading.warnings == ["1 results are provider errors; they count as missing (--errored missing)"]

    def test_the_statistics_of_the_file_come_out(self, tmp_path: Path) -> None:
        passed = scores(read(write(tmp_path, SEVERAL)), "pass")
        stats = output(SEVERAL)["results"]["stats"]
        values = [value for of_run in passed.values() for value in of_run.values()]
        assert (values.count(1.0), values.count(0.0)) == (stats["successes"], stats["failures"])
        assert len(SEVERAL) - len(values) == stats["errors"]

    def test_statistics_that_the_results_contradict_are_reported(self, tmp_path: Path) -> None:
        reading = read(write(tmp_path, [result(0), result(1)], successes=7))
        assert reading.warnings == [
            "the file reports the number of successes as 7, but its scores give 2; the run is unverified"
        ]

    def test_an_error_is_wrong_where_the_user_reports_so(self, tmp_path: Path) -> None:
        reading = read(write(tmp_path, [result(0), failed(1)]), errored="wrong")
        for metric in ("pass", "score"):
            assert scores(reading, metric) == {("openai:gpt", ""): {("0+1", 0): 1.0, ("1+1", 0): 0.0}}

    @pytest.mark.parametrize(("counts_as", "n"), [(None, 2), ("wrong", 2), ("missing", 1)])
    def test_an_empty_answer_is_missing_where_the_user_reports_so(
        self, tmp_path: Path, counts_as: str | None, n: int
    ) -> None:
        rows = [result(0), result(1, False, response={"output": " "})]
        reading = read(write(tmp_path, rows), empty=counts_as)
        assert len(scores(reading, "pass")["openai:gpt", ""]) == n
        assert any("1 answers are empty" in warning for warning in reading.warnings)

    def test_version_2_reports_the_same_of_what_it_holds(self, tmp_path: Path) -> None:
        new = read(write(tmp_path, SEVERAL))
        of_old = read(write(tmp_path, [*map(old, SEVERAL)], 2))
        for metric in ("pass", "score"):
            assert scores(new, metric) == scores(of_old, metric)
        assert new.warnings == of_old.warnings

    def test_bounds_are_those_of_a_share_unless_the_file_has_other_scores(self, tmp_path: Path) -> None:
        def bounds(value: float) -> tuple[Any, Any]:
            blocks = read(write(tmp_path, [result(0, score=value)])).measurements
            (item,) = [b.metric for b in blocks if isinstance(b, Scores) and b.metric.name == "score"]
            return item.lower, item.upper

        assert bounds(0.5) == (0.0, 1.0)
        assert bounds(5) == (None, None)

    def test_the_user_names_the_score(self, tmp_path: Path) -> None:
        names = {b.metric.name for b in read(write(tmp_path, [result()]), metric="accuracy").measurements
                 if isinstance(b, Scores)}  # fmt: skip
        assert names == {"accuracy", "pass", "tone"}

    @pytest.mark.parametrize("value", [2**60, "1", [1], {"a": 1}])
    def test_what_is_no_score_is_missing_and_reported(self, tmp_path: Path, value: Any) -> None:
        reading = read(write(tmp_path, [result(0), result(1, score=value)]))
        assert scores(reading, "score") == {("openai:gpt", ""): {("0+1", 0): 1.0}}
        assert "score: 1 values that are not numbers were skipped" in reading.warnings


class TestTrials:
    def test_a_repeated_test_is_one_prompt_in_the_order_of_the_tests(self, tmp_path: Path) -> None:
        same = {"vars": {"sum": "0+1"}, "testCase": result(0)["testCase"]}
        rows = [result(2, **same), result(0), result(1, False, **same), result(3)]
        assert scores(read(write(tmp_path, rows)), "pass") == {
            ("openai:gpt", ""): {("0+1", 0): 1.0, ("0+1", 1): 0.0, ("0+1", 2): 1.0, ("3+1", 0): 1.0}
        }

    def test_tests_that_assert_otherwise_are_prompts_of_their_own(self, tmp_path: Path) -> None:
        case = {"assert": [{"type": "contains", "value": "1"}]}
        reading = read(write(tmp_path, [result(0), result(1, vars={"sum": "0+1"}, testCase=case)]))
        assert len(set(prompts(reading).keys)) == 2

    def test_of_a_test_that_was_tried_again_the_later_result_counts(self, tmp_path: Path) -> None:
        reading = read(write(tmp_path, [failed(0), result(1), result(0)], errors=0, successes=3))
        assert len(scores(reading, "pass")["openai:gpt", ""]) == 2
        assert "1 results are duplicates of the same test and column; the last one counts" in reading.warnings


class TestRuns:
    def test_report_what_the_file_reports(self, tmp_path: Path) -> None:
        block = read(write(tmp_path, [result()])).measurements[0]
        assert isinstance(block, Scores)
        run = block.run
        assert (run.model, run.benchmark, run.variant) == ("openai:gpt", "sums", "")
        assert run.label == "eval-Xyz-2026-01-02T03:04:05"
        assert run.started == datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
        assert "hidden" not in str(run.settings)
        assert promptfoo.harness_name(tmp_path / "out.json") == "promptfoo 0.120.1"

    @pytest.mark.parametrize(
        ("provider", "name"),
        [("openai:gpt", "openai:gpt"), ({"label": "Mine"}, "Mine"), ({"id": "a", "label": "b"}, "a")],
    )
    def test_the_model_is_the_provider_or_else_its_label(self, tmp_path: Path, provider: Any, name: str) -> None:
        assert set(scores(read(write(tmp_path, [result(provider=provider)])), "pass")) == {(name, "")}

    def test_one_provider_under_two_labels_is_two_models_and_one_column_twice_is_distinguished(
        self, tmp_path: Path
    ) -> None:
        rows = [
            result(provider={"id": "a", "label": label}, column=n) for n, label in enumerate(["cold", "hot", "hot"])
        ]
        assert set(scores(read(write(tmp_path, rows)), "pass")) == {("cold", ""), ("hot", ""), ("hot #2", "")}

    def test_templates_of_one_label_are_distinguished(self, tmp_path: Path) -> None:
        rows = [result(template=(f"p{n}", "Ask\nthis"), column=n) for n in range(2)]
        assert {variant for _, variant in scores(read(write(tmp_path, rows)), "pass")} == {"Ask", "Ask #2"}

    def test_a_model_named_by_the_user_cannot_be_two(self, tmp_path: Path) -> None:
        assert set(scores(read(write(tmp_path, [result()]), model="m"), "pass")) == {("m", "")}
        with pytest.raises(BadInputError, match="holds 2 models"):
            read(write(tmp_path, SEVERAL), model="m")

    def test_a_file_that_names_no_model_requests_for_it(self, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match="add --model NAME"):
            read(write(tmp_path, [result(provider={})]))


class TestPrompts:
    def test_text_gold_answer_and_details(self, tmp_path: Path) -> None:
        rows = [
            result(0, vars={"sum": "0+1"}),
            result(1, vars={"b": "two", "a": 1, "_hidden": "x"}, testCase={}),
            result(2, vars={}, testCase={"assert": [{"type": "equals", "value": 1}, {"type": "equals", "value": 2}]}),
        ]
        outcome = prompts(read(write(tmp_path, rows)))
        assert outcome.text == ["0+1", "a: 1\nb: two", "What is 2+1?"]
        assert outcome.answer == ["1", None, None]
        assert outcome.details == [{"level": 1}, None, None]

    def test_what_has_no_variables_has_no_text_that_all_templates_share(self, tmp_path: Path) -> None:
        rows = [result(vars={}, testCase={}, template=item, column=n) for n, item in enumerate((PLAIN, BRIEF))]
        assert prompts(read(write(tmp_path, rows))).text == [None]

    def test_answers_are_the_outputs(self, tmp_path: Path) -> None:
        rows = [result(0), result(1, response={"output": {"b": 1}}), result(2, response={"output": ""}), failed(3)]
        (block,) = [
            measurement for measurement in read(write(tmp_path, rows)).measurements if isinstance(measurement, Answers)
        ]
        assert list(block.text) == ["1", '{"b": 1}', None, None]
        assert list(block.status or ()) == ["ok", "ok", "empty", "error"]

    def test_are_the_same_for_all_models_and_templates(self, store: sa.Engine, tmp_path: Path) -> None:
        stored = ingest_file(store, write(tmp_path, SEVERAL)).changes
        assert stored.n_prompts_new == 3
        with store.connect() as connection:
            variants = connection.execute(sa.text("SELECT DISTINCT variant FROM run ORDER BY variant")).all()
        assert [row[0] for row in variants] == sorted([BRIEF[1], PLAIN[1]])


class TestErrors:
    @pytest.mark.parametrize(
        ("rows", "words"), [([3], "result 1 is not a result"), ([result(), []], "result 2 is not a result")]
    )
    def test_what_is_no_result_is_refused(self, tmp_path: Path, rows: list[Any], words: str) -> None:
        path = tmp_path / "x.json"
        path.write_text(json.dumps({"results": {"version": 3, "results": rows}}))
        with pytest.raises(BadInputError, match=words):
            read(path)

    def test_what_precedes_the_damage_is_yielded(self, tmp_path: Path) -> None:
        path = write(tmp_path, [result(0), result(1), result(2)])
        text = path.read_text()
        path.write_text(text[: text.index('"testIdx": 2')])
        blocks = promptfoo.read(path, ReadOptions())
        assert [len(item.values) for item in itertools.islice(blocks, 3) if isinstance(item, Scores)] == [2, 2, 2]
        with pytest.raises(BadInputError, match="truncated"):
            list(blocks)

    def test_results_of_old_versions_are_not_ingested_for_those_of_another_harness(self, tmp_path: Path) -> None:
        path = tmp_path / "results.json"
        result = output([*map(old, SEVERAL)], 2)
        path.write_text(json.dumps({"results": result["results"], "config": result["config"]}))
        assert lm_eval.mismatch_reason(path, ReadOptions()) is None  # by its name and start it could be
        assert read(path).format == "promptfoo"

    def test_blocks_do_not_grow_with_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracker.ingest.formats.promptfoo.PROMPTS_PER_BLOCK", 2)
        rows = [result(n, provider=item, column=c) for n in range(3) for c, item in enumerate((GPT, LLAMA))]
        reading = read(write(tmp_path, rows))
        assert [len(b.prompts) for b in reading.measurements if isinstance(b, Scores) and b.metric.name == "pass"] == [
            1
        ] * 6
        assert {len(of_run) for of_run in scores(reading, "pass").values()} == {3}


class TestReportedNumbers:
    @pytest.fixture
    def content(self) -> dict[str, Any]:
        """Two results and an error of a column, with named scores of different weights."""
        rows = [result(), result(test=1, success=False, score=0.25), failed(test=2)]
        for row, value, weight in ((rows[0], 1, 3), (rows[1], 0.5, 1)):
            row["namedScores"] = {"right": value}
            row["gradingResult"] = {"namedScores": {"right": value}, "namedScoreWeights": {"right": weight}}
        content = output(rows, successes=1, failures=1, errors=1)
        metrics = {
            "score": 1.25, "testPassCount": 1, "testFailCount": 1, "testErrorCount": 1,
            "namedScores": {"right": 3.5}, "namedScoreWeights": {"right": 4},
        }  # fmt: skip
        content["results"]["prompts"] = [{"metrics": metrics}]
        return content

    def test_equal_numbers_are_no_difference(self, tmp_path: Path, content: dict[str, Any]) -> None:
        (tmp_path / "out.json").write_text(json.dumps(content))
        assert not read(tmp_path / "out.json").differences

    def test_a_named_score_of_weight_zero_adds_nothing_to_the_sum(
        self, tmp_path: Path, content: dict[str, Any]
    ) -> None:
        content["results"]["results"][1]["gradingResult"]["namedScoreWeights"]["right"] = 0
        for total, n_differences in ((3, 0), (3.5, 1)):
            content["results"]["prompts"][0]["metrics"]["namedScores"]["right"] = total
            (tmp_path / "out.json").write_text(json.dumps(content))
            assert len(read(tmp_path / "out.json").differences) == n_differences

    @pytest.mark.parametrize("key", ["score", "testPassCount", "testFailCount", "testErrorCount", "right", "errors"])
    def test_a_changed_number_is_named(self, tmp_path: Path, content: dict[str, Any], key: str) -> None:
        metrics = content["results"]["prompts"][0]["metrics"]
        place = {"right": metrics["namedScores"], "errors": content["results"]["stats"]}.get(key, metrics)
        place[key] += 1
        (tmp_path / "out.json").write_text(json.dumps(content))
        (difference,) = read(tmp_path / "out.json").differences
        assert {"testErrorCount": "errors"}.get(key, key) in difference.text
