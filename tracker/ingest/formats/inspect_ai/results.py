"""Numbers that a log reports about its samples: by scorer, reducer of epochs, and group of samples."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tracker.ingest.files.json_values import count, mapping, number
from tracker.ingest.reported_score import CORPUS

MEANS = ("accuracy", "mean")
SPREADS = ("stderr", "std", "var", "bootstrap_stderr", "bootstrap_std")
"""Metrics that are no scores, so that they are compared and not stored."""
NOT_COMPARED = ("bootstrap_stderr", "bootstrap_std")
REDUCERS = re.compile(r"mean|median|mode|max|majority|at_least_\d{1,6}|pass_(?P<kind>at|k)_(?P<k>\d{1,6})")
"""How Inspect combines the scores of a prompt's epochs, where the scores determine it."""
COUNTED_REDUCERS = (None, "mean", "median", "max", "mode")
"""Reducers that are defined for each prompt with a score."""
NAME_OF_GROUP = "{group_name}"


@dataclass(frozen=True)
class RowMetric:
    """A metric of the samples.

    Attributes:
        is_ambiguous: whether different values count as the same number.
        has_unscored: whether a scorer could not score some samples.
    """

    is_ambiguous: bool
    has_unscored: bool


@dataclass(frozen=True, kw_only=True)
class LogMetric:
    """A number that the log reports.

    Attributes:
        metric: name of the metric of the underlying scores.
        name: name of the statistic: accuracy, mean, stderr, …
        key: its name in the log.
        reducer: how the scores of a prompt's epochs are combined; "" for the default, their mean.
        stderr: standard error of the mean, NaN if missing.
        clusters: field of the metadata by which a standard error is clustered.
        group: field of the metadata and its value, for a number of some samples.
        mean_of: field of the metadata, for the mean over its groups.
        n_scored: number of prompts, or of samples if the epochs are not combined.
        is_ambiguous: whether different values count as the same number, so that numbers do not determine a mode.
        has_unscored: whether a scorer could not score some samples.
        is_first_version: whether the log has the layout of the first versions, whose variance is that of a population.
    """

    metric: str
    name: str
    key: str
    value: float
    reducer: str = ""
    stderr: float = math.nan
    clusters: str = ""
    group: tuple[str, str] | None = None
    mean_of: str = ""
    n_scored: int | None = None
    is_ambiguous: bool = False
    has_unscored: bool = False
    is_first_version: bool = False

    @property
    def is_mean(self) -> bool:
        """Return whether it is a mean of the scores."""
        return self.name in MEANS

    @property
    def is_stored(self) -> bool:
        """Return whether it is a score of the model."""
        return self.name not in SPREADS and not self.mean_of

    @property
    def statistic(self) -> str:
        """Return the name of the statistic in the comparison with the rows."""
        if self.name == "var" and self.is_first_version:
            return "population_var"
        return "mean" if self.is_mean else self.name

    @property
    def aggregations(self) -> tuple[str, ...]:
        """Return how the log may have computed it from the rows."""
        reducer = REDUCERS.fullmatch(self.reducer or "mean")
        if reducer is None or not (self.is_mean or self.name in SPREADS) or self._is_undetermined(reducer):
            return CORPUS
        if reducer[0] == "mean":
            return ("mean", "row_mean")
        if reducer["kind"] == "at":
            return (f"pass@{reducer['k']}", f"early_pass@{reducer['k']}")
        return (f"pass^{reducer['k']}" if reducer["kind"] else reducer[0],)

    def _is_undetermined(self, reducer: re.Match[str]) -> bool:
        """Return whether the numbers of the epochs do not determine what the reducer returns.

        Early versions of Inspect count epochs without a score among the k of pass@k.
        """
        return (reducer[0] in ("mode", "majority") and self.is_ambiguous) or bool(reducer["kind"] and self.has_unscored)


