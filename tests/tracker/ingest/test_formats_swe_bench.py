"""Reports of SWE-bench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sound.swe_bench import EMPTY, ERROR, FILES, REPORT

from tracker.errors import BadInputError, UnknownFormatError
from tracker.ingest.formats import swe_bench
from tracker.ingest.measurement import Answers, ParsedFile, ReadOptions, Scores
from tracker.ingest.parsing.detection import parse_file

NAME = next(iter(FILES))


def read(folder: Path, name: str = NAME, *, options: ReadOptions | None = None, **changes: Any) -> ParsedFile:
    result = {field: value for field, value in {**REPORT, **changes}.items() if value is not None}
    (folder / name).write_text(json.dumps(result))
    return parse_file(folder / name, options or ReadOptions())


def scores(reading: ParsedFile) -> dict[str, float]:
    (block,) = (block for block in reading.measurements if isinstance(block, Scores))
    return dict(zip(block.prompts.keys, block.values.tolist(), strict=True))


class TestOutcomes:
    def test_resolved_is_one_unresolved_and_an_empty_patch_are_zero_and_the_rest_is_missing(
        self, tmp_path: Path
    ) -> None:
        result = scores(read(tmp_path))
        assert result.pop("org__tool-1") == result.pop("org__tool-2") == 1
        assert result.pop("org__tool-3") == result.pop("a__b__c-4") == result.pop(EMPTY[0]) == 0
        assert len(result) == 2
        assert np.isnan(list(result.values())).all()

    def test_errors_can_count_as_wrong_and_empty_patches_as_missing_and_warnings_report_so(
        self, tmp_path: Path
    ) -> None:
        reading = read(tmp_path, options=ReadOptions(errored="wrong", empty="missing"))
        result = scores(reading)
        assert result[ERROR[0]] == 0
        assert np.isnan(result[EMPTY[0]])
        outcome = " ".join(reading.warnings)
        assert "1 evaluation failed: counted as wrong" in outcome
        assert "1 patch is empty: counted as missing" in outcome

    def test_what_gave_no_score_is_distinguished_by_the_status_of_its_answer(self, tmp_path: Path) -> None:
        (block,) = (block for block in read(tmp_path).measurements if isinstance(block, Answers))
        assert block.predicted is not None
        assert block.status is not None
        rows = np.flatnonzero(block.predicted).tolist()
        assert {block.prompts.keys[row]: block.status[row] for row in rows} == {EMPTY[0]: "empty", ERROR[0]: "error"}

    def test_what_was_submitted_and_neither_completed_nor_failed_is_missing(self, tmp_path: Path) -> None:
        result = scores(read(tmp_path, incomplete_ids=None, incomplete_instances=None,
                            submitted_ids=[*REPORT["submitted_ids"], "org__tool-7"], submitted_instances=None))  # type: ignore[misc]  # fmt: skip
        assert np.isnan(result["org__tool-7"])


class TestNames:
    def test_the_file_is_labelled_after_model_and_run_with_two_underscores_for_a_slash(self, tmp_path: Path) -> None:
        (block, _) = read(tmp_path).measurements
        assert isinstance(block, Scores)
        assert (block.run.model, block.run.label, block.run.benchmark) == ("org/model-1.5", "run7", "swe-bench")

    def test_reports_of_multi_swe_bench_are_named_after_their_submission(self, tmp_path: Path) -> None:
        folder = tmp_path / "20240825_agent_model-5" / "results"
        folder.mkdir(parents=True)
        report = {**REPORT, "resolved": REPORT["resolved_ids"], "resolved_ids": None}
        parsed = read(folder, "results.json", **report)
        (block,) = (block for block in parsed.measurements if isinstance(block, Scores))
        assert (block.run.model, block.run.label) == ("agent_model-5", "20240825_agent_model-5")
        assert scores(parsed) == pytest.approx(scores(read(tmp_path)), nan_ok=True)

    def test_the_task_is_the_repository(self, tmp_path: Path) -> None:
        (block, _) = read(tmp_path).measurements
        assert isinstance(block, Scores)
        assert dict(zip(block.prompts.keys, block.prompts.tasks or (), strict=True))[EMPTY[0]] == "other/lib-x"

    def test_without_a_model_in_the_name_the_option_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match="--model"):
            read(tmp_path, "report.json")
        (block, _) = read(tmp_path, "report.json", options=ReadOptions(model="m")).measurements
        assert isinstance(block, Scores)
        assert (block.run.model, block.run.label) == ("m", "")


class TestErrors:
    @pytest.mark.parametrize(
        ("changes", "output"),
        [
            ({"resolved_instances": 3}, "resolved_instances is 3, but resolved_ids lists 2"),
            ({"unresolved_ids": ["org__tool-1", "a__b__c-4"]}, "org__tool-1 is listed as resolved and as unresolved"),
            ({"error_ids": "all"}, "error_ids is not a list of names"),
            ({"empty_patch_ids": EMPTY * 2, "empty_patch_instances": 2}, "lists an instance twice"),
            ({"completed_ids": ["x__y-1"], "completed_instances": 1}, "neither resolved nor unresolved"),
        ],
    )
    def test_a_report_that_contradicts_itself_is_refused(
        self, tmp_path: Path, changes: dict[str, Any], output: str
    ) -> None:
        with pytest.raises(BadInputError, match=output):
            read(tmp_path, **changes)

    def test_a_total_of_more_instances_than_are_listed_is_reported(self, tmp_path: Path) -> None:
        assert "total_instances is 500, but the lists name 7" in " ".join(read(tmp_path, total_instances=500).warnings)

    def test_a_report_on_one_instance_is_rejected_with_the_file_to_ingest_instead(self, tmp_path: Path) -> None:
        path = tmp_path / "report.json"
        path.write_text(json.dumps({"org__tool-1": {"patch_is_None": False, "resolved": True}}))
        with pytest.raises(UnknownFormatError, match="ingest the report on all of them"):
            parse_file(path, ReadOptions())


def test_every_real_report_gives_the_counts_that_it_reports(shared: Path) -> None:
    paths = sorted((shared / "samples" / "swebench").rglob("*.json"))
    assert paths
    for path in paths:
        assert swe_bench.mismatch_reason(path, ReadOptions()) is None
        reading, result = parse_file(path, ReadOptions()), json.loads(path.read_text())
        values = np.array(list(scores(reading).values()))
        assert len(values) == result["total_instances"]
        assert np.nansum(values) == result["resolved_instances"]
        assert (values == 0).sum() == result["unresolved_instances"] + result["empty_patch_instances"]
