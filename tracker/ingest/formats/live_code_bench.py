"""Results of LiveCodeBench: output/<model>/<scenario>_<n>_<temperature>_eval_all.json, with each graded sample.

Samples of a problem are trials. Their mean over problems is LiveCodeBench's pass@1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import BlockBuilder, PromptContent
from tracker.ingest.files.file_summary import first_keys
from tracker.ingest.files.json_files import read_json
from tracker.ingest.files.json_values import first_bytes, identity, mapping, number, text
from tracker.ingest.files.mismatch import Mismatch, first_missing_key
from tracker.ingest.measurement import Measurement, ReadOptions, RunDescription, metric_description
from tracker.ingest.reported_score import ReportedScore

SPECIFICITY = 30
RECOGNIZED_BY = "*_eval_all.json with a list of output_list and graded_list"
NAMESPACE = "live_code_bench"
NAME = re.compile(r"(?P<scenario>.+?)_(?P<n>\d+)_(?P<temperature>[\d.]+)(?P<cot>_cot)?_eval_all\.json(?:\.gz)?")
FIELDS = ("output_list", "graded_list", "pass@1")
DETAILS = ("platform", "contest_id", "contest_date")
SUMMARY = re.compile(rb'\s*\[\s*\{\s*"pass@1"')


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file does not hold graded samples of LiveCodeBench."""
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    if SUMMARY.match(data):
        return Mismatch("it holds no samples; ingest the file beside it, *_eval_all.json", 0.9)
    if not data.lstrip().startswith(b"["):
        return "it is not a JSON list"
    # A long output may push the later fields beyond the first bytes.
    return first_missing_key(first_keys(data), FIELDS[:1] if NAME.fullmatch(path.name) else FIELDS)


def harness_name(path: Path) -> str | None:
    """Return the program; its results do not contain the version."""
    return "lcb_runner"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield a score and the output of each sample.

    Raises:
        BadInputError: the file is not a list of graded problems.
    """
    problems = read_json(path)
    if not isinstance(problems, list):
        raise BadInputError(path, "is not a list of problems.")
    builder = BlockBuilder(_run(path, options), NAMESPACE, path.name)
    metric = metric_description("pass@1")
    reported: list[float | None] = []
    for place, data in enumerate(problems, start=1):
        problem = mapping(data)
        key, graded = _key(problem), problem.get("graded_list")
        if key is None or not isinstance(graded, list) or not all(isinstance(passed, bool) for passed in graded):
            yield from builder.blocks()
            raise BadInputError(
                path, f"problem {place} has no question_id, or its graded_list is no list of true and false."
            )
        details = {
            name: value for name in ("platform", "contest_id", "contest_date") if (value := text(problem.get(name)))
        }
        content = PromptContent(text=text(problem.get("question_content")), details=details or None)
        outputs = problem.get("output_list")
        outputs = outputs if isinstance(outputs, list) and len(outputs) == len(graded) else [None] * len(graded)
        for trial, (passed, output) in enumerate(zip(graded, outputs, strict=True)):
            row = builder.row(text(problem.get("difficulty")) or "", key, trial, content)
            try:
                builder.score(row, metric, float(passed))
                if isinstance(output, str):
                    builder.answer(row, output or None)
            except ValueError as error:
                raise BadInputError(path, f"problem {place}, {key}: {error}.") from error
        reported.append(number(problem.get("pass@1")))
        if builder.is_full:
            yield from builder.blocks()
    yield from builder.blocks()
    known = [value for value in reported if value is not None]
    if known and len(known) == len(reported):
        yield ReportedScore(run=builder.run, metric=metric, value=math.fsum(known) / len(known), name="mean pass@1")


def _key(problem: Mapping[str, Any]) -> str | None:
    """Return the name of a problem, with the number of its test if problems have several."""
    key = identity(problem.get("question_id")) or identity(problem.get("id"))
    test = identity(problem.get("test_id"))
    return key if key is None or test is None else f"{key}/{test}"


def _run(path: Path, options: ReadOptions) -> RunDescription:
    match = NAME.fullmatch(path.name)
    model = options.model or path.absolute().parent.name
    if not model.strip():
        raise BadInputError(path, "is in no folder named after the model.", advice="Name the model with --model NAME.")
    scenario = re.sub(r"^Scenario\.", "", match["scenario"]) if match else "codegeneration"
    suffix = "" if scenario == "codegeneration" else f"_{scenario}"
    return RunDescription(
        model=model,
        benchmark=options.benchmark or f"livecodebench{suffix}",
        variant="chain of thought" if match and match["cot"] else "",
        settings={"temperature": match["temperature"], "n": match["n"]} if match else {},
    )
