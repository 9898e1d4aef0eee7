"""The command `suffrage reproduce`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, format_option
from tracker.cli.output import inform, print_rows
from tracker.cli.progress import show_activity
from tracker.cli.values.setting_option import SettingOption

if TYPE_CHECKING:
    from tracker.recording.reproduction.reproduction import Reproduction


@click.command(cls=Command)
@click.argument("finding_ids", nargs=-1, type=click.IntRange(min=1), metavar="[ID]...")
@click.option("--all", "every", is_flag=True, help="Reproduce every complete finding.")
@click.option("--benchmark", metavar="NAME", help="Reproduce every complete finding of this benchmark.")
@click.option(
    "--workers",
    cls=SettingOption,
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Number of threads to compute with; -1 uses all cores. The results do not depend on it.",
)
@database_option
@format_option
def command(
    finding_ids: tuple[int, ...],
    every: bool,
    benchmark: str | None,
    workers: int,
    database: str | None,
    output_format: str,
) -> None:
    """Run findings again and report whether the bytes are equal.

    Runs each finding with its parameters on the data of its digest, and compares summary, metrics, values, tables and
    figures with what is stored. A figure that is drawn differently is compared by its data. Where the data have
    changed, the runs are named, and that is no failure. Nothing is recorded.

    The exit code is 0 if every finding is equal, 1 if one differs, and 2 if none differs but some could not be
    compared.

    Examples:
        suffrage reproduce 1
        suffrage reproduce --all --format json
        suffrage reproduce --benchmark mmlu_pro
    """
    from tracker.database import connect
    from tracker.recording.reproduction.reproduction import list_reproducible, reproduce, summarize

    if bool(finding_ids) + every + (benchmark is not None) != 1:
        raise click.UsageError("Name findings by their IDs, or use either --all or --benchmark.")
    if workers == 0 or workers < -1:
        raise click.BadParameter("must be -1 or at least 1.", param_hint="--workers")
    engine = connect(database, create=False)
    results: list[Reproduction] = []
    for record in list_reproducible(engine, finding_ids, benchmark=benchmark):
        with show_activity(f"finding {record.id}: {record.name}"):
            results += reproduce(engine, [record], workers=workers)
    inform(summarize(results))
    print_rows(results, output_format, if_empty="")
    verdicts = {reproduction.result for reproduction in results}
    if "differs" in verdicts:
        sys.exit(1)
    if verdicts & {"data changed", "not run"}:
        sys.exit(2)
