"""Results of EvalPlus: *_eval_results.json, with a status for each solution to a HumanEval+ or MBPP+ problem.

Several solutions of a problem are trials. `pass_base` is 1 if the original tests passed, `pass_plus` if the added tests
passed too. Their means over problems are EvalPlus's pass@1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, ERRORED, BlockBuilder, describe_policy
from tracker.ingest.files.json_files import read_json
from tracker.ingest.files.json_values import first_bytes, instant, mapping, number, text, words
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.measurement import (
    Measurement,
    MetricDescription,
    ReadOptions,
    RunDescription,
)
from tracker.ingest.reported_score import ReportedScore

SPECIFICITY = 30
RECOGNIZED_BY = "*_eval_results.json"
NAMESPACE = "evalplus"
NAME = re.compile(r"(?P<stem>.*?)[._-]?eval_results\.json(?:\.gz)?")
START = re.compile(rb'\s*\{\s*"(?:date|hash|eval)"\s*:')
SETTINGS = re.compile(r"_(?P<backend>[a-z]+)_temp_(?P<temperature>\d+(?:\.\d+)?)")
BENCHMARKS = {"HumanEval": "humaneval+", "Mbpp": "mbpp+"}
PASSED = {"pass": True, "success": True, "fail": False, "failed": False, "timeout": False}
"""Meaning of each status; those ending in -ed are from versions before 0.2."""
BASE, PLUS = (
    MetricDescription(name=name, higher_is_better=True, lower=0.0, upper=1.0) for name in ("pass_base", "pass_plus")
)


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a result file of EvalPlus."""
    if not NAME.fullmatch(path.name):
        return "the name does not end in eval_results.json"
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    return None if START.match(data) else Mismatch('it does not start with {"date":, {"hash": or {"eval":', 1 / 2)


def harness_name(path: Path) -> str | None:
    """Return the program; its results do not contain the version."""
    return "evalplus"


