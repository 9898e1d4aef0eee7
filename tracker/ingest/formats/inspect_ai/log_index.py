"""Index of all samples of a log, which must be known before reading: prompts, retries and metrics."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.formats.inspect_ai.results import RowMetric
from tracker.ingest.formats.inspect_ai.samples import InspectSample, hash_to_int, is_word, number, values

MAX_METRICS = 200
KEPT = 64 << 20
"""Samples up to about this many bytes are kept from the first pass."""


@dataclass(eq=False)
class InspectLogIndex:
    """A compact index of the samples of a log, with counts of special cases.

    Attributes:
        keys, contents: hashes of id and content, in the order of the log; 0 for unknown content.
        epochs: epoch of each sample, from 1.
        lows, highs: smallest and largest score of each metric with scores.
        passed_over: number of values that are not scores, by metric.
        n_unscored: number of values that mark missing scores, by metric.
        unscored: hashes of the ids of their samples, by metric; the second pass removes those with another score.
        grades: grades and other texts by their number, by metric.
        words: number of words and nulls that are no scores, by metric.
        kept: the samples of a small intact log, so that it is read once; None otherwise.
        n_errored, n_cut: number of samples that ended with an error, and of those with truncated texts.
    """

    keys: array[int] = field(default_factory=lambda: array("q"))
    contents: array[int] = field(default_factory=lambda: array("q"))
    epochs: array[int] = field(default_factory=lambda: array("i"))
    lows: dict[str, float] = field(default_factory=dict)
    highs: dict[str, float] = field(default_factory=dict)
    passed_over: Counter[str] = field(default_factory=Counter)
    n_unscored: Counter[str] = field(default_factory=Counter)
    unscored: dict[str, set[int]] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    grades: dict[str, dict[float, set[str]]] = field(default_factory=dict)
    n_errored: int = 0
    n_cut: int = 0
    kept: list[tuple[int, InspectSample]] | None = field(default_factory=list)

    @classmethod
    def of(cls, samples: Iterable[tuple[int, InspectSample]]) -> InspectLogIndex:
        """Yield the samples before the first damage; the second pass reports the damage."""
        index = cls()
        room = KEPT
        try:
            for number_in_log, sample in samples:
                index._add(sample)
                room -= sample.size
                if index.kept is not None and room >= 0:
                    index.kept.append((number_in_log, sample))
                else:
                    index.kept = None
        except BadInputError:
            index.kept = None
        return index

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def metrics(self) -> list[str]:
        """Return the names of the metrics, in the order of the log."""
        return list(self.lows)[:MAX_METRICS]

    @property
    def row_metrics(self) -> dict[str, RowMetric]:
        """Return the metrics of the samples."""
        return {
            metric: RowMetric(
                is_ambiguous=metric in self.words
                or any(len(texts) > 1 for texts in self.grades.get(metric, {}).values()),
                has_unscored=self.n_unscored[metric] > 0,
            )
            for metric in [*self.lows, *self.words]
        }

    def count_words(self, averaged: Collection[str]) -> None:
        """Count words as zero in metrics of which the log reports a mean, as Inspect does, and skip the others."""
        for metric, n in list(self.words.items()):
            if metric in averaged:
                self.lows[metric] = min(0.0, self.lows.get(metric, 0.0))
                self.highs[metric] = max(0.0, self.highs.get(metric, 0.0))
            else:
                self.passed_over[metric] += n
                del self.words[metric]

    def places(self) -> PromptPlaces:
        """Return which samples belong to the same prompt, and which were superseded."""
        keys, contents = _column(self.keys, np.int64), _column(self.contents, np.int64)
        epochs = _column(self.epochs, np.int32).astype(np.int64)
        numbers = _numbered(keys, contents)
        _, prompt = np.unique(np.stack([keys, numbers]), axis=1, return_inverse=True)
        prompt = prompt.reshape(-1).astype(np.int64)
        # The last sample of each prompt and epoch counts: the first from the end.
        _, last = np.unique(np.stack([prompt, epochs])[:, ::-1], axis=1, return_index=True)
        superseded = np.ones(len(keys), dtype=bool)
        superseded[len(keys) - 1 - last] = False
        return PromptPlaces(prompt, numbers, superseded)

    def _add(self, sample: InspectSample) -> None:
        self.keys.append(hash_to_int(sample.key))
        self.contents.append(sample.content)
        self.epochs.append(sample.epoch)
        self.n_errored += sample.errored
        self.n_cut += sample.cut
        for scorer, score in sample.scores.items():
            for metric, value in values(scorer, score):
                parsed = number(value)
                if is_word(scorer, metric, value):
                    self.words[metric] += 1
                elif parsed is None:
                    self.passed_over[metric] += 1
                elif math.isnan(parsed):
                    self.n_unscored[metric] += 1
                    if not sample.errored:
                        self.unscored.setdefault(metric, set()).add(self.keys[-1])
                else:
                    if isinstance(value, str):
                        self.grades.setdefault(metric, {}).setdefault(parsed, set()).add(value)
                    self.lows[metric] = min(parsed, self.lows.get(metric, math.inf))
                    self.highs[metric] = max(parsed, self.highs.get(metric, -math.inf))


@dataclass(frozen=True, eq=False)
class SampleCounts:
    """Numbers of samples of a log, without those that were retried.

    Attributes:
        total: number of samples.
        completed: without an error.
        scored: without an error, or with scores.
        index: the index, after the second pass.
    """

    total: int
    completed: int
    scored: int
    index: InspectLogIndex

    def unscored(self, metric: str) -> tuple[int, int]:
        """Return the numbers of prompts and of samples that a scorer could not score."""
        return len(self.index.unscored.get(metric, ())), self.index.n_unscored[metric]


@dataclass(frozen=True, eq=False)
class PromptPlaces:
    """Prompts of the samples, in the order of the log.

    Attributes:
        prompt: ``(n,)`` int64 index of the prompt.
        numbers: ``(n,)`` int64: 0, and 1, 2, … for further prompts with the same id and different content.
        superseded: ``(n,)`` whether a later sample of the same prompt and epoch replaces it.
    """

    prompt: NDArray[np.int64]
    numbers: NDArray[np.int64]
    superseded: NDArray[np.bool_]

    @property
    def n_prompts(self) -> int:
        """Return the number of prompts."""
        return int(self.prompt.max()) + 1 if len(self.prompt) else 0


def _numbered(keys: NDArray[np.int64], contents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each sample's content within its id, by first appearance; unknown content counts as the
    first.
    """
    numbers = np.zeros(len(keys), dtype=np.int64)
    known = contents != 0
    pairs = np.unique(np.stack([keys[known], contents[known]]), axis=1)
    ids, counts = np.unique(pairs[0], return_counts=True) if pairs.size else (keys[:0], keys[:0])
    ambiguous = ids[counts > 1]
    if not len(ambiguous):
        return numbers
    seen: dict[int, dict[int, int]] = {}
    for row in np.flatnonzero(np.isin(keys, ambiguous) & known).tolist():
        of_key = seen.setdefault(int(keys[row]), {})
        numbers[row] = of_key.setdefault(int(contents[row]), len(of_key))
    return numbers


def _column(values: array[int], kind: type[np.signedinteger]) -> NDArray[np.signedinteger]:
    return np.frombuffer(values, dtype=kind) if len(values) else np.zeros(0, dtype=kind)
