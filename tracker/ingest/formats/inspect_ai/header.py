"""Header of a log: model, task, settings and reported metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.measurement import (
    MetricDescription,
    ReadOptions,
    RunDescription,
    TaskScores,
    metric_description,
)

IN_UNIT_INTERVAL = (
    "match", "includes", "pattern", "exact", "f1", "choice", "model_graded_qa", "model_graded_fact",
)  # fmt: skip
"""Scorers of Inspect whose scores lie in [0, 1]."""
MEANS = ("accuracy", "mean")
SPREADS = ("stderr", "std", "var", "bootstrap_stderr")
FEW_SHOT_ARGUMENTS = ("fewshot", "num_fewshot", "n_shot", "n_shots", "num_shots")
SECRET = re.compile(r"key|token|secret|password|credential|authorization|headers", re.IGNORECASE)
UNFINISHED = {
    "started": "the evaluation was still running or was interrupted",
    "cancelled": "the evaluation was cancelled",
    "error": "the evaluation ended with an error",
}


@dataclass(frozen=True)
class ReportedScore:
    """A number that the log reports.

    Attributes:
        metric: name of the metric of the underlying scores.
        name: name of the statistic: accuracy, mean, …
        reducer: how the scores of a prompt's epochs are combined.
        error: its standard error, NaN if missing.
        n_prompts: None if unknown.
    """

    metric: str
    name: str
    value: float
    reducer: str
    error: float
    n_prompts: int | None


@dataclass(frozen=True, eq=False)
class LogHeader:
    """The header of a log.

    Attributes:
        path: the file, for messages.
        data: the log without its samples.
        complete: whether the log is finished; a truncated log holds only what was known at the start.
    """

    path: Path
    data: Mapping[str, Any]
    options: ReadOptions
    complete: bool = True
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str | None:
        """Return the version of Inspect."""
        version = _part(self._eval, "packages").get("inspect_ai")
        return version if isinstance(version, str) and version else None

    @cached_property
    def task(self) -> str:
        """Return the task as Inspect displays it, without its package.

        Raises:
            BadInputError: the log does not name the task.
        """
        for value in (self._eval.get("task_display_name"), self._eval.get("task")):
            if isinstance(value, str) and (name := value.strip().rpartition("/")[2]):
                return name
        if self.options.benchmark:
            return self.options.benchmark
        raise BadInputError(self.path, "does not name the task.", advice="Name the benchmark with --benchmark NAME.")

    @cached_property
    def run(self) -> RunDescription:
        """Return the run.

        Raises:
            BadInputError: the log does not name the model.
        """
        value = self._eval.get("model")
        model = self.options.model or (value.strip() if isinstance(value, str) else "")
        if not model:
            raise BadInputError(self.path, "does not name the model; add --model NAME.")
        created = _instant(self._eval.get("created"))
        return RunDescription(
            model=model,
            benchmark=self.task,
            condition=self.options.condition_of_runs,
            label="" if self.options.benchmark else self._label(created),
            few_shot=next(
                (n for name in FEW_SHOT_ARGUMENTS if (n := _count(_part(self._eval, "task_args").get(name)))), None
            ),
            settings=self._settings,
            limited=self._limited,
            started=_instant(_part(self.data, "stats").get("started_at")) or created,
        )

    @property
    def status(self) -> str:
        """Return ``success``, ``started``, ``cancelled`` or ``error``."""
        status = self.data.get("status")
        return status if isinstance(status, str) and status else "started"

    @property
    def warning(self) -> str | None:
        """Return the warning about an evaluation that did not succeed."""
        if self.status == "success" and self.complete:
            return None
        problem = UNFINISHED.get(self.status, f"the evaluation has the status {self.status[:40]!r}")
        return f"{problem}; its run is stored as limited"

    @cached_property
    def reported(self) -> list[ReportedScore]:
        """Return the reported numbers of each scorer, without measures of spread."""
        results = _part(self.data, "results")
        scores = results.get("scores")
        if not isinstance(scores, list):  # the first versions have one scorer
            only = results.get("scorer")
            scores = [{**only, "metrics": results.get("metrics")}] if isinstance(only, dict) else []
        reported = []
        for score in scores:
            if not isinstance(score, dict) or not isinstance(score.get("name"), str) or not score["name"]:
                continue
            name, scorer, reducer = score["name"], score.get("scorer"), score.get("reducer")
            metric = f"{scorer}/{name}" if isinstance(scorer, str) and scorer and scorer != name else name
            numbers = {key: _number(entry.get("value")) for key, entry in _part(score, "metrics").items()
                       if isinstance(entry, dict)}  # fmt: skip
            error = numbers.get("stderr")
            for key, value in numbers.items():
                if value is not None and key.split("/")[-1] not in SPREADS:
                    reducer_name = reducer if isinstance(reducer, str) and reducer else "mean"
                    spread = math.nan if error is None else error
                    n_prompts = _count(score.get("scored_samples"))
                    reported.append(ReportedScore(metric, key.split("/")[-1], value, reducer_name, spread, n_prompts))
        return reported

    @property
    def scorers(self) -> list[str]:
        """Return the names of the scorers, if the log has them."""
        entries = self._eval.get("scorers")
        scorer_names = (
            [entry.get("name") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        )
        return [name for name in scorer_names if isinstance(name, str) and name] or [
            reported.metric for reported in self.reported
        ]

    def metric(self, name: str, low: float = math.nan, high: float = math.nan) -> MetricDescription:
        """Return the description of a metric.

        Args:
            name: name in the log.
            low, high: smallest and largest score in the log.
        """
        plain = self.renamed.get(name, name)
        known = metric_description(plain, self.options)
        if name not in IN_UNIT_INTERVAL or low < 0 or high > 1:
            return known
        return MetricDescription(
            name=plain,
            higher_is_better=True if known.higher_is_better is None else known.higher_is_better,
            lower=0.0 if known.lower is None else known.lower,
            upper=1.0 if known.upper is None else known.upper,
        )

    def task_scores(self) -> Iterator[TaskScores | str]:
        """Yield the reported numbers as task scores, for logs without samples."""
        seen: set[str] = set()
        for reported in self.reported:
            # Accuracy and mean correspond to the scores of prompts; others are separate metrics.
            name = reported.metric if reported.name in MEANS else f"{reported.metric}/{reported.name}"
            name = name if reported.reducer == "mean" else f"{name}/{reported.reducer}"
            if name in seen:
                continue
            seen.add(name)
            yield TaskScores(
                run=self.run,
                metric=self.metric(name, reported.value, reported.value),
                tasks=[self.task],
                values=np.array([reported.value]),
                stderr=np.array([reported.error if reported.name in MEANS else math.nan]),
                n_prompts=[reported.n_prompts or _count(_part(self.data, "results").get("completed_samples")) or None],
            )
        if seen:
            yield "the log has no samples; its reported metrics were read as task scores"

    @property
    def _eval(self) -> Mapping[str, Any]:
        return _part(self.data, "eval")

    def _label(self, created: datetime | None) -> str:
        """Return time stamp and key; evaluations started in the same second differ only in the key."""
        stamp = created.astimezone(UTC).isoformat() if created is not None else ""
        keys = (self._eval.get(name) for name in ("eval_id", "run_id"))
        return f"{stamp} {next((key for key in keys if isinstance(key, str) and key), '')}".strip()

    @property
    def _limited(self) -> bool:
        config, dataset = _part(self._eval, "config"), _part(self._eval, "dataset")
        sample_ids, n_samples = dataset.get("sample_ids"), _count(dataset.get("samples"))
        return (
            not self.complete
            or self.status != "success"
            or config.get("limit") is not None
            or config.get("sample_id") is not None
            or (isinstance(sample_ids, list) and n_samples is not None and 0 < len(sample_ids) < n_samples)
        )

    @cached_property
    def _settings(self) -> dict[str, Any]:
        evaluation, plan = self._eval, _part(self.data, "plan")
        dataset = {name: value for name, value in _part(evaluation, "dataset").items() if name != "sample_ids"}
        steps = plan.get("steps")
        settings = {
            **{name: evaluation.get(name) for name in (
                "eval_id", "run_id", "task_id", "task", "task_version", "task_args", "solver", "solver_args",
                "model_args", "config", "revision", "packages",
            )},
            "generate_config": _part(evaluation, "model_generate_config") | _part(plan, "config"),
            "dataset": dataset,
            "solvers": [s.get("solver") for s in steps if isinstance(s, dict)] if isinstance(steps, list) else [],
            "status": self.status,
        }  # fmt: skip
        return {name: _without_secrets(value) for name, value in settings.items() if value not in (None, {}, [], "")}


def _without_secrets(value: Any, depth: int = 0) -> Any:
    if isinstance(value, dict):
        return {
            str(name): "(omitted)" if SECRET.search(str(name)) and isinstance(part, (str, dict, list)) else
            _without_secrets(part, depth + 1)
            for name, part in value.items()
        } if depth < 20 else None  # fmt: skip
    if isinstance(value, list):
        return [_without_secrets(part, depth + 1) for part in value] if depth < 20 else None
    return value


def _part(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = data.get(name)
    return part if isinstance(part, dict) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) and abs(value) <= 2**53 else None
    except OverflowError:
        return None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _instant(value: Any) -> datetime | None:
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
        if instant is None:
            return None
        return (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
