"""Results and predictions of one dataset, row by row, and the reported metrics."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, BlockBuilder, describe_policy
from tracker.ingest.files.file_contents import open_file
from tracker.ingest.files.json_files import iterate_json_lines, parse_json
from tracker.ingest.files.json_stream import stream_parts
from tracker.ingest.files.json_values import count, first_bytes, mapping, number, printed_decimals
from tracker.ingest.files.tabular.cells import shorten
from tracker.ingest.formats.opencompass.result_paths import OpenCompassPath
from tracker.ingest.formats.opencompass.rows import (
    NO_GOLD,
    NOT_COMPARABLE,
    RECOMPUTED,
    SCORED,
    OpenCompassRow,
    parse_detail,
    parse_prediction,
)
from tracker.ingest.measurement import Measurement, MetricDescription, ReadOptions
from tracker.ingest.reported_score import CORPUS, ReportedScore

NAMESPACE = "opencompass"
CHUNK = 1 << 20
NOWHERE = "\0"
"""A name that no member has, so that all members of the object are read."""
DETAILS_LIST = re.compile(rb'"details"\s*:\s*\[')
PERCENT = re.compile(r"(?:.*[ _/-])?(?:accuracy|acc|score|exact_match|em|f1|pass@\d+|rouge\w*|bleu|(?:m?G-Pass@.*))"
                     r"(?: \(\d+ runs average\))?", re.IGNORECASE)  # fmt: skip
"""Reported percentages of correct answers, or scores on the same scale."""
AGGREGATES = ("accuracy", "acc", "score", "exact_match", "em")
"""Names of the mean of the rows, the most likely first."""


class OpenCompassRows:
    """Collects rows into blocks, and counts them for warnings."""

    def __init__(self, place: OpenCompassPath, options: ReadOptions) -> None:
        self.place, self.options = place, options
        self._builder = BlockBuilder(place.run(options), NAMESPACE, place.path.name)
        self.how: Counter[str] = Counter()
        self.n_rows = self._n_empty = self._n_unjudged = 0
        self._total, self._n_scored = 0.0, 0
        self._metrics = {
            how: MetricDescription(
                name=options.metric or name,
                higher_is_better=True if options.higher_is_better is None else options.higher_is_better,
                lower=0.0 if options.lower is None else options.lower,
                upper=1.0 if options.upper is None else options.upper,
            )
            for how, name in ((SCORED, "accuracy"), (RECOMPUTED, "exact_match"))
        }

    def add(self, key: str, row: OpenCompassRow) -> Iterator[Measurement]:
        """Add a row; yield full blocks."""
        self.n_rows += 1
        self.how[row.how] += 1
        metric = self._metrics.get(row.how)
        for trial in range(max(len(row.answers), len(row.scores), 1)):
            at = self._builder.row(self.place.dataset, key, trial, row.content)
            answer = row.answers[trial] if trial < len(row.answers) else None
            try:
                if trial < len(row.answers):
                    self._builder.answer(at, answer, probability=row.probability if trial == 0 else math.nan)
                if metric is not None and trial < len(row.scores):
                    self._score(at, metric, row.scores[trial], empty=trial < len(row.answers) and answer is None)
            except ValueError as error:
                raise BadInputError(self.place.path, f"{key!r} is a duplicate: {error}.") from error
        if self._builder.is_full:
            yield from self._builder.blocks()

    def _score(self, at: int, metric: MetricDescription, value: float, *, empty: bool) -> None:
        if math.isnan(value):
            self._n_unjudged += 1
            return
        self._total += value
        self._n_scored += 1
        self._n_empty += empty
        if empty and self.options.empty == "missing":
            self._builder.log(at, metric, value)
            value = math.nan
        self._builder.score(at, metric, value)

    def rest(self) -> Iterator[Measurement]:
        """Yield the remaining blocks."""
        yield from self._builder.blocks()

    def warnings(self, reported: Mapping[str, float]) -> Iterator[str]:
        """Yield the warnings, which compare the report with the rows."""
        dataset = self.place.dataset
        if n := self.how[RECOMPUTED]:
            yield (
                f"{dataset}: the file does not mark correct answers. {n:,} were compared with the reference answers, "
                "and exact_match was computed without the harness's answer extraction. "
                f"{self._describe_reported(reported)}"
            )
        if n := self.how[NO_GOLD]:
            yield (
                f"{dataset}: {n:,} prompts have no reference answer and were not scored; OpenCompass drops reference "
                "answers that are 0 or empty"
            )
        if n := self.how[NOT_COMPARABLE]:
            yield f"{dataset}: {n:,} answers of several rounds, or missing ones, were not scored"
        if self._n_unjudged:
            yield f"{dataset}: {self._n_unjudged:,} scores are not numbers from 0 to 1 and were skipped"
        if self._n_empty:
            phrase = "answer is empty|answers are empty"
            yield f"{dataset}: {describe_policy(self._n_empty, EMPTY, self.options.empty or 'wrong', phrase)}"

    def reported_scores(self, reported: Mapping[str, float]) -> Iterator[ReportedScore | str]:
        """Yield the reported percentages as proportions: the mean of the rows, and other metrics."""
        name_of_mean = _reported_mean(reported) if self.how[SCORED] else None
        for name, percent in reported.items():
            is_mean = name == name_of_mean
            decimals = printed_decimals(percent, 2)
            yield ReportedScore(
                run=self._builder.run,
                metric=self._metrics[SCORED] if is_mean else _proportion(name),
                tasks=(self.place.dataset,),
                value=percent / 100,
                aggregations=("row_mean",) if is_mean else CORPUS,
                decimals=None if decimals is None else decimals + 2,
                name=name,
            )
        if reported:
            yield f"{self.place.dataset}: percentages converted to proportions: {_describe_percentages(reported)}"

    def _describe_reported(self, reported: Mapping[str, float]) -> str:
        mean = f"Their mean is {self._total / self._n_scored:.6g}" if self._n_scored else "No answer could be compared"
        return mean if reported else f"{mean}; the report is missing"


def read_results(place: OpenCompassPath, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield the details of results, else the predictions, else the reported numbers.

    Raises:
        BadInputError: the file is invalid or holds none of these.
    """
    rows = OpenCompassRows(place, options)
    fields: dict[str, Any] = {}
    try:
        for name, value in _results(place.path):
            if isinstance(name, int):
                yield from rows.add(str(name), parse_detail(mapping(value)))
            elif name == "error":
                raise BadInputError(place.path, f"the evaluation failed: {str(value)[:200]}")
            else:
                fields[name] = value
    except BadInputError:
        yield from rows.rest()
        raise
    yield from rows.rest()
    reported = _percentages(fields)
    if rows.n_rows:
        yield from rows.warnings(reported)
        yield from rows.reported_scores(reported)
        return
    if place.predictions:
        yield from _predicted(place, options, place.predictions, reported)
        return
    yield from _whole(place, rows, fields)


