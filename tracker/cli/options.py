"""Options that several commands share, each said once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

import click

from tracker.queries.selection import Selection

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
    help="The store. Else SUFFRAGE_DATABASE_URL, else DATABASE_URL, else sqlite:///suffrage.db.",
)

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="How to print the data, on stdout; everything else goes to stderr.",
)

tracking_uri_option = click.option(
    "--tracking-uri",
    envvar="MLFLOW_TRACKING_URI",
    default="sqlite:///mlflow.db",
    show_default=True,
    show_envvar=True,
    metavar="URI",
    help="Where MLflow keeps what is published.",
)

mlflow_options = combine_options(
    tracking_uri_option,
    click.option("--no-mlflow", is_flag=True, help="Record in the store only; `suffrage publish` makes it up later."),
)

_MEANINGS: Mapping[str, str] = {
    "metric": "Which scores; needed where several metrics are stored.",
    "models": "Only these models.",
    "filter": "Only the prompts that this finding keeps.",
}
"""Of options that some questions take in another sense."""


def _selection(meanings: Mapping[str, str]) -> Callable[[F], F]:
    helps = {**_MEANINGS, **meanings}
    return combine_options(
        click.option("--metric", metavar="NAME", help=helps["metric"]),
        click.option(
            "--condition",
            type=click.Choice(["full", "answer_only"]),
            default="full",
            show_default=True,
            help="Runs that saw the whole prompt, or the answer options only.",
        ),
        click.option("--variant", default="", metavar="NAME", help="Wording of the prompts; the plain one by default."),
        click.option("--models", "models", metavar="A,B", multiple=True, help=helps["models"]),
        click.option("--tasks", "tasks", metavar="A,B", multiple=True, help="Only these tasks."),
        click.option("--filter", type=int, metavar="ID", help=helps["filter"]),
        click.option("--runs", "runs", metavar="1,2", multiple=True, help="These runs; else the latest of each model."),
        click.option("--as-of", type=click.DateTime(), help="Only what the store knew at that time, UTC."),
    )


weights_option = click.option(
    "--weights",
    metavar="ID[:SCHEME]",
    help="How much each prompt counts: a finding that weighs prompts, or task-equal; else all the same.",
)

encoder_option = click.option(
    "--encoder", metavar="NAME", help="Whose vectors of the prompts to use; needed where several encoders made some."
)

against_option = click.option(
    "--against",
    metavar="BENCHMARK[:METRIC]",
    help="Another benchmark, such as an Elo table, whose scores of the same models to correlate with.",
)

cluster_option = click.option(
    "--cluster",
    metavar="FIELD",
    help="Prompts with the same FIELD depend on each other: task, split, or a further field of theirs; none for none.  "
    "[default: task]",
)

optional_encoder_option = click.option(
    "--encoder", metavar="NAME", help="Use the vectors that this encoder made of the prompts; without it none are used."
)


def selection_options(function: F, meanings: Mapping[str, str] | None = None) -> F:
    """The options that choose data; the command receives them as one keyword, ``selection``.

    The command must take an argument ``benchmark``; one that looks at weights, vectors or clusters adds
    `weights_option`, `encoder_option` or `cluster_option` before this.

    Args:
        function: the command.
        meanings: what single options mean to this command, where that is not what they mean to others.
    """
    import functools

    @functools.wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        options["selection"] = _as_selection(options)
        return function(*args, **options)

    return _selection(meanings or {})(cast(F, wrapped))


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
    return Selection(
        benchmark=options.pop("benchmark"),
        metric=options.pop("metric"),
        condition=options.pop("condition"),
        variant=options.pop("variant"),
        models=split_values(options.pop("models")),
        tasks=split_values(options.pop("tasks")),
        runs=runs,
        as_of=as_of.replace(tzinfo=UTC) if as_of else None,
        weights=options.pop("weights", None),
        encoder=options.pop("encoder", None),
        filter=options.pop("filter"),
        against=options.pop("against", None),
        cluster=options.pop("cluster", None),
    )


def split_values(values: tuple[str, ...]) -> tuple[str, ...]:
    """Values given by repeating an option or with commas between them."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
