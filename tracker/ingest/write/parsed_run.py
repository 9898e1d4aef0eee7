"""A run of a file with resolved names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tracker.ingest.write.answer_columns import AnswerChunk, AnswerColumn
from tracker.ingest.write.score_columns import ScoreChunk, ScoreColumn, unpack
from tracker.run_fields import RunFields

TaskValue = tuple[float, float | None, int | None]
MAX_DIFFERENCES = 5


def join_differences(texts: Sequence[str]) -> str:
    """Return distinct descriptions of differences as one text: the first few, and the number of further ones."""
    distinct = list(dict.fromkeys(texts))
    more = len(distinct) - MAX_DIFFERENCES
    return "; ".join([*distinct[:MAX_DIFFERENCES], *([f"and {more} more"] if more > 0 else [])])


@dataclass(eq=False)
class ParsedRun:
    """A run of a file, not stored yet.

    Attributes:
        benchmark_id, model_id: keys of benchmark and model.
        model: name of the model in the file.
        fields: settings of the run, as stored.
        columns: its scores, one per metric, sorted by metric.
        answers: what was extracted from the responses, by extraction.
        answer_metrics: keys of the metrics that compare answers with reference answers.
        task_scores: value, standard error and number of prompts by metric and task.
        chunks, answer_chunks: values of each block.
        blocks: index of each block of the run, and the keys of its prompts.
        unverified: reported scores that differ from those computed from the rows; '' if none does.
    """

    benchmark_id: int
    model_id: int
    model: str
    fields: RunFields
    columns: list[ScoreColumn] = field(default_factory=list)
    answers: dict[str, AnswerColumn] = field(default_factory=dict)
    answer_metrics: set[int] = field(default_factory=set)
    task_scores: dict[tuple[int, int], TaskValue] = field(default_factory=dict)
    chunks: dict[int, list[ScoreChunk]] = field(default_factory=lambda: defaultdict(list))
    answer_chunks: list[AnswerChunk] = field(default_factory=list)
    blocks: list[tuple[int, NDArray[np.int64]]] = field(default_factory=list)
    unverified: str = ""

    @property
    def label(self) -> str:
        """Return its label in the file; '' if it has none."""
        return self.fields.label

    @property
    def identity(self) -> tuple[int, int, str, str]:
        """Return what it shares with other runs of its model."""
        return self.benchmark_id, self.model_id, self.fields.condition, self.fields.variant

    def without_unevaluated(self, measured: NDArray[np.int64]) -> tuple[ParsedRun, int]:
        """Return the run without empty answers to prompts that were not evaluated.

        Prompts without a score under another metric were not evaluated if that metric has scores for all other prompts
        with an answer. Their empty answers mean that there is no answer. If those scores cover less, nothing is
        removed.

        Args:
            measured: keys of the prompts with scores under other metrics.

        Returns:
            The run, and the number of removed prompts.
        """
        if not self.answer_metrics or not self.answers:
            return self, 0
        nonempty = [unpack(column.keys[~column.empty])[0] for column in self.answers.values()]
        answered = np.unique(np.concatenate(nonempty))
        answered_or_empty = np.unique(np.concatenate([unpack(column.keys)[0] for column in self.answers.values()]))
        removed = np.setdiff1d(np.setdiff1d(answered_or_empty, answered), measured)
        if not len(answered) or not len(removed) or not np.isin(answered, measured).all():
            return self, 0
        columns = [
            column.where(~np.isin(unpack(column.keys)[0], removed))
            if column.metric_id in self.answer_metrics
            else column
            for column in self.columns
        ]
        answers = {
            extraction: column.where(~np.isin(unpack(column.keys)[0], removed))
            for extraction, column in self.answers.items()
        }
        return replace(self, columns=columns, answers=answers), len(removed)
