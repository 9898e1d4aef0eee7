"""samples_*.jsonl: one line per prompt and filter; before 0.4.3 one list."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.files.exact_numbers import BEYOND, to_exact_float
from tracker.ingest.files.file_contents import report_progress_to
from tracker.ingest.files.json_files import parse_line, read_json, read_lines
from tracker.ingest.files.json_values import number
from tracker.ingest.formats.lm_eval import documents
from tracker.ingest.formats.lm_eval.occurrences import Occurrences
from tracker.ingest.formats.lm_eval.results import LmEvalResults
from tracker.ingest.measurement import (
    PROMPTS_PER_BLOCK,
    Answers,
    Measurement,
    MetricDescription,
    Prompts,
    ReadOptions,
    RunDescription,
    Scores,
    metric_description,
)

FIELDS = frozenset((
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash",
    "prompt_hash", "target_hash", "bypass",
))  # fmt: skip
PROBABILITY = "gold_probability_likelihoods"
LETTERS_PER_BLOCK = 1 << 23
MAX_REJECTED = 100_000
"""After so many lines that are not samples a file is read no further."""
NO_FILTER = "none"
WEIGHTED = (("weighted_perplexity",), ("bits_per_byte",))
"""Aggregations of pairs of a log-likelihood and a weight, such as a number of words."""


@dataclass(slots=True)
class LmEvalSample:
    """The data of a line."""

    line: int
    filter_name: str | None
    number: Any
    key: str
    text: str | None
    choices: list[str] | None
    reference: str | None
    details: Mapping[str, Any] | None
    scores: Mapping[str, Any]
    gold_probability: float
    response: str | None
    sure: float
    spoke: bool

    @property
    def n_letters(self) -> int:
        """Return the approximate size in bytes."""
        return len(self.text or "") + len(self.response or "") + sum(map(len, self.choices or ()))


@dataclass
class SampleProblems:
    """Collects the problems of a file: their number, and the first few texts."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add a problem."""
        self.count += 1
        if len(self.first) < BadInputError.MAX_LISTED:
            self.first.append(text)


def read_samples(
    path: Path, task: str, results: LmEvalResults, options: ReadOptions
) -> Generator[Measurement | str, None, set[str]]:
    """Yield the scores, probabilities of reference options, and answers of one task.

    Returns:
        The metrics that are not one number per prompt.

    Raises:
        BadInputError: lines are not samples, or scores are invalid; raised after all valid samples, or after the valid
            ones before `MAX_REJECTED` other lines.
    """
    problems = SampleProblems()
    stream = _Stream(path, task, results, problems)
    few_shot = results.few_shot(task)
    waiting: list[LmEvalSample] = []
    n_letters, n_rejected, advice = 0, 0, ""
    try:
        for number, line in _read_rows(path):
            if n_rejected >= MAX_REJECTED:
                advice = f"Line {number:,} and later lines were not read: too many lines are not samples."
                break
            sample = _sample(line, number, few_shot, problems)
            if sample is None:
                n_rejected += 1
                continue
            waiting.append(sample)
            n_letters += sample.n_letters
            if len(waiting) >= PROMPTS_PER_BLOCK or n_letters >= LETTERS_PER_BLOCK:
                yield from stream.blocks(waiting)
                waiting, n_letters = [], 0
    except BadInputError as error:  # the stream is truncated
        yield from stream.blocks(waiting)
        for problem in error.problems:
            problems.add(problem)
        raise BadInputError(path, problems.first, count=problems.count, advice=error.advice) from error
    yield from stream.blocks(waiting)
    if problems.count:
        raise BadInputError(path, problems.first, count=problems.count, advice=advice)
    yield from stream.warnings()
    return stream.without_numbers


