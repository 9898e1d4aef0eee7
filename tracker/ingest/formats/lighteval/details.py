"""details_<task>_<time>.parquet: one row per prompt."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError, first_line
from tracker.ingest.files.block_builder import EMPTY, BlockBuilder, PromptContent, describe_policy
from tracker.ingest.files.json_values import mapping, number, score
from tracker.ingest.files.tabular.cells import shorten
from tracker.ingest.files.tabular.parquet_files import open_parquet
from tracker.ingest.formats.lighteval.documents import Document, parse_document
from tracker.ingest.formats.lighteval.results import LightevalResults, TaskName
from tracker.ingest.measurement import Measurement, MetricDescription, ReadOptions, metric_description
from tracker.ingest.reported_score import CORPUS_METRICS, ReportedScore, rows_of
from tracker.option_labels import option_letter

NAMESPACE = "lighteval"
NUMBER = "lighteval_id"
"""Detail with the harness's number of a document."""
PROBABILITY = "gold_probability_likelihoods"
NESTED = ({"doc", "metric", "model_response"}, {"__doc__", "__metric__", "__model_response__"})
FLAT = {"example", "metrics", "predictions"}
NESTED_COLUMNS = {
    "doc": {"query", "choices", "gold_index", "instruction", "id", "task_name", "sampling_methods"},
    "model_response": {"text", "text_post_processed", "logprobs"},
}
FLAT_WANTED = {"example", "instruction", "choices", "gold", "gold_index", "predictions", "metrics"}
ROWS = 500
MAX_PROBLEMS = 1000


def generation(names: Sequence[str]) -> str | None:
    """Return whether columns are ``nested`` or ``flat``; None if they are not of lighteval."""
    if any(columns <= set(names) for columns in NESTED):
        return "nested"
    return "flat" if set(names) >= FLAT else None


def read_details(
    path: Path, written: str | None, results: LightevalResults
) -> Generator[Measurement | ReportedScore | str, None, TaskName]:
    """Yield the scores and answers of one task.

    Args:
        path: the file.
        written: the task in the file name.
        results: metadata of the run.

    Returns:
        The task.

    Raises:
        BadInputError: the Parquet data are damaged, or a score is invalid.
    """
    reading = _Reading(path, written, results)
    try:
        for number, row in enumerate(_rows(path), start=1):
            reading.add(parse_document(row), number)
            if reading.builder is not None and reading.builder.is_full:
                yield from reading.builder.blocks()
    except BadInputError:
        yield from reading.rest()
        raise
    yield from reading.rest()
    if reading.problems:
        raise BadInputError(path, reading.problems, count=reading.n_problems)
    yield from reading.warnings()
    yield from results.reported_scores([reading.task], without_numbers=set(reading.passed_over) - reading.numbers)
    return reading.task


