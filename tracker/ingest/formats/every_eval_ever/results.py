"""A result of an aggregate: task, metric and scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tracker.ingest.files.json_values import number, text
from tracker.ingest.measurement import KNOWN_METRICS, MetricDescription, ReadOptions, metric_description
from tracker.ingest.reported_score import rows_of

UNNAMED = "score"
PERCENT = ("percent", "percentage", "percents", "%", "pct")
NOT_PERCENT = ("proportion", "fraction", "probability", "ratio")
BINARY_KINDS = ("accuracy", "exact_match", "f1", "pass_rate", "win_rate", "pass@1", "acc")
"""Kinds of metrics that lie in [0, 1] unless they are percentages."""


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """A result of an aggregate file.

    Attributes:
        id: identifier to which instances refer; None if it has none.
        name: its evaluation_name.
        task: name of the task.
        metric: its metric, on the stored scale.
        scale: factor from values of the file to stored values: 0.01 for percentages.
        value, stderr: on the stored scale; NaN if missing.
        n_prompts: number of prompts; None if unknown.
        split: split of the prompts; None if unknown.
        is_summary: whether it summarizes other results of the file.
        decimals: number of decimals of the value that the file prints; None if unknown.
        averages_rows: whether the value is the mean of the scores of its instances.
    """

    id: str | None
    name: str
    task: str
    metric: MetricDescription
    scale: float = 1.0
    value: float = math.nan
    stderr: float = math.nan
    n_prompts: int | None = None
    split: str | None = None
    is_summary: bool = False
    decimals: int | None = None
    averages_rows: bool = True

    @property
    def rows(self) -> MetricDescription:
        """Return the metric of the scores of its instances."""
        return self.metric if self.averages_rows else rows_of(self.metric)


def describe_metric(
    name: str | None, config: Mapping[str, Any], scale: float, options: ReadOptions, *, as_written: bool
) -> MetricDescription:
    """Return the metric of a result on the stored scale.

    Args:
        name: its name; None if the file has none.
        config: its metric_config.
        scale: factor from values of the file to stored values.
        options: how to read the file.
        as_written: whether Suffrage exported it, so that it overrides known metrics.
    """
    name = name or options.metric or UNNAMED
    known = MetricDescription(name=name) if as_written else metric_description(name, options)
    lower, upper = (number(config.get(bound)) for bound in ("min_score", "max_score"))
    if config.get("score_type") == "binary":
        lower, upper = (0.0 if lower is None else lower), (1.0 if upper is None else upper)
    better = config.get("lower_is_better")
    if options.higher_is_better is None and isinstance(better, bool):
        known = replace(known, higher_is_better=not better)
    if lower is not None and upper is not None and lower > upper:
        lower = upper = None
    return replace(
        known,
        lower=known.lower if known.lower is not None or lower is None else lower * scale,
        upper=known.upper if known.upper is not None or upper is None else upper * scale,
    )


def is_percent(config: Mapping[str, Any]) -> bool:
    """Return whether the unit is percent, or a proportion by kind or name has the range 0 to 100."""
    unit = (text(config.get("metric_unit")) or "").strip().lower()
    if unit in PERCENT or unit in NOT_PERCENT:
        return unit in PERCENT
    names = {str(config.get(name)).lower() for name in ("metric_id", "metric_kind", "metric_name")}
    share = bool(names & {*BINARY_KINDS, *KNOWN_METRICS})
    return share and number(config.get("max_score")) == 100 and number(config.get("min_score")) in (0, None)


def are_duplicates(first: EvaluationResult, second: EvaluationResult) -> bool:
    """Return whether a result is a duplicate whose instances cannot be distinguished."""
    return first.value == second.value and second.id in (None, first.id)
