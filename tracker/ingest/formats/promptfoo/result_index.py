"""Index of all results of promptfoo, which must be known before reading: models, variants, trials, metrics."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.files.json_values import count, instant, mapping, number, setting, text, version_warning
from tracker.ingest.formats.promptfoo.outputs import iterate_entries
from tracker.ingest.formats.promptfoo.rows import (
    PASS,
    SCORE,
    InvalidResultError,
    PromptfooColumn,
    PromptfooResult,
    named_metric,
    parse_result,
)
from tracker.ingest.measurement import MetricDescription, ReadOptions, RunDescription, metric_description
from tracker.ingest.reported_score import ReportedCount, ReportedScore

VERSIONS = (2, 3)
MAX_METRICS = 200
MAX_NAME_LENGTH = 80


def iterate_results(path: Path, head: dict[str, Any]) -> Iterator[PromptfooResult]:
    """Yield the results in the order of the file; members beside them are added to the header."""
    for n, entry in enumerate(iterate_entries(path, head), start=1):
        try:
            yield parse_result(entry)
        except InvalidResultError as error:
            raise BadInputError(path, f"result {n} {error}.") from error


class PromptfooResultIndex:
    """A compact index of all results.

    Attributes:
        names: model and variant of each column.
        trials: ``(n,)`` int64 trial of each result.
        superseded: ``(n,)`` whether a later result of the same test replaces it.
    """

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path, self.options = path, options
        self.head: dict[str, Any] = {}
        self.columns: dict[PromptfooColumn, int] = {}
        self.lows: dict[str, float] = {}
        self.highs: dict[str, float] = {}
        self.passed_over: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.errors: Counter[int] = Counter()
        rows, keys, tests = array("q"), array("q"), array("q")
        try:
            for n, parse_result in enumerate(iterate_results(path, self.head)):
                rows.append(self.columns.setdefault(parse_result.column, len(self.columns)))
                keys.append(int(parse_result.key, 16) >> 1)
                tests.append(n if parse_result.test is None else parse_result.test)
                self._count(parse_result)
                self.errors[rows[-1]] += parse_result.errored
        except BadInputError:
            pass  # the second pass reports the damage
        self.n = len(rows)
        self.metrics = list(self.lows)[:MAX_METRICS]
        self.names = _names(list(self.columns), self._user_model(), path)
        self.one_template = len({column.template for column in self.columns}) <= 1
        self.trials, self.superseded = _trials(*(np.array(column, dtype=np.int64) for column in (rows, keys, tests)))

    def _count(self, parse_result: PromptfooResult) -> None:
        self.outcomes["errors" if parse_result.errored else "successes" if parse_result.success else "failures"] += 1
        for name, value in parse_result.values.items() if not parse_result.errored else ():
            if value is None:
                self.passed_over[name] += 1
            elif not math.isnan(value):
                self.lows[name] = min(value, self.lows.get(name, math.inf))
                self.highs[name] = max(value, self.highs.get(name, -math.inf))

    def _user_model(self) -> str | None:
        models = {(column.provider, column.label) for column in self.columns}
        if self.options.model and len(models) > 1:
            raise BadInputError(self.path, f"holds {len(models)} models; --model applies to files with a single model.")
        return self.options.model

    def metric(self, name: str) -> MetricDescription:
        """Return a metric; the user's name replaces that of the score unless another metric has it."""
        user_metric = self.options.metric
        renamed = name == SCORE and user_metric is not None and user_metric not in self.metrics
        known = metric_description(user_metric if renamed and user_metric else name, self.options)
        if name not in (SCORE, PASS) or self.lows.get(name, 0) < 0 or self.highs.get(name, 0) > 1:
            return known
        return MetricDescription(
            name=known.name,
            higher_is_better=True if known.higher_is_better is None else known.higher_is_better,
            lower=0.0 if known.lower is None else known.lower,
            upper=1.0 if known.upper is None else known.upper,
        )

    def runs(self) -> list[RunDescription]:
        """Return the run of each column."""
        head, config = self.head, mapping(self.head.get("config"))
        stamp = text(head.get("timestamp"))
        command_options = {**mapping(config.get("commandLineOptions")), **mapping(config.get("evaluateOptions"))}
        settings = {
            "eval_id": text(head.get("evalId")),
            "promptfoo": text(mapping(head.get("metadata")).get("promptfooVersion")),
            "repeat": count(command_options.get("repeat")),
        }
        return [
            RunDescription(
                model=model,
                benchmark=text(config.get("description")),
                condition=self.options.condition_of_runs,
                variant=variant,
                label=text(head.get("evalId")) or stamp or "",
                settings={
                    name: value
                    for name, value in {
                        **settings,
                        "provider": column.provider,
                        "template": setting(column.prompt_label),
                    }.items()
                    if value
                },
                limited=any(str(name).startswith("filter") and value for name, value in command_options.items()),
                started=instant(stamp),
            )
            for column, (model, variant) in zip(self.columns, self.names, strict=True)
        ]

    def warnings(self) -> Iterator[str]:
        """Yield the warnings."""
        if warning := version_warning("version of the results", self.head.get("version"), VERSIONS):
            yield warning
        if n := self.outcomes["errors"]:
            counted = "wrong" if self.options.errored == "wrong" else "missing"
            yield f"{n:,} results are provider errors; they count as {counted} (--errored {counted})"
        if n := int(self.superseded.sum()):
            yield f"{n:,} results are duplicates of the same test and column; the last one counts"
        for name, n in self.passed_over.items():
            yield f"{name}: {n:,} values that are not numbers were skipped"
        if len(self.lows) > MAX_METRICS:
            yield f"the file has {len(self.lows):,} metrics; only the first {MAX_METRICS} were read"

    def reported_scores(self) -> Iterator[ReportedScore]:
        """Yield the numbers of successes and failures, and the sums of each column."""
        if self.superseded.any():
            return
        stats = mapping(self.head.get("stats"))
        n_successes, n_failures = count(stats.get("successes")), count(stats.get("failures"))
        if n_failures is not None and count(stats.get("errors")) is None:
            n_failures -= self.outcomes["errors"]  # the first versions counted errors as failures
        for name, n, aggregation in (("successes", n_successes, "sum"), ("failures", n_failures, "n_zeros")):
            if n is not None:
                yield self._reported(None, PASS, n, aggregation, f"the number of {name}")
        for place, run, metrics in self._column_metrics():
            n_failed, n_errors = count(metrics.get("testFailCount")), count(metrics.get("testErrorCount"))
            if n_failed is not None and n_errors is None:
                n_failed -= self.errors[place]
            for name, key, value, aggregation in (
                (SCORE, "score", number(metrics.get("score")), "sum"),
                (PASS, "testPassCount", number(metrics.get("testPassCount")), "sum"),
                (PASS, "testFailCount", n_failed, "n_zeros"),
            ):
                if value is not None:
                    yield self._reported(run, name, value, aggregation, f"{key} of {run.model}")
            aggregation = "weighted_sum" if mapping(metrics.get("namedScoreWeights")) else "sum"
            for label, reported in mapping(metrics.get("namedScores")).items():
                if (value := number(reported)) is not None and (name := named_metric(label)) in self.metrics:
                    yield self._reported(run, name, value, aggregation, f"the named score {label} of {run.model}")

    def reported_counts(self) -> Iterator[ReportedCount]:
        """Yield the numbers of errors of the file and of each column."""
        if self.superseded.any():
            return
        n_errors = count(mapping(self.head.get("stats")).get("errors"))
        if n_errors is not None:
            yield ReportedCount(run=None, name="errors", value=n_errors, counted=(self.outcomes["errors"],))
        for place, run, metrics in self._column_metrics():
            if (n_errors := count(metrics.get("testErrorCount"))) is not None:
                name = f"errors of {run.model}"
                yield ReportedCount(run=run, name=name, value=n_errors, counted=(self.errors[place],))

    def _column_metrics(self) -> Iterator[tuple[int, RunDescription, Mapping[str, Any]]]:
        """Yield number, run and reported metrics of each column."""
        prompt_list = self.head.get("prompts")
        prompts = prompt_list if isinstance(prompt_list, list) else []
        for place, (column, run) in enumerate(zip(self.columns, self.runs(), strict=True)):
            if column.number is not None and column.number < len(prompts):
                yield place, run, mapping(mapping(prompts[column.number]).get("metrics"))

    def _reported(
        self, run: RunDescription | None, metric: str, value: float, aggregation: str, name: str
    ) -> ReportedScore:
        return ReportedScore(
            run=run, metric=self.metric(metric), value=value, aggregations=(aggregation,), is_stored=False, name=name
        )


