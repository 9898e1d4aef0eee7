"""Header of a log: model, task, settings and reported metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.json_values import count, instant, mapping, version_warning
from tracker.ingest.formats.inspect_ai.log_index import SampleCounts
from tracker.ingest.formats.inspect_ai.results import (
    COUNTED_REDUCERS,
    NOT_COMPARED,
    LogMetric,
    RowMetric,
    iterate_metrics,
    row_metric,
)
from tracker.ingest.measurement import MetricDescription, ReadOptions, RunDescription, metric_description
from tracker.ingest.reported_score import ReportedCount, ReportedScore

IN_UNIT_INTERVAL = (
    "match", "includes", "pattern", "exact", "f1", "choice", "model_graded_qa", "model_graded_fact",
)  # fmt: skip
"""Scorers of Inspect whose scores lie in [0, 1]."""
FEW_SHOT_ARGUMENTS = ("fewshot", "num_fewshot", "n_shot", "n_shots", "num_shots")
SECRET = re.compile(r"key|token|secret|password|credential|authorization|headers", re.IGNORECASE)
UNFINISHED = {
    "started": "the evaluation was still running or was interrupted",
    "cancelled": "the evaluation was cancelled",
    "error": "the evaluation ended with an error",
}
LOG_VERSIONS = (1, 2)


@dataclass(frozen=True, eq=False)
class LogHeader:
    """The header of a log.

    Attributes:
        path: the file, for messages.
        data: the log without its samples.
        complete: whether the log is finished; a truncated log holds only what was known at the start.
        renamed: the user's name of a metric.
        row_metrics: the metrics of the samples.
    """

    path: Path
    data: Mapping[str, Any]
    options: ReadOptions
    complete: bool = True
    renamed: Mapping[str, str] = field(default_factory=dict)
    row_metrics: Mapping[str, RowMetric] = field(default_factory=dict)

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
        """Return the reported numbers of each scorer."""
        return list(iterate_metrics(self._results, self.row_metrics))

    @property
    def averaged(self) -> set[str]:
        """Return the metrics of which the log reports a mean."""
        return {reported.metric for reported in self.reported if reported.is_mean}

    @property
    def group_fields(self) -> list[str]:
        """Return the fields of the metadata by which the log groups samples."""
        fields = (part for r in self.reported for part in (r.clusters, r.mean_of, r.group[0] if r.group else ""))
        return sorted(set(fields) - {""})

    @property
    def scorers(self) -> list[str]:
        """Return the names of the scorers, if the log has them."""
        entries = self._eval.get("scorers")
        scorer_names = (
            [entry.get("name") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        )
        return [name for name in scorer_names if isinstance(name, str) and name] or [
            reported.metric for reported in self.reported if reported.is_stored
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
        seen: set[tuple[str, str]] = set()
        counted: set[tuple[str, str]] = set()
        for reported in self.reported:
            if reported.name in NOT_COMPARED or (all_errored and (reported.is_mean or not reported.is_stored)):
                continue
            name = "/".join(filter(None, [
                reported.metric,
                reported.group[0] if reported.group else "",
                "" if reported.is_mean else reported.name,
                reported.reducer,
            ]))  # fmt: skip
            task = reported.group[1] if reported.group else self.task
            is_stored = reported.is_stored and (name, task) not in seen
            seen |= {(name, task)} if is_stored else set()
            score = ReportedScore(
                run=self.run,
                metric=self.metric(name, reported.value, reported.value),
                tasks=(task,),
                value=reported.value,
                stderr=reported.stderr,
                aggregations=reported.aggregations,
                statistic=reported.statistic,
                clusters=reported.clusters,
                group=reported.group,
                mean_of=reported.mean_of,
                rows=None if name == reported.metric else self.metric(reported.metric),
                n_prompts=None if reported.group else self._n_prompts(reported),
                is_stored=is_stored,
                name=" ".join(filter(None, [reported.metric, reported.reducer, reported.key])),
            )
            yield score
            part = (reported.metric, reported.reducer)
            if reported.n_scored is not None and reported.aggregations and part not in counted:
                counted.add(part)
                yield replace(
                    score, value=float(reported.n_scored), stderr=math.nan, statistic="n", group=None, mean_of="",
                    clusters="", tasks=(self.task,), is_stored=False, name=f"{reported.metric} scored_samples",
                    rows=self.metric(reported.metric),
                )  # fmt: skip

    def reported_counts(self, counts: SampleCounts) -> Iterator[ReportedCount]:
        """Yield the reported numbers of samples of a finished log with samples.

        Args:
            counts: numbers of samples in the log.
        """
        results = self._results
        if self.status != "success" or not self.complete or results.get("early_stopping") or not counts.total:
            return
        n_total = count(results.get("logged_samples"))
        n_total = count(results.get("total_samples")) if n_total is None else n_total
        n_completed = count(results.get("completed_samples"))
        if n_total:
            yield ReportedCount(run=self.run, name="samples", value=n_total, counted=(counts.total,))
        if n_completed is not None and n_total:
            counted = (counts.completed, counts.scored)
            yield ReportedCount(run=self.run, name="completed samples", value=n_completed, counted=counted)
        for score in results["scores"] if isinstance(results.get("scores"), list) else ():
            n_unscored = count(mapping(score).get("unscored_samples"))
            metric = row_metric(score, self.row_metrics) if n_unscored is not None else ""
            if n_unscored is not None and metric in self.averaged and score.get("reducer") in COUNTED_REDUCERS:
                name = f"samples without a score of {metric}"
                yield ReportedCount(run=self.run, name=name, value=n_unscored, counted=counts.unscored(metric))

    def _n_prompts(self, reported: LogMetric) -> int | None:
        return reported.n_scored or count(self._results.get("completed_samples")) or None

    @property
    def _results(self) -> Mapping[str, Any]:
        return mapping(self.data.get("results"))

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
