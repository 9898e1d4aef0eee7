"""Results of EvalPlus: *_eval_results.json, each solution to a HumanEval+ or MBPP+ problem passed or not.

Several solutions of a problem are trials. `pass_base` says whether the problem's own tests passed, `pass_plus` whether
the added ones passed as well; their means over problems are EvalPlus's pass@1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, ERRORED, BlockBuilder, describe_policy
from tracker.ingest.files.json_files import read_json
from tracker.ingest.files.json_values import contradicts, first_bytes, instant, mapping, number, text, words
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.measurement import (
    Measurement,
    MetricDescription,
    ReadOptions,
    RunDescription,
)

SPECIFICITY = 30
RECOGNIZED_BY = "*_eval_results.json"
NAMESPACE = "evalplus"
NAME = re.compile(r"(?P<stem>.*?)[._-]?eval_results\.json(?:\.gz)?")
START = re.compile(rb'\s*\{\s*"(?:date|hash|eval)"\s*:')
SETTINGS = re.compile(r"_(?P<backend>[a-z]+)_temp_(?P<temperature>\d+(?:\.\d+)?)")
BENCHMARKS = {"HumanEval": "humaneval+", "Mbpp": "mbpp+"}
PASSED = {"pass": True, "success": True, "fail": False, "failed": False, "timeout": False}
"""What a status means; the words ending in -ed are those of versions before 0.2."""
BASE, PLUS = (
    MetricDescription(name=name, higher_is_better=True, lower=0.0, upper=1.0) for name in ("pass_base", "pass_plus")
)


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Why the file is no output of EvalPlus."""
    if not NAME.fullmatch(path.name):
        return "the name does not end in eval_results.json"
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    return None if START.match(data) else Mismatch('it does not start with {"date":, {"hash": or {"eval":', 1 / 2)


def harness_name(path: Path) -> str | None:
    """The program; its results do not say which version."""
    return "evalplus"


@dataclass
class _StatusCounts:
    """What is counted while the problems pass by.

    Attributes:
        passed: sum of the problems' shares of passing solutions, and number of problems, by metric.
        errored, empty: solutions without a status, and without a letter.
        without_plus, with_plus: solutions that ran on the own tests alone, and on the added ones.
    """

    passed: dict[MetricDescription, tuple[float, int]] = field(default_factory=dict)
    errored: int = 0
    empty: int = 0
    without_plus: int = 0
    with_plus: int = 0


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Two scores and the code of each solution.

    Raises:
        BadInputError: it is no such file, its JSON is broken, or a status is unknown.
    """
    run: RunDescription | None = None
    builder: BlockBuilder | None = None
    counts = _StatusCounts()
    facts: dict[str, Any] = {}
    problems_seen = 0
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
            problems_seen += 1
            _add(path, task_id, value, builder, options, counts)
            if builder.is_full:
                yield from builder.blocks()
    except BadInputError:
        if builder is not None:
            yield from builder.blocks()
        raise
    if builder is None:
        raise BadInputError(path, "holds no results of problems (its field eval), so EvalPlus did not write it.")
    yield from builder.blocks()
    yield from _warnings(mapping(facts.get("pass_at_k")), counts, options)


def _parts(path: Path) -> Iterator[tuple[str, Any]]:
    """The fields of the file, each problem on its own as ``eval/<task id>``, pass_at_k last.

    The file is read whole: a hundred solutions to every problem are some tens of megabytes.
    """
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("eval"), dict):
        raise BadInputError(path, "holds no results of problems (its field eval), so EvalPlus did not write it.")
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
        raise BadInputError(path, f"the name {path.name!r} does not say whose results these are.", advice=advice)
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
        raise BadInputError(path, f"{task_id}: its results are no list of solutions.")
    scores_by_metric: dict[MetricDescription, list[float]] = {BASE: [], PLUS: []}
    for trial, solution in enumerate(solutions):
        base = _status(path, task_id, solution, "base_status")
        plus = _status(path, task_id, solution, "plus_status")
        code = solution.get("solution")
        empty = isinstance(code, str) and not code.strip()
        values = {BASE: base, PLUS: math.nan if math.isnan(base) else base * plus}
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
                scores_by_metric[metric].append(scored)
        if isinstance(code, str):
            status = "error" if math.isnan(base) else "empty" if empty else "ok"
            builder.answer(row, None if empty else code, status=status)
    for metric, scores in scores_by_metric.items():
        if scores:
            total, n = counts.passed.get(metric, (0.0, 0))
            counts.passed[metric] = (total + math.fsum(scores) / len(scores), n + 1)


def _status(path: Path, task_id: str, solution: Mapping[str, Any], name: str) -> float:
    status = solution.get(name)
    if status is None:
        return math.nan
    if not isinstance(status, str) or status not in PASSED:
        value = (words(status) or "nested too deeply")[:40]
        raise BadInputError(path, f"{task_id}: {name} is {value!r}; known are pass, fail, timeout and null.")
    return float(PASSED[status])


def _old(value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The solutions as versions before 0.2 list them: statuses of the own and of the added tests side by side."""
    base, plus = value.get("base"), value.get("plus")
    if not isinstance(base, list):
        return None
    plus = plus if isinstance(plus, list) and len(plus) == len(base) else [None] * len(base)
    first = [[entry[0] if isinstance(entry, list) and entry else None for entry in side] for side in (base, plus)]
    return [{"base_status": base_status, "plus_status": added} for base_status, added in zip(*first, strict=True)]


def _warnings(reported: Mapping[str, Any], counts: _StatusCounts, options: ReadOptions) -> Iterator[str]:
    if counts.errored:
        yield describe_policy(
            counts.errored, ERRORED, options.errored or "missing", "solution has no status|solutions have no status"
        )
    if counts.empty:
        yield describe_policy(counts.empty, EMPTY, options.empty or "wrong", "solution is empty|solutions are empty")
    if counts.without_plus and counts.with_plus:
        yield f"{counts.without_plus:,} solutions were not run on the added tests: they have no pass_plus"
    for name, metric in (("base", BASE), ("plus", PLUS)):
        entry = mapping(reported.get(name)).get("pass@1", reported.get(name) if name in reported else None)
        value = number(entry)
        total, n = counts.passed.get(metric, (0.0, 0))
        if value is not None and n and contradicts(value, total / n):
            yield f"the file reports pass@1 of {value:g} for {name}, its solutions give {total / n:g}"
