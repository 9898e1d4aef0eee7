"""The command `suffrage looks`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, format_option
from tracker.cli.output import inform, print_rows
from tracker.cli.progress import show_activity


@click.command(cls=Command)
@click.argument("benchmark")
@database_option
@format_option
def command(benchmark: str, database: str | None, output_format: str) -> None:
    """List the recorded tests of a benchmark, newest first.

    A test is a hypothesis, or a family of hypotheses, whose result a summary states. Each further test raises the
    chance of a false verdict. The column holm has each p-value adjusted for all tests in the list, by Holm's procedure.
    The p-value of a family, such as all pairs of models, is already adjusted for its number of tests.

    A repetition with the same data and options is no further test. Tests on data that changed since still count. Tests
    that were not recorded are not counted.

    Examples:
        suffrage looks mmlu_pro
        suffrage looks mmlu_pro --format csv
    """
    from tracker.database import connect, transaction
    from tracker.recording.multiplicity.recorded_looks import load_recorded_looks

    with show_activity("looks"), transaction(connect(database, create=False), write=False) as session:
        recorded = load_recorded_looks(session, benchmark)
    if recorded.looks and output_format == "table":
        inform(" ".join((recorded.describe(), *recorded.list_details())))
    print_rows(
        recorded.list_records(),
        output_format,
        if_empty=f"No recorded tests of {benchmark}. Record one: `suffrage analyze prompt-correlation {benchmark}`",
        drop_order=("recorded", "stale"),
    )