@dataclass
class _StatusCounts:
    """Counts that are collected while reading.

    Attributes:
        errored, empty: number of solutions without a status, and of empty ones.
        without_plus, with_plus: number of solutions run on the original tests only, and also on the added ones.
    """

    errored: int = 0
    empty: int = 0
    without_plus: int = 0
    with_plus: int = 0


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield two scores and the code of each solution.

    Raises:
        BadInputError: the file is not of EvalPlus, is invalid JSON, or has an unknown status.
    """
    run: RunDescription | None = None
    builder: BlockBuilder | None = None
    counts = _StatusCounts()
    facts: dict[str, Any] = {}
    tasks: set[str] = set()
    try:
        for name, value in _parts(path):
            if not name.startswith("eval/"):
                facts[name] = value
                continue
            task_id = name.removeprefix("eval/")
            if run is None:
                run = _run(path, task_id, facts, options)
                builder = BlockBuilder(run, NAMESPACE, path.name)
            assert builder is not None
            tasks.add(task_id.partition("/")[0])
            _add(path, task_id, value, builder, options, counts)
            if builder.is_full:
                yield from builder.blocks()
    except BadInputError:
        if builder is not None:
            yield from builder.blocks()
        raise
    if builder is None:
        raise BadInputError(path, "has no results in the field eval, so it is not a result file of EvalPlus.")
    yield from builder.blocks()
    assert run is not None
    yield from _reported_scores(mapping(facts.get("pass_at_k")), run, sorted(tasks))
    yield from _warnings(counts, options)


def _parts(path: Path) -> Iterator[tuple[str, Any]]:
    """Return the fields of the file, with each problem as ``eval/<task id>`` and pass_at_k last.

    The file is read whole: a hundred solutions per problem take some tens of megabytes.
    """
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("eval"), dict):
        raise BadInputError(path, "has no results in the field eval, so it is not a result file of EvalPlus.")
    solved = content.pop("eval")
    yield from content.items()
    yield from ((f"eval/{name}", value) for name, value in solved.items())


def _run(path: Path, task_id: str, facts: Mapping[str, Any], options: ReadOptions) -> RunDescription:
    stem = NAME.fullmatch(path.name)
    name = stem["stem"] if stem else path.name.split(".")[0]
    match = SETTINGS.search(name)
    settings = match.groupdict() if match else {}
    model = SETTINGS.sub("", name)
    model = re.sub(r"[._-]?(samples|sanitized|raw)(?=$|[._-])", "", model).replace("--", "/").strip("._- ")
    if not model and not options.model:
        advice = "Name the model with --model NAME."
        raise BadInputError(path, f"the file name {path.name!r} does not contain the model.", advice=advice)
    date = text(facts.get("date"))
    return RunDescription(
        model=options.model or model,
        benchmark=options.benchmark or BENCHMARKS.get(task_id.partition("/")[0]),
        label=date or "",
        started=instant(date),
        settings=settings | ({"dataset_hash": facts["hash"]} if text(facts.get("hash")) else {}),
    )


def _add(
    path: Path, task_id: str, value: Any, builder: BlockBuilder, options: ReadOptions, counts: _StatusCounts
) -> None:
    solutions = _old(value) if isinstance(value, dict) else value
    if not isinstance(solutions, list) or not all(isinstance(solution, dict) for solution in solutions):
        raise BadInputError(path, f"{task_id}: its results are not a list of solutions.")
    for trial, solution in enumerate(solutions):
        base = _status(path, task_id, solution, "base_status")
        plus = _status(path, task_id, solution, "plus_status")
        code = solution.get("solution")
        empty = isinstance(code, str) and not code.strip()
        values = logged = {BASE: base, PLUS: math.nan if math.isnan(base) else base * plus}
        if math.isnan(base):
            counts.errored += 1
            if options.errored == "wrong":
                values = {BASE: 0.0, PLUS: math.nan if math.isnan(plus) else 0.0}
        elif math.isnan(plus):
            counts.without_plus += 1
        else:
            counts.with_plus += 1
        if empty:
            counts.empty += 1
            if options.empty == "missing":
                values = {BASE: math.nan, PLUS: math.nan}
        row = builder.row(task_id.partition("/")[0], task_id, trial)
        for metric, scored in values.items():
            if not math.isnan(scored):
                builder.score(row, metric, scored)
            if values is not logged:
                builder.log(row, metric, logged[metric])
        if isinstance(code, str):
            status = "error" if math.isnan(base) else "empty" if empty else "ok"
            builder.answer(row, None if empty else code, status=status)


def _status(path: Path, task_id: str, solution: Mapping[str, Any], name: str) -> float:
    status = solution.get(name)
    if status is None:
        return math.nan
    if not isinstance(status, str) or status not in PASSED:
        value = (words(status) or "nested too deeply")[:40]
        raise BadInputError(
            path, f"{task_id}: {name} has the unknown status {value!r}; expected pass, fail, timeout or null."
        )
    return float(PASSED[status])


def _old(value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the solutions of versions before 0.2, which list the statuses of original and added tests separately."""
    base, plus = value.get("base"), value.get("plus")
    if not isinstance(base, list):
        return None
    plus = plus if isinstance(plus, list) and len(plus) == len(base) else [None] * len(base)
    first = [[entry[0] if isinstance(entry, list) and entry else None for entry in side] for side in (base, plus)]
    return [{"base_status": base_status, "plus_status": added} for base_status, added in zip(*first, strict=True)]


def _warnings(counts: _StatusCounts, options: ReadOptions) -> Iterator[str]:
    if counts.errored:
        yield describe_policy(
            counts.errored, ERRORED, options.errored or "missing", "solution has no status|solutions have no status"
        )
    if counts.empty:
        yield describe_policy(counts.empty, EMPTY, options.empty or "wrong", "solution is empty|solutions are empty")
    if counts.without_plus and counts.with_plus:
        yield f"{counts.without_plus:,} solutions were not run on the added tests, so they have no pass_plus"


def _reported_scores(reported: Mapping[str, Any], run: RunDescription, tasks: Sequence[str]) -> Iterator[ReportedScore]:
    """Yield pass@k of the original and of the added tests; pass@1 is the mean of the solutions."""
    for name, metric in (("base", BASE), ("plus", PLUS)):
        entry = reported.get(name)
        for key, value in entry.items() if isinstance(entry, dict) else [("pass@1", entry)]:
            share = number(value)
            if share is None or not re.fullmatch(r"pass@\d{1,6}", key):
                continue
            is_mean = key == "pass@1"
            yield ReportedScore(
                run=run,
                metric=metric if is_mean else replace(metric, name=f"{key}_{name}"),
                tasks=tuple(tasks[:1]) if not is_mean else (),
                value=share,
                aggregations=("mean",) if is_mean else (key,),
                rows=None if is_mean else metric,
                name=f"{key} ({name})",
            )
