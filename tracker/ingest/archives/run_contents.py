"""Values of an archive's runs, one run at a time: scores, answers and task scores, by keys of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.archives.archive_file import StoreArchive
from tracker.ingest.archives.archived_names import ArchivedNames
from tracker.ingest.archives.archived_prompts import ArchivedPrompts
from tracker.ingest.write.score_columns import ScoreColumn, find_out_of_bounds, pack
from tracker.schema import Metric
from tracker.schema.measurements import ANSWER_STATUSES

if TYPE_CHECKING:
    import pyarrow as pa

AnswerKey = tuple[int, str, int]
"""Prompt, extraction and trial."""
AnswerValue = tuple[str | None, float | None, str]
"""Text, probability and status."""
TaskKey = tuple[int, int]
"""Metric and task."""
TaskValue = tuple[float, float | None, int | None]
"""Score, standard error and number of prompts."""


@dataclass(eq=False)
class RunContent:
    """Values of one run.

    Attributes:
        columns: its scores, one for each metric.
        answers: extracted answers.
        task_scores: scores of whole tasks.
    """

    columns: list[ScoreColumn]
    answers: dict[AnswerKey, AnswerValue]
    task_scores: dict[TaskKey, TaskValue]

    @property
    def n_values(self) -> int:
        """Return the number of values."""
        return sum(map(len, self.columns)) + len(self.answers) + len(self.task_scores)


class RunContents:
    """Reads the values of an archive's runs.

    Args:
        names, prompts: resolved rows of the archive.
        metrics: metrics of the store by key.
    """

    def __init__(self, names: ArchivedNames, prompts: ArchivedPrompts, metrics: Mapping[int, Metric]) -> None:
        self.archive, self.names, self.prompts, self.metrics = names.archive, names, prompts, metrics
        self._score_rows, self._answer_rows, self._task_rows, self._source_rows = (
            RunRowReader(self.archive, table) for table in ("score", "answer", "task_score", "run_source")
        )

    def read_run(self, place: int, n_scores: int) -> RunContent:
        """Return the values of the run at an index; indices must increase.

        Args:
            place: index of the run.
            n_scores: expected number of prompt scores.

        Raises:
            BadInputError: the values contradict each other, the metric's bounds or the expected number.
        """
        content = RunContent(
            self._columns(place, self._score_rows.read_run(place)),
            self._answers(place, self._answer_rows.read_run(place)),
            self._task_scores(place, self._task_rows.read_run(place)),
        )
        if sum(map(len, content.columns)) != n_scores:
            raise self.archive.error("run", place, f"its number of scores is not {n_scores:,}")
        return content

    def sources(self, place: int) -> list[int]:
        """Return the keys of the sources of the run at an index."""
        rows = self._source_rows.read_run(place)
        return [] if rows is None else self.names.keys["source"][read_numbers(rows, "source")].tolist()

    def check_end(self, n_runs: int) -> None:
        """Check that all runs have been read.

        Raises:
            BadInputError: unread rows remain.
        """
        for reader in (self._score_rows, self._answer_rows, self._task_rows, self._source_rows):
            reader.check_end(n_runs)

    def _columns(self, place: int, rows: pa.Table | None) -> list[ScoreColumn]:
        if rows is None:
            return []
        metrics = self.names.keys["metric"][read_numbers(rows, "metric")]
        prompts = self.prompts.keys[read_numbers(rows, "prompt")]
        keys, values = (
            pack(prompts, read_numbers(rows, "trial")),
            read_numbers(rows, "value", np.float64) + 0.0,
        )  # -0.0 becomes 0.0
        columns = []
        for metric in sorted(set(metrics.tolist())):
            of = metrics == metric
            order = np.argsort(keys[of])
            column = ScoreColumn(metric, keys[of][order], values[of][order])
            if (column.keys[1:] == column.keys[:-1]).any():
                raise self.archive.error("run", place, "two scores for the same prompt, metric and trial")
            known = self.metrics[metric]
            if wrong := int(find_out_of_bounds(column.values, known.lower, known.upper).sum()):
                text = f"{wrong:,} scores are outside the bounds of {known.name}"
                raise self.archive.error("run", place, text)
            columns.append(column)
        return columns

    def _answers(self, place: int, rows: pa.Table | None) -> dict[AnswerKey, AnswerValue]:
        if rows is None:
            return {}
        prompts = self.prompts.keys[read_numbers(rows, "prompt")].tolist()
        extraction, trial, text, probability, status = (
            rows[name].to_pylist() for name in ("extraction", "trial", "text", "probability", "status")
        )
        if unknown := set(status) - set(ANSWER_STATUSES):
            raise self.archive.error("run", place, f"an answer has the unknown status {unknown.pop()!r}")
        keys, values = zip(prompts, extraction, trial, strict=True), zip(text, probability, status, strict=True)
        answers = dict(zip(keys, values, strict=True))
        if len(answers) < len(prompts):
            raise self.archive.error("run", place, "two answers to the same prompt and trial")
        return answers

    def _task_scores(self, place: int, rows: pa.Table | None) -> dict[TaskKey, TaskValue]:
        if rows is None:
            return {}
        scores: dict[TaskKey, TaskValue] = {}
        for row in rows.to_pylist():
            key = int(self.names.keys["metric"][row["metric"]]), int(self.names.keys["task"][row["task"]])
            metric = self.metrics[key[0]]
            if find_out_of_bounds(np.array([row["value"]]), metric.lower, metric.upper).any():
                raise self.archive.error("run", place, f"a score is outside the bounds of {metric.name}")
            if key in scores:
                raise self.archive.error("run", place, "two scores for the same task and metric")
            scores[key] = row["value"], row["stderr"], row["n_prompts"]
        return scores


class RunRowReader:
    """Reads a table that is sorted by run, run by run."""

    def __init__(self, archive: StoreArchive, table: str) -> None:
        self._archive, self._table = archive, table
        self._batches = archive.batches(table)
        self._batch: pa.RecordBatch | None = None
        self._ends: Sequence[tuple[int, int, int]] = ()
        self._n = 0

    def read_run(self, run: int) -> pa.Table | None:
        """Return the rows of the run at an index, None if it has none; indices must increase.

        Raises:
            BadInputError: the rows are not sorted.
        """
        import pyarrow as pa

        parts: list[pa.RecordBatch] = []
        while True:
            if not self._ends:
                self._batch = next(self._batches, None)
                if self._batch is None:
                    break
                self._ends = self._runs(self._batch)
                continue
            number, start, stop = self._ends[0]
            if number > run:
                break
            if number < run:
                raise self._order_error()
            assert self._batch is not None
            parts.append(self._batch.slice(start, stop - start))
            self._ends = self._ends[1:]
        return pa.Table.from_batches(parts) if parts else None

    def check_end(self, n_runs: int) -> None:
        """Check that all runs have been read.

        Raises:
            BadInputError: unread rows remain.
        """
        if self.read_run(n_runs) is not None or self._ends:
            raise self._order_error()

    def _runs(self, batch: pa.RecordBatch) -> list[tuple[int, int, int]]:
        """Return run, first row and end row of each part of a batch."""
        if not batch.num_rows:
            return []
        runs = read_numbers(batch, "run")
        starts = np.concatenate([[0], np.flatnonzero(np.diff(runs)) + 1, [len(runs)]]).tolist()
        return [(int(runs[first]), first, stop) for first, stop in pairwise(starts)]

    def _order_error(self) -> BadInputError:
        return BadInputError(self._archive.path, f"{self._table}: the rows are not sorted by run.")


def read_numbers(rows: pa.Table | pa.RecordBatch, name: str, kind: Any = np.int64) -> NDArray[Any]:
    """Return a column without nulls as an array."""
    column = rows.column(name)
    return np.asarray(column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False), kind)