class _Stream:
    """Converts samples to blocks; keeps only what later samples need."""

    def __init__(self, path: Path, task: str, results: LmEvalResults, problems: SampleProblems) -> None:
        self.path, self.task, self.results, self.problems = path, task, results, problems
        self.benchmark = results.benchmark(task)
        self.run: RunDescription = results.run(self.benchmark)
        self.split = results.split(task)
        self.occurrences = Occurrences()
        self.with_probability: str | None = None
        self.metrics: dict[str, dict[str, bool]] = {}
        """By filter: metrics, and whether they are skipped; metrics with numbers are not."""
        self.with_numbers: set[tuple[str, str]] = set()
        self.filters = results.filters(task) or find_filters(path)

    @property
    def without_numbers(self) -> set[str]:
        """Return the metrics that are not one number per prompt under any filter."""
        skipped = {name for metrics in self.metrics.values() for name, is_skipped in metrics.items() if is_skipped}
        return skipped - {name for metrics in self.metrics.values() for name, is_skipped in metrics.items()
                          if not is_skipped}  # fmt: skip

    def blocks(self, samples: Sequence[LmEvalSample]) -> Iterator[Measurement]:
        """Yield the blocks of some samples by filter; filters of the same prompts share their prompts."""
        self._name_filters(samples)
        kept, names = self.occurrences.drop_repeats(samples, self.problems.add)
        filters: dict[str, tuple[list[LmEvalSample], list[str]]] = {}
        for sample, name in zip(kept, names, strict=True):
            rows, keys = filters.setdefault(sample.filter_name or NO_FILTER, ([], []))
            rows.append(sample)
            keys.append(name)
        prompts: Prompts | None = None
        for filter_name, (rows, keys) in filters.items():
            if prompts is None or list(prompts.keys) != keys:
                prompts = self._prompts(rows, keys)
            yield from self._scores(filter_name, rows, prompts)
            gold = np.array([row.gold_probability for row in rows])
            if self.with_probability is None and not np.isnan(gold).all():
                self.with_probability = filter_name
            if self.with_probability == filter_name:
                metric = metric_description(PROBABILITY)
                yield Scores(run=self.run, metric=metric, prompts=prompts, values=gold, places=self.path.name)
            if any(row.spoke for row in rows):
                yield Answers(
                    run=self.run,
                    prompts=prompts,
                    text=[row.response for row in rows],
                    probability=np.array([row.sure for row in rows]),
                    extraction="" if filter_name == NO_FILTER else filter_name,
                    predicted=np.array([row.spoke for row in rows]),
                    places=self.path.name,
                )

    def warnings(self) -> Iterator[str]:
        """Yield warnings about the skipped metrics."""
        for filter_name, metrics in self.metrics.items():
            names = [name for name, passed_over in metrics.items() if passed_over]
            filtered = "" if filter_name == NO_FILTER else f" under filter {filter_name}"
            if names:
                yield f"{self.task}{filtered}: no scores per prompt, at most task scores, of {', '.join(names)}"

    def _name_filters(self, samples: Sequence[LmEvalSample]) -> None:
        """Name the filters of lines without the field: the harness writes all lines of a filter, then of the next."""
        unnamed = [sample for sample in samples if sample.filter_name is None]
        if len(self.filters) > 1:
            for sample, n in zip(unnamed, self.occurrences.repeats(unnamed), strict=True):
                sample.filter_name = self.filters[n % len(self.filters)]
        else:
            for sample in unnamed:
                sample.filter_name = self.filters[0] if self.filters else NO_FILTER

    def _prompts(self, rows: Sequence[LmEvalSample], keys: list[str]) -> Prompts:
        return Prompts(
            keys=keys,
            tasks=[self.task] * len(rows),
            namespace="lm_eval",
            text=[row.text for row in rows],
            choices=[row.choices for row in rows],
            answer=[row.reference for row in rows],
            split=[self.split] * len(rows),
            details=[row.details for row in rows],
            disambiguated_by=documents.DOC_ID,
            benchmark=self.benchmark,
        )

    def _scores(self, filter_name: str, rows: Sequence[LmEvalSample], prompts: Prompts) -> Iterator[Scores]:
        known = self.metrics.setdefault(filter_name, {})
        by_metric: dict[str, Scores] = {}
        for name in dict.fromkeys(name for row in rows for name in row.scores):
            column = [row.scores.get(name) for row in rows]
            weights: dict[str, NDArray[np.float64]] = {}
            if self.results.aggregations(self.task, name)[:1] in WEIGHTED:
                column, weight = _split_weights(column)
                weights = {name: weight}
            if (
                any(isinstance(value, (list, dict)) for value in column)
                and (filter_name, name) not in self.with_numbers
            ):
                known[name] = True
            if known.setdefault(name, False):
                continue
            metric = self.results.row_metric(self.task, name, filter_name)
            values = np.array([self._to_float(value, name, row.line) for value, row in zip(column, rows, strict=True)])
            self._remove_out_of_bounds(values, metric, name, rows)
            if not np.isnan(values).all():
                self.with_numbers.add((filter_name, name))
            if (same := by_metric.get(metric.name)) is not None:  # several perplexities of the same log-likelihoods
                weights |= same.weights
            by_metric[metric.name] = Scores(
                run=self.run, metric=metric, prompts=prompts, values=values, places=self.path.name, weights=weights
            )
        yield from by_metric.values()

    def _remove_out_of_bounds(
        self, values: NDArray[np.float64], metric: MetricDescription, name: str, rows: Sequence[LmEvalSample]
    ) -> None:
        low = -math.inf if metric.lower is None else metric.lower
        high = math.inf if metric.upper is None else metric.upper
        wrong = (values < low) | (values > high)
        for at in np.flatnonzero(wrong).tolist():
            self.problems.add(f"line {rows[at].line}: {name} is {values[at]:g}, outside [{low:g}, {high:g}]")
        values[wrong] = np.nan

    def _to_float(self, value: Any, name: str, line: int) -> float:
        if value is None:
            return math.nan
        if isinstance(value, (list, dict)):
            self.problems.add(f"line {line}: {name} is not a single number, unlike in earlier lines")
            return math.nan
        try:
            return to_exact_float(value)
        except ValueError as error:
            self.problems.add(f"line {line}: {name} is {error}")
            return math.nan


