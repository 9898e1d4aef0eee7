"""The command `suffrage compare`."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.figure_files import Picture, picture_option
from tracker.cli.help_text import Command
from tracker.cli.options import (
    BOUNDS,
    cluster_option,
    database_option,
    document_format_option,
    missing_options,
    mlflow_options,
    selection_options,
)
from tracker.cli.output import (
    inform,
    join_lines,
    print_document,
    print_record,
    print_recorded,
    print_rows,
    print_summary,
    warn,
)
from tracker.cli.progress import show_activity
from tracker.cli.values.setting_option import SettingOption
from tracker.cli.values.terminal_text import echo
from tracker.exporting.document_tables import DOCUMENT_FORMATS, DocumentFormat
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    import sqlalchemy as sa
    from sqlalchemy.orm import Session

    from tracker.recording.finding import Report

QUESTION = "comparison"
MAX_TASKS = 6
MAX_TEXT = 60
MAX_FAILED = 3
TASK_TITLES = {
    "task": "task", "n": "n", "mean_a": "mean A", "mean_b": "mean B", "difference": "difference", "low": "95 % low",
    "high": "95 % high", "pvalue": "p", "holm": "p (Holm)",
}  # fmt: skip
"""Titles of the columns of a table by task."""

ONE_BENCHMARK = ("n_flips", "margin", "picture", "force", "record", "models", "tasks", "split", "filter", "runs")
"""Parameters that need a benchmark."""


def _check_names(ctx: click.Context, option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Accept two models, or a benchmark and two models."""
    if len(names) not in (2, 3) and not ctx.resilient_parsing:
        raise click.UsageError(
            f"Name two models, or a benchmark and two models, not {len(names)} names. List models with `suffrage "
            "models`.",
            ctx,
        )
    if len(names) == 2:
        for name in ONE_BENCHMARK:
            if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
                flag = next(parameter for parameter in ctx.command.params if parameter.name == name).opts[0]
                raise click.UsageError(f"{flag} needs a benchmark: suffrage compare BENCHMARK {' '.join(names)}", ctx)
    return names


def _split_names(function: Callable[..., None]) -> Callable[..., None]:
    """Pass the names to the command as benchmark, '' for all, and two models."""

    @functools.wraps(function)
    def wrapped(names: tuple[str, ...], **options: Any) -> None:
        *benchmark, model_a, model_b = names
        function(benchmark="".join(benchmark), model_a=model_a, model_b=model_b, **options)

    return wrapped


@click.command(cls=Command)
@click.argument("names", nargs=-1, required=True, metavar="[BENCHMARK] MODEL_A MODEL_B", callback=_check_names)
@_split_names
@click.option("--flips", "n_flips", type=click.IntRange(min=0), default=3, show_default=True, metavar="N",
              help="Number of prompts to show for each model on which it does better.")  # fmt: skip
@click.option("--resamples", "n_resamples", type=click.IntRange(min=1), default=9999, show_default=True, metavar="N",
              help="Number of bootstrap resamples, and of sign flips if not all are enumerated.")  # fmt: skip
