"""samples_*.jsonl: one line per prompt and filter."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.contents import check_text, read_bytes
from tracker.ingest.formats.lm_eval import documents
from tracker.ingest.formats.lm_eval.results import Results
from tracker.ingest.measurement import Answers, Measurement, Prompts, ReadOptions, Scores, metric_description

FIELDS = (
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash",
    "prompt_hash", "target_hash", "bypass",
)  # fmt: skip
PROBABILITY = "gold_probability_likelihoods"


@dataclass
class _Filtered:
    """What the samples of one filter say, prompt by prompt."""

    keys: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    texts: list[str | None] = field(default_factory=list)
    choices: list[list[str] | None] = field(default_factory=list)
    answers: list[str | None] = field(default_factory=list)
    details: list[Mapping[str, Any] | None] = field(default_factory=list)
    scores: list[Mapping[str, Any]] = field(default_factory=list)
    gold_probabilities: list[float] = field(default_factory=list)
    said: list[str | None] = field(default_factory=list)
    sure: list[float] = field(default_factory=list)
    spoke: list[bool] = field(default_factory=list)
    occurrences: Counter[str] = field(default_factory=Counter)
    seen: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)


def read_samples(path: Path, task: str, results: Results, options: ReadOptions) -> Iterator[Measurement | str]:
    """The scores, gold probabilities and answers of one task.

    Raises:
        BadInputError: lines that are no samples, and scores that are no numbers or out of bounds.
    """
    problems: list[str] = []
    filters = _filters(path, results.few_shot(task), problems)
    benchmark = results.benchmark(task)
    run = results.run(benchmark)
    blocks: list[Measurement | str] = []
    prompts: Prompts | None = None
    probability_given = False
    for name, rows in filters.items():
        if prompts is None or list(prompts.keys) != rows.keys:
            prompts = Prompts(
                keys=rows.keys,
                tasks=[task] * len(rows.keys),
                namespace="lm_eval",
                text=rows.texts,
                choices=rows.choices,
                answer=rows.answers,
                split=[results.split(task)] * len(rows.keys),
                details=rows.details,
                told_apart_by=documents.DOC_ID,
                benchmark=benchmark,
            )
        passed_over = []
        for metric_name in dict.fromkeys(metric for scores in rows.scores for metric in scores):
            column = [scores.get(metric_name) for scores in rows.scores]
            if any(isinstance(value, (list, dict)) for value in column):
                passed_over.append(metric_name)
                continue
            metric = results.metric(task, metric_name, name)
            values = np.array([_score(value, metric_name, line, problems)
                               for value, line in zip(column, rows.lines, strict=True)])  # fmt: skip
            low = -math.inf if metric.lower is None else metric.lower
            high = math.inf if metric.upper is None else metric.upper
            for at in np.flatnonzero((values < low) | (values > high)):
                problems.append(f"line {rows.lines[at]}: {metric_name} is {values[at]:g}, outside [{low:g}, {high:g}]")
            blocks.append(Scores(run=run, metric=metric, prompts=prompts, values=values, places=path.name))
        gold = np.array(rows.gold_probabilities)
        if not probability_given and not np.isnan(gold).all():
            probability_given = True
            metric = metric_description(PROBABILITY)
            blocks.append(Scores(run=run, metric=metric, prompts=prompts, values=gold, places=path.name))
        if any(rows.spoke):
            blocks.append(
                Answers(
                    run=run,
                    prompts=prompts,
                    text=rows.said,
                    probability=np.array(rows.sure),
                    extraction="" if name == "none" else name,
                    predicted=np.array(rows.spoke),
                    places=path.name,
                )
            )
        if passed_over:
            filtered = "" if name == "none" else f" under filter {name}"
            blocks.append(
                f"{task}{filtered}: metrics without one number per prompt were passed over: {', '.join(passed_over)}"
            )
    if problems:
        raise BadInputError(path, problems)
    yield from blocks


def _filters(path: Path, few_shot: int | None, problems: list[str]) -> dict[str, _Filtered]:
    data = read_bytes(path)
    check_text(path, data)
    filters: dict[str, _Filtered] = {}
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        row = _row(line, number, problems)
        if row is None:
            continue
        name = row.get("filter")
        name = name if isinstance(name, str) and name else "none"
        _add(filters.setdefault(name, _Filtered()), row, number, few_shot, problems)
    return filters


def _row(line: bytes, number: int, problems: list[str]) -> Mapping[str, Any] | None:
    import orjson

    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            # Python's own reader takes what Python's own writer writes: NaN, and halves of surrogate pairs.
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.append(f"line {number}: the JSON is broken or ends too early ({error})")
            return None
    if not isinstance(row, dict) or "doc_id" not in row:
        problems.append(f"line {number}: is no sample of lm-evaluation-harness: it has no doc_id")
        return None
    return row


def _add(rows: _Filtered, row: Mapping[str, Any], line: int, few_shot: int | None, problems: list[str]) -> None:
    named = row.get("metrics")
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else [*row]
    scores = {name: row[name] for name in names if name in row and name not in FIELDS}
    key = documents.key(row)
    identity = (str(row["doc_id"]), key)
    if identity in rows.seen:
        # The harness appends to a file that is already there: the same line again says nothing new.
        if repr(rows.seen[identity]) != repr(scores):
            problems.append(f"line {line}: prompt {row['doc_id']} stands in an earlier line with other scores")
        return
    rows.seen[identity] = scores
    occurrence = rows.occurrences[key]
    rows.occurrences[key] += 1
    doc = row.get("doc")
    doc = doc if isinstance(doc, dict) else {}
    sent = documents.requests(row)
    place = documents.gold(row, sent)
    shares = documents.probabilities(sent)
    rows.keys.append(f"{key}#{occurrence}" if occurrence else key)
    rows.lines.append(line)
    rows.texts.append(documents.question(doc, sent, few_shot))
    rows.choices.append(documents.choices(doc, sent))
    rows.answers.append(documents.answer(row, sent))
    rows.details.append(documents.details(doc, row["doc_id"]))
    rows.scores.append(scores)
    rows.gold_probabilities.append(math.nan if shares is None or place is None else shares[place])
    if sent.are_options:
        best = None if shares is None else shares.index(max(shares))
        rows.said.append(None if best is None else documents.letter(best))
        rows.sure.append(math.nan if shares is None else max(shares))
        rows.spoke.append(best is not None)
    else:
        rows.said.append(None if sent.continuations else documents.written(row))
        rows.sure.append(math.nan)
        rows.spoke.append(not sent.continuations and "filtered_resps" in row)


def _score(value: Any, name: str, line: int, problems: list[str]) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str):
        problems.append(f"line {line}: {name} is {value[:40]!r}, not a number")
        return math.nan
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        problems.append(f"line {line}: {name} is {number}, not a finite number")
        return math.nan
    return number
