"""Conversion of a file's blocks to runs; invalid values raise or are skipped."""

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
from tracker.ingest.resolve.prompt_texts import make_storable, make_storable_json
from tracker.ingest.write.answer_columns import AnswerChunk, ReferenceScorer, assemble_answers
from tracker.ingest.write.parsed_run import ParsedRun, join_differences
from tracker.ingest.write.score_columns import ScoreChunk, assemble_scores, find_out_of_bounds, pack
from tracker.run_fields import RunFields, merge_run_values, run_values
from tracker.schema import Metric


class RunParser:
    """Converts the blocks of a file to runs.

    Args:
        parsed: the file.
        options: how to read the file.
        catalogue, prompts, scorer: resolvers of names, and scorer of answers.
        partial: whether to skip invalid scores and answers instead of rejecting the file.
        progress: receives the number of blocks done, and the total.

    Attributes:
        n_omitted: number of skipped values.
        omitted: descriptions of the first of them.
    """

    def __init__(
        self,
        parsed: ParsedFile,
        options: ReadOptions,
        catalogue: CatalogueResolver,
        prompts: PromptResolver,
        scorer: ReferenceScorer,
        *,
        partial: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.parsed, self.options = parsed, options
        self.catalogue, self.prompts, self.scorer, self.partial = catalogue, prompts, scorer, partial
        self.progress = progress
        self.metrics: dict[int, Metric] = {}
        self.n_omitted = 0
        self.omitted: list[str] = []
        self._runs: dict[tuple[Any, ...], ParsedRun] = {}
        self._by_description: dict[tuple[int, str | None], tuple[RunDescription, ParsedRun]] = {}

    def parse_runs(self) -> list[ParsedRun]:
        """Return the runs in the order of the file; prompts and names are stored on the way.

        Raises:
            BadInputError: a score is outside its metric's bounds, or two scores of a prompt contradict each other.
        """
        measurements = self.parsed.measurements
        self.prompts.expect(measurements)
        self.catalogue.add_models(getattr(measurements, "first_runs", {}).values())
        for number, block in enumerate(measurements):
            if self.progress is not None:
                self.progress(number, len(measurements))
            if isinstance(block, Prompts):
                self.prompts.resolve(block, self.catalogue.benchmark(self.options.benchmark, block.benchmark))
            elif isinstance(block, TaskScores):
                self._add_task_scores(block)
            else:
                self._add(number, block)
        for parsed_run in self._runs.values():
            self._assemble_answers(parsed_run)
        self._check_omissions("Add a column 'trial' that numbers repeated answers.")
        for parsed_run in self._runs.values():
            self._score_answers(parsed_run)
            for metric_id, chunks in sorted(parsed_run.chunks.items()):
                metric = self.metrics[metric_id]
                kept = [self._within_bounds(chunk, metric) for chunk in chunks]
                column, contradicted = assemble_scores(metric_id, kept)
                for key in contradicted.tolist():
                    self._omit(partial(self._describe_two_scores, parsed_run, kept, key))
                if len(contradicted):
                    column = column.where(~np.isin(column.keys, contradicted))
                parsed_run.columns.append(column)
            parsed_run.chunks.clear()
        self._check_omissions()
        self._mark_unverified()
        return list(self._runs.values())

    def prompt_names(self, parsed_run: ParsedRun, prompt_ids: Sequence[int]) -> list[str]:
        """Return the names of some of a run's prompts in the file, for messages."""
        names: dict[int, str] = {}
        for number, ids in parsed_run.blocks:
            rows = np.flatnonzero(np.isin(ids, prompt_ids)).tolist()
            if rows:
                keys = self._block(number).prompts.keys
                names.update({int(ids[row]): keys[row] for row in rows})
        return [names[key] for key in prompt_ids if key in names]

    def _mark_unverified(self) -> None:
        """Add to each run the reported scores that differ from its own."""
        for described, parsed_run in self._by_description.values():
            texts = [difference.text for difference in self.parsed.differences if difference.run in (None, described)]
            parsed_run.unverified = join_differences([*filter(None, [parsed_run.unverified]), *texts])

    def _omit(self, problem: Callable[[], str]) -> None:
        self.n_omitted += 1
        if len(self.omitted) < BadInputError.MAX_LISTED:
            self.omitted.append(problem())

    def _check_omissions(self, advice: str = "") -> None:
        if self.omitted and not self.partial:
            raise BadInputError(self.parsed.path, self.omitted, count=self.n_omitted, advice=advice)

    def _block(self, number: int) -> Scores | Answers:
        block = self.parsed.measurements[number]
        assert isinstance(block, (Scores, Answers))
        return block

    def _place(self, number: int, row: int) -> str:
        """Return the place of a value, for messages."""
        block = self._block(number)
        parts = [block.places] if block.places else []
        if block.prompts.lines is not None:
            parts.append(f"line {block.prompts.lines[row]}")
        return ", ".join([*parts, f"prompt {block.prompts.keys[row]!r}"])

    def _within_bounds(self, chunk: ScoreChunk, metric: Metric) -> ScoreChunk:
        """Return a chunk without the scores outside the metric's bounds."""
        values = np.asarray(chunk.values, dtype=np.float64)
        wrong = find_out_of_bounds(values, metric.lower, metric.upper)
        if not wrong.any():
            return chunk
        for row in np.flatnonzero(wrong).tolist():
            self._omit(partial(self._out_of_bounds, chunk.block, row, values[row], metric))
        return replace(chunk, values=np.where(wrong, np.nan, values))

    def _out_of_bounds(self, number: int, row: int, value: float, metric: Metric) -> str:
        low = "-∞" if metric.lower is None else f"{metric.lower:g}"
        high = "∞" if metric.upper is None else f"{metric.upper:g}"
        return f"{self._place(number, row)}: {value:g} is outside [{low}, {high}]"

    def _describe_two_scores(self, parsed_run: ParsedRun, chunks: Sequence[ScoreChunk], key: int) -> str:
        scores = [
            (self._place(chunk.block, row), float(chunk.values[row]))
            for chunk in chunks
            for row in np.flatnonzero(pack(chunk.prompt_ids, chunk.trials) == key).tolist()
            if not np.isnan(chunk.values[row])
        ]
        (first, value), (second, conflicting) = scores[0], next(score for score in scores if score[1] != scores[0][1])
        return f"{parsed_run.model}: {first} has the score {value:g}, {second} has {conflicting:g}"

    def _find_run(self, run: RunDescription, prompts_benchmark: str | None) -> ParsedRun:
        described = (id(run), prompts_benchmark)
        if described in self._by_description:
            return self._by_description[described][1]
        benchmark_id = self.catalogue.benchmark(self.options.benchmark, run.benchmark, prompts_benchmark)
        model_id = self.catalogue.model(run.model, run.model_facts)
        values = _storable_values(run)
        identity = (benchmark_id, model_id, values.condition, values.variant, values.label)
        parsed_run = self._runs.get(identity)
        if parsed_run is None:
            parsed_run = ParsedRun(benchmark_id, model_id, run.model, values)
            self._runs[identity] = parsed_run
        else:
            starts = (parsed_run.fields.started, values.started)
            merged = merge_run_values(parsed_run.fields, values)
            merged["started"] = min((start for start in starts if start is not None), default=None)
            parsed_run.fields = replace(parsed_run.fields, **merged)
        self._by_description[described] = (run, parsed_run)
        return parsed_run

    def _metric_id(self, block: Scores | TaskScores) -> int:
        return self._known_metric(self.catalogue.metric(block.metric))

    def _known_metric(self, metric: Metric) -> int:
        assert metric.id is not None
        self.metrics[metric.id] = metric
        return metric.id

    def _add(self, number: int, block: Scores | Answers) -> None:
        parsed_run = self._find_run(block.run, block.prompts.benchmark)
        keys = self.prompts.resolve(block.prompts, parsed_run.benchmark_id)
        parsed_run.blocks.append((number, keys))
        if isinstance(block, Answers):
            parsed_run.answer_chunks.append(AnswerChunk.from_block(number, block, keys))
            return
        values = block.values
        if len(keys) and keys.min() < 0:
            values = np.where(keys < 0, np.nan, values)
        parsed_run.chunks[self._metric_id(block)].append(ScoreChunk(number, keys, values, block.trials))

    def _assemble_answers(self, parsed_run: ParsedRun) -> None:
        by_extraction: dict[str, list[AnswerChunk]] = defaultdict(list)
        for chunk in parsed_run.answer_chunks:
            by_extraction[chunk.extraction].append(chunk)
        for extraction, chunks in by_extraction.items():
            column, contradicted = assemble_answers(chunks)
            for key in contradicted.tolist():
                self._omit(partial(self._describe_two_answers, chunks, key))
            if len(contradicted):
                column = column.where(~np.isin(column.keys, contradicted))
            parsed_run.answers[extraction] = column

    def _describe_two_answers(self, chunks: Sequence[AnswerChunk], key: int) -> str:
        rows = [
            (self._place(chunk.block, row), self._block(chunk.block), row)
            for chunk in chunks
            for row in np.flatnonzero((pack(chunk.prompt_ids, chunk.trials) == key) & chunk.predicted).tolist()
        ]
        texts = [(place, block.text[row]) for place, block, row in rows if isinstance(block, Answers)]
        conflicting = next((text for text in texts[1:] if text[1] != texts[0][1]), texts[1])
        return f"{conflicting[0]}: answered {texts[0][1]!r}, then {conflicting[1]!r}"

    def _score_answers(self, parsed_run: ParsedRun) -> None:
        for chunk in parsed_run.answer_chunks:
            if not chunk.is_scored:
                continue
            block = self._block(chunk.block)
            assert isinstance(block, Answers)
            assert block.scored_as is not None
            place = partial(self._place, chunk.block)
            values = self.scorer.score_answers(block, chunk.prompt_ids, parsed_run.benchmark_id, place)
            metric_id = self._known_metric(self.catalogue.metric(block.scored_as))
            parsed_run.answer_metrics.add(metric_id)
            parsed_run.chunks[metric_id].append(ScoreChunk(chunk.block, chunk.prompt_ids, values, block.trials))

    def _add_task_scores(self, block: TaskScores) -> None:
        parsed_run = self._find_run(block.run, None)
        metric_id = self._metric_id(block)
        known = self.catalogue.tasks(parsed_run.benchmark_id, block.tasks)
        metric = self.metrics[metric_id]
        lower = -np.inf if metric.lower is None else metric.lower
        upper = np.inf if metric.upper is None else metric.upper
        problems = []
        for row, (task, value) in enumerate(zip(block.tasks, block.values.tolist(), strict=True)):
            if np.isnan(value):
                continue
            if not lower <= value <= upper or np.isinf(value):
                problems.append(f"{parsed_run.model}, task {task!r}: {value:g} is outside [{lower:g}, {upper:g}]")
                continue
            error = None if block.stderr is None or np.isnan(block.stderr[row]) else float(block.stderr[row])
            n_prompts = None if block.n_prompts is None else block.n_prompts[row]
            key = (metric_id, known[make_storable(task)])
            task_value = (value, error, n_prompts)
            if parsed_run.task_scores.setdefault(key, task_value)[0] != value:
                problems.append(
                    f"{parsed_run.model}, task {task!r}: both {parsed_run.task_scores[key][0]:g} and {value:g}"
                )
        for problem in problems:
            self._omit(partial(str, problem))
        if problems:
            self._check_omissions()


def _storable_values(run: RunDescription) -> RunFields:
    """Return the settings of a run as stored, with texts and times normalized."""
    values = run_values(run)
    for name, value in values.items():
        if isinstance(value, datetime):
            values[name] = _utc(value)
        elif isinstance(value, str):
            values[name] = make_storable(value)
        elif isinstance(value, Mapping):
            values[name] = make_storable_json(value)
    return RunFields(**values)


def _utc(moment: datetime) -> datetime:
    """Return a time in UTC; SQLite stores the hour without the time zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
