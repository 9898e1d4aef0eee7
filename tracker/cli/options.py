"""Options that several commands share, each defined once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

import click

from tracker.cli.values.setting_option import SettingOption
from tracker.queries.selection import MIN_COVERAGE, POLICIES, TASK_EFFECTS, Policy, Selection

F = TypeVar("F", bound=Callable[..., Any])


def combine_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which the help shows them."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


database_option = click.option(
    "--database",
    metavar="URL",
    show_default="SUFFRAGE_DATABASE_URL, DATABASE_URL, suffrage.toml, or sqlite:///suffrage.db",
    help="Database URL, such as sqlite:///results.db or postgresql://user@host/name.",
)

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Output format on stdout: a table for reading, or JSON or CSV for programs.",
)

document_format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json", "csv", "latex", "markdown"]),
    default="table",
    show_default=True,
    help="Output format on stdout: a table for reading, JSON or CSV for programs, LaTeX or Markdown for documents.",
)


def _apply_limits(ctx: click.Context, option: click.Parameter, text: str | None) -> None:
    if text is not None and not ctx.resilient_parsing:
        from tracker.settings.input_limits import parse_limits, use_limits

        ctx.with_resource(use_limits(parse_limits(text, "--limits")))


limits_option = click.option(
    "--limits",
    cls=SettingOption,
    metavar="NAME=NUMBER,…",
    expose_value=False,
    callback=_apply_limits,
    help="Limits on the files that are read, such as value=200MB,columns=200000: docs/reference/limits.md.",
)

tracking_uri_option = click.option(
    "--tracking-uri",
    cls=SettingOption,
    envvar="MLFLOW_TRACKING_URI",
    default="sqlite:///mlflow.db",
    show_default=True,
    show_envvar=True,
    metavar="URI",
    help="URI of the MLflow tracking store.",
)

mlflow_options = combine_options(
    tracking_uri_option,
    click.option(
        "--no-mlflow/--mlflow",
        cls=SettingOption,
        default=False,
        show_default=False,
        help="Record in the database only, or also in MLflow (default). `suffrage publish` adds it to MLflow later.",
    ),
)

_MEANINGS: Mapping[str, str] = {
    "metric": "Name of the metric. By default that of the benchmark, as `suffrage metrics` shows it.",
    "models": "Names of models to include, separated by commas. Repeatable.",
    "filter": "ID of a filter finding; only the prompts that it keeps are used.",
}
"""Help of options that can mean something else to an analysis or an export."""


def _split_option(default: str) -> Callable[[F], F]:
    return click.option(
        "--split",
        "split",
        cls=SettingOption,
        metavar="A,B",
        multiple=True,
        show_default=default,
        help="Names of splits of the prompts, such as test, separated by commas. all: every split; unknown: prompts "
        "without a split. Repeatable.",
    )


COVERED_SPLITS = "splits that most models cover"
split_option = _split_option(COVERED_SPLITS)


def _selection(meanings: Mapping[str, str], default_split: str) -> Callable[[F], F]:
    helps = {**_MEANINGS, **meanings}
    return combine_options(
        click.option("--metric", cls=SettingOption, metavar="NAME", help=helps["metric"]),
        click.option(
            "--condition",
            type=click.Choice(["full", "answer_only"]),
            default="full",
            show_default=True,
            help="Runs to use. full: the model saw the question; answer_only: it saw the answer options only.",
        ),
        click.option(
            "--variant",
            default="",
            metavar="NAME",
            show_default="the unnamed variant",
            help="Name of the prompt variant.",
        ),
        click.option(
            "--models",
            "models",
            metavar="A,B",
            multiple=True,
            show_default=meanings.get("models") is None and "all",
            help=helps["models"],
        ),
        click.option(
            "--tasks",
            "tasks",
            metavar="A,B",
            multiple=True,
            show_default="all",
            help="Names of tasks to include, separated by commas. Repeatable.",
        ),
        _split_option(default_split),
        click.option("--filter", type=int, metavar="ID", help=helps["filter"]),
        click.option(
            "--runs",
            "runs",
            metavar="1,2",
            multiple=True,
            show_default="most complete run of each model, the latest of equal ones",
            help="IDs of runs to use, separated by commas. Repeatable.",
        ),
        click.option(
            "--as-of",
            type=click.DateTime(),
            metavar="DATE",
            help="Use only data stored by this time, in UTC, such as 2026-01-31 or 2026-01-31T12:00:00.",
        ),
    )


weights_option = click.option(
    "--weights",
    metavar="ID[:SCHEME]",
    show_default="equal weights",
    help="Weights of the prompts: ID of a finding with weights, ID:SCHEME if it has several schemes, or task-equal.",
)

encoder_option = click.option(
    "--encoder",
    metavar="NAME",
    help="Name of the encoder whose vectors to use. Required if several encoders are stored.",
)

against_option = click.option(
    "--against",
    metavar="BENCHMARK[:METRIC]",
    help="Another benchmark, such as an Elo table, to correlate the scores of the same models with.",
)

SCHEDULER_HELP = " An address such as tcp://host:8786 is that of a Dask cluster to compute on."


def sampling_options(further_help: str = "") -> Callable[[F], F]:
    """Return the options of the sampling design.

    Args:
        further_help: a sentence about the clusters of a command, with a space before it.
    """
    return combine_options(
        click.option(
            "--task-effects",
            cls=SettingOption,
            type=click.Choice(TASK_EFFECTS),
            show_default="fixed for two named tasks or more, else none",
            help=(
                "What errors and intervals are about. fixed: these tasks; random: other tasks like these, of which "
                "these are a sample; none: prompts, whatever their task."
            ),
        ),
        click.option(
            "--cluster",
            cls=SettingOption,
            metavar="FIELD",
            show_default="task for random task effects, else none",
            help=(
                "Field by which prompts depend on each other, such as a passage, for clustered standard errors: split, "
                f"another stored field, or none. With fixed task effects, clusters lie within tasks.{further_help}"
            ),
        ),
    )


cluster_option = sampling_options()

scheduler_option = click.option(
    "--cluster",
    "scheduler",
    metavar="ADDRESS",
    help="Address of the scheduler of a Dask cluster to compute on, such as tcp://host:8786.",
)


def describe_policies(policies: Sequence[Policy] = POLICIES) -> str:
    """Return the help of some policies for missing scores."""
    return " ".join(f"{name}: {text}." for name, text in _POLICIES.items() if name in policies)


def missing_options(
    default: str, policies: Sequence[Policy] = POLICIES, min_coverage: float = MIN_COVERAGE
) -> Callable[[F], F]:
    """The options for missing scores.

    Args:
        default: the default policy, for the help.
        policies: policies that make sense.
        min_coverage: default of ``--min-coverage``.
    """
    return combine_options(
        click.option(
            "--missing",
            cls=SettingOption,
            type=click.Choice(policies),
            show_default=default,
            help=f"Treatment of missing scores. {describe_policies(policies)}",
        ),
        click.option(
            "--min-coverage",
            cls=SettingOption,
            type=click.FloatRange(0, 1),
            default=min_coverage,
            show_default=True,
            metavar="SHARE",
            help="Share of the prompts that a model must have scores for, from 0 to 1. Other models are listed apart.",
        ),
    )


_POLICIES: Mapping[Policy, str] = {
    "bounds": "any value that the metric allows, for intervals and ranks",
    "common": "use only prompts with scores from all models",
    "worst": "the worst possible score",
    "impute": "estimate from the other scores of the model and the prompt",
    "fail": "stop",
}
"""Help of each policy for missing scores."""
BOUNDS = "bounds; common under a metric without bounds"

optional_encoder_option = click.option(
    "--encoder", metavar="NAME", help="Name of the encoder whose vectors to use.", show_default="no vectors"
)


def selection_options(function: F, meanings: Mapping[str, str] | None = None, default_split: str = COVERED_SPLITS) -> F:
    """The options that choose data; the command receives them as one keyword, ``selection``.

    The command must take an argument ``benchmark``; one that looks at weights, vectors, clusters or
    missing scores adds `weights_option`, `encoder_option`, `cluster_option` or `missing_options` before this.

    Args:
        function: the command.
        meanings: what single options mean to this command, where that is not what they mean to others.
        default_split: the splits that this command uses without ``--split``, for its help.
    """
    import functools

    @functools.wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        options["selection"] = _as_selection(options)
        return function(*args, **options)

    return _selection(meanings or {}, default_split)(cast(F, wrapped))


def _as_selection(options: dict[str, Any]) -> Selection:
    from datetime import UTC

    as_of: datetime | None = options.pop("as_of")
    keys = split_values(options.pop("runs"))
    if wrong := [key for key in keys if not key.isdecimal()]:
        raise click.BadParameter(
            f"{wrong[0]!r} is not the number of a run. List them with `suffrage runs`; choose models with --models",
            param_hint="'--runs'",
        )
    runs = tuple(map(int, keys))
    missing, preferred = split_policy(options.pop("missing", None))
    return Selection(
        benchmark=options.pop("benchmark"),
        metric=options.pop("metric"),
        condition=options.pop("condition"),
        variant=options.pop("variant"),
        models=split_values(options.pop("models")),
        tasks=split_values(options.pop("tasks")),
        split=split_values(options.pop("split")),
        runs=runs,
        as_of=as_of.replace(tzinfo=UTC) if as_of else None,
        weights=options.pop("weights", None),
        encoder=options.pop("encoder", None),
        filter=options.pop("filter"),
        against=options.pop("against", None),
        cluster=options.pop("cluster", None),
        missing=missing,
        preferred=preferred,
        min_coverage=options.pop("min_coverage", None),
        task_effects=options.pop("task_effects", None),
    )


def split_policy(missing: Policy | None) -> tuple[Policy | None, Policy | None]:
    """Return the policy that the user chose, and the one that a setting prefers: it gives way where it cannot be used.

    Args:
        missing: value of the option ``--missing`` of the current command, which has no default but the setting.
    """
    source = click.get_current_context().get_parameter_source("missing")
    return (None, missing) if source == click.core.ParameterSource.DEFAULT else (missing, None)


def split_values(values: tuple[str, ...]) -> tuple[str, ...]:
    """Values given by repeating an option or with commas between them."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def parse_pairs(ctx: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Return the value of each name in a repeatable option NAME=VALUE."""
    pairs: dict[str, str] = {}
    for value in values:
        part, mark, names = value.partition("=")
        if not mark or not part.strip() or not all(name.strip() for name in names.split(",")):
            raise click.BadParameter(f"{value!r} is not of the form {option.metavar}")
        if part.strip() in pairs:
            raise click.BadParameter(f"{part.strip()} is given twice")
        pairs[part.strip()] = names
    return pairs
