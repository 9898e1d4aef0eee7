"""One result of an aggregate: which task, which metric, on which scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tracker.ingest.files.json_values import number, text
from tracker.ingest.measurement import KNOWN_METRICS, MetricDescription, ReadOptions, metric_description

UNNAMED = "score"
PERCENT = ("percent", "percentage", "percents", "%", "pct")
NOT_PERCENT = ("proportion", "fraction", "probability", "ratio")
BINARY_KINDS = ("accuracy", "exact_match", "f1", "pass_rate", "win_rate", "pass@1", "acc")
"""Kinds of metrics that lie in [0, 1] wherever they are not given as percent."""


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """One of the results of an aggregate file.

    Attributes:
        id: by which rows of instances point to it; None where it has none.
        name: its evaluation_name.
        task: the part of the benchmark it is about.
        metric: how it was scored, on the scale that is stored.
        scale: what a value of the file is multiplied with: 0.01 for percent.
        value, stderr: as stored; NaN where not given.
        n_prompts: behind it; None where not said.
        split: of the prompts; None where not said.
        is_summary: whether it sums up others of the file and is not one more.
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


def describe_metric(
    config: Mapping[str, Any], scale: float, options: ReadOptions, *, as_written: bool
) -> MetricDescription:
    """The metric of a result, on the scale that is stored.

    Args:
        config: its metric_config.
        scale: what the file's values are multiplied with.
        options: what the user says.
        as_written: whether our export wrote it, so that nothing known of the metric goes before it.
    """
    names = (text(config.get(name)) for name in ("metric_id", "metric_kind", "metric_name"))
    name = next(filter(None, names), None) or options.metric or UNNAMED
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
    """Whether the unit says so; else whether a share, by its kind or name, is said to go from 0 to 100."""
    unit = (text(config.get("metric_unit")) or "").strip().lower()
    if unit in PERCENT or unit in NOT_PERCENT:
        return unit in PERCENT
    names = {str(config.get(name)).lower() for name in ("metric_id", "metric_kind", "metric_name")}
    share = bool(names & {*BINARY_KINDS, *KNOWN_METRICS})
    return share and number(config.get("max_score")) == 100 and number(config.get("min_score")) in (0, None)


def are_duplicates(first: EvaluationResult, second: EvaluationResult) -> bool:
    """Whether a result is said twice: nothing could tell the instances of the two apart."""
    return first.value == second.value and second.id in (None, first.id)
