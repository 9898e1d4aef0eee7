"""Logs of openai/evals: JSON Lines with a specification, events of samples, and a final report.

A ``match`` event is a score of 1 or 0 for the metric `match`; each number of a ``metrics`` event is a score of that
name. Several events of a sample are trials. A log without a final report is of an interrupted run.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, ERRORED, BlockBuilder, PromptContent, describe_policy
from tracker.ingest.files.json_files import iterate_json_lines
from tracker.ingest.files.json_values import (
    first_bytes,
    identity,
    instant,
    mapping,
    number,
    score,
    setting,
    text,
    words,
)
from tracker.ingest.measurement import (
    Measurement,
    MetricDescription,
    ReadOptions,
    RunDescription,
    metric_description,
)
from tracker.ingest.reported_score import CORPUS, CORPUS_METRICS, ReportedScore

SPECIFICITY = 30
RECOGNIZED_BY = ".jsonl that begins with a spec"
NAMESPACE = "openai_evals"
START = re.compile(rb'\s*\{\s*"spec"\s*:\s*\{')
SETTINGS = ("eval_name", "base_eval", "split", "run_config", "completion_fns", "created_by")


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a log of openai/evals."""
    if not re.search(r"\.(jsonl|json|log)(\.gz)?$", path.name):
        return "the name does not end in .jsonl"
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    return None if START.match(data) else 'the first line does not start with {"spec": {'


def harness_name(path: Path) -> str | None:
    """Return the program; its logs do not contain the version."""
    return "openai/evals"


@dataclass
class _Sample:
    """A sample without a score so far."""

    content: PromptContent = field(default_factory=PromptContent)
    sampled: str | None = None
    was_sampled: bool = False
    errored: bool = False