def read_predictions(place: OpenCompassPath, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield predictions, compared with their reference answers.

    Raises:
        BadInputError: the file is invalid.
    """
    reported: dict[str, float] = {}
    if place.results is not None and not place.is_unfinished:
        reported = _percentages({name: value for name, value in _results(place.results) if isinstance(name, str)})
    files = place.predictions if place.is_first and not place.is_unfinished else [place.path]
    yield from _predicted(place, options, files, reported)
    if place.is_unfinished:
        yield f"{place.dataset}: the harness did not finish; the predictions are incomplete"


def _predicted(
    place: OpenCompassPath, options: ReadOptions, files: Iterable[Path], reported: Mapping[str, float]
) -> Iterator[Measurement | ReportedScore | str]:
    rows = OpenCompassRows(place, options)
    offset = 0
    try:
        for file in files:
            largest = -1
            for number_of, entry in _predictions(file, in_lines=place.is_in_lines and file == place.path):
                largest = max(largest, number_of)
                yield from rows.add(str(offset + number_of), parse_prediction(entry))
            offset += largest + 1
    except BadInputError:
        yield from rows.rest()
        raise
    yield from rows.rest()
    yield from rows.warnings(reported)
    yield from rows.reported_scores(reported)


def _reported_mean(reported: Mapping[str, float]) -> str | None:
    """Return the name of the reported mean of the rows."""
    aggregates = (
        metric for name in AGGREGATES for metric in reported if metric == name or metric.startswith(f"{name} (")
    )
    return next(aggregates, None)


def _percentages(fields: Mapping[str, Any]) -> dict[str, float]:
    numbers = ((name, number(value)) for name, value in fields.items() if PERCENT.fullmatch(name))
    return {name: value for name, value in numbers if value is not None and 0 <= value <= 100}


def _proportion(name: str) -> MetricDescription:
    return MetricDescription(name=name, higher_is_better=True, lower=0.0, upper=1.0)


def _describe_percentages(reported: Mapping[str, float]) -> str:
    return ", ".join(f"{shorten(name)} {percent:g} to {percent / 100:g}" for name, percent in reported.items())


def _whole(place: OpenCompassPath, rows: OpenCompassRows, fields: Mapping[str, Any]) -> Iterator[ReportedScore | str]:
    """Yield the reported numbers of a dataset without rows."""
    reported = _percentages(fields)
    yield from rows.reported_scores(reported)
    if reported:
        yield f"{place.dataset}: only task scores were read"
    if passed := [name for name in fields if name not in reported]:
        yield f"{place.dataset}: skipped values that are not percentages: {', '.join(map(shorten, passed))}"
    if not reported:
        raise BadInputError(place.path, "holds neither details nor percentages, and its predictions are missing.")


def _results(path: Path) -> Iterator[tuple[str | int, Any]]:
    """Yield members of results, and entries of their details by number."""
    head = first_bytes(path)
    in_list = isinstance(head, bytes) and DETAILS_LIST.search(head) is not None
    depth = ("details",) if in_list else ("details", NOWHERE)
    n_listed = 0
    with open_file(path) as file:
        for name, data in stream_parts(iter(lambda: file.read(CHUNK), b""), path, of=depth):
            value = parse_json(path, data, f"entry {n_listed}" if name is None else f"{name[:40]!r}")
            if name is None:
                yield n_listed, value
                n_listed += 1
            elif name == "details" and isinstance(value, list):
                yield from enumerate(value)
            elif re.fullmatch(r"\d{1,9}", name):
                yield int(name), value
            else:
                yield name, value


def _predictions(path: Path, *, in_lines: bool) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield predictions by number.

    Raises:
        BadInputError: the JSON is invalid, or an entry is not a prediction.
    """
    if in_lines:
        for line, value in iterate_json_lines(path):
            index = count(mapping(value).get("idx"))
            if index is None:
                raise BadInputError(path, f"line {line}: is not a prediction of OpenCompass: it has no idx.")
            yield index, value
        return
    with open_file(path) as file:
        for name, data in stream_parts(iter(lambda: file.read(CHUNK), b""), path, of=(NOWHERE,)):
            value = parse_json(path, data, f"prediction {str(name)[:40]!r}")
            if name is None or not re.fullmatch(r"\d{1,9}", name) or not isinstance(value, dict):
                raise BadInputError(path, f"{str(name)[:40]!r} is not a prediction of OpenCompass.")
            yield int(name), value