def iterate_metrics(results: Mapping[str, Any], row_metrics: Mapping[str, RowMetric]) -> Iterator[LogMetric]:
    """Yield the reported numbers of each scorer.

    Args:
        results: the results in the header.
        row_metrics: the metrics of the samples.
    """
    scores = results.get("scores")
    is_first_version = not isinstance(scores, list)
    if is_first_version:  # with one scorer
        only = results.get("scorer")
        scores = [{**only, "metrics": results.get("metrics")}] if isinstance(only, dict) else []
    for score in scores if isinstance(scores, list) else ():
        if not isinstance(score, dict) or not isinstance(score.get("name"), str) or not score["name"]:
            continue
        metrics = {key: entry for key, entry in mapping(score.get("metrics")).items() if isinstance(entry, dict)}
        stderr = mapping(metrics.get("stderr"))
        error = number(stderr.get("value"))
        reducer = score.get("reducer")
        common: dict[str, Any] = {
            "metric": (metric := row_metric(score, row_metrics)),
            "is_ambiguous": metric in row_metrics and row_metrics[metric].is_ambiguous,
            "has_unscored": metric in row_metrics and row_metrics[metric].has_unscored,
            "reducer": reducer if isinstance(reducer, str) and reducer != "mean" else "",
            "n_scored": count(score.get("scored_samples")),
            "is_first_version": is_first_version,
        }
        for key, entry in metrics.items():
            if (value := number(entry.get("value"))) is None:
                continue
            known = {**common, "key": key, "value": value}
            if "group_key" in (params := mapping(entry.get("params"))):
                yield _of_group(known, entry, params, metrics, math.nan if error is None else error)
                continue
            name = _statistic(key, entry)
            yield LogMetric(
                **known,
                name=name,
                stderr=error if error is not None and name in MEANS else math.nan,
                clusters=_text(_settings(entry).get("cluster")),
            )


def row_metric(score: Mapping[str, Any], row_metrics: Collection[str]) -> str:
    """Return the metric of the samples: that of the scorer, or of a key of its mappings."""
    name, scorer = score["name"], _text(score.get("scorer"))
    as_key = f"{scorer}/{name}"
    if scorer and (scorer != name or (name not in row_metrics and as_key in row_metrics)):
        return as_key
    return str(name)


def _statistic(key: str, entry: Mapping[str, Any]) -> str:
    """Return the name of a metric without its package, or that of one of several values of a metric."""
    name, family = _text(entry.get("name")) or key, _text(entry.get("group"))
    if family:
        return f"{family}/{key}"
    name = name.rpartition("/")[2]
    return name if name in MEANS + SPREADS else key.rpartition("/")[2]


def _of_group(
    known: Mapping[str, Any],
    entry: Mapping[str, Any],
    params: Mapping[str, Any],
    metrics: Mapping[str, Any],
    stderr: float,
) -> LogMetric:
    """Return a number of `grouped`: of a group, or of all samples, of which the standard error is known."""
    inner, group_key = mapping(params.get("metric")), _text(params.get("group_key"))
    common = {
        **known,
        "name": _text(inner.get("name")).rpartition("/")[2],
        "clusters": _text(mapping(inner.get("params")).get("cluster")),
    }
    name = _group_name(known["key"], entry, metrics)
    if params.get("all") is not False and name == (_text(params.get("all_label")) or "all"):
        if params.get("all") == "groups":
            return LogMetric(**common, mean_of=group_key)
        return LogMetric(**common, stderr=stderr if common["name"] in MEANS else math.nan)
    start, _, end = (_text(params.get("name_template")) or NAME_OF_GROUP).partition(NAME_OF_GROUP)
    return LogMetric(**common, group=(group_key, name.removeprefix(start).removesuffix(end)))


def _group_name(key: str, entry: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """Return the name of a group; earlier versions prefix it, and number equal names of several metrics."""
    if _text(entry.get("group")):
        return _text(entry.get("name"))
    name = key.removeprefix("grouped_")
    plain = re.sub(r"\d+$", "", key)
    if plain != key and plain in metrics and mapping(metrics[plain]).get("params") != entry.get("params"):
        return plain.removeprefix("grouped_")
    return name


def _settings(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(entry.get("params") or entry.get("options"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
