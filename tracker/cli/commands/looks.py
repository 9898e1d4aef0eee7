"""The command `suffrage looks`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, format_option
from tracker.cli.output import inform, print_rows


@click.command(cls=Command)
@click.argument("benchmark")
@database_option
@format_option
def command(benchmark: str, database: str | None, output_format: str) -> None:
    """List the recorded tests of a benchmark, newest first.

    A test is the p-value behind the verdict of a recorded finding. Each further test raises the chance of a false
    verdict. Holm's procedure adjusts the p-values for all tests in the list.

    Tests that were not recorded are not counted, and neither are p-values in tables or of pairs of models.

    Examples:
        suffrage looks mmlu_pro
        suffrage looks mmlu_pro --format csv
    """
    from tracker.database import connect, transaction
    from tracker.queries.findings.recorded_tests import list_recorded_tests
    from tracker.recording.registry import discover_tests
    from tracker.statistics.resampling import ALPHA

    with transaction(connect(database, create=False), write=False) as session:
        rows = list_recorded_tests(session, benchmark, discover_tests())
    if rows and output_format == "table":
        alone, together = (
            sum(value <= ALPHA for value in values) for values in ([r.pvalue for r in rows], [r.holm for r in rows])
        )
        inform(
            f"{benchmark} has {len(rows):,} recorded test{'s' * (len(rows) != 1)}: {alone:,} significant alone, "
            f"{together:,} after Holm over all (level {ALPHA:g}). Tests that were not recorded are not counted."
        )
    print_rows(
        rows,
        output_format,
        if_empty=f"No recorded tests of {benchmark}. Record one: `suffrage analyze prompt-correlation {benchmark}`",
    )
