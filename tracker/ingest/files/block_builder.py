"""Builder of blocks from streamed prompts, scores and answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.ingest.measurement import (
    PROMPTS_PER_BLOCK,
    Answers,
    Measurement,
    MetricDescription,
    Prompts,
    RunDescription,
    Scores,
)

ERRORED, EMPTY = "errored", "empty"


@dataclass
class PromptContent:
    """Content of a prompt in a file."""

    text: str | None = None
    choices: Sequence[str] | None = None
    answer: str | None = None
    split: str | None = None
    details: Mapping[str, Any] | None = None


@dataclass
class _ExtractedRows:
    """Answers of one extraction by row."""

    rows: dict[int, tuple[str | None, str, float]] = field(default_factory=dict)


NOTHING = PromptContent()


@dataclass
class BlockBuilder:
    """Collects the rows of one run, each a prompt and a trial, into a block.

    Attributes:
        run: the run.
        namespace: namespace of the prompt names.
        places: location of the values, for messages.
        disambiguated_by: detail that disambiguates prompts of the same name; see `Prompts`.
    """

    run: RunDescription
    namespace: str
    places: str = ""
    disambiguated_by: str | None = None
    _rows: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _contents: list[PromptContent] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)
    _scores: dict[MetricDescription, dict[int, float]] = field(default_factory=dict)
    _logged: dict[MetricDescription, dict[int, float]] = field(default_factory=dict)
    _weights: dict[tuple[MetricDescription, str], dict[int, float]] = field(default_factory=dict)
    _answers: dict[str, _ExtractedRows] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Return whether the blocks should be written."""
        return len(self._rows) >= PROMPTS_PER_BLOCK

    def row(self, task: str, key: str, trial: int = 0, content: PromptContent = NOTHING, line: int = 0) -> int:
        """Return the row of a prompt and trial; its first content is kept."""
        row = self._rows.setdefault((task, key, trial), len(self._rows))
        if row == len(self._contents):
            self._contents.append(content)
            self._lines.append(line)
        elif self._contents[row] is NOTHING:
            self._contents[row] = content
        return row

    def score(self, row: int, metric: MetricDescription, value: float) -> None:
        """Add a score to a row.

        Raises:
            ValueError: the row has a different score for the metric.
        """
        first = self._scores.setdefault(metric, {}).setdefault(row, value)
        if first != value and not (math.isnan(first) and math.isnan(value)):
            raise ValueError(f"two scores for {metric.name} in the same trial: {first:g} and {value:g}")

    def log(self, row: int, metric: MetricDescription, value: float) -> None:
        """Add the harness's own value of a score that is counted differently here."""
        self._scores.setdefault(metric, {})
        self._logged.setdefault(metric, {})[row] = value

    def weigh(self, row: int, metric: MetricDescription, name: str, weight: float) -> None:
        """Add the weight of a score in the reported score of a metric."""
        self._weights.setdefault((metric, name), {})[row] = weight

    def answer(self, row: int, text: str | None, *, extraction: str = "", status: str | None = None,
               probability: float = math.nan) -> None:  # fmt: skip
        """Add an answer to a row.

        Raises:
            ValueError: the row has a different answer of the same extraction.
        """
        status = status or ("ok" if text is not None else EMPTY)
        first = self._answers.setdefault(extraction, _ExtractedRows()).rows.setdefault(row, (text, status, probability))
        if first[:2] != (text, status):
            raise ValueError(f"two answers in the same trial: {_shorten_answer(first[0])} and {_shorten_answer(text)}")

    def blocks(self) -> Iterator[Measurement]:
        """Return the collected blocks and reset the builder."""
        if not self._rows:
            return
        n = len(self._rows)
        contents = self._contents
        prompts = Prompts(
            keys=[key for _, key, _ in self._rows],
            tasks=[task for task, _, _ in self._rows],
            namespace=self.namespace,
            text=[content.text for content in contents],
            choices=[content.choices for content in contents],
            answer=[content.answer for content in contents],
            split=[content.split for content in contents],
            details=[content.details for content in contents],
            disambiguated_by=self.disambiguated_by,
            benchmark=self.run.benchmark,
            lines=np.array(self._lines, dtype=np.int64) if any(self._lines) else None,
        )
        trials = np.array([trial for _, _, trial in self._rows], dtype=np.int64)
        if not self._scores and not self._answers:
            yield prompts
        for metric, scored in self._scores.items():
            yield Scores(
                run=self.run,
                metric=metric,
                prompts=prompts,
                values=_column(scored, n),
                trials=trials,
                places=self.places,
                logged=_column(scored | self._logged[metric], n) if metric in self._logged else None,
                weights={name: _column(part, n) for (of, name), part in self._weights.items() if of == metric},
            )
        for extraction, extracted in self._answers.items():
            answers = [extracted.rows.get(row, (None, "ok", math.nan)) for row in range(n)]
            predicted = np.zeros(n, dtype=bool)
            predicted[list(extracted.rows)] = True
            yield Answers(
                run=self.run,
                prompts=prompts,
                text=[answer[0] for answer in answers],
                status=[answer[1] for answer in answers],
                probability=np.array([answer[2] for answer in answers]),
                extraction=extraction,
                trials=trials,
                predicted=predicted,
                places=self.places,
            )
        for part in (
            self._rows, self._contents, self._lines, self._scores, self._logged, self._weights, self._answers
        ):  # fmt: skip
            part.clear()


def _column(numbers: Mapping[int, float], n: int) -> NDArray[np.float64]:
    """Return numbers by row as a column; NaN without one."""
    column = np.full(n, np.nan)
    column[list(numbers)] = list(numbers.values())
    return column


class RunBuilders:
    """Builders of the blocks of several runs in one file.

    Args:
        namespace: namespace of the prompt names.
        places: location of the values, for messages.
    """

    def __init__(self, namespace: str, places: str = "") -> None:
        self._namespace, self._places = namespace, places
        self._builders: dict[RunDescription, BlockBuilder] = {}

    def builder(self, run: RunDescription) -> BlockBuilder:
        """Return the builder of a run."""
        if run not in self._builders:
            self._builders[run] = BlockBuilder(run, self._namespace, self._places)
        return self._builders[run]

    def full_blocks(self) -> Iterator[Measurement]:
        """Return the blocks of full builders."""
        for builder in self._builders.values():
            if builder.is_full:
                yield from builder.blocks()

    def blocks(self) -> Iterator[Measurement]:
        """Return the blocks of all builders."""
        for builder in self._builders.values():
            yield from builder.blocks()


def describe_policy(n: int, kind: str, policy: str, noun: str) -> str:
    """Return the warning about failed or empty answers and how they count.

    Args:
        n: number of answers.
        kind: `ERRORED` or `EMPTY`.
        policy: ``missing`` or ``wrong``.
        noun: singular and plural, such as ``answer failed|answers failed``.
    """
    singular, _, plural = noun.partition("|")
    alternative = "wrong" if policy == "missing" else "missing"
    event = singular if n == 1 else plural
    return f"{n:,} {event}: counted as {policy} (change with --{kind} {alternative})"


def _shorten_answer(text: str | None) -> str:
    return "empty" if text is None else repr(text[:40])
