"""Values of a run of the merged store, with keys of the target, and their difference from a stored run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.copying.merging.merged_names import MergedNames
from tracker.copying.merging.merged_prompts import MergedPrompts
from tracker.ingest.write.bulk_rows import fetch_raw_rows, load_scores
from tracker.ingest.write.score_columns import ScoreColumn, compare_scores, find_out_of_bounds, pack, unpack
from tracker.schema import Answer, Metric, TaskScore
from tracker.schema.erased_texts import is_same_response

AnswerKey = tuple[int, str, int]
"""Prompt, extraction and trial."""
AnswerValue = tuple[str | None, float | None, str]
"""Text, probability and status."""
TaskKey = tuple[int, int]
"""Metric and task."""
TaskValue = tuple[float, float | None, int | None]
"""Score, standard error and number of prompts."""


@dataclass(eq=False)
class RunValues:
    """Values of one run.

    Attributes:
        columns: its scores, one for each metric.
        answers: extracted answers.
        task_scores: scores of whole tasks.
    """

    columns: list[ScoreColumn] = field(default_factory=list)
    answers: dict[AnswerKey, AnswerValue] = field(default_factory=dict)
    task_scores: dict[TaskKey, TaskValue] = field(default_factory=dict)

    @property
    def n_values(self) -> int:
        """Return the number of values."""
        return self.n_scores + len(self.answers) + len(self.task_scores)

    @property
    def n_scores(self) -> int:
        """Return the number of scores of prompts."""
        return sum(map(len, self.columns))

    @property
    def packed_answers(self) -> dict[str, NDArray[np.int64]]:
        """Return prompts and trials of the answers, packed, by extraction."""
        pairs: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for prompt, extraction, trial in self.answers:
            pairs[extraction].append((prompt, trial))
        packed = {how: np.array(keys, dtype=np.int64) for how, keys in pairs.items()}
        return {how: pack(keys[:, 0], keys[:, 1]) for how, keys in packed.items()}


@dataclass(eq=False)
class RunDifference:
    """Difference between a run of the merged store and a stored one.

    Attributes:
        new, changed: values that the stored run lacks, and those that it has otherwise.
        lacking: answers whose probability is missing in the target.
        n_unchanged: number of equal values.
    """

    new: RunValues = field(default_factory=RunValues)
    changed: RunValues = field(default_factory=RunValues)
    lacking: RunValues = field(default_factory=RunValues)
    n_unchanged: int = 0


class SourceRuns:
    """Reads the values of the source's runs.

    Args:
        names, prompts: resolved rows of the source.
        metrics: metrics of the target by key.
    """

    def __init__(self, names: MergedNames, prompts: MergedPrompts, metrics: Mapping[int, Metric]) -> None:
        self.source, self.names, self.prompts, self.metrics = names.source, names, prompts, metrics

    def read(self, run_id: int) -> RunValues:
        """Return the values of a run of the source.

        Raises:
            BadInputError: a score is outside of the metric's bounds.
        """
        keys, session, mapped = self.names.keys, self.source.session, self.prompts.keys
        values = RunValues()
        for column in load_scores(session, run_id).values():
            prompts, trials = unpack(column.keys)
            packed = pack(self.prompts.map_keys(prompts), trials)
            order = np.argsort(packed)
            mapped_column = ScoreColumn(keys["metric"][column.metric_id], packed[order], column.values[order] + 0.0)
            self._check_bounds(run_id, mapped_column.metric_id, mapped_column.values)
            values.columns.append(mapped_column)
        for (prompt, extraction, trial), answer in load_answer_values(session, run_id).items():
            values.answers[mapped[prompt], extraction, trial] = answer
        for (metric, task), value in load_task_values(session, run_id).items():
            self._check_bounds(run_id, keys["metric"][metric], np.array([value[0]]))
            values.task_scores[keys["metric"][metric], keys["task"][task]] = value
        values.columns.sort(key=lambda column: column.metric_id)
        return values

    def _check_bounds(self, run_id: int, metric_id: int, values: NDArray[np.float64]) -> None:
        metric = self.metrics[metric_id]
        if wrong := int(find_out_of_bounds(values, metric.lower, metric.upper).sum()):
            raise self.source.error("run", run_id, f"{wrong:,} scores are outside the bounds of {metric.name}")


def load_answer_values(session: Session, run_id: int) -> dict[AnswerKey, AnswerValue]:
    """Return the answers of a run."""
    a: Any = Answer
    query = sa.select(a.prompt_id, a.extraction, a.trial, a.text, a.probability, a.status)
    query = query.where(a.run_id == run_id, in_partitions_of_runs(session, Answer.__table__, [run_id]))  # type: ignore[attr-defined]
    return {(row[0], row[1], row[2]): (row[3], row[4], row[5]) for row in fetch_raw_rows(session, query)}


def load_task_values(session: Session, run_id: int) -> dict[TaskKey, TaskValue]:
    """Return the scores of whole tasks of a run."""
    t: Any = TaskScore
    query = sa.select(t.metric_id, t.task_id, t.value, t.stderr, t.n_prompts).where(t.run_id == run_id)
    return {(row[0], row[1]): (row[2], row[3], row[4]) for row in fetch_raw_rows(session, query)}


def compare_run(session: Session, run_id: int, values: RunValues) -> RunDifference:
    """Compare values with a run of the target."""
    difference = RunDifference()
    new, changed = difference.new, difference.changed
    stored = load_scores(session, run_id) if values.columns else {}
    for column in values.columns:
        comparison = compare_scores(column, stored.get(column.metric_id))
        new.columns.append(column.where(comparison.new))
        changed.columns.append(column.where(comparison.different))
        difference.n_unchanged += int((~comparison.new & ~comparison.different).sum())
    stored_answers = load_answer_values(session, run_id) if values.answers else {}
    for key, answer in values.answers.items():
        known = stored_answers.get(key)
        if known is None:
            new.answers[key] = answer
        elif (
            not is_same_response(known[0], answer[0])
            or known[2] != answer[2]
            or (None not in (known[1], answer[1]) and known[1] != answer[1])
        ):
            changed.answers[key] = answer
        else:
            difference.n_unchanged += 1
            if known[1] is None and answer[1] is not None:
                difference.lacking.answers[key] = (known[0], *answer[1:])
    task_scores = load_task_values(session, run_id) if values.task_scores else {}
    for pair, value in values.task_scores.items():
        if pair not in task_scores:
            new.task_scores[pair] = value
        elif task_scores[pair][0] != value[0]:
            changed.task_scores[pair] = value
        else:
            difference.n_unchanged += 1
    return difference
