"""The command `suffrage analyze`, with a subcommand for each analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.help_text import Command, Group
from tracker.cli.options import (
    BOUNDS,
    SCHEDULER_HELP,
    against_option,
    database_option,
    encoder_option,
    format_option,
    missing_options,
    mlflow_options,
    optional_encoder_option,
    sampling_options,
    scheduler_option,
    selection_options,
    weights_option,
)
from tracker.cli.output import inform, print_record, print_rows, print_summary, warn
from tracker.cli.parameter_options import check_option_names, parameter_option
from tracker.cli.process.interrupts import end_on_interrupt
from tracker.cli.progress import show_activity
from tracker.cli.values.setting_option import SettingOption
from tracker.plugins.parameters import CPU

if TYPE_CHECKING:
    from tracker.queries.selection import Selection
    from tracker.recording.declaration import Declaration
    from tracker.recording.inputs.workers import Workers
    from tracker.recording.pipeline import RecordedFinding
    from tracker.recording.record import MetricRow

LIMIT_HOURS = 4.0
OWN_NAMES = (
    "benchmark", "selection", "workers", "device", "limit_hours", "scheduler", "database", "tracking_uri",
    "no_mlflow", "output_format",
)  # fmt: skip


class Analyses(Group):
    """A group whose commands are the analyses that are installed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names of the analyses, read from their sources."""
        from tracker.recording.registry import discover_analyses

        return list(discover_analyses())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import an analysis and return its command."""
        from tracker.recording.declaration import load_declaration

        if cmd_name not in self.list_commands(ctx):
            return None
        return analysis_command(load_declaration(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the analyses; one that cannot be used has the reason in place of its help."""
        from tracker.recording.registry import discover_analyses

        every = discover_analyses().values()
        with formatter.section("Analyses"):
            formatter.write_dl(
                [
                    (plugin.name, f"(not usable: {plugin.problem})" if plugin.problem else plugin.description)
                    for plugin in every
                ]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the command; raise with near names where there is none."""
        from tracker.recording.registry import find_analysis

        if not args[0].startswith("-"):
            find_analysis(args[0])
        return super().resolve_command(ctx, args)


@click.group(cls=Analyses)
def command() -> None:
    """Run an analysis of a benchmark and record the finding.

    The summary and the main numbers are printed. The finding is stored in the database with all its numbers, tables and
    figures, and published to MLflow. The same data, options and seed give the same finding.

    Examples:
        suffrage analyze rank-intervals mmlu_pro
        suffrage analyze prompt-correlation mmlu_pro
        suffrage analyze voting-rules --help
    """


def analysis_command(declaration: Declaration) -> click.Command:
    """The command of an analysis; calling it returns what was recorded."""

    def run(
        workers: Workers,
        database: str | None,
        tracking_uri: str,
        no_mlflow: bool,
        output_format: str,
        selection: Selection | None = None,
        scheduler: str | None = None,
        device: str = CPU,
        limit_hours: float = LIMIT_HOURS,
        **parameters: Any,
    ) -> RecordedFinding:
        from tracker.database import connect
        from tracker.recording.pipeline import run_analysis

        engine = connect(database, create=False)
        label = f"{declaration.name}{f' on {selection.benchmark}' if selection else ''}"
        with end_on_interrupt(), show_activity(label) as progress:
            recorded = run_analysis(
                engine,
                declaration,
                selection,
                parameters,
                workers=scheduler or workers,
                device=device,
                publish_to=None if no_mlflow else tracking_uri,
                progress=progress,
                limit_hours=limit_hours,
            )
        print_recorded(recorded, output_format)
        return recorded

    decorated: Any = format_option(run)
    decorated = mlflow_options(decorated)
    decorated = database_option(decorated)
    decorated = _worker_options(declaration)(decorated)
    if declaration.is_of_one_benchmark:
        decorated = _data_options(declaration)(decorated)
    reserved = {parameter.name for parameter in decorated.__click_params__} | set(OWN_NAMES)
    check_option_names("analysis", declaration.name, declaration.parameters, reserved)
    for parameter in reversed(declaration.parameters):
        decorated = parameter_option(parameter)(decorated)
    if declaration.is_of_one_benchmark:
        decorated = click.argument("benchmark")(decorated)
    title = declaration.help.partition("\n")[0]
    built: click.Command = click.command(cls=Command, name=declaration.name, help=declaration.help, short_help=title)(
        decorated
    )
    return built


_device_option = click.option(
    "--device",
    default=CPU,
    show_default=True,
    metavar="NAME",
    help="Device to compute on, such as cpu or cuda. The result does not depend on it.",
)


_limit_option = click.option(
    "--limit-hours",
    default=LIMIT_HOURS,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="End early if the first minutes show that a loop would take longer. Not on a cluster.",
)


def _worker_options(declaration: Declaration) -> Callable[[Any], Any]:
    """Add the options for what computes an analysis."""

    def decorate(function: Any) -> Any:
        decorated: Any = click.option(
            "--workers",
            cls=SettingOption,
            type=str,
            default=1,
            show_default=True,
            metavar="N",
            help=(
                "Number of threads to compute with; -1 uses all cores. Or the address of a Dask scheduler. The result "
                "does not depend on it."
            ),
            callback=_workers,
        )(function)
        if declaration.has_device:
            decorated = _device_option(decorated)
        decorated = _limit_option(decorated)
        return decorated if declaration.has_option("cluster") else scheduler_option(decorated)

    return decorate


def _data_options(declaration: Declaration) -> Callable[[Any], Any]:
    """Add the options that select the data of an analysis."""

    def decorate(function: Any) -> Any:
        decorated: Any = selection_options(function, declaration.claimed_options)
        if declaration.score_units:
            default = BOUNDS if declaration.missing == "bounds" else declaration.missing
            decorated = missing_options(default, declaration.accepted_policies, declaration.min_coverage)(decorated)
        if declaration.has_option("weights"):
            decorated = weights_option(decorated)
        if declaration.has_option("cluster"):
            decorated = sampling_options(SCHEDULER_HELP)(decorated)
        if declaration.has_option("against"):
            decorated = against_option(decorated)
        if declaration.has_option("encoder"):
            decorated = (encoder_option if declaration.requires_option("encoder") else optional_encoder_option)(
                decorated
            )
        return decorated

    return decorate


def _workers(ctx: click.Context, option: click.Parameter, value: int | str) -> Workers:
    from tracker.recording.inputs.workers import is_address

    text = str(value)
    if is_address(text):
        return text
    if text == "-1" or (text.isdecimal() and int(text) > 0):
        return int(text)
    raise click.BadParameter("give a number of cores, -1 for all of them, or an address such as tcp://host:8786")


def print_recorded(recorded: RecordedFinding, output_format: str) -> None:
    """Print the summary of a new finding and where the rest is; as JSON or CSV, its main numbers."""
    main = [metric for metric in recorded.metrics if metric.is_main]
    report, key = recorded.report, recorded.finding_id
    if output_format == "json":
        print_record(
            {
                "finding_id": recorded.finding_id,
                "analysis": recorded.analysis,
                "summary": asdict(report.summary),
                "warnings": list(report.warnings),
                "metrics": {metric.name: metric.value for metric in main},
                "undefined": {metric.name: metric.reason for metric in main if metric.reason},
                "mlflow_run_id": recorded.mlflow_run_id,
            },
            output_format,
        )
    elif output_format == "csv":
        print_rows(_rows(main), output_format, columns=("name", "value", "reason"))
    else:
        print_summary(report.summary)
    if recorded.publishing_problem:
        warn(recorded.publishing_problem)
    parts = ((len(recorded.metrics), "metric"), (len(report.tables), "table"), (len(report.figures), "figure"))
    rest = ", ".join(f"{n} {noun}{'s' * (n != 1)}" for n, noun in (*parts, (len(report.warnings), "warning")) if n)
    inform(f"Recorded as finding {key} ({rest}): `suffrage show {key}`")


def _rows(metrics: Sequence[MetricRow]) -> list[tuple[str, float | None, str]]:
    return [(metric.name, metric.value, metric.reason or "") for metric in metrics]