@click.option("--seed", cls=SettingOption, type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of the resamples.")  # fmt: skip
@click.option("--margin", type=float, metavar="SIZE", show_default="no test of equivalence",
              help="Largest difference that does not matter, in the unit of the scores. Tests whether the two models "
              "are equivalent.")  # fmt: skip
@picture_option
@click.option("--record", is_flag=True, help="Record the comparison as a finding and publish it to MLflow.")
@missing_options(BOUNDS, min_coverage=0.0)
@cluster_option
@selection_options
@database_option
@mlflow_options
@document_format_option
def command(
    selection: Selection,
    model_a: str,
    model_b: str,
    n_flips: int,
    n_resamples: int,
    seed: int,
    margin: float | None,
    picture: Picture | None,
    record: bool,
    database: str | None,
    tracking_uri: str,
    no_mlflow: bool,
    output_format: str,
) -> None:
    """Compare two models prompt by prompt.

    Uses the prompts that both models have scores for; the test and the interval keep their level whatever the missing
    scores are. Shows the mean difference, exact tests, the smallest detectable difference, the difference by task, and
    the prompts where one model is better. Also shows how many more prompts a comparison without pairing would need.

    MODEL_A and MODEL_B are model names, or run:7 for a single run. Nothing is recorded without --record.

    Two names are two models. They are compared on every benchmark that both have scores for, one line each. Where at
    least three benchmarks have scores in the same bounds, an overall difference follows.

    Examples:
        suffrage compare mmlu_pro llama-3.1-70b qwen2.5-72b --format latex
        suffrage compare mmlu_pro llama-3.1-70b qwen2.5-72b --margin 0.01 --output pair.png
        suffrage compare llama-3.1-70b qwen2.5-72b
    """
    from tracker.database import connect, transaction
    from tracker.queries.comparing.named_pair import select_named_pair
    from tracker.queries.notices import list_notices
    from tracker.recording.pipeline import compute_report, run_analysis

    if selection.models or selection.runs:
        raise click.UsageError("Name models after the benchmark, or run:7 for a run: leave out --models and --runs.")
    engine = connect(database, create=False)
    if not selection.benchmark:
        options = {"n_resamples": n_resamples, "seed": seed}
        _compare_everywhere(engine, selection, (model_a, model_b), options, output_format)
        return
    with transaction(engine, write=False) as session:
        selection, names = select_named_pair(session, selection, (model_a, model_b))
    for notice in list_notices(session):
        warn(notice)
    parameters = {"model_a": names[0], "model_b": names[1], "n_resamples": n_resamples, "seed": seed, "margin": margin}
    with show_activity(f"comparing {names[0]} and {names[1]}"):
        if record:
            publish_to = None if no_mlflow else tracking_uri
            recorded = run_analysis(engine, QUESTION, selection, parameters, publish_to=publish_to)
            report = recorded.report
        else:
            report = compute_report(engine, QUESTION, selection, parameters)
    _print(report, names, n_flips, output_format)
    if picture is not None:
        picture.save(report, "differences")
    if record:
        print_recorded(recorded)


def _compare_everywhere(
    engine: sa.Engine, selection: Selection, names: tuple[str, str], parameters: dict[str, int], output_format: str
) -> None:
    """Compare two models on all shared benchmarks, and print a line for each."""
    from tracker.database import transaction
    from tracker.errors import SelectionError
    from tracker.recording.comparing.looks import describe_shared_looks
    from tracker.recording.comparing.shared_benchmarks import compare_on_shared_benchmarks
    from tracker.recording.comparing.summary import summarize

    with transaction(engine, write=False) as session:
        models = _find_models(session, names)
    with show_activity(f"comparing {models[0]} and {models[1]}"):
        shared = compare_on_shared_benchmarks(engine, models, selection, parameters)
    if not shared.rows:
        reasons = "".join(f" {name}: {reason}." for name, reason in [*shared.failed.items()][:MAX_FAILED])
        raise SelectionError(f"{models[0]} and {models[1]} cannot be compared on any benchmark.{reasons}")
    with transaction(engine, write=False) as session:
        summary = replace(summarize(shared), looks=describe_shared_looks(session, shared))
    if output_format == "json":
        overall = [
            {"bounds": list(bounds), **asdict(pooled), "weights": pooled.weights.tolist()}
            for bounds, pooled in shared.pooled.items()
        ]
        rows = [asdict(row) for row in shared.rows]
        record = {"models": list(models), "summary": asdict(summary), "benchmarks": rows, "overall": overall}
        print_record({**record, "failed": dict(shared.failed)}, output_format)
        return
    if output_format == "table":
        print_summary(summary)
        echo(f"\nDifference by benchmark, A minus B (A is {models[0]}):")
    titles = {
        "benchmark": "benchmark", "metric": "metric", "n": "n", "mean_a": "mean A", "mean_b": "mean B",
        "difference": "difference", "low": "95 % low", "high": "95 % high", "holm": "p (Holm)",
        "unpooled": "not pooled",
    }  # fmt: skip
    if output_format == "csv":
        titles = {name: name for name in (*titles, "stderr", "pvalue")}
    rows = [{title: getattr(row, name) for name, title in titles.items()} for row in shared.rows]
    if output_format in DOCUMENT_FORMATS:
        print_document(rows, output_format, [summary.headline, f"A is {models[0]}, B is {models[1]}."])
        return
    print_rows(rows, output_format, drop_order=("not pooled", "metric", "mean A", "mean B"))


def _find_models(session: Session, names: tuple[str, str]) -> tuple[str, str]:
    """Return the names of two different models.

    Raises:
        NotFoundError: no model has this name.
        UsageError: a name is that of a run or a benchmark, or both name one model.
    """
    from tracker.errors import NotFoundError
    from tracker.queries.catalogue.model_names import find_model
    from tracker.queries.comparing.named_pair import RUN
    from tracker.queries.resolution import find_benchmark

    example = f"suffrage compare BENCHMARK {' '.join(names)}"
    if any(RUN.fullmatch(name) for name in names):
        raise click.UsageError(f"A run belongs to one benchmark. Name it first: {example}")
    result = []
    for place, name in enumerate(names):
        try:
            result.append(find_model(session, name).name)
        except NotFoundError:
            try:
                benchmark = find_benchmark(session, name).label
            except NotFoundError:
                benchmark = ""
            if not benchmark:
                raise
            model = names[1 - place]
            raise click.UsageError(
                f"{benchmark} is a benchmark, so a second model is missing: suffrage compare {benchmark} {model} "
                "MODEL_B. List models with `suffrage models`."
            ) from None
    if result[0] == result[1]:
        raise click.UsageError(f"Both models are {result[0]}. Name two models.")
    return result[0], result[1]


def _print(report: Report, names: tuple[str, str], n_flips: int, output_format: str) -> None:
    from tracker.recording.record import make_metric_rows

    metrics = make_metric_rows(report.finding)
    flips = [
        row
        for name in names
        for row in [flip for flip in report.tables["flips"].to_pylist() if flip["better"] == name][:n_flips]
    ]
    if output_format == "json":
        print_record(
            {
                "model_a": names[0],
                "model_b": names[1],
                "summary": asdict(report.summary),
                "metrics": {row.name: row.value for row in metrics},
                "undefined": {row.name: row.reason for row in metrics if row.reason},
                "tasks": report.tables["tasks"].to_pylist(),
                "flips": flips,
            },
            output_format,
        )
    elif output_format == "csv":
        print_rows(
            [(m.name, m.value, m.reason or "") for m in metrics], output_format, columns=("name", "value", "reason")
        )
    elif output_format in DOCUMENT_FORMATS:
        _print_document(report, names, {row.name: row.value for row in metrics}, output_format)
    else:
        print_summary(report.summary)
        _print_tasks(names[0], report.tables["tasks"].to_pylist())
        _print_flips(names, flips, report)
        echo()
        inform("All metrics and tasks: --format json. To keep them, add --record.")
    for warning in report.warnings:
        warn(warning)


def _print_document(
    report: Report, names: tuple[str, str], metrics: Mapping[str, float | None], output_format: DocumentFormat
) -> None:
    """Print the verdict, the difference on all prompts and that of each task, as LaTeX or Markdown."""
    overall = {"task": "all", "n": int(metrics["n_prompts"] or 0)} | {
        TASK_TITLES[name]: metrics.get(name) for name in ("mean_a", "mean_b", "difference", "low", "high", "pvalue")
    }
    tasks = report.tables["tasks"].to_pylist()
    rows = [overall]
    if len(tasks) > 1:
        rows += [{title: task[name] for name, title in TASK_TITLES.items() if name != "pvalue"} for task in tasks]
    columns = [title for title in TASK_TITLES.values() if any(row.get(title) is not None for row in rows)]
    letters = f"A is {names[0]}, B is {names[1]}. Differences are A minus B."
    print_document(
        [{title: row.get(title) for title in columns} for row in rows],
        output_format,
        [report.summary.headline, *report.summary.evidence, letters],
    )


def _print_tasks(name_a: str, rows: list[dict[str, Any]]) -> None:
    if len(rows) < 2:
        return
    largest = sorted(rows, key=lambda row: -abs(row["difference"]))[:MAX_TASKS]
    count = f"the {MAX_TASKS} of {len(rows)} with the largest differences" if len(rows) > MAX_TASKS else "largest first"
    echo(f"\nDifference by task, A minus B (A is {name_a}), {count}; each interval for one task, p for all tasks:")
    ordered = sorted(largest, key=lambda row: -row["difference"])
    print_rows(
        [{title: row[name] for name, title in TASK_TITLES.items() if name != "pvalue"} for row in ordered],
        "table",
        drop_order=("mean A", "mean B"),
    )


def _print_flips(names: tuple[str, str], rows: list[dict[str, Any]], report: Report) -> None:
    if not rows:
        return
    better = Counter(report.tables["flips"]["better"].to_pylist())
    parts = [
        f"{sum(row['better'] == name for row in rows)} of {better[name]:,} that {name} ({letter}) does better on"
        for letter, name in zip("AB", names, strict=True)
    ]
    echo(f"\nPrompts, drawn at random: {'; '.join(parts)}.")
    print_rows(
        [
            {"prompt": row["prompt"], "task": row["task"], "A": row["score_a"], "B": row["score_b"],
             "text": join_lines(row["text"], MAX_TEXT)}
            for row in rows
        ],
        "table",
        drop_order=("A", "B", "task"),
    )  # fmt: skip
