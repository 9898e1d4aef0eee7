"""Which stored run a draft is, what it adds to it, and what it contradicts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from sqlmodel import Session, select

from tracker.errors import ConflictError
from tracker.ingest.write.answer_columns import AnswerColumn, compare_answers, stored_answers
from tracker.ingest.write.bulk_rows import stored_scores
from tracker.ingest.write.checksums import checksum
from tracker.ingest.write.parsed_run import ParsedRun, TaskValue
from tracker.ingest.write.score_columns import ScoreColumn, ScoreComparison, compare_scores, unpack
from tracker.run_settings import IDENTITY, evaluation_identity, remove_evaluation
from tracker.schema import Answer, Run, RunSource, TaskScore
from tracker.schema.run_fields import run_values

OnConflict = Literal["rerun", "skip", "update", "error"]
Names = Callable[[ParsedRun, Sequence[int]], list[str]]
OUR_LABEL = re.compile(r"^(?:#(\d+))?$")
N_NAMED = 3
N_REMARKS = 5


@dataclass(eq=False)
class RunUpdate:
    """What becomes of a draft.

    Attributes:
        draft: what the file says.
        run: the run it goes to; not in the store yet where ``is_new``.
        columns, answers, task_scores: what is inserted.
        changed_columns, changed_answers, changed_task_scores: what overwrites stored values.
        covers_stored: whether the file holds every value that is stored of the run, alike or otherwise.
        n_unchanged, n_skipped: scores that were stored already, alike or otherwise.
        is_trusted: whether the scores stored of the run beside those of the file are as they were stored; known, and
            of meaning, only where the file may overwrite them, None elsewhere.
        note: what the reader should be told.
    """

    draft: ParsedRun
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
    note: str = ""

    @property
    def changes_something(self) -> bool:
        """Whether an existing run gains or changes a value."""
        parts: tuple[Any, ...] = (
            self.task_scores, self.changed_task_scores, *self.columns, *self.changed_columns,
            *self.answers.values(), *self.changed_answers.values(),
        )  # fmt: skip
        return any(len(part) for part in parts)


class StoredRuns:
    """The runs of the drafts' models that the store holds.

    Args:
        session: the store.
        drafts: what a file says.
        path: the file, for messages.
        names: says what the file calls some of a draft's prompts, for messages.
        source_id: the file's key where it was taken in before: its runs then go before later ones.
    """

    def __init__(
        self, session: Session, drafts: Sequence[ParsedRun], path: Path, names: Names, source_id: int | None = None
    ) -> None:
        self.session, self.path, self.names = session, path, names
        runs: Any = Run
        said = runs.settings[IDENTITY].as_string()
        asked = sa.select(runs.benchmark_id, runs.model_id, runs.condition, runs.variant, said, runs.label, runs.id)
        models = sorted({draft.model_id for draft in drafts})
        asked = asked.where(runs.benchmark_id.in_(sorted({draft.benchmark_id for draft in drafts})))
        if len(models) <= 1000:
            asked = asked.where(runs.model_id.in_(models))
        self._labels: dict[tuple[int, int, str, str], dict[str, int]] = defaultdict(dict)
        self._evaluated: set[int] = set()
        for *identity, evaluation, label, key in session.execute(asked.order_by(runs.id)):
            self._labels[tuple(identity)][label] = key
            if evaluation_identity({IDENTITY: evaluation}) is not None:
                self._evaluated.add(key)
        linked = select(RunSource.run_id).where(RunSource.source_id == source_id)
        self._linked = set(session.scalars(linked)) if source_id is not None else set()

    def decide(self, draft: ParsedRun, on_conflict: OnConflict) -> RunUpdate:
        """Find the run of a draft, compare, and say what is to be written.

        A file never changes a run that was evaluated here: either it says nothing new of it, or it is another run.

        Raises:
            ConflictError: stored values are contradicted, and that is not to be resolved.
        """
        labels = self._labels[draft.identity]
        wanted = re.compile(re.escape(draft.label)).fullmatch if draft.label else OUR_LABEL.match
        alike = [key for label, key in labels.items() if wanted(label)]
        evaluated = sorted(self._evaluated.intersection(alike), reverse=True)
        for one in evaluated:
            told, contradicted, n_compared = self._compared(draft, self.session.get_one(Run, one), "skip")
            if n_compared and not contradicted and not told.changes_something:
                return told
        if evaluated and draft.label:
            raise ConflictError(
                f"{self.path}: run {evaluated[0]}, {draft.label!r} of {draft.model}, was evaluated here, and the file "
                "says something else of it. Give the file's run another label, or take it in to another --database."
            )
        ours = [key for key in alike if key not in self._evaluated]
        key = max([key for key in ours if key in self._linked] or ours, default=None)
        if key is None:
            made = _new(draft, draft.label or next_label(labels))
            if evaluated:
                made.note = (
                    f"{draft.model}: run {evaluated[0]} was evaluated here, which no file changes: stored as a "
                    f"new run, {made.run.label}"
                )
            return made
        decision, different, n_compared = self._compared(draft, self.session.get_one(Run, key), on_conflict)
        if not different:
            return decision
        n_different = len(different)
        few = ", ".join(map(repr, self.names(draft, sorted(set(different))[:N_NAMED])))
        said = f"{draft.model}: {n_different} of {n_compared} values differ from those stored"
        said += f" (prompts {few}{', ...' if n_different > N_NAMED else ''})" if few else ""
        if on_conflict == "error" or (on_conflict == "rerun" and draft.label):
            named = f" for the run {draft.label!r}" if draft.label else ""
            raise ConflictError(
                f"{self.path}: {said}{named}. Keep what is stored with --on-conflict skip, "
                "or overwrite it with --on-conflict update."
            )
        if on_conflict == "rerun":
            again = _new(draft, next_label(labels))
            again.note = f"{said}: stored as a new run, {again.run.label}"
            return again
        kept = f"{said}: {'the stored ones were kept' if on_conflict == 'skip' else 'overwritten'}"
        decision.note = f"{kept}; {decision.note}" if decision.note else kept
        return decision

    def _compared(self, draft: ParsedRun, run: Run, on_conflict: OnConflict) -> tuple[RunUpdate, list[int], int]:
        assert run.id is not None
        update = on_conflict == "update"
        held = stored_scores(self.session, run.id) if draft.columns else {}
        others = [unpack(column.keys)[0] for key, column in held.items() if key not in draft.answer_metrics]
        draft, n_unasked = draft.without_unasked(np.concatenate([np.empty(0, dtype=np.int64), *others]))
        decision = RunUpdate(draft, run, is_new=False)
        if n_unasked:
            decision.note = (
                f"{draft.model}: {n_unasked:,} empty answers are to prompts that this run has no other score for; "
                "they count as not asked, not as wrong"
            )
        different: list[int] = []
        n_compared = 0
        for column in draft.columns:
            beside: ScoreComparison = compare_scores(column, held.get(column.metric_id))
            changed = column.where(beside.different)
            decision.columns.append(column.where(beside.new))
            different += unpack(changed.keys)[0].tolist()
            n_compared += int((~beside.new).sum())
            decision.n_unchanged += int((~beside.new & ~beside.different).sum())
            if update:
                decision.changed_columns.append(changed)
            else:
                decision.n_skipped += len(changed)
        if update and draft.columns:
            n_held = sum(map(len, held.values()))
            unharmed = n_held == run.n_scores and checksum(list(held.values())) == run.checksum
            decision.is_trusted = unharmed or n_compared == n_held
        stored = stored_answers(self.session, run.id) if draft.answers else {}
        for extraction, answers in draft.answers.items():
            said = compare_answers(answers, stored.get(extraction))
            decision.answers[extraction] = answers.where(said.new)
            n_compared += int((~said.new).sum())
            different += unpack(answers.keys[said.different])[0].tolist()
            overwritten = said.lacking | said.different if update else said.lacking
            decision.changed_answers[extraction] = answers.where(overwritten)
        tasks = self._stored_task_scores(run.id) if draft.task_scores else {}
        for pair, value in draft.task_scores.items():
            if pair not in tasks:
                decision.task_scores[pair] = value
                continue
            n_compared += 1
            if tasks[pair] == value[0]:
                decision.n_unchanged += 1
            else:
                different.append(-1)
                if update:
                    decision.changed_task_scores[pair] = value
                else:
                    decision.n_skipped += 1
        if run.status == "partial":
            decision.covers_stored = n_compared >= self._n_stored(run)
        if run.status in ("hidden", "superseded"):
            again = f"to use it again: suffrage runs unhide {run.id}"
            aside = f"{draft.model}: run {run.id} is {run.status} and stays so; {again}"
            decision.note = f"{aside}; {decision.note}" if decision.note else aside
        return decision, different, n_compared

    def _n_stored(self, run: Run) -> int:
        """How many scores, answers and scores of whole tasks are stored of a run."""
        counted = [
            self.session.scalar(sa.select(sa.func.count()).select_from(table).where(table.run_id == run.id)) or 0  # type: ignore[arg-type]
            for table in (Answer, TaskScore)
        ]
        return run.n_scores + sum(counted)

    def _stored_task_scores(self, run_id: int) -> dict[tuple[int, int], float]:
        rows = self.session.execute(
            sa.select(TaskScore.metric_id, TaskScore.task_id, TaskScore.value).where(TaskScore.run_id == run_id)  # type: ignore[call-overload]
        )
        return {(metric, task): value for metric, task, value in rows}


def first_warnings(remarks: Sequence[str]) -> list[str]:
    """What is to be told of runs; of many the first few, and how many more there are."""
    more = len(remarks) - N_REMARKS
    return [*remarks[:N_REMARKS], *([f"and {more} more runs like these"] if more > 0 else [])]


def next_label(labels: Iterable[str]) -> str:
    """The label of one more run of a model that its harness does not name: '' for the first, then #2, #3, ..."""
    numbers = [int(number.group(1) or 1) for number in map(OUR_LABEL.match, labels) if number]
    return f"#{max(numbers) + 1}" if numbers else ""


def _new(draft: ParsedRun, label: str) -> RunUpdate:
    values = {**run_values(draft.fields), "label": label}
    values["settings"] = remove_evaluation(draft.fields.settings) or None
    run = Run(benchmark_id=draft.benchmark_id, model_id=draft.model_id, **values)
    return RunUpdate(
        draft, run, is_new=True, columns=draft.columns, answers=draft.answers, task_scores=draft.task_scores
    )
