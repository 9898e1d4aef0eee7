"""The command `suffrage verdict`."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

import click

from tracker.cli.help_text import Command
from tracker.cli.options import (
    BOUNDS,
    cluster_option,
    database_option,
    format_option,
    missing_options,
    mlflow_options,
    selection_options,
)
from tracker.cli.output import MAX_TEXT_WIDTH, inform, print_record, print_recorded, print_rows, warn
from tracker.cli.process.interrupts import end_on_interrupt
from tracker.cli.progress import show_activity
from tracker.cli.values.terminal_text import echo
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from tracker.recording.verdict.benchmark_verdict import Verdict


@click.command(cls=Command)
@click.argument("benchmark")
@missing_options(BOUNDS)
@cluster_option
@selection_options
@click.option("--record", is_flag=True, help="Record the verdict as a finding and publish it to MLflow.")
@database_option
@mlflow_options
@format_option
def command(
    selection: Selection, record: bool, database: str | None, tracking_uri: str, no_mlflow: bool, output_format: str
) -> None:
    """Show on one screen who is first, and what could change that.

    Shows the first place with its margin and confidence. Then one line for each choice that could change it: missing
    scores, tasks, weights, voting rules. Each line has the command that shows more. The end names what the stored data
    cannot show. Nothing is recorded without --record. The pages of `suffrage serve` show a recorded verdict at once, as
    long as it is current.

    Examples:
        suffrage verdict mmlu_pro
        suffrage verdict mmlu_pro --record --no-mlflow
        suffrage verdict mmlu_pro --format json
    """
    from tracker.database import connect
    from tracker.recording.verdict.benchmark_verdict import load_verdict
    from tracker.recording.verdict.recorded_verdict import record_verdict

    engine = connect(database, create=False)
    recorded = None
    with end_on_interrupt(), show_activity(f"verdict on {selection.benchmark}"):
        if record:
            publish_to = None if no_mlflow else tracking_uri
            verdict, recorded = record_verdict(engine, selection, workers=-1, publish_to=publish_to)
        else:
            verdict = load_verdict(engine, selection, workers=-1)
    if output_format == "table":
        print_verdict(verdict)
    elif output_format == "json":
        print_record(_as_record(verdict), output_format)
    else:
        print_rows(verdict.list_records(), output_format)
    for warning in (*verdict.notices, *verdict.warnings):
        warn(warning)
    if recorded is not None:
        print_recorded(recorded)


def print_verdict(verdict: Verdict) -> None:
    """Print the headline, a line per choice, and what is not known."""
    board = verdict.board
    tasks = f" in {board.n_tasks} tasks" if board.unit == "prompt" and board.n_tasks > 1 else ""
    _print_text(verdict.headline)
    better = "larger" if board.higher_is_better else "smaller"
    if verdict.looks:
        _print_text(f"{verdict.looks} (`suffrage looks {verdict.benchmark}`)")
    inform(f"{verdict.benchmark}: {verdict.metric} over {board.n_units:,} {board.unit}s{tasks}; {better} is better.")
    if verdict.checks:
        echo("\nCan another choice change the first place?")
        width = max(len(check.line.answer) for check in verdict.checks)
        for check in verdict.checks:
            line = check.line
            answer = f"{line.answer:<{width}}"
            _print_text(f"{line.topic}: {line.text}", f"  {answer}  ", " " * (width + 4))
            echo(f"{' ' * (width + 4)}$ {check.command}")
    echo("\nNot known from the stored data:")
    for sentence in verdict.open_questions:
        _print_text(sentence, "  - ", "    ")


def _print_text(text: str, first: str = "", further: str = "") -> None:
    width = min(MAX_TEXT_WIDTH, shutil.get_terminal_size((MAX_TEXT_WIDTH, 24)).columns)
    echo(textwrap.fill(text, width, initial_indent=first, subsequent_indent=further, break_long_words=False))


def _as_record(verdict: Verdict) -> dict[str, object]:
    return {
        "benchmark": verdict.benchmark,
        "metric": verdict.metric,
        "headline": verdict.headline,
        "looks": verdict.looks,
        "leaders": list(verdict.leaders),
        "margin": verdict.margin,
        "may_lead": None if verdict.contenders is None else list(verdict.contenders),
        "choices": verdict.list_records(),
        "not_known": list(verdict.open_questions),
    }
