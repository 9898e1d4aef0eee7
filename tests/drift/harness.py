"""The interface of a harness module: its releases, its runs, and the numbers that it reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from drift.environments import Environment

Rows = Sequence[Sequence[float]]
"""The stored scores of some tasks under one metric: for each prompt, those of its trials."""


def mean(rows: Rows) -> float:
    """The mean over prompts of the mean over trials."""
    return float(np.mean([np.mean(trials) for trials in rows]))


def mean_stderr(rows: Rows) -> float:
    """The standard error of the mean over prompts."""
    return float(np.std([np.mean(trials) for trials in rows], ddof=1) / math.sqrt(len(rows)))


def perplexity(rows: Rows) -> float:
    """The perplexity of prompts whose rows are log-likelihoods."""
    return math.exp(-mean(rows))


def number_of_prompts(rows: Rows) -> float:
    return float(len(rows))


@dataclass(frozen=True, kw_only=True)
class Reported:
    """A number in the harness's own results.

    Attributes:
        model: name of the model in the store.
        benchmark: name of the benchmark in the store.
        tasks: names of the tasks in the store that the number covers; empty for all tasks of the benchmark.
        metric: name in the store of the metric, with the filter, whose rows or task score the number describes.
        value: the number.
        name: the number as the harness names it, for the report.
        statistic: how the harness computes it from the rows, written without the program under test.
        column: which column of a task score holds it, where the store has no rows under the metric; None if none does.
        rows: metric of the rows, if that is another one.
        detail: field of the prompts' details; the statistic receives the rows by its values.
        task_score: the task whose task score holds it, if that is another one.
        decimals: number of decimals to which the harness rounds it; None for full precision.
    """

    model: str
    benchmark: str
    tasks: tuple[str, ...] = ()
    metric: str
    value: float
    name: str
    statistic: Callable[[Any], float] = mean
    column: Literal["value", "stderr", "n_prompts"] | None = "value"
    decimals: int | None = None
    rows: str = ""
    detail: str = ""
    task_score: str = ""


@dataclass(frozen=True, kw_only=True)
class Release:
    """A version of a harness, and what installs it.

    Attributes:
        requirements: of pip or npm; that of the harness first, without a version for the newest.
        installer: which of the two.
        min_compared: fewer compared numbers are a failure: the release or the check no longer yields some.
    """

    requirements: tuple[str, ...]
    installer: Literal["pip", "npm"] = "pip"
    min_compared: int = 1


@dataclass(frozen=True, kw_only=True)
class Harness:
    """A harness under test.

    Attributes:
        name: for the command line and the report.
        package: name of its distribution, which gives the installed version.
        releases: the newest first.
        run: evaluates with an installed release, in an empty folder. Each folder that it returns is imported into a
            fresh store and becomes rows of the report.
        reported: reads the results in such a folder, without the program under test.
        ingest_options: further options of ``suffrage ingest`` for such a folder.
        explained: faults of a release that the importer reports rightly, by version and a part of the difference.
    """

    name: str
    package: str
    releases: Sequence[Release]
    run: Callable[[Environment, Path], Sequence[Path]]
    reported: Callable[[Path], Iterable[Reported]]
    ingest_options: Sequence[str] = ()
    explained: Mapping[tuple[str, str], str] = field(default_factory=dict)
