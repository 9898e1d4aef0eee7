"""Inspect AI with a stub model: scorers, epochs and reducers, groups, errors and limits, in both formats of logs."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from drift.environments import Environment
from drift.harness import Harness, Release, Reported, Rows

PROGRAM = Path(__file__).parent / "programs/inspect_tasks.py"
MODEL = "stub/letters"
NOT_COMPARED = {"bootstrap_stderr", "extremes", "lowest", "highest", "ci", "ci_wilson", "frequency"}
"""Metrics drawn at random, and those of which the store holds what the log reports."""
NOT_ALL_SCORED = {"not_scored", "no_score", "not_scored_reducers", "dictionary_not_scored", "without_samples"}
"""Tasks whose samples do not all have rows."""
NOT_RECOMPUTED = {"number_reducers", "not_scored_reducers", "errors_in_epochs"}
"""Tasks in which early releases count epochs without a score in pass@k, or only scores of exactly 1."""
Statistic = Callable[[Sequence[float]], float]


def run(environment: Environment, folder: Path) -> Sequence[Path]:
    """Evaluate all tasks; return the folders of logs in each format."""
    environment.run(environment.python, PROGRAM, folder, cwd=folder)
    return [folder / "json", folder / "eval"]


def reported(results: Path) -> Iterator[Reported]:
    """Every number in the results of each log, as Inspect's reader finds them."""
    logs = json.loads(results.with_suffix(".reported.json").read_text())
    is_early = tuple(map(int, logs.pop("version").split(".")[:3])) < (0, 3, 150)
    for task, log in logs.items():
        entries = log["results"]["scores"] if log.get("results") else []
        for entry in entries:
            yield from _of_scorer(task, log["results"], entry, is_early=is_early)


def _of_scorer(
    task: str, results: Mapping[str, Any], entry: Mapping[str, Any], *, is_early: bool
) -> Iterator[Reported]:
    scorer, reducer = entry["scorer"], entry["reducer"] or "mean"
    is_part = entry["name"] != scorer or task.startswith(("dictionary", "groups_of_dictionary"))
    metric: str = f"{scorer}/{entry['name']}" if is_part else entry["name"]
    reduce = (lambda rows: [value for trials in rows for value in trials]) if task == "no_reducer" else REDUCE[reducer]
    is_recomputed = not (is_early and reducer.startswith("pass_at") and task in NOT_RECOMPUTED)
    suffix = "" if reducer == "mean" else f"/{reducer}"
    common: dict[str, Any] = {"model": MODEL, "benchmark": task, "metric": metric + suffix, "tasks": (task,)}
    common["rows"] = metric if is_recomputed else ""
    label = f"{entry['name']}{suffix}"
    for key, entry_metric in entry["metrics"].items():
        if {key, entry_metric["name"], entry_metric.get("group")} & NOT_COMPARED or not isinstance(
            entry_metric["value"], (int, float)
        ):
            continue
        name, params = entry_metric["name"].rpartition("/")[2], entry_metric.get("params") or {}
        number = {**common, "value": entry_metric["value"], "name": f"{label} {key}"}
        if "group_key" in params:
            number["metric"] = f"{metric}/{params['group_key']}{suffix}"
            yield from (n for n in _of_group(number, reduce, entry_metric, params) if is_recomputed or n.column)
        elif name in ("accuracy", "mean"):
            yield Reported(**number, statistic=_of(reduce, statistics.fmean))
        elif name == "stderr" and "cluster" in params:
            yield Reported(**number, statistic=_clustered(reduce), detail=params["cluster"], column="stderr")
        elif name == "stderr":
            yield Reported(**number, statistic=_of(reduce, _stderr), column="stderr")
        elif is_recomputed:
            yield Reported(**number, statistic=_of(reduce, SPREADS[name]), column=None)
    if entry.get("scored_samples") is not None:
        number = {**common, "value": entry["scored_samples"], "name": f"{label} scored_samples"}
        yield Reported(**number, statistic=_of(reduce, len), column="n_prompts")
    if is_recomputed and not entry.get("unscored_samples") and task not in NOT_ALL_SCORED:
        number = {**common, "value": results["completed_samples"], "name": f"{label} completed_samples"}
        yield Reported(**number, statistic=lambda rows: sum(map(len, rows)), column=None)


