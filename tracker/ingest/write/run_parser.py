"""From the blocks of a file to what it says of each run; what is wrong with it is refused, or left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.measurement import Answers, ParsedFile, Prompts, ReadOptions, RunDescription, Scores, TaskScores
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.resolve.prompt_resolver import PromptResolver
from tracker.ingest.resolve.prompt_texts import storable, storable_json
from tracker.ingest.write.answer_columns import AnswerChunk, ReferenceScorer, assemble_answers
from tracker.ingest.write.parsed_run import ParsedRun
from tracker.ingest.write.score_columns import ScoreChunk, assemble_scores, find_out_of_bounds, pack
from tracker.schema import Metric
from tracker.schema.run_fields import RunFields, merge_run_values, run_values


class RunParser:
    """Turns a reading into drafts.

    Args:
        reading: the file.
        options: what the user said of it.
        identities, book, gold: how its names and answers are resolved.
        partial: whether scores and answers that are wrong are left out instead of refused with the file.
        progress: told how many blocks of how many have been looked at.

    Attributes:
        n_left_out: how many were.
        left_out: the first of them, in words.
    """

    def __init__(
        self,
        reading: ParsedFile,
        options: ReadOptions,
        identities: CatalogueResolver,
        book: PromptResolver,
        gold: ReferenceScorer,
        *,
        partial: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.reading, self.options = reading, options
        self.identities, self.book, self.gold, self.partial = identities, book, gold, partial
        self.progress = progress
        self.metrics: dict[int, Metric] = {}
        self.n_left_out = 0
        self.left_out: list[str] = []
        self._drafts: dict[tuple[Any, ...], ParsedRun] = {}
        self._by_description: dict[tuple[int, str | None], tuple[RunDescription, ParsedRun]] = {}

    def drafts(self) -> list[ParsedRun]:
        """The runs in the order in which the file names them; prompts and names are stored on the way.

        Raises:
            BadInputError: a score outside its metric's bounds, or two different ones for the same prompt.
        """
        measurements = self.reading.measurements
        self.book.expect(measurements)
        for number, block in enumerate(measurements):
            if self.progress is not None:
                self.progress(number, len(measurements))
            if isinstance(block, Prompts):
                self.book.keys(block, self.identities.benchmark(self.options.benchmark, block.benchmark))
            elif isinstance(block, TaskScores):
                self._add_task_scores(block)
            else:
                self._add(number, block)
        for draft in self._drafts.values():
            self._assemble_answers(draft)
        self._refuse("Number repeated answers in a column 'trial'.")
        for draft in self._drafts.values():
            self._score_answers(draft)
            for metric_id, pieces in sorted(draft.pieces.items()):
                metric = self.metrics[metric_id]
                kept = [self._within_bounds(piece, metric) for piece in pieces]
                column, contradicted = assemble_scores(metric_id, kept)
                for key in contradicted.tolist():
                    self._leave_out(partial(self._said_twice, draft, kept, key))
                if len(contradicted):
                    column = column.where(~np.isin(column.keys, contradicted))
                draft.columns.append(column)
            draft.pieces.clear()
        self._refuse()
        return list(self._drafts.values())

    def prompt_names(self, draft: ParsedRun, prompt_ids: Sequence[int]) -> list[str]:
        """What the file calls some of a draft's prompts, for messages."""
        names: dict[int, str] = {}
        for number, ids in draft.asked:
            rows = np.flatnonzero(np.isin(ids, prompt_ids)).tolist()
            if rows:
                keys = self._block(number).prompts.keys
                names.update({int(ids[row]): keys[row] for row in rows})
        return [names[key] for key in prompt_ids if key in names]

    def _leave_out(self, problem: Callable[[], str]) -> None:
        self.n_left_out += 1
        if len(self.left_out) < BadInputError.shown:
            self.left_out.append(problem())

    def _refuse(self, advice: str = "") -> None:
        if self.left_out and not self.partial:
            raise BadInputError(self.reading.path, self.left_out, count=self.n_left_out, advice=advice)

    def _block(self, number: int) -> Scores | Answers:
        block = self.reading.measurements[number]
        assert isinstance(block, (Scores, Answers))
        return block

    def _place(self, number: int, row: int) -> str:
        """Where a value stands, in words."""
        block = self._block(number)
        said = [block.places] if block.places else []
        if block.prompts.lines is not None:
            said.append(f"line {block.prompts.lines[row]}")
        return ", ".join([*said, f"prompt {block.prompts.keys[row]!r}"])

    def _within_bounds(self, piece: ScoreChunk, metric: Metric) -> ScoreChunk:
        """A piece without the scores that the metric's bounds do not allow."""
        values = np.asarray(piece.values, dtype=np.float64)
        wrong = find_out_of_bounds(values, metric.lower, metric.upper)
        if not wrong.any():
            return piece
        for row in np.flatnonzero(wrong).tolist():
            self._leave_out(partial(self._out_of_bounds, piece.block, row, values[row], metric))
        return replace(piece, values=np.where(wrong, np.nan, values))

    def _out_of_bounds(self, number: int, row: int, value: float, metric: Metric) -> str:
        low = "-∞" if metric.lower is None else f"{metric.lower:g}"
        high = "∞" if metric.upper is None else f"{metric.upper:g}"
        return f"{self._place(number, row)}: {value:g} is outside [{low}, {high}]"

    def _said_twice(self, draft: ParsedRun, pieces: Sequence[ScoreChunk], key: int) -> str:
        said = [
            (self._place(piece.block, row), float(piece.values[row]))
            for piece in pieces
            for row in np.flatnonzero(pack(piece.prompt_ids, piece.trials) == key).tolist()
            if not np.isnan(piece.values[row])
        ]
        (first, value), (second, other) = said[0], next(s for s in said if s[1] != said[0][1])
        return f"{draft.model}: {first} has the score {value:g}, {second} has {other:g}"

    def _draft(self, run: RunDescription, said_of_prompts: str | None) -> ParsedRun:
        described = (id(run), said_of_prompts)
        if described in self._by_description:
            return self._by_description[described][1]
        benchmark_id = self.identities.benchmark(self.options.benchmark, run.benchmark, said_of_prompts)
        model_id = self.identities.model(run.model, run.model_facts)
        values = _storable_values(run)
        identity = (benchmark_id, model_id, values.condition, values.variant, values.label)
        draft = self._drafts.get(identity)
        if draft is None:
            draft = ParsedRun(benchmark_id, model_id, run.model, values)
            self._drafts[identity] = draft
        else:
            starts = (draft.fields.started, values.started)
            merged = merge_run_values(draft.fields, values)
            merged["started"] = min((start for start in starts if start is not None), default=None)
            draft.fields = replace(draft.fields, **merged)
        self._by_description[described] = (run, draft)
        return draft

    def _metric_id(self, block: Scores | TaskScores) -> int:
        return self._known_metric(self.identities.metric(block.metric))

    def _known_metric(self, metric: Metric) -> int:
        assert metric.id is not None
        self.metrics[metric.id] = metric
        return metric.id

    def _add(self, number: int, block: Scores | Answers) -> None:
        draft = self._draft(block.run, block.prompts.benchmark)
        keys = self.book.keys(block.prompts, draft.benchmark_id)
        draft.asked.append((number, keys))
        if isinstance(block, Answers):
            draft.answer_pieces.append(AnswerChunk.of(number, block, keys))
            return
        values = block.values
        if len(keys) and keys.min() < 0:
            values = np.where(keys < 0, np.nan, values)
        draft.pieces[self._metric_id(block)].append(ScoreChunk(number, keys, values, block.trials))

    def _assemble_answers(self, draft: ParsedRun) -> None:
        by_extraction: dict[str, list[AnswerChunk]] = defaultdict(list)
        for piece in draft.answer_pieces:
            by_extraction[piece.extraction].append(piece)
        for extraction, pieces in by_extraction.items():
            column, contradicted = assemble_answers(pieces)
            for key in contradicted.tolist():
                self._leave_out(partial(self._answered_twice, pieces, key))
            if len(contradicted):
                column = column.where(~np.isin(column.keys, contradicted))
            draft.answers[extraction] = column

    def _answered_twice(self, pieces: Sequence[AnswerChunk], key: int) -> str:
        said = [
            (self._place(piece.block, row), self._block(piece.block), row)
            for piece in pieces
            for row in np.flatnonzero((pack(piece.prompt_ids, piece.trials) == key) & piece.held).tolist()
        ]
        texts = [(place, block.text[row]) for place, block, row in said if isinstance(block, Answers)]
        other = next((one for one in texts[1:] if one[1] != texts[0][1]), texts[1])
        return f"{other[0]}: answered {texts[0][1]!r}, then {other[1]!r}"

    def _score_answers(self, draft: ParsedRun) -> None:
        for piece in draft.answer_pieces:
            if not piece.is_scored:
                continue
            block = self._block(piece.block)
            assert isinstance(block, Answers)
            assert block.scored_as is not None
            place = partial(self._place, piece.block)
            values = self.gold.scores(block, piece.prompt_ids, draft.benchmark_id, place)
            metric_id = self._known_metric(self.identities.metric(block.scored_as))
            draft.answer_metrics.add(metric_id)
            draft.pieces[metric_id].append(ScoreChunk(piece.block, piece.prompt_ids, values, block.trials))

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
                continue
            error = None if block.stderr is None or np.isnan(block.stderr[row]) else float(block.stderr[row])
            n_prompts = None if block.n_prompts is None else block.n_prompts[row]
            key = (metric_id, known[storable(task)])
            now = (value, error, n_prompts)
            if draft.task_scores.setdefault(key, now)[0] != value:
                problems.append(f"{draft.model}, task {task!r}: both {draft.task_scores[key][0]:g} and {value:g}")
        for problem in problems:
            self._leave_out(partial(str, problem))
        if problems:
            self._refuse()


def _storable_values(run: RunDescription) -> RunFields:
    """How a model was run, with texts, settings and moment as they are stored."""
    values = run_values(run)
    for name, value in values.items():
        if isinstance(value, datetime):
            values[name] = _utc(value)
        elif isinstance(value, str):
            values[name] = storable(value)
        elif isinstance(value, Mapping):
            values[name] = storable_json(value)
    return RunFields(**values)


def _utc(moment: datetime) -> datetime:
    """A moment in UTC; SQLite keeps the hour and forgets the zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
