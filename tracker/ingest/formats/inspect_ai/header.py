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

from tracker.errors import BadInputError
from tracker.ingest.files.json_values import count, instant, mapping, number, version_warning
from tracker.ingest.measurement import MetricDescription, ReadOptions, RunDescription, metric_description
from tracker.ingest.reported_score import CORPUS, ReportedScore

IN_UNIT_INTERVAL = (
    "match", "includes", "pattern", "exact", "f1", "choice", "model_graded_qa", "model_graded_fact",
)  # fmt: skip
"""Scorers of Inspect whose scores lie in [0, 1]."""
MEANS = ("accuracy", "mean")
GROUPED = {"group_key"}
"""Parameter of metrics that Inspect computes for groups of samples."""
SPREADS = ("stderr", "std", "var", "bootstrap_stderr")
FEW_SHOT_ARGUMENTS = ("fewshot", "num_fewshot", "n_shot", "n_shots", "num_shots")
SECRET = re.compile(r"key|token|secret|password|credential|authorization|headers", re.IGNORECASE)
UNFINISHED = {
    "started": "the evaluation was still running or was interrupted",
    "cancelled": "the evaluation was cancelled",
    "error": "the evaluation ended with an error",
}


REDUCERS = re.compile(r"mean|median|mode|max|at_least_\d{1,6}|pass_at_(?P<k>\d{1,6})")
"""How Inspect combines the scores of a prompt's epochs, where the scores determine it."""
LOG_VERSIONS = (1, 2)


@dataclass(frozen=True)
class LogMetric:
    """A number that the log reports.

    Attributes:
        metric: name of the metric of the underlying scores.
        name: name of the statistic: accuracy, mean, …
        reducer: how the scores of a prompt's epochs are combined.
        error: standard error of the mean, NaN if missing.
        is_clustered: whether the standard error is clustered.
        n_prompts: None if unknown.
    """

    metric: str
    name: str
    value: float
    reducer: str
    error: float
    is_clustered: bool
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
        version = mapping(self._eval.get("packages")).get("inspect_ai")
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
        created = instant(self._eval.get("created"))
        return RunDescription(
            model=model,
            benchmark=self.task,
            condition=self.options.condition_of_runs,
            label="" if self.options.benchmark else self._label(created),
            few_shot=next(
                (n for name in FEW_SHOT_ARGUMENTS if (n := count(mapping(self._eval.get("task_args")).get(name)))), None
            ),
            settings=self._settings,
            limited=self._limited,
            started=instant(mapping(self.data.get("stats")).get("started_at")) or created,
        )

    @property
    def status(self) -> str:
        """Return ``success``, ``started``, ``cancelled`` or ``error``."""
        status = self.data.get("status")
        return status if isinstance(status, str) and status else "started"

    def warnings(self) -> Iterator[str]:
        """Yield the warnings about an evaluation that did not succeed, and about an unknown version of the log."""
        if self.status != "success" or not self.complete:
            problem = UNFINISHED.get(self.status, f"the evaluation has the status {self.status[:40]!r}")
            yield f"{problem}; its run is stored as limited"
        if unknown := version_warning("log version", self.data.get("version"), LOG_VERSIONS):
            yield unknown
        if self.data.get("invalidated") is True:
            yield "the log marks some samples as invalid without naming them; all samples were read"

    @cached_property
    def reported(self) -> list[LogMetric]:
        """Return the reported numbers of each scorer, without measures of spread."""
        results = mapping(self.data.get("results"))
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
            metrics = {key: entry for key, entry in mapping(score.get("metrics")).items() if isinstance(entry, dict)}
            numbers = {key: number(entry.get("value")) for key, entry in metrics.items()}
            error = numbers.get("stderr")
            settings = mapping(
                mapping(metrics.get("stderr")).get("params") or mapping(metrics.get("stderr")).get("options")
            )
            for key, value in numbers.items():
                if (
                    value is None
                    or key.split("/")[-1] in SPREADS
                    or GROUPED & mapping(metrics[key].get("params")).keys()
                ):
                    continue
                reported.append(
                    LogMetric(
                        metric=metric,
                        name=key.split("/")[-1],
                        value=value,
                        reducer=reducer if isinstance(reducer, str) and reducer else "mean",
                        error=math.nan if error is None else error,
                        is_clustered=settings.get("cluster") is not None,
                        n_prompts=count(score.get("scored_samples")),
                    )
                )
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

    def reported_scores(self, *, all_errored: bool) -> Iterator[ReportedScore]:
        """Yield the reported numbers, as means of the scores of prompts or as separate metrics.

        Args:
            all_errored: whether all samples ended with an error, so that their means are meaningless.
        """
        seen: set[str] = set()
        for reported in self.reported:
            is_mean = reported.name in MEANS
            name = reported.metric if is_mean else f"{reported.metric}/{reported.name}"
            name = name if reported.reducer == "mean" else f"{name}/{reported.reducer}"
            if name in seen or (is_mean and all_errored):
                continue
            seen.add(name)
            reducer = REDUCERS.fullmatch(reported.reducer)
            aggregations = CORPUS
            if is_mean and reducer is not None:
                aggregations = (
                    ("mean", "row_mean") if reducer[0] == "mean" else (reducer[0].replace("pass_at_", "pass@"),)
                )
            yield ReportedScore(
                run=self.run,
                metric=self.metric(name, reported.value, reported.value),
                tasks=(self.task,),
                value=reported.value,
                stderr=reported.error if is_mean else math.nan,
                has_sample_stderr=is_mean and reported.reducer == "mean" and not reported.is_clustered,
                aggregations=aggregations,
                rows=None if name == reported.metric else self.metric(reported.metric),
                n_prompts=reported.n_prompts
                or count(mapping(self.data.get("results")).get("completed_samples"))
                or None,
                name=f"{reported.metric} {reported.name}",
            )

    @property
    def _eval(self) -> Mapping[str, Any]:
        return mapping(self.data.get("eval"))

    def _label(self, created: datetime | None) -> str:
        """Return time stamp and key; evaluations started in the same second differ only in the key."""
        stamp = created.astimezone(UTC).isoformat() if created is not None else ""
        keys = (self._eval.get(name) for name in ("eval_id", "run_id"))
        return f"{stamp} {next((key for key in keys if isinstance(key, str) and key), '')}".strip()

    @property
    def _limited(self) -> bool:
        config, dataset = mapping(self._eval.get("config")), mapping(self._eval.get("dataset"))
        sample_ids, n_samples = dataset.get("sample_ids"), count(dataset.get("samples"))
        return (
            not self.complete
            or self.status != "success"
            or config.get("limit") is not None
            or config.get("sample_id") is not None
            or (isinstance(sample_ids, list) and n_samples is not None and 0 < len(sample_ids) < n_samples)
        )

    @cached_property
    def _settings(self) -> dict[str, Any]:
        evaluation, plan = self._eval, mapping(self.data.get("plan"))
        dataset = {name: value for name, value in mapping(evaluation.get("dataset")).items() if name != "sample_ids"}
        steps = plan.get("steps")
        settings = {
            **{name: evaluation.get(name) for name in (
                "eval_id", "run_id", "task_id", "task", "task_version", "task_args", "solver", "solver_args",
                "model_args", "config", "revision", "packages",
            )},
            "generate_config": mapping(evaluation.get("model_generate_config")) | mapping(plan.get("config")),
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