def _of_group(
    number: Mapping[str, Any],
    reduce: Callable[[Rows], list[float]],
    entry_metric: Mapping[str, Any],
    params: Mapping[str, Any],
) -> Iterator[Reported]:
    inner = params["metric"]["name"].rpartition("/")[2]
    compute = {"accuracy": statistics.fmean, "mean": statistics.fmean, "stderr": _stderr}[inner]
    group = entry_metric["name"].removeprefix("grouped_").removeprefix("of_").removesuffix("/mean").rstrip("2")
    if group == params.get("all_label", "all"):
        if params.get("all") == "groups":
            yield Reported(
                **number, statistic=_mean_of_groups(reduce, compute), detail=params["group_key"], column=None
            )
        else:
            yield Reported(**number, statistic=_of(reduce, compute), column=None)
        return
    yield Reported(
        **number,
        statistic=_of_one_group(reduce, compute, group),
        detail=params["group_key"],
        task_score=group,
        column="value" if inner != "stderr" else "stderr",
    )


def _of(reduce: Callable[[Rows], list[float]], compute: Statistic) -> Callable[[Rows], float]:
    return lambda rows: float(compute([value for value in reduce(rows) if not math.isnan(value)]))


def _stderr(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


SPREADS: dict[str, Statistic] = {
    "std": lambda values: statistics.stdev(values) if len(values) > 1 else 0.0,
    "var": lambda values: statistics.variance(values) if len(values) > 1 else 0.0,
}


def _of_one_group(
    reduce: Callable[[Rows], list[float]], compute: Statistic, group: str
) -> Callable[[Mapping[str, Rows]], float]:
    return lambda groups: _of(reduce, compute)(groups[group])


def _mean_of_groups(reduce: Callable[[Rows], list[float]], compute: Statistic) -> Callable[[Mapping[str, Rows]], float]:
    return lambda groups: statistics.fmean(_of(reduce, compute)(rows) for rows in groups.values())


def _clustered(reduce: Callable[[Rows], list[float]]) -> Callable[[Mapping[str, Rows]], float]:
    """The clustered standard error of Miller 2024, appendix A, with the factor C / (C - 1) for C clusters."""

    def compute(clusters: Mapping[str, Rows]) -> float:
        values = {name: reduce(rows) for name, rows in clusters.items()}
        n = sum(map(len, values.values()))
        center = math.fsum(value for part in values.values() for value in part) / n
        squares = math.fsum(math.fsum(value - center for value in part) ** 2 for part in values.values())
        return math.sqrt(squares * len(values) / (len(values) - 1)) / n

    return compute


def _reduced(statistic: Statistic) -> Callable[[Rows], list[float]]:
    return lambda rows: [statistic(trials) for trials in rows]


def _pass_at(k: int) -> Statistic:
    """One minus the share of draws of k trials in which none passes."""

    def compute(trials: Sequence[float]) -> float:
        n, failed = len(trials), sum(value < 1 for value in trials)
        return 1 - math.comb(failed, k) / math.comb(n, k) if n >= k else math.nan

    return compute


def _pass_k(trials: Sequence[float]) -> float:
    return math.comb(sum(value >= 1 for value in trials), 2) / math.comb(len(trials), 2)


def _majority(trials: Sequence[float]) -> float:
    value, n = Counter(trials).most_common(1)[0]
    return value if 2 * n > len(trials) else math.nan


REDUCE: dict[str, Callable[[Rows], list[float]]] = {
    "mean": _reduced(statistics.fmean),
    "median": _reduced(statistics.median),
    "mode": _reduced(lambda trials: Counter(trials).most_common(1)[0][0]),
    "max": _reduced(max),
    "pass_at_1": _reduced(_pass_at(1)),
    "pass_at_2": _reduced(_pass_at(2)),
    "pass_at_4": _reduced(_pass_at(4)),
    "at_least_2": _reduced(lambda trials: float(sum(value >= 1 for value in trials) >= 2)),
    "pass_k_2": _reduced(_pass_k),
    "majority": _reduced(_majority),
}
"""How Inspect combines the scores of a prompt's epochs."""

HARNESS = Harness(
    name="inspect",
    package="inspect-ai",
    releases=(
        Release(requirements=("inspect-ai",), min_compared=650),
        Release(requirements=("inspect-ai==0.3.100",), min_compared=450),
        Release(requirements=("inspect-ai==0.3.50", "textual<2"), min_compared=320),
    ),
    run=run,
    reported=reported,
)