def _read_rows(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and JSON of each sample: of each line, or of each item of a list.

    Raises:
        BadInputError: the file is unreadable, or its list is invalid.
    """
    lines = read_lines(path)
    first = next(lines, None)
    if first is None or not first[1].lstrip().startswith(b"["):
        yield from lines if first is None else chain([first], lines)
        return
    for place, row in enumerate(read_json(path), start=1):
        yield place, json.dumps(row).encode()


def _sample(line: bytes, number: int, few_shot: int | None, problems: SampleProblems) -> LmEvalSample | None:
    try:
        row = parse_line(line)
    except ValueError as error:
        problems.add(f"line {number}: {error}")
        return None
    if not isinstance(row, dict) or "doc_id" not in row:
        problems.add(f"line {number}: is not a sample of lm-evaluation-harness: it has no doc_id")
        return None
    scores = _scores(row)
    if any(isinstance(value, float) and abs(value) >= BEYOND for value in scores.values()):
        scores = _scores(json.loads(line.decode("utf-8", "replace")))  # integers keep all their digits
    doc = row.get("doc")
    doc = doc if isinstance(doc, dict) else {}
    sent = documents.requests(row)
    place = documents.gold(row, sent)
    shares = documents.probabilities(sent)
    response, sure, spoke = documents.extract_answer(row, sent, shares)
    name = row.get("filter")
    return LmEvalSample(
        line=number,
        filter_name=name if isinstance(name, str) and name else None,
        number=row["doc_id"],
        key=documents.key(row),
        text=documents.question(doc, sent, few_shot),
        choices=documents.choices(doc, sent),
        reference=documents.answer(row, sent),
        details=documents.details(doc, row["doc_id"]),
        scores=scores,
        gold_probability=math.nan if shares is None or place is None else shares[place],
        response=response,
        sure=sure,
        spoke=spoke,
    )


def _scores(row: Mapping[str, Any]) -> dict[str, Any]:
    metrics = row.get("metrics")
    names = [name for name in metrics if isinstance(name, str)] if isinstance(metrics, list) else [*row]
    return {name: row[name] for name in names if name in row and name not in FIELDS}


def _split_weights(column: Sequence[Any]) -> tuple[list[Any], NDArray[np.float64]]:
    """Return the scores and weights of a column of pairs; other values are kept, without a weight."""
    pairs = [value if isinstance(value, list) and len(value) == 2 else (value, None) for value in column]
    weights = [number(weight) for _, weight in pairs]
    return [value for value, _ in pairs], np.array([math.nan if weight is None else weight for weight in weights])


def find_filters(path: Path) -> list[str]:
    """Return names for the filters of a file without results file and without names of filters.

    A document that occurs again with the same responses, but other extracted answers, belongs to another filter.
    """
    seen: dict[int, tuple[int, set[int]]] = {}
    differs = False
    with report_progress_to(None), suppress(BadInputError):  # reading the samples reports damage
        for _, line in _read_rows(path):
            try:
                row = parse_line(line)
            except ValueError:
                continue
            if not isinstance(row, dict) or row.get("filter") is not None:
                return []
            key = hash(repr((row.get("doc_id"), row.get("doc_hash"), row.get("target"), row.get("resps"))))
            n, extracted = seen.get(key, (0, set()))
            extracted.add(hash(repr((row.get("filtered_resps"), _scores(row)))))
            seen[key] = (n + 1, extracted)
            differs |= len(extracted) > 1
    n_filters = max((n for n, _ in seen.values()), default=0) if differs else 1
    return [NO_FILTER, *(f"filter {n}" for n in range(2, n_filters + 1))]
