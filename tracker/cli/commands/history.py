"""The command `suffrage history`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.figure_files import Picture, picture_option
from tracker.cli.help_text import Command
from tracker.cli.options import (
    BOUNDS,
    cluster_option,
    database_option,
    format_option,
    missing_options,
    selection_options,
)
from tracker.cli.output import inform, join_lines, print_rows, print_summary, warn
from tracker.cli.progress import show_activity
from tracker.cli.values.terminal_text import echo
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from tracker.recording.comparing.histories import BenchmarkHistory
    from tracker.recording.finding import Report

COLUMNS: Mapping[str, str] = {
    "benchmark": "benchmark", "model": "model", "run": "run", "label": "label", "when": "when", "n_prompts": "n",
    "mean": "mean", "mean_low": "mean low", "mean_high": "mean high", "change": "change", "low": "95 % low",
    "high": "95 % high", "holm": "p (Holm)",
    "n_better": "better", "n_worse": "worse",
}  # fmt: skip
DROP_ORDER = ("n", "label", "better", "worse", "mean low", "mean high", "95 % low", "95 % high")


@click.command(cls=Command)
@click.argument("benchmark", metavar="MODEL|BENCHMARK")
@click.option("--changed", type=click.IntRange(min=0), default=5, show_default=True, metavar="N",
              help="Number of prompts to show whose scores changed in the latest step.")  # fmt: skip
@picture_option
@missing_options(BOUNDS, min_coverage=0.0)
@cluster_option
@selection_options
@database_option
@format_option
def command(
    selection: Selection, changed: int, picture: Picture | None, database: str | None, output_format: str
) -> None:
    """Show how scores changed from run to run.

    Follows one model over its benchmarks, or all models of one benchmark. Each run is compared with the model's
    previous run on the prompts that both have scores for. Intervals and tests keep their level whatever the missing
    scores are. P-values are adjusted for all steps on the benchmark with Holm's method. Nothing is recorded: use
    `suffrage analyze drift BENCHMARK` for that.

    Examples:
        suffrage history mmlu_pro
        suffrage history llama-3.1-70b --changed 10
        suffrage history mmlu_pro --output history.svg
    """
    from tracker.database import connect
    from tracker.recording.comparing.histories import load_histories

    engine = connect(database, create=False)
    with show_activity(f"history of {selection.benchmark}"):
        histories = load_histories(engine, selection)
    for notice in histories.notices:
        inform(notice)
    if output_format != "table":
        print_rows(histories.list_records(), output_format)
    else:
        _print(histories.parts, changed)
    if picture is not None:
        drawn = [part.report for part in histories.parts if part.report is not None]
        if not drawn:
            raise click.UsageError("No model has two runs here, so there is nothing to draw.")
        for number, report in enumerate(drawn, start=1):
            (picture if len(drawn) == 1 else picture.numbered(number)).save(report, "history")


def _print(parts: Sequence[BenchmarkHistory], changed: int) -> None:
    rows = [{"benchmark": part.label, **row} for part in parts for row in part.rows]
    one_benchmark, one_model = len(parts) == 1, len({row["model"] for row in rows}) == 1
    omitted = {"benchmark"} if one_benchmark else set()
    omitted |= {"model"} if one_model and not one_benchmark else set()
    for part in parts:
        if part.report is not None:
            echo(f"{part.label}:")
            print_summary(part.report.summary)
            echo()
    print_rows(
        [
            {title: _format_cell(name, row.get(name)) for name, title in COLUMNS.items() if name not in omitted}
            for row in rows
        ],
        "table",
        drop_order=("model", *DROP_ORDER) if one_model else DROP_ORDER,
    )
    for part in parts:
        if part.report is None:
            continue
        _print_changed(part.report, changed)
        for warning in part.report.warnings:
            warn(warning)
    if all(part.report is None for part in parts):
        inform("No model has two runs here, so nothing can have changed.")


def _print_changed(report: Report, most: int) -> None:
    rows = report.tables["changed"].to_pylist()
    if not rows or not most:
        return
    last = rows[-1]["run"]
    of_last = [row for row in rows if row["run"] == last]
    printed = [of_last[place * len(of_last) // most] for place in range(most)] if most < len(of_last) else of_last
    prompts = f"{len(of_last):,} prompt{'s' * (len(of_last) != 1)}"
    echo(
        f"\n{prompts} changed from run {printed[0]['since']} to run {last} of {printed[0]['model']}"
        f"{f'; {len(printed)} of them' if len(of_last) > len(printed) else ''}:\n"
    )
    print_rows(
        [{"prompt": row["prompt"], "task": row["task"], "before": row["before"], "after": row["after"],
          "text": join_lines(row["text"])} for row in printed],
        "table",
        drop_order=("task",),
    )  # fmt: skip


def _format_cell(name: str, value: Any) -> Any:
    return f"{value:%Y-%m-%d %H:%M}" if name == "when" and value is not None else value
