"""Prompts, scores and answers as they come out of a stream, gathered into blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
    """What a file says of one prompt."""

    text: str | None = None
    choices: Sequence[str] | None = None
    answer: str | None = None
    split: str | None = None
    details: Mapping[str, Any] | None = None


@dataclass
class _ExtractedRows:
    """Answers of one extraction, by row."""

    rows: dict[int, tuple[str | None, str, float]] = field(default_factory=dict)


NOTHING = PromptContent()


@dataclass
class BlockBuilder:
    """Rows of one run, each a prompt and a trial, on their way into a block.

    Attributes:
        run: whose they are.
        namespace: who calls the prompts so.
        places: where they stand, for messages.
        disambiguated_by: the detail that tells apart prompts that are called alike; see `Prompts`.
    """

    run: RunDescription
    namespace: str
    places: str = ""
    disambiguated_by: str | None = None
    _rows: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _contents: list[PromptContent] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)
    _scores: dict[MetricDescription, dict[int, float]] = field(default_factory=dict)
    _answers: dict[str, _ExtractedRows] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether it is time to ask for the blocks."""
        return len(self._rows) >= PROMPTS_PER_BLOCK

    def row(self, task: str, key: str, trial: int = 0, content: PromptContent = NOTHING, line: int = 0) -> int:
        """The row of a prompt and trial; the first content given to it stands."""
        row = self._rows.setdefault((task, key, trial), len(self._rows))
        if row == len(self._contents):
            self._contents.append(content)
            self._lines.append(line)
        elif self._contents[row] is NOTHING:
            self._contents[row] = content
        return row

    def score(self, row: int, metric: MetricDescription, value: float) -> None:
        """A score of a row.

        Raises:
            ValueError: the message says that the row has another score under the metric.
        """
        first = self._scores.setdefault(metric, {}).setdefault(row, value)
        if first != value and not (math.isnan(first) and math.isnan(value)):
            raise ValueError(f"it has the score {first:g} and the score {value:g} under {metric.name}, in one trial")

    def answer(self, row: int, text: str | None, *, extraction: str = "", status: str | None = None,
               probability: float = math.nan) -> None:  # fmt: skip
        """An answer of the model in a row.

        Raises:
            ValueError: it has another answer there, extracted alike; the message says which.
        """
        status = status or ("ok" if text is not None else EMPTY)
        first = self._answers.setdefault(extraction, _ExtractedRows()).rows.setdefault(row, (text, status, probability))
        if first[:2] != (text, status):
            raise ValueError(f"it was answered {_shorten_answer(first[0])} and {_shorten_answer(text)}, in one trial")

    def blocks(self) -> Iterator[Measurement]:
        """What has been gathered, and from then on nothing is."""
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
            values = np.full(n, np.nan)
            values[list(scored)] = list(scored.values())
            yield Scores(run=self.run, metric=metric, prompts=prompts, values=values, trials=trials, places=self.places)
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
        for part in (self._rows, self._contents, self._lines, self._scores, self._answers):
            part.clear()


def describe_policy(n: int, kind: str, policy: str, noun: str) -> str:
    """The warning on answers that failed, or hold nothing, and what they counted as.

    Args:
        n: how many.
        kind: `ERRORED` or `EMPTY`.
        policy: ``missing`` or ``wrong``.
        noun: what they are, singular first: ``answer failed|answers failed``.
    """
    singular, _, plural = noun.partition("|")
    alternative = "wrong" if policy == "missing" else "missing"
    event = singular if n == 1 else plural
    return f"{n:,} {event}: counted as {policy} (--{kind} {alternative} counts them as {alternative})"


def _shorten_answer(text: str | None) -> str:
    return "with nothing" if text is None else repr(text[:40])