def _names(columns: Sequence[PromptfooColumn], user_model: str | None, path: Path) -> list[tuple[str, str]]:
    """Return unique model and variant names of each column."""
    labels: dict[str, set[str]] = {}
    for column in columns:
        labels.setdefault(column.provider, set()).add(column.label)
    prompt_labels = _variants({column.template: column.prompt_label for column in columns})
    seen: Counter[tuple[str, str]] = Counter()
    names = []
    for column in columns:
        # One provider under several labels has several settings.
        labelled = column.label if len(labels[column.provider]) > 1 or not column.provider else ""
        model = user_model or labelled or column.provider
        if not model:
            raise BadInputError(path, "does not name the model; add --model NAME.")
        name = (model, prompt_labels[column.template])
        seen[name] += 1
        names.append((f"{model} #{seen[name]}" if seen[name] > 1 else model, name[1]))
    return names


def _variants(prompt_labels: Mapping[str, str]) -> dict[str, str]:
    """Return a unique name for each template, from the first line of its label; '' if there is only one."""
    if len(prompt_labels) <= 1:
        return dict.fromkeys(prompt_labels, "")
    names: dict[str, str] = {}
    for template, prompt_label in prompt_labels.items():
        line = next(iter(prompt_label.strip().splitlines()), "") or template
        name = plain = line if len(line) <= MAX_NAME_LENGTH else f"{line[:MAX_NAME_LENGTH].rstrip()}…"
        n = 1
        while name in names.values():
            n += 1
            name = f"{plain} #{n}"
        names[template] = name
    return names


def _trials(
    columns: NDArray[np.int64], keys: NDArray[np.int64], tests: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the repetition of each result within its test, and which results have a later duplicate."""
    n = len(columns)
    trials, superseded = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    if not n:
        return trials, superseded
    order = np.lexsort((np.arange(n), tests, keys, columns))
    of_prompt = np.stack([columns, keys])[:, order]
    first = np.r_[True, (of_prompt[:, 1:] != of_prompt[:, :-1]).any(axis=0)]
    is_new = first | np.r_[True, tests[order][1:] != tests[order][:-1]]
    counted = np.cumsum(is_new)
    trials[order] = counted - counted[first][np.cumsum(first) - 1]
    superseded[order] = np.r_[~is_new[1:], False]
    return trials, superseded
