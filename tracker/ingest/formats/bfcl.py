"""Score files of BFCL: score/<model>/…/BFCL_v4_<category>_score.json, with the failed test cases.

Test cases of the result file beside it that did not fail are solved. Without that file, the accuracy is a task score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import BlockBuilder
from tracker.ingest.files.file_summary import first_keys
from tracker.ingest.files.json_files import iterate_json_lines
from tracker.ingest.files.json_values import count, first_bytes, identity, mapping, number
from tracker.ingest.files.mismatch import first_missing_key
from tracker.ingest.measurement import Measurement, ReadOptions, RunDescription, metric_description
from tracker.ingest.reported_score import ReportedScore

SPECIFICITY = 30
RECOGNIZED_BY = "*_score.json that begins with accuracy, correct_count and total_count"
NAMESPACE = "bfcl"
NAME = re.compile(r"(?:BFCL_(?P<version>v\d+)_)?(?P<category>.+)_score\.json(?:\.gz)?")
FIELDS = ("accuracy", "correct_count", "total_count")
SCORES, RESULTS = "score", "result"
"""Folders of the score files, and of the result files in the same order."""


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a score file of BFCL."""
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    missing = first_missing_key(first_keys(data), FIELDS)
    return "the name does not end in _score.json" if missing is None and not NAME.fullmatch(path.name) else missing


def companion_files(path: Path) -> Sequence[Path]:
    """Return the result file with all test cases; empty if it is missing."""
    parts = list(path.absolute().parts)
    if SCORES not in parts[:-1]:
        return ()
    place = len(parts) - 2 - parts[:-1][::-1].index(SCORES)
    parts[place] = RESULTS
    parts[-1] = re.sub(r"_score(?=\.json)", "_result", parts[-1])
    results = Path(*parts)
    return (results,) if results.is_file() else ()


def harness_name(path: Path) -> str | None:
    """Return the program with the version of its data."""
    match = NAME.fullmatch(path.name)
    return f"bfcl {match['version']}" if match and match["version"] else "bfcl"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield a score for each test case, or the accuracy as a task score.

    Raises:
        BadInputError: a file is invalid, or they contradict each other.
    """
    rows = iterate_json_lines(path)
    head = mapping(next(rows, (0, None))[1])
    accuracy, total = number(head.get("accuracy")), count(head.get("total_count"))
    if accuracy is None or total is None:
        raise BadInputError(path, "its first line has no accuracy and total_count.")
    run, category = _run(path, options)
    metric = metric_description("accuracy")
    failures = [(_case(path, line, row), mapping(row)) for line, row in rows]
    results = companion_files(path)
    yield ReportedScore(run=run, metric=metric, tasks=(category,), value=accuracy, n_prompts=total)
    if not results:
        yield f"the result file is missing, so test cases are unknown: stored the accuracy of {total:,} as a task score"
        return
    cases: dict[str, list[Any]] = {}
    for line, row in iterate_json_lines(results[0]):
        cases.setdefault(_case(results[0], line, row), []).append(mapping(row).get("result"))
    if unknown := sorted({case for case, _ in failures} - cases.keys()):
        raise BadInputError(path, f"{unknown[0]} failed, but {results[0].name} has no such test case.")
    if (n_cases := sum(map(len, cases.values()))) != total:
        raise BadInputError(path, f"total_count is {total:,}, but {results[0].name} has {n_cases:,} test cases.")
    failed = _failed_cases(path, failures, cases)
    builder = BlockBuilder(run, NAMESPACE, path.name)
    for case, place in ((case, place) for case, found_results in cases.items() for place in range(len(found_results))):
        key = case if place == 0 else f"{case}#{place + 1}"
        builder.score(builder.row(category, key), metric, float((case, place) not in failed))
        if builder.is_full:
            yield from builder.blocks()
    yield from builder.blocks()


def _failed_cases(
    path: Path, failures: Sequence[tuple[str, Mapping[str, Any]]], cases: Mapping[str, Sequence[Any]]
) -> set[tuple[str, int]]:
    """Return the failed test cases: their id, and their place among those with the same id.

    BFCL has one id for two test cases of live_relevance. The response of the model distinguishes them.
    """
    failed: set[tuple[str, int]] = set()
    for case, row in failures:
        places = [place for place in range(len(cases[case])) if (case, place) not in failed]
        if not places:
            raise BadInputError(path, f"{case} failed more often than the result file lists it.")
        equal = [place for place in places if cases[case][place] == row.get("model_result")]
        failed.add((case, (equal or places)[0]))
    return failed


def _case(path: Path, line: int, row: Any) -> str:
    key = identity(mapping(row).get("id"))
    if key is None:
        raise BadInputError(path, f"line {line}: has no id of a test case.")
    return key


def _run(path: Path, options: ReadOptions) -> tuple[RunDescription, str]:
    """Return the run, named after the folder below ``score``, and the category."""
    match = NAME.fullmatch(path.name)
    parts = path.absolute().parts[:-1]
    place = len(parts) - 1 - parts[::-1].index(SCORES) if SCORES in parts else len(parts) - 2
    model = options.model or (parts[place + 1] if place + 1 < len(parts) else "")
    if not model.strip("/"):
        raise BadInputError(path, "is in no folder named after the model.", advice="Name the model with --model NAME.")
    name_parts: Mapping[str, str | None] = match.groupdict() if match else {}
    benchmark = options.benchmark or "_".join(filter(None, ("bfcl", name_parts.get("version"))))
    return RunDescription(model=model, benchmark=benchmark), name_parts.get("category") or path.name.partition(".")[0]
