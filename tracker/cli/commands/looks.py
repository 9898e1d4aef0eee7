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
    from tracker.queries.findings.looks import NOT_COUNTED, list_looks
    from tracker.queries.findings.staleness import list_stale_findings
    from tracker.queries.resolution import find_benchmark
    from tracker.recording.registry import discover_tests
    from tracker.statistics.resampling import ALPHA

    with transaction(connect(database, create=False), write=False) as session:
        looks = list_looks(session, find_benchmark(session, benchmark).id, discover_tests())
        stale = list_stale_findings(session, [look.findings[-1] for look in looks])
    rows = [
        {
            "finding": look.findings[-1],
            "analysis": look.analysis,
            "test": look.test,
            "n_tests": look.n_tests,
            "pvalue": look.pvalue,
            "holm": look.holm,
            "n_before": look.n_before,
            "stale": look.findings[-1] in stale,
            "recorded": look.recorded,
        }
        for look in reversed(looks)
    ]
    if looks and output_format == "table":
        alone, together = (
            sum(value <= ALPHA for value in values) for values in ([r.pvalue for r in looks], [r.holm for r in looks])
        )
        inform(
            f"{benchmark} has {len(looks):,} recorded test{'s' * (len(looks) != 1)}: {alone:,} significant alone, "
            f"{together:,} after Holm over all (level {ALPHA:g}). {NOT_COUNTED}"
        )
    print_rows(
        rows,
        output_format,
        if_empty=f"No recorded tests of {benchmark}. Record one: `suffrage analyze prompt-correlation {benchmark}`",
        drop_order=("recorded", "stale"),
    )
