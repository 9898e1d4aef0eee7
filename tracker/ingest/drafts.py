"""What a file says of each run, its names resolved to keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.answers import AnswerPiece, Gold, Key, Said, said
from tracker.ingest.columns import Piece, ScoreColumn, assemble, outside, unpack
from tracker.ingest.identities import Identities
from tracker.ingest.measurement import Answers, Prompts, Reading, ReadOptions, RunDescription, Scores, TaskScores
from tracker.ingest.prompts import PromptBook
from tracker.ingest.texts import storable, storable_json
from tracker.schema import Metric

TaskValue = tuple[float, float | None, int | None]


@dataclass(eq=False)
class Draft:
    """One run as a file describes it, not stored yet.

    Attributes:
        benchmark_id, model_id, condition, variant, label: which run it is.
        model: name of the model as the file has it.
        few_shot: None where unknown or mixed.
        columns: its scores, one per metric, sorted by metric.
        answers: what the model said.
        answer_metrics: keys of the metrics whose scores come from comparing answers with the gold ones.
        task_scores: value, standard error and number of prompts by metric and task.
    """

    benchmark_id: int
    model_id: int
    condition: str
    variant: str
    label: str
    model: str
    few_shot: int | None
    limited: bool
    started: datetime | None
    settings: dict[str, Any]
    columns: list[ScoreColumn] = field(default_factory=list)
    answers: dict[Key, Said] = field(default_factory=dict)
    answer_metrics: set[int] = field(default_factory=set)
    task_scores: dict[tuple[int, int], TaskValue] = field(default_factory=dict)
    pieces: dict[int, list[Piece]] = field(default_factory=lambda: defaultdict(list))
    answer_pieces: list[AnswerPiece] = field(default_factory=list)

    @property
    def identity(self) -> tuple[int, int, str, str]:
        """What it shares with the other runs of its model."""
        return self.benchmark_id, self.model_id, self.condition, self.variant

    def without_unasked(self, measured: AbstractSet[int]) -> tuple[Draft, int]:
        """The draft without empty answers to prompts that, as the store shows, the model was not asked.

        That shows where another metric has a score for every prompt that the file has an answer to: an empty answer to
        a prompt without such a score then is no answer at all. Where those scores cover less than the answers, nothing
        follows from them.

        Args:
            measured: keys of the prompts that the run has scores for under other metrics.

        Returns:
            The draft, and how many prompts were taken out.
        """
        answered = {key[0] for key, (_, _, status) in self.answers.items() if status != "empty"}
        unasked = {key[0] for key in self.answers} - answered - measured
        if not self.answer_metrics or not answered or not answered <= measured or not unasked:
            return self, 0
        gone = np.fromiter(unasked, dtype=np.int64)
        columns = [
            column.where(~np.isin(unpack(column.keys)[0], gone)) if column.metric_id in self.answer_metrics else column
            for column in self.columns
        ]
        answers = {key: said for key, said in self.answers.items() if key[0] not in unasked}
        return replace(self, columns=columns, answers=answers), len(unasked)

    def prompt_names(self, prompt_ids: Sequence[int]) -> list[str]:
        """What the file calls some of the prompts, for messages."""
        names: dict[int, str] = {}
        for ids, prompts in [(p.prompt_ids, p.prompts) for pieces in self.pieces.values() for p in pieces] + [
            (p.prompt_ids, p.block.prompts) for p in self.answer_pieces
        ]:
            names.update(
                {int(ids[row]): prompts.keys[row] for row in np.flatnonzero(np.isin(ids, prompt_ids)).tolist()}
            )
        return [names[key] for key in prompt_ids if key in names]


class Drafting:
    """Turns a reading into drafts.

    Args:
        reading: the file.
        options: what the user said of it.
        identities, book, gold: how its names and answers are resolved.
    """

    def __init__(
        self, reading: Reading, options: ReadOptions, identities: Identities, book: PromptBook, gold: Gold
    ) -> None:
        self.reading, self.options = reading, options
        self.identities, self.book, self.gold = identities, book, gold
        self.metrics: dict[int, Metric] = {}
        self._drafts: dict[tuple[Any, ...], Draft] = {}
        self._by_description: dict[tuple[int, str | None], tuple[RunDescription, Draft]] = {}

    def drafts(self) -> list[Draft]:
        """The runs in the order in which the file names them; prompts and names are stored on the way.

        Raises:
            BadInputError: a score outside its metric's bounds, or two different ones for the same prompt.
        """
        for block in self.reading.measurements:
            if isinstance(block, Prompts):
                self.book.keys(block, self.identities.benchmark(self.options.benchmark, block.benchmark))
            elif isinstance(block, TaskScores):
                self._add_task_scores(block)
            else:
                self._add(block)
        problems: list[str] = []
        for draft in self._drafts.values():
            self._score_answers(draft)
            for metric_id, pieces in sorted(draft.pieces.items()):
                metric = self.metrics[metric_id]
                problems += outside(pieces, metric.lower, metric.upper)
                column, said_twice = assemble(metric_id, pieces)
                problems += [f"{draft.model}: {problem}" for problem in said_twice]
                draft.columns.append(column)
        if problems:
            raise BadInputError(self.reading.path, problems)
        return list(self._drafts.values())

    def _draft(self, run: RunDescription, said_of_prompts: str | None) -> Draft:
        described = (id(run), said_of_prompts)
        if described in self._by_description:
            return self._by_description[described][1]
        benchmark_id = self.identities.benchmark(self.options.benchmark, run.benchmark, said_of_prompts)
        model_id = self.identities.model(run.model, run.model_facts)
        identity = (benchmark_id, model_id, run.condition, storable(run.variant), storable(run.label))
        draft = self._drafts.get(identity)
        if draft is None:
            draft = Draft(
                *identity,
                model=run.model,
                few_shot=run.few_shot,
                limited=run.limited,
                started=run.started,
                settings=_settings(run.settings),
            )
            self._drafts[identity] = draft
        else:
            draft.few_shot = draft.few_shot if draft.few_shot == run.few_shot else None
            draft.limited = draft.limited or run.limited
            draft.started = min((t for t in (draft.started, run.started) if t is not None), default=None)
            draft.settings = _settings(run.settings) | draft.settings
        self._by_description[described] = (run, draft)
        return draft

    def _metric_id(self, block: Scores | TaskScores) -> int:
        return self._known_metric(self.identities.metric(block.metric))

    def _known_metric(self, metric: Metric) -> int:
        assert metric.id is not None
        self.metrics[metric.id] = metric
        return metric.id

    def _add(self, block: Scores | Answers) -> None:
        draft = self._draft(block.run, block.prompts.benchmark)
        keys = self.book.keys(block.prompts, draft.benchmark_id)
        if isinstance(block, Answers):
            draft.answer_pieces.append(AnswerPiece(block, keys))
        else:
            draft.pieces[self._metric_id(block)].append(
                Piece(block.prompts, keys, block.values, block.trials, block.places)
            )

    def _score_answers(self, draft: Draft) -> None:
        draft.answers = said(draft.answer_pieces, self.reading.path)
        for piece in draft.answer_pieces:
            block = piece.block
            if block.scored_as is not None:
                values = self.gold.scores(piece, draft.benchmark_id)
                metric_id = self._known_metric(self.identities.metric(block.scored_as))
                draft.answer_metrics.add(metric_id)
                draft.pieces[metric_id].append(
                    Piece(block.prompts, piece.prompt_ids, values, block.trials, block.places)
                )

    def _add_task_scores(self, block: TaskScores) -> None:
        draft = self._draft(block.run, None)
        metric_id = self._metric_id(block)
        known = self.identities.tasks(draft.benchmark_id, block.tasks)
        metric = self.metrics[metric_id]
        lower = -np.inf if metric.lower is None else metric.lower
        upper = np.inf if metric.upper is None else metric.upper
        problems = []
        for row, (task, value) in enumerate(zip(block.tasks, block.values.tolist(), strict=True)):
            if np.isnan(value):
                continue
            if not lower <= value <= upper or np.isinf(value):
                problems.append(f"{draft.model}, task {task!r}: {value:g} is outside [{lower:g}, {upper:g}]")
            error = None if block.stderr is None or np.isnan(block.stderr[row]) else float(block.stderr[row])
            n_prompts = None if block.n_prompts is None else block.n_prompts[row]
            key = (metric_id, known[storable(task)])
            now = (value, error, n_prompts)
            if draft.task_scores.setdefault(key, now)[0] != value:
                problems.append(f"{draft.model}, task {task!r}: both {draft.task_scores[key][0]:g} and {value:g}")
        if problems:
            raise BadInputError(self.reading.path, problems)


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = storable_json(settings)
    return plain
