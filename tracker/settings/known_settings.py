"""Every setting: its name in the file, its environment variables, its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Value = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class Setting:
    """An option of the command line that the environment or the file can set.

    Attributes:
        name: key in the file: the option without its dashes.
        kind: type of its value.
        default: what applies without it, for reading.
        help: what it sets, in one sentence.
        variables: environment variables, the first one first.
        example: value of the line that `suffrage init` writes as a comment.
        choices: allowed values; empty if any of the type is.
        check: whether a value of the type is allowed.
        requirement: what a value must be, for the error.
    """

    name: str
    kind: type[Value]
    default: str
    help: str
    variables: tuple[str, ...]
    example: Value
    choices: tuple[str, ...] = ()
    check: Callable[[Any], bool] = lambda _: True
    requirement: str = ""

    @property
    def parameter(self) -> str:
        """Name of the option's parameter."""
        return self.name.replace("-", "_")


SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(
            name="database",
            kind=str,
            default="sqlite:///suffrage.db",
            help="URL of the store. A relative path starts at the folder of this file.",
            variables=("SUFFRAGE_DATABASE_URL", "DATABASE_URL"),
            example="sqlite:///suffrage.db",
        ),
        Setting(
            name="tracking-uri",
            kind=str,
            default="sqlite:///mlflow.db",
            help="URI of the MLflow tracking store. A relative path starts at the folder of this file.",
            variables=("MLFLOW_TRACKING_URI",),
            example="sqlite:///mlflow.db",
        ),
        Setting(
            name="no-mlflow",
            kind=bool,
            default="false",
            help="Whether to record in the store only. --mlflow overrides it.",
            variables=("SUFFRAGE_NO_MLFLOW",),
            example=True,
        ),
        Setting(
            name="metric",
            kind=str,
            default="that of the benchmark",
            help="Name of the metric.",
            variables=("SUFFRAGE_METRIC",),
            example="accuracy",
        ),
        Setting(
            name="split",
            kind=str,
            default="splits that most models cover",
            help="Names of splits of the prompts, separated by commas.",
            variables=("SUFFRAGE_SPLIT",),
            example="test",
        ),
        Setting(
            name="missing",
            kind=str,
            default="that of the command",
            help="Treatment of missing scores. Where it cannot be used, the default applies.",
            variables=("SUFFRAGE_MISSING",),
            example="bounds",
            choices=("bounds", "common", "worst", "impute", "fail"),
        ),
        Setting(
            name="min-coverage",
            kind=float,
            default="that of the command",
            help="Share of the prompts that a model must have scores for.",
            variables=("SUFFRAGE_MIN_COVERAGE",),
            example=0.95,
            check=lambda share: 0 <= share <= 1,
            requirement="a number from 0 to 1",
        ),
        Setting(
            name="task-effects",
            kind=str,
            default="fixed for two named tasks or more, else none",
            help="What errors and intervals are about.",
            variables=("SUFFRAGE_TASK_EFFECTS",),
            example="fixed",
            choices=("random", "fixed", "none"),
        ),
        Setting(
            name="cluster",
            kind=str,
            default="task for random task effects, else none",
            help="Field by which prompts depend on each other.",
            variables=("SUFFRAGE_CLUSTER",),
            example="passage",
        ),
        Setting(
            name="seed",
            kind=int,
            default="0",
            help="Seed of the random draws of analyses.",
            variables=("SUFFRAGE_SEED",),
            example=0,
            check=lambda seed: seed >= 0,
            requirement="a whole number of at least 0",
        ),
        Setting(
            name="workers",
            kind=int,
            default="1",
            help="Number of processes of analyses; -1 uses all cores.",
            variables=("SUFFRAGE_WORKERS",),
            example=-1,
            check=lambda number: number >= 1 or number == -1,
            requirement="a whole number of at least 1, or -1",
        ),
        Setting(
            name="limits",
            kind=str,
            default="those of docs/reference/limits.md",
            help="Limits on files that are read, such as value=200MB,columns=200000.",
            variables=("SUFFRAGE_LIMITS",),
            example="value=200MB",
        ),
    )
}
"""The settings by name, in the order of the file."""
