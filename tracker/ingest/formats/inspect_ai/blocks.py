"""Samples of a log as blocks of measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.formats.inspect_ai.header import LogHeader
from tracker.ingest.formats.inspect_ai.log_index import MAX_METRICS, InspectLogIndex, SampleCounts
from tracker.ingest.formats.inspect_ai.logs import InspectLog
from tracker.ingest.formats.inspect_ai.samples import InspectSample, is_word, number, parse_answer, values
from tracker.ingest.measurement import (
    PROMPTS_PER_BLOCK,
    Answers,
    Measurement,
    MetricDescription,
    Prompts,
    ReadOptions,
    Scores,
)

NAMESPACE = "inspect"
LETTERS_PER_BLOCK = 8_000_000
"""Keeps blocks of long texts small."""


@dataclass(eq=False)
class _Rows:
    """The samples of one block.

    Attributes:
        numbers: number of each sample in the log, from 1.
        scores: scores by metric.
        logged: the same before failed and empty answers are counted; empty unless that makes a difference.
        answers: answers by scorer.
    """

    samples: list[InspectSample] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    scores: dict[str, dict[int, float]] = field(default_factory=dict)
    logged: dict[str, dict[int, float]] = field(default_factory=dict)
    answers: dict[str, dict[int, str]] = field(default_factory=dict)
    n_letters: int = 0


class InspectBlocks:
    """One pass over the samples of a log with known header and index.

    Args:
        log: the log.
        header, index: its header, and the result of the first pass.
        options: how to read the file.
    """

    def __init__(self, log: InspectLog, header: LogHeader, index: InspectLogIndex, options: ReadOptions) -> None:
        self.log, self.header, self.index, self.options = log, header, index, options
        self.places = index.places()
        self.metrics = index.metrics or (header.scorers if options.errored == "wrong" else [])
        self.keeps_logged = index.n_errored > 0 or options.empty == "missing"
        self.n_errored_scored = self.n_empty = self.n_completed = self.n_scored = self.n_samples = 0

    def read(self) -> Iterator[Measurement]:
        """Yield the blocks.

        Raises:
            BadInputError: the log is damaged; raised after the valid part.
        """
        rows = _Rows()
        damage: BadInputError | None = None
        samples = self.log.samples() if self.index.kept is None else iter(self.index.kept)
        for row in range(len(self.index)):
            n, sample = next(samples)
            if not self.places.superseded[row]:
                self._add(rows, row, n, sample)
            if len(rows.keys) >= PROMPTS_PER_BLOCK or rows.n_letters >= LETTERS_PER_BLOCK:
                yield from self._measurements(rows)
                rows = _Rows()
        try:
            next(samples, None)
        except BadInputError as error:
            damage = error
        if rows.keys:
            yield from self._measurements(rows)
        if damage is not None:
            raise damage

    def _add(self, rows: _Rows, row: int, n: int, sample: InspectSample) -> None:
        at = len(rows.keys)
        self.n_samples += 1
        self.n_completed += not sample.errored
        self.n_scored += bool(sample.scores) or not sample.errored
        occurrence = int(self.places.numbers[row])
        rows.samples.append(sample)
        rows.numbers.append(n)
        rows.keys.append(f"{sample.key}#{occurrence}" if occurrence else sample.key)
        rows.n_letters += len(sample.text or "") + sum(map(len, sample.choices or ()))
        if self.keeps_logged:
            for metric, value in self._numbers(sample):
                rows.logged.setdefault(metric, {})[at] = value
        if sample.errored:
            self.n_errored_scored += bool(sample.scores)
            if self.options.errored == "wrong":
                for metric in self.metrics:
                    rows.scores.setdefault(metric, {})[at] = 0.0
            return
        for scorer, score in sample.scores.items():
            answer = parse_answer(score)
            if answer is not None:
                rows.answers.setdefault(scorer, {})[at] = answer
                self.n_empty += not answer
            if answer == "" and self.options.empty == "missing":
                continue
            for metric, value in self._numbers_of(scorer, score):
                rows.scores.setdefault(metric, {})[at] = value
                if metric in self.index.unscored:
                    self.index.unscored[metric].discard(self.index.keys[row])

    def _numbers(self, sample: InspectSample) -> Iterator[tuple[str, float]]:
        for scorer, score in sample.scores.items():
            yield from self._numbers_of(scorer, score)

    def _numbers_of(self, scorer: str, score: Any) -> Iterator[tuple[str, float]]:
        """Yield the metrics that are read of a score, with their numbers."""
        for metric, value in values(scorer, score):
            parsed = 0.0 if metric in self.index.words and is_word(scorer, metric, value) else number(value)
            if parsed is not None and metric in self.metrics and not math.isnan(parsed):
                yield metric, parsed

    def _measurements(self, rows: _Rows) -> Iterator[Measurement]:
        samples, task = rows.samples, self.header.task
        prompts = Prompts(
            keys=rows.keys,
            tasks=[task] * len(samples),
            namespace=NAMESPACE,
            text=[sample.text for sample in samples],
            choices=[sample.choices for sample in samples],
            answer=[sample.answer for sample in samples],
            details=[sample.details for sample in samples],
            benchmark=task,
            lines=np.array(rows.numbers, dtype=np.int64),
        )
        trials = np.array([sample.epoch - 1 for sample in samples], dtype=np.int64)
        groups = self._groups(samples)
        if not rows.scores:
            yield prompts
        for metric in dict.fromkeys([*rows.scores, *rows.logged]):
            yield Scores(
                run=self.header.run,
                metric=self._described(metric),
                prompts=prompts,
                values=_column(rows.scores.get(metric, {}), len(samples)),
                trials=trials,
                places=f"scorer {metric!r}",
                logged=_column(rows.logged.get(metric, {}), len(samples)) if self.keeps_logged else None,
                groups=groups,
            )
        for scorer, answers in rows.answers.items():
            texts = [answers.get(at) or None for at in range(len(samples))]
            yield Answers(
                run=self.header.run,
                prompts=prompts,
                text=texts,
                status=["error" if sample.errored else "ok" if text else "empty"
                        for sample, text in zip(samples, texts, strict=True)],
                extraction=scorer,
                trials=trials,
                predicted=np.array([at in answers or sample.errored for at, sample in enumerate(samples)]),
                places=f"scorer {scorer!r}",
            )  # fmt: skip

    def _groups(self, samples: Sequence[InspectSample]) -> dict[str, list[str]]:
        """Return the values of the fields by which the log groups samples, if all samples have them."""
        fields = [name for name in self.header.group_fields if all(name in (s.details or {}) for s in samples)]
        return {name: [str((sample.details or {})[name]) for sample in samples] for name in fields}

    @property
    def counts(self) -> SampleCounts:
        """Return the numbers of samples, after the blocks have been read."""
        return SampleCounts(self.n_samples, self.n_completed, self.n_scored, self.index)

    def _described(self, metric: str) -> MetricDescription:
        low, high = self.index.lows.get(metric, 0.0), self.index.highs.get(metric, 0.0)
        return self.header.metric(metric, min(low, 0.0) if self.index.n_errored else low, high)

    def warnings(self) -> Iterator[str]:
        """Yield the warnings, after the blocks have been read."""
        index, options = self.index, self.options
        if n := index.n_errored:
            scored = f" ({self.n_errored_scored:,} of them have scores)" if self.n_errored_scored else ""
            counted = "wrong" if options.errored == "wrong" else "missing"
            yield f"{n:,} samples ended with an error{scored}; they count as {counted} (--errored {counted})"
        if n := index.n_unscored.total():
            yield f"{n:,} scores are missing: the scorer could not score the answer"
        if self.n_empty:
            counted = "missing (--empty missing)" if options.empty == "missing" else "scored by the harness"
            yield f"{self.n_empty:,} answers are empty; they count as {counted}"
        if n := int(self.places.superseded.sum()):
            yield f"{n:,} samples were retried with the same id and epoch; the last attempt counts"
        if n := len(np.unique(self.places.prompt[self.places.numbers > 0])):
            yield f"{n:,} prompts share their id with another prompt; they are stored as id#1, id#2, …"
        if index.n_cut:
            yield f"the log truncates the text of {index.n_cut:,} samples; these texts were not stored"
        for metric, n in index.passed_over.items():
            yield f"{metric}: {n:,} values that are not numbers were skipped, such as lists, mappings or words"
        for metric, n in index.words.items():
            yield f"{metric}: {n:,} values that are not numbers count as 0, as in Inspect's own means"
        if len(index.lows) > MAX_METRICS:
            yield f"the log has {len(index.lows):,} metrics; only the first {MAX_METRICS} were read"


def _column(numbers: Mapping[int, float], n: int) -> NDArray[np.float64]:
    """Return numbers by row as a column; NaN without one."""
    column = np.full(n, math.nan)
    at = np.fromiter(numbers, dtype=np.int64, count=len(numbers))
    column[at] = np.fromiter(numbers.values(), dtype=np.float64, count=len(numbers))
    return column