class _Log:
    """Collects events into rows.

    Args:
        run: the run.
        options: how to read the file.
        name: name of the file.
    """

    def __init__(self, run: RunDescription, task: str, split: str | None, options: ReadOptions, name: str) -> None:
        self.builder = BlockBuilder(run, NAMESPACE, name)
        self.task, self.split, self.options = task, split, options
        self.waiting: dict[str, _Sample] = {}
        self.trials: dict[str, Counter[str]] = defaultdict(Counter)
        self.metrics: dict[str, MetricDescription] = {}
        self.n_empty = 0

    def event(self, kind: str, key: str, data: Mapping[str, Any], line: int) -> None:
        """Add an event of a sample.

        Raises:
            ValueError: a score is not a number.
        """
        sample = self.waiting.get(key) or self.waiting.setdefault(key, _Sample(PromptContent(split=self.split)))
        if kind == "sampling":
            sample.content.text = sample.content.text or _question(data.get("prompt"))
            if not sample.was_sampled:
                sample.sampled, sample.was_sampled = _first(data.get("sampled")), True
        elif kind == "raw_sample":
            sample.content.text = sample.content.text or _question(data.get("input"))
            _gold(sample.content, data.get("ideal"))
        elif kind == "error":
            sample.errored = True
        elif kind == "match" and "correct" in data:
            _gold(sample.content, data.get("expected"))
            self._scored(key, sample, {"match": score(data["correct"])}, data, line)
        elif kind == "metrics":
            scores = {
                name: value for name, value in data.items() if text(name) and isinstance(value, (bool, int, float))
            }
            self._scored(key, sample, {name: score(value) for name, value in scores.items()}, data, line)

    def _scored(
        self, key: str, sample: _Sample, values: Mapping[str, float], data: Mapping[str, Any], line: int
    ) -> None:
        for name, value in values.items():
            trial = self.trials[name][key]
            self.trials[name][key] += 1
            row = self.builder.row(self.task, key, trial, sample.content, line)
            answer = _first(data.get("picked"), data.get("sampled")) or sample.sampled
            known = sample.was_sampled or "sampled" in data or "picked" in data
            empty = known and not (answer or "").strip()
            if known:
                self.builder.answer(row, None if empty else answer)
                sample.sampled, sample.was_sampled = answer, True
            if empty:
                self.n_empty += 1
                if self.options.empty == "missing":
                    self.builder.log(row, self._metric(name), value)
                    continue
            self.builder.score(row, self._metric(name), value)
        if values:
            sample.sampled, sample.was_sampled, sample.errored = None, False, False

    def _metric(self, name: str) -> MetricDescription:
        if name not in self.metrics:
            if name == "match":
                metric_name = self.options.metric or name
                self.metrics[name] = MetricDescription(name=metric_name, higher_is_better=True, lower=0.0, upper=1.0)
            else:
                self.metrics[name] = metric_description(name, self.options)
        return self.metrics[name]

    def blocks(self) -> Iterator[Measurement]:
        """Yield the collected blocks; samples without a score are kept."""
        yield from self.builder.blocks()
        self.waiting = {key: sample for key, sample in self.waiting.items() if sample.was_sampled or sample.errored}

    def reported_scores(self, report: Mapping[str, Any]) -> Iterator[ReportedScore]:
        """Yield the numbers of the final report: means over all events, and metrics of whole texts."""
        for name, value in report.items():
            reported = number(value)
            plain = name.removeprefix("sacre").removesuffix("_score")
            is_corpus = plain in CORPUS_METRICS
            event = "match" if name == "accuracy" and name not in self.metrics else name
            if reported is None or not (is_corpus or event in self.metrics or event == "match"):
                continue
            yield ReportedScore(
                run=self.builder.run,
                metric=metric_description(name, self.options) if is_corpus else self._metric(event),
                tasks=(self.task,),
                value=reported,
                aggregations=CORPUS if is_corpus else ("row_mean",),
                name=name,
            )

    def rest(self) -> Iterator[Measurement | str]:
        """Add the samples that never got a score."""
        wrong = self.options.errored == "wrong"
        n_errored = n_unscored = 0
        scored = {key for counts in self.trials.values() for key in counts} if self.waiting else set()
        for key, sample in self.waiting.items():
            if key in scored or not (sample.errored or sample.was_sampled):
                continue
            row = self.builder.row(self.task, key, 0, sample.content)
            if sample.errored:
                n_errored += 1
                self.builder.answer(row, sample.sampled, status="error")
                for metric in self.metrics.values() if wrong else ():
                    self.builder.score(row, metric, 0.0)
                    self.builder.log(row, metric, math.nan)
            else:
                n_unscored += 1
                self.builder.answer(row, sample.sampled)
            if self.builder.is_full:
                yield from self.builder.blocks()
        yield from self.builder.blocks()
        if n_errored:
            yield describe_policy(n_errored, ERRORED, self.options.errored or "missing", "sample failed|samples failed")
        if self.n_empty:
            policy = self.options.empty or "wrong"
            message = describe_policy(self.n_empty, EMPTY, policy, "answer is empty|answers are empty")
            yield (
                message if policy == "missing" else message.replace("counted as wrong", "their logged scores are kept")
            )
        if n_unscored:
            yield f"{n_unscored:,} samples have a response but no score in the log; they are missing"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield the scores and answers of one run.

    Raises:
        BadInputError: the first line is not a specification, or a later one is not an event.
    """
    log: _Log | None = None
    report: Mapping[str, Any] | None = None
    try:
        for line, event in iterate_json_lines(path):
            if not isinstance(event, dict):
                raise BadInputError(path, f"line {line}: is not a JSON object.")
            if log is None:
                log = _opened(path, line, event, options)
            elif isinstance(event.get("final_report"), dict):
                report = event["final_report"]
            elif "spec" in event:
                raise BadInputError(path, f"line {line}: a second run starts here; put each run into a separate file.")
            elif (key := identity(event.get("sample_id"))) is not None:
                try:
                    log.event(str(event.get("type")), key, mapping(event.get("data")), line)
                except ValueError as error:
                    raise BadInputError(path, f"line {line}, sample {key!r}: a score is {error}.") from error
                if log.builder.is_full:
                    yield from log.blocks()
    except BadInputError:
        if log is not None:
            yield from log.blocks()
        raise
    if log is None:
        raise BadInputError(path, "holds no run specification.")
    yield from log.blocks()
    yield from log.rest()
    if report is None:
        yield "the log has no final report: the run was interrupted or is still running; its events were read"
        return
    yield from log.reported_scores(report)


def _opened(path: Path, line: int, event: Mapping[str, Any], options: ReadOptions) -> _Log:
    spec = event.get("spec")
    if not isinstance(spec, dict):
        raise BadInputError(path, f"line {line}: is not a run specification, which must come first.")
    functions = spec.get("completion_fns")
    models = [name for function in functions if (name := text(function))] if isinstance(functions, list) else []
    if not options.model and not models:
        raise BadInputError(path, f"line {line}: completion_fns does not name a model; add --model NAME.")
    name = text(spec.get("base_eval")) or text(spec.get("eval_name")) or ""
    run = RunDescription(
        model=options.model or models[0],
        benchmark=options.benchmark or name or None,
        label=text(spec.get("run_id")) or "",
        started=instant(spec.get("created_at")),
        settings={part: value for part in SETTINGS if (value := setting(spec.get(part))) is not None},
    )
    return _Log(run, name, text(spec.get("split")), options, path.name)


def _question(prompt: Any) -> str | None:
    """Return the question: the request, or the last message of the user."""
    if isinstance(prompt, str):
        return text(prompt)
    messages = [message for message in prompt if isinstance(message, dict)] if isinstance(prompt, list) else []
    users = [message for message in messages if message.get("role") == "user"] or messages
    content = users[-1].get("content") if users else None
    if isinstance(content, list):
        content = "\n".join(part for message in content if (part := text(mapping(message).get("text"))))
    return text(content)


def _gold(content: PromptContent, expected: Any) -> None:
    several = [answer for value in expected if (answer := words(value))] if isinstance(expected, list) else []
    gold = several[0] if several else None if isinstance(expected, list) else words(expected)
    if content.answer is None and gold:
        content.answer = gold
        if len(several) > 1:
            content.details = {"accepted_answers": several}


def _first(*values: Any) -> str | None:
    """Return the first response; of lists, the first element."""
    for value in values:
        first = value[0] if isinstance(value, list) and value else value
        if first is not None and not isinstance(first, list):
            return words(first)
    return None