class _Reading:
    """Collects the rows of a file."""

    def __init__(self, path: Path, written: str | None, results: LightevalResults) -> None:
        self.path, self.results = path, results
        self.options: ReadOptions = results.options
        self._written = written
        self.builder: BlockBuilder | None = None
        self.problems: list[str] = []
        self.n_problems = 0
        self._metrics: dict[str, MetricDescription] = {}
        self.passed_over: dict[str, None] = {}
        self._seen: Counter[bytes] = Counter()
        self.numbers: set[str] = set()
        self._n_empty = 0
        self._names: dict[str, TaskName] = {}

    @property
    def task(self) -> TaskName:
        """Return the task of the file."""
        return self._parse_task(self._written or self.path.stem)

    def _parse_task(self, written: str) -> TaskName:
        if written not in self._names:
            self._names[written] = TaskName.parsed(written)
        return self._names[written]

    def add(self, doc: Document, line: int) -> None:
        """Add a row."""
        if self._written is None:
            self._written = doc.task
        if self.builder is None:
            self.builder = BlockBuilder(self.results.run(self.task), NAMESPACE, self.path.name, disambiguated_by=NUMBER)
        key = self._key(doc, line)
        row = self.builder.row(self.task.task, key, 0, _content(doc), line)
        empty = self._answer(doc, row, key, line)
        missing = empty and self.options.empty == "missing"
        for name, value in doc.scores.items():
            if value is None:
                continue
            weighted = mapping(value)
            if {"logprobs", "weights"} <= weighted.keys():
                self._score(name, weighted["logprobs"], row, line, missing)
                if (weight := number(weighted["weights"])) is not None:
                    self.builder.weigh(row, self._metrics[name], name, weight)
                continue
            if isinstance(value, (str, list, dict)):
                self.passed_over.setdefault(name)
                continue
            self._score(name, value, row, line, missing)

    def rest(self) -> Iterator[Measurement]:
        """Return the remaining blocks."""
        if self.builder is not None:
            yield from self.builder.blocks()

    def _key(self, doc: Document, line: int) -> str:
        """Return the hash of the prompt; repeated prompts of a task get a number."""
        content: Any = [doc.text, list(doc.options)] if doc.text or doc.options else [line]
        hashed = hashlib.sha256(json.dumps(content).encode()).digest()[:16]
        occurrence = self._seen[hashed]
        self._seen[hashed] += 1
        return f"{hashed.hex()}#{occurrence}" if occurrence else hashed.hex()

    def _answer(self, doc: Document, row: int, key: str, line: int) -> bool:
        """Add the response; return whether it is empty."""
        assert self.builder is not None
        if doc.options:
            shares = doc.shares
            if shares is not None:
                best = shares.index(max(shares))
                self.builder.answer(row, option_letter(best), probability=shares[best])
                if len(doc.gold) == 1:
                    metric = metric_description(PROBABILITY)
                    self.builder.score(row, metric, shares[doc.gold[0]])
            return False
        responses = [response.strip() or None if response is not None else None for response in doc.written]
        for trial, response in enumerate(responses):
            place = row if trial == 0 else self.builder.row(self.task.task, key, trial, _content(doc), line)
            self.builder.answer(place, response)
        empty = bool(responses) and not any(responses)
        self._n_empty += empty
        return empty

    def _score(self, name: str, value: Any, row: int, line: int, missing: bool) -> None:
        assert self.builder is not None
        if name not in self._metrics:
            metric = metric_description(name, self.options)
            self._metrics[name] = rows_of(metric) if name in CORPUS_METRICS else metric
        metric = self._metrics[name]
        try:
            parsed = score(value)
        except ValueError as error:
            self._add_problem(f"row {line}: {name} is {error}")
            return
        low, high = metric.lower, metric.upper
        if (low is not None and parsed < low) or (high is not None and parsed > high):
            bounds = f"[{'-∞' if low is None else f'{low:g}'}, {'∞' if high is None else f'{high:g}'}]"
            self._add_problem(f"row {line}: {name} is {parsed:g}, outside {bounds}")
            return
        if not math.isnan(parsed):
            self.numbers.add(name)
        if missing:
            self.builder.log(row, metric, parsed)
        self.builder.score(row, metric, math.nan if missing else parsed)

    def _add_problem(self, problem: str) -> None:
        self.n_problems += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)

    def warnings(self) -> Iterator[str]:
        """Return the warnings."""
        if self.passed_over:
            names = ", ".join(map(shorten, self.passed_over))
            yield f"{self.task.task}: no scores per prompt, at most task scores, of {names}"
        if self._n_empty:
            phrase = "answer is empty|answers are empty"
            yield f"{self.task.task}: {describe_policy(self._n_empty, EMPTY, self.options.empty or 'wrong', phrase)}"


def _content(doc: Document) -> PromptContent:
    details: dict[str, Any] = {}
    if doc.name is not None:
        details[NUMBER] = doc.name
    if len(doc.accepted) > 1:
        details["accepted"] = list(doc.accepted)
    return PromptContent(doc.text, list(doc.options) or None, doc.answer, None, details or None)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows with the needed columns, a few hundred at a time."""
    import pyarrow as pa

    try:
        with open_parquet(path) as parquet:
            names = parquet.schema_arrow.names
            if generation(names) is None:
                raise BadInputError(
                    path, f"lacks the columns of lighteval details. Its columns: {', '.join(names[:8])}."
                )
            paths = [parquet.schema.column(place).path for place in range(len(parquet.schema))]
            columns = [path for path in paths if _is_wanted(path.split("."))]
            for batch in parquet.iter_batches(batch_size=ROWS, columns=columns):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, BadInputError):
            raise
        raise BadInputError(
            path, f"the Parquet data are damaged ({first_line(error)}); download the file again."
        ) from error


def _is_wanted(column_path: Sequence[str]) -> bool:
    top = column_path[0].strip("_")
    if top in NESTED_COLUMNS:
        return len(column_path) == 1 or column_path[1] in NESTED_COLUMNS[top]
    return top == "metric" or top in FLAT_WANTED
