"""Matching of parsed runs with stored runs: new values and conflicts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session
from sqlmodel import select

from tracker.connections.partitions import in_partitions_of_runs
from tracker.errors import ConflictError
from tracker.ingest.write.answer_columns import AnswerColumn, compare_answers, load_answers
from tracker.ingest.write.bulk_rows import load_scores
from tracker.ingest.write.checksums import compute_checksum
from tracker.ingest.write.parsed_run import ParsedRun, TaskValue
from tracker.ingest.write.score_columns import ScoreColumn, compare_scores, unpack
from tracker.run_fields import run_values
from tracker.run_settings import IDENTITY, evaluation_identity, remove_evaluation
from tracker.schema import Run, RunSource, TaskScore, metadata
from tracker.schema.table import now

OnConflict = Literal["rerun", "skip", "update", "error"]
PromptNames = Callable[[ParsedRun, Sequence[int]], list[str]]
OUR_LABEL = re.compile(r"^(?:#(\d+))?$")
MAX_NAMES = 3
MODELS_PER_QUERY = 1000
MAX_WARNINGS = 5


@dataclass(eq=False)
class RunUpdate:
    """Changes that a parsed run makes to the store.

    Attributes:
        parsed: the parsed run.
        run: the stored run; not in the store yet if ``is_new``.
        columns, answers, task_scores: values to insert.
        changed_columns, changed_answers, changed_task_scores: values to overwrite.
        covers_stored: whether the file has a value for every stored value of the run.
        n_unchanged, n_skipped: number of stored scores that are equal, and of different ones that are kept.
        is_trusted: whether the checksum of the run's stored scores is valid; None unless the file may overwrite them.
        new_metrics: metrics under which a stored run has no scores yet.
        copied_metrics: those whose scores equal the stored ones under another metric, which the file does not have.
        warning: message for the user.
    """

    parsed: ParsedRun
    run: Run
    is_new: bool
    columns: list[ScoreColumn] = field(default_factory=list)
    answers: dict[str, AnswerColumn] = field(default_factory=dict)
    task_scores: dict[tuple[int, int], TaskValue] = field(default_factory=dict)
    changed_columns: list[ScoreColumn] = field(default_factory=list)
    changed_answers: dict[str, AnswerColumn] = field(default_factory=dict)
    changed_task_scores: dict[tuple[int, int], TaskValue] = field(default_factory=dict)
    n_unchanged: int = 0
    n_skipped: int = 0
    covers_stored: bool = True
    is_trusted: bool | None = None
    new_metrics: set[int] = field(default_factory=set)
    copied_metrics: dict[int, int] = field(default_factory=dict)
    warning: str = ""

    def warn(self, text: str) -> None:
        """Prepend a warning."""
        self.warning = f"{text}; {self.warning}" if self.warning else text

    @property
    def changes_something(self) -> bool:
        """Return whether an existing run gains or changes a value."""
        parts: tuple[Any, ...] = (
            self.task_scores, self.changed_task_scores, *self.columns, *self.changed_columns,
            *self.answers.values(), *self.changed_answers.values(),
        )  # fmt: skip
        return any(len(part) for part in parts)


class StoredRuns:
    """Stored runs of a file's models.

    Args:
        session: the store.
        parsed_runs: the runs of the file.
        path: the file, for messages.
        prompt_names: returns the names of some of a run's prompts in the file, for messages.
        source_id: key of the file if it was ingested before; its runs then match first.
    """

    def __init__(
        self,
        session: Session,
        parsed_runs: Sequence[ParsedRun],
        path: Path,
        prompt_names: PromptNames,
        source_id: int | None = None,
    ) -> None:
        self.session, self.path, self.prompt_names = session, path, prompt_names
        runs: Any = Run
        identity = runs.settings[IDENTITY].as_string()
        query = sa.select(runs.benchmark_id, runs.model_id, runs.condition, runs.variant, identity, runs.label, runs.id)
        models = sorted({parsed.model_id for parsed in parsed_runs})
        query = query.where(runs.benchmark_id.in_(sorted({parsed.benchmark_id for parsed in parsed_runs})))
        if len(models) <= MODELS_PER_QUERY:
            query = query.where(runs.model_id.in_(models))
        self._labels: dict[tuple[int, int, str, str], dict[str, int]] = defaultdict(dict)
        self._evaluated: set[int] = set()
        for *key, evaluation, label, run_id in session.execute(query.order_by(runs.id)):
            self._labels[tuple(key)][label] = run_id
            if evaluation_identity({IDENTITY: evaluation}) is not None:
                self._evaluated.add(run_id)
        linked = select(RunSource.run_id).where(RunSource.source_id == source_id)
        self._linked = set(session.scalars(linked)) if source_id is not None else set()

    def plan_update(self, parsed: ParsedRun, on_conflict: OnConflict) -> RunUpdate:
        """Find the stored run of a parsed run, compare them, and plan the changes.

        A file never changes a run evaluated by Suffrage: it either adds nothing, or becomes another run.

        Raises:
            ConflictError: stored values differ, and ``on_conflict`` does not resolve that.
        """
        labels = self._labels[parsed.identity]
        if parsed.label:
            candidates = [labels[parsed.label]] if parsed.label in labels else []
        else:
            candidates = [run_id for label, run_id in labels.items() if OUR_LABEL.match(label)]
        evaluated = sorted(self._evaluated.intersection(candidates), reverse=True)
        for run_id in evaluated:
            update, contradicted, n_compared = self._compare(parsed, self.session.get_one(Run, run_id), "skip")
            if n_compared and not contradicted and not update.changes_something:
                return update
        if evaluated and parsed.label:
            raise ConflictError(
                f"{self.path}: run {evaluated[0]}, {parsed.label!r} of {parsed.model}, was evaluated by Suffrage, but "
                "the file differs. Change the label of the file's run, or ingest it into another --database."
            )
        from_files = [run_id for run_id in candidates if run_id not in self._evaluated]
        chosen = max([run_id for run_id in from_files if run_id in self._linked] or from_files, default=None)
        if chosen is None:
            new = _new_run(parsed, parsed.label or make_next_label(labels))
            if evaluated:
                new.warning = (
                    f"{parsed.model}: run {evaluated[0]} was evaluated by Suffrage, so files do not change it; "
                    f"stored as a new run, {new.run.label}"
                )
            return new
        update, different, n_compared = self._compare(parsed, self.session.get_one(Run, chosen), on_conflict)
        return self._resolve_conflict(update, different, n_compared, on_conflict) if different else update

    def _resolve_conflict(
        self, update: RunUpdate, different: Sequence[int], n_compared: int, on_conflict: OnConflict
    ) -> RunUpdate:
        """Return the update of a run whose stored values differ at some prompts."""
        parsed, n_different = update.parsed, len(different)
        examples = ", ".join(map(repr, self.prompt_names(parsed, sorted(set(different))[:MAX_NAMES])))
        conflict = f"{parsed.model}: {n_different} of {n_compared} values differ from the stored ones"
        conflict += f" (prompts {examples}{', ...' if n_different > MAX_NAMES else ''})" if examples else ""
        if on_conflict == "error" or (on_conflict == "rerun" and parsed.label):
            label = f" for the run {parsed.label!r}" if parsed.label else ""
            raise ConflictError(
                f"{self.path}: {conflict}{label}. Keep the stored values with --on-conflict skip, "
                "or overwrite them with --on-conflict update."
            )
        if on_conflict == "rerun":
            rerun = _new_run(parsed, make_next_label(self._labels[parsed.identity]))
            rerun.warning = f"{conflict}; stored as a new run, {rerun.run.label}"
            return rerun
        resolution = "the stored ones were kept" if on_conflict == "skip" else "overwritten"
        update.warn(f"{conflict}: {resolution}")
        return update

    def _compare(self, parsed: ParsedRun, run: Run, on_conflict: OnConflict) -> tuple[RunUpdate, list[int], int]:
        """Compare a parsed run with a stored one.

        Returns:
            The changes, the prompts with different values (-1 for a whole task), and the number of values that both
            have.
        """
        assert run.id is not None
        overwrite = on_conflict == "update"
        stored = load_scores(self.session, run.id) if parsed.columns else {}
        scored = [unpack(column.keys)[0] for key, column in stored.items() if key not in parsed.answer_metrics]
        evaluated, n_removed = parsed.without_unevaluated(np.concatenate([np.empty(0, dtype=np.int64), *scored]))
        update = RunUpdate(evaluated, run, is_new=False)
        if n_removed:
            update.warning = (
                f"{parsed.model}: {n_removed:,} empty answers belong to prompts without any score in this run; "
                "they count as missing, not as wrong"
            )
        different, n_compared = self._compare_scores(update, stored, overwrite)
        for differing, n_more in (
            self._compare_answers(update, run.id, overwrite),
            self._compare_task_scores(update, run.id, overwrite),
        ):
            different += differing
            n_compared += n_more
        if run.status == "partial" or run.unverified:
            update.covers_stored = n_compared >= self._n_stored(run)
        if run.status in ("hidden", "superseded"):
            advice = f"show it again with suffrage runs unhide {run.id}"
            update.warn(f"{parsed.model}: run {run.id} stays {run.status}; {advice}")
        return update, different, n_compared

    @staticmethod
    def _compare_scores(update: RunUpdate, stored: Mapping[int, ScoreColumn], overwrite: bool) -> tuple[list[int], int]:
        different: list[int] = []
        n_compared = 0
        present = [column for key, column in stored.items() if key not in {c.metric_id for c in update.parsed.columns}]
        for column in update.parsed.columns:
            if len(column) and column.metric_id not in stored and column.metric_id not in update.parsed.answer_metrics:
                update.new_metrics.add(column.metric_id)
                copies = [known.metric_id for known in present if _is_copy(column, known)]
                if copies:
                    update.copied_metrics[column.metric_id] = copies[0]
            comparison = compare_scores(column, stored.get(column.metric_id))
            changed = column.where(comparison.different)
            update.columns.append(column.where(comparison.new))
            different += unpack(changed.keys)[0].tolist()
            n_compared += int((~comparison.new).sum())
            update.n_unchanged += int((~comparison.new & ~comparison.different).sum())
            if overwrite:
                update.changed_columns.append(changed)
            else:
                update.n_skipped += len(changed)
        if overwrite and update.parsed.columns:
            n_stored, run = sum(map(len, stored.values())), update.run
            is_intact = n_stored == run.n_scores and compute_checksum(list(stored.values())) == run.checksum
            update.is_trusted = is_intact or n_compared == n_stored
        return different, n_compared

    def _compare_answers(self, update: RunUpdate, run_id: int, overwrite: bool) -> tuple[list[int], int]:
        different: list[int] = []
        n_compared = 0
        stored = load_answers(self.session, run_id) if update.parsed.answers else {}
        for extraction, answers in update.parsed.answers.items():
            comparison = compare_answers(answers, stored.get(extraction))
            update.answers[extraction] = answers.where(comparison.new)
            n_compared += int((~comparison.new).sum())
            different += unpack(answers.keys[comparison.different])[0].tolist()
            overwritten = comparison.lacking | comparison.different if overwrite else comparison.lacking
            update.changed_answers[extraction] = answers.where(overwritten)
        return different, n_compared

    def _compare_task_scores(self, update: RunUpdate, run_id: int, overwrite: bool) -> tuple[list[int], int]:
        different: list[int] = []
        n_compared = 0
        stored = self._stored_task_scores(run_id) if update.parsed.task_scores else {}
        for pair, value in update.parsed.task_scores.items():
            if pair not in stored:
                update.task_scores[pair] = value
                continue
            n_compared += 1
            if stored[pair] == value[0]:
                update.n_unchanged += 1
                continue
            different.append(-1)
            if overwrite:
                update.changed_task_scores[pair] = value
            else:
                update.n_skipped += 1
        return different, n_compared

    def _n_stored(self, run: Run) -> int:
        """Return the number of stored scores, answers and task scores of a run."""
        n_rows = run.n_scores
        for table in (metadata.tables["answer"], metadata.tables["task_score"]):
            of_run = table.c.run_id == run.id, in_partitions_of_runs(self.session, table, [run.id])  # type: ignore[list-item]
            n_rows += self.session.scalar(sa.select(sa.func.count()).select_from(table).where(*of_run)) or 0
        return n_rows

    def _stored_task_scores(self, run_id: int) -> dict[tuple[int, int], float]:
        rows = self.session.execute(
            sa.select(TaskScore.metric_id, TaskScore.task_id, TaskScore.value).where(TaskScore.run_id == run_id)  # type: ignore[call-overload]
        )
        return {(metric, task): value for metric, task, value in rows}


def _is_copy(column: ScoreColumn, stored: ScoreColumn) -> bool:
    """Return whether scores equal those under another metric; constant ones may be equal by chance."""
    is_equal = np.array_equal(column.keys, stored.keys) and np.array_equal(column.values, stored.values)
    return bool(is_equal and (column.values != column.values[0]).any())


def limit_warnings(warnings: Sequence[str]) -> list[str]:
    """Return warnings about runs: the first few, and the number of further ones."""
    more = len(warnings) - MAX_WARNINGS
    return [*warnings[:MAX_WARNINGS], *([f"and {more} more runs like these"] if more > 0 else [])]


def make_next_label(labels: Iterable[str]) -> str:
    """Return the label of another run of a model: '' for the first, then #2, #3, ..."""
    numbers = [int(number.group(1) or 1) for number in map(OUR_LABEL.match, labels) if number]
    return f"#{max(numbers) + 1}" if numbers else ""


def _new_run(parsed: ParsedRun, label: str) -> RunUpdate:
    values = {**run_values(parsed.fields), "label": label}
    values["settings"] = remove_evaluation(parsed.fields.settings) or None
    # Without it, sqlmodel inspects the signature of the default for each run.
    run = Run(benchmark_id=parsed.benchmark_id, model_id=parsed.model_id, ingested=now(), **values)
    return RunUpdate(
        parsed, run, is_new=True, columns=parsed.columns, answers=parsed.answers, task_scores=parsed.task_scores
    )
