"""The command `suffrage history`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tracker.recording.finding import Report

QUESTION = "drift"
COLUMNS: Mapping[str, str] = {
    "benchmark": "benchmark", "model": "model", "run": "run", "label": "label", "when": "when", "n_prompts": "n",
    "mean": "mean", "change": "change", "low": "95 % low", "high": "95 % high", "holm": "p (Holm)",
    "n_better": "better", "n_worse": "worse",
}  # fmt: skip
DROP_ORDER = ("n", "label", "better", "worse", "95 % low", "95 % high")


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
    previous run on the prompts that both have scores for. Intervals and tests hold whatever the missing scores are.
    P-values are adjusted for all steps on the benchmark with Holm's method. Nothing is recorded: use `suffrage analyze
    drift BENCHMARK` for that.

    Examples:
        suffrage history mmlu_pro
        suffrage history llama-3.1-70b --changed 10
        suffrage history mmlu_pro --output history.svg
    """
    from tracker.database import connect

    engine = connect(database, create=False)
    answers = [(chosen, _run_histories(engine, chosen)) for chosen in _selections(engine, selection)]
    rows = [{"benchmark": chosen.benchmark, "condition": chosen.condition, "variant": chosen.variant,
             "metric": chosen.metric, **row} for chosen, (table, _) in answers for row in table]  # fmt: skip
    if output_format != "table":
        names = dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row)
        print_rows([{name: row.get(name) for name in names} for row in rows], output_format)
    else:
        _print(answers, changed)
    if picture is not None:
        drawn = [report for _, (_, report) in answers if report is not None]
        if not drawn:
            raise click.UsageError("No model has two runs here, so there is nothing to draw.")
        for number, report in enumerate(drawn, start=1):
            (picture if len(drawn) == 1 else picture.numbered(number)).save(report, "history")


def _selections(engine: Engine, selection: Selection) -> list[Selection]:
    """Return what to follow: a benchmark, or every benchmark and condition with runs of a model."""
    from tracker.database import transaction
    from tracker.errors import NotFoundError
    from tracker.queries.catalogue.model_names import find_model
    from tracker.queries.ranking.history import list_histories
    from tracker.queries.resolution import find_benchmark

    name = selection.benchmark
    with transaction(engine, write=False) as session:
        try:
            find_benchmark(session, name)
        except NotFoundError as no_benchmark:
            try:
                model = find_model(session, name)
            except NotFoundError as no_model:
                known = sorted({*no_benchmark.known, *no_model.known})
                raise NotFoundError("model or benchmark", name, known) from None
            histories = list_histories(session, name)
            selected = [rerun for rerun in histories if selection.metric in (None, rerun.metric, *rerun.other_metrics)]
            for rerun in selected:
                if selection.metric is None and rerun.other_metrics:
                    choices = ", ".join(rerun.other_metrics)
                    inform(f"Metric of {rerun.benchmark}: {rerun.metric}. Choose another with --metric: {choices}.")
            if not selected:
                metrics = sorted({name for rerun in histories for name in (rerun.metric, *rerun.other_metrics)})
                raise NotFoundError("metric with scores of this model", selection.metric, metrics) from None
            return [
                replace(
                    selection,
                    benchmark=rerun.benchmark,
                    metric=selection.metric or rerun.metric,
                    condition=rerun.condition,
                    variant=rerun.variant,
                    models=(model.name,),
                )
                for rerun in selected
            ]
    return [selection]


def _run_histories(engine: Engine, selection: Selection) -> tuple[list[dict[str, Any]], Report | None]:
    """Return the table of the runs and the report; the report is None if no model has two runs."""
    from tracker.database import transaction
    from tracker.queries.ranking.history import RunHistory
    from tracker.recording.pipeline import compute_report

    with transaction(engine, write=False) as session:
        history = RunHistory.load(session, selection)
    if any(len(columns) > 1 for columns in history.columns_by_model.values()):
        report = compute_report(engine, QUESTION, selection)
        return report.tables["runs"].to_pylist(), report
    means = history.means
    return [
        {"model": run.model, "run": run.id, "label": run.label, "when": run.when, "is_dated": run.is_dated,
         "n_prompts": n, "mean": mean}
        for run, (n, mean) in zip(history.runs, means, strict=True)
    ], None  # fmt: skip


def _print(answers: list[tuple[Selection, tuple[list[dict[str, Any]], Report | None]]], changed: int) -> None:
    rows = [{"benchmark": _label(chosen), **row} for chosen, (table, _) in answers for row in table]
    one_benchmark, one_model = len(answers) == 1, len({row["model"] for row in rows}) == 1
    omitted = {"benchmark"} if one_benchmark else set()
    omitted |= {"model"} if one_model and not one_benchmark else set()
    for chosen, (_, report) in answers:
        if report is not None:
            click.echo(f"{_label(chosen)}:")
            print_summary(report.summary)
            click.echo()
    print_rows(
        [
            {title: _format_cell(name, row.get(name)) for name, title in COLUMNS.items() if name not in omitted}
            for row in rows
        ],
        "table",
        drop_order=("model", *DROP_ORDER) if one_model else DROP_ORDER,
    )
    for _, (_, report) in answers:
        if report is None:
            continue
        _print_changed(report, changed)
        for warning in report.warnings:
            warn(warning)
    if all(report is None for _, (_, report) in answers):
        inform("No model has two runs here, so nothing can have changed.")


def _print_changed(report: Report, most: int) -> None:
    rows = report.tables["changed"].to_pylist()
    if not rows or not most:
        return
    last = rows[-1]["run"]
    of_last = [row for row in rows if row["run"] == last]
    printed = [of_last[place * len(of_last) // most] for place in range(most)] if most < len(of_last) else of_last
    click.echo(
        f"\n{len(of_last):,} prompts changed from run {printed[0]['since']} to run {last} of {printed[0]['model']}"
        f"{f'; {len(printed)} of them' if len(of_last) > len(printed) else ''}:\n"
    )
    print_rows(
        [{"prompt": row["prompt"], "task": row["task"], "before": row["before"], "after": row["after"],
          "text": join_lines(row["text"])} for row in printed],
        "table",
        drop_order=("task",),
    )  # fmt: skip


def _label(chosen: Selection) -> str:
    more = [part for part in (chosen.condition if chosen.condition != "full" else "", chosen.variant) if part]
    return f"{chosen.benchmark} ({', '.join(more)})" if more else chosen.benchmark


def _format_cell(name: str, value: Any) -> Any:
    return f"{value:%Y-%m-%d %H:%M}" if name == "when" and value is not None else value
