"""The command `suffrage prompts`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tracker.cli.help_text import Group
from tracker.cli.options import database_option, format_option, limits_option, parse_pairs
from tracker.cli.output import inform, join_lines, print_rows, warn
from tracker.cli.progress import progress, show_activity

if TYPE_CHECKING:
    from tracker.ingest.datasets.ingest_prompts import OnConflict, PromptIngestResult

N_REASONS = 6
MAX_TEXT = 60
HARNESS_OPTIONS = ("lm_eval_folder", "few_shot", "few_shot_seed", "trust_code")
"""Options that need --lm-eval."""


@click.group(cls=Group)
def command() -> None:
    """Import, list or check the prompts of a benchmark.

    Examples:
        suffrage prompts import mmlu cais/mmlu --config all
        suffrage prompts list mmlu_pro
        suffrage prompts check mmlu_pro
    """


@command.command("list")
@click.argument("benchmark")
@database_option
@format_option
def list_prompts(benchmark: str, database: str | None, output_format: str) -> None:
    """List the prompts of a benchmark.

    Each row shows the name, task, split and beginning of a prompt. The formats json and csv have the whole text.

    Examples:
        suffrage prompts list mmlu_pro
        suffrage prompts list mmlu_pro --format json
    """
    from tracker.database import connect, transaction
    from tracker.queries.prompts import load_prompts
    from tracker.queries.selection import Selection

    with show_activity("prompts"), transaction(connect(database, create=False), write=False) as session:
        stored = load_prompts(session, Selection(benchmark=benchmark))
    texts = [join_lines(text, MAX_TEXT) for text in stored.texts] if output_format == "table" else stored.texts
    rows = zip(stored.names, stored.tasks, stored.splits, texts, strict=True)
    print_rows(
        rows,
        output_format,
        columns=("name", "task", "split", "text"),
        drop_order=("split",),
        if_empty=f"No prompts of {benchmark} yet. Import them: `suffrage prompts import {benchmark} SOURCE`",
    )


@command.command("check")
@click.argument("benchmark")
@database_option
@format_option
def check_prompts(benchmark: str, database: str | None, output_format: str) -> None:
    """Check the options and reference answers of a benchmark's prompts.

    Lists prompts whose reference answer is none of the options, prompts with equal options, and equal prompts with
    different reference answers. The exit code is 0 without problems and 2 with problems. Nothing is changed.

    Examples:
        suffrage prompts check mmlu_pro
        suffrage prompts check mmlu_pro --format csv
    """
    from tracker.database import connect, transaction
    from tracker.queries.catalogue.prompt_problems import PromptProblem, list_prompt_problems

    with show_activity("prompts"), transaction(connect(database, create=False), write=False) as session:
        problems = list_prompt_problems(session, benchmark)
    if output_format == "table":
        inform(f"{benchmark}: {len(problems):,} problem{'s' * (len(problems) != 1)} of prompts.")
        problems = [replace(problem, text=join_lines(problem.text, MAX_TEXT)) for problem in problems]
    if problems or output_format != "table":
        names = [field.name for field in fields(PromptProblem)]
        print_rows([asdict(row) for row in problems], output_format, columns=names, drop_order=("text", "task"))
    if problems:
        sys.exit(2)


@command.command("import")
@click.argument("benchmark", required=False)
@click.argument("source", required=False)
@click.option(
    "--lm-eval",
    "lm_eval_tasks",
    metavar="TASK",
    multiple=True,
    help=(
        "Task or group of lm-evaluation-harness, by its name or YAML file: import its prompts with the texts that the "
        "harness sends. BENCHMARK and SOURCE are then optional. Repeatable."
    ),
)
@click.option(
    "--lm-eval-tasks",
    "lm_eval_folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    show_default="that of the installed harness",
    help="With --lm-eval: folder with the YAML files of tasks.",
)
@click.option(
    "--few-shot",
    type=click.IntRange(min=0),
    show_default="as in the task",
    help="With --lm-eval: number of few-shot examples before each prompt.",
)
@click.option(
    "--few-shot-seed",
    type=int,
    default=1234,
    show_default=True,
    help="With --lm-eval: seed of the draws of few-shot examples; the default is that of the harness.",
)
@click.option("--trust-code", is_flag=True, help="With --lm-eval: allow Python functions beside the YAML files to run.")
@click.option(
    "--preset",
    metavar="NAME",
    show_default="the name of the benchmark",
    help="Name of a known data set, which defines the fields.",
)
@click.option(
    "--map",
    "fields",
    metavar="PART=FIELD",
    multiple=True,
    callback=parse_pairs,
    help="Without a preset: the field that holds the text, choices, answer, task, split or id. Repeatable.",
)
@click.option(
    "--answer-is",
    type=click.Choice(["letter", "text", "index", "index1"]),
    help="Without a preset: how the correct option is given. index counts from 0, index1 from 1.",
)
@click.option(
    "--task-name",
    "task_names",
    metavar="OLD=NEW",
    multiple=True,
    callback=parse_pairs,
    help="Rename a task, to match the scores of a harness; * stands for any name. Repeatable.",
)
@click.option(
    "--split",
    "splits",
    metavar="NAME",
    multiple=True,
    show_default="all",
    help="Published split to import. Repeatable.",
)
@click.option(
    "--test-fraction",
    type=float,
    metavar="F",
    help="Fraction of the prompts, in (0, 1), to draw as the split test. The rest becomes the split train.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw for --test-fraction.")
@click.option(
    "--config", "configs", metavar="NAME", multiple=True, help="Configuration of the data set on the hub. Repeatable."
)
@click.option(
    "--on-conflict",
    type=click.Choice(["error", "skip", "update"]),
    default="error",
    show_default=True,
    help="Reference answers that contradict stored ones. error: stop; skip: keep the stored; update: overwrite them.",
)
@click.option("--dry-run", is_flag=True, help="Report what would be stored, and store nothing.")
@limits_option
@database_option
def import_prompts(
    benchmark: str | None,
    source: str | None,
    lm_eval_tasks: tuple[str, ...],
    database: str | None,
    on_conflict: OnConflict,
    dry_run: bool,
    **options: Any,
) -> None:
    """Import the prompts of a published data set.

    SOURCE is a file in JSON Lines, JSON, CSV, Parquet or Arrow format, or a folder of such files. It can also be a
    folder saved by the package `datasets`, or a name on the hub, which needs the extra `hub`. The presets are anli,
    arc, cnn_dailymail, commonsense_qa, hellaswag and mmlu. The prompts are stored completely or not at all.

    Examples:
        suffrage prompts import mmlu cais/mmlu --config all
        suffrage prompts import quiz questions.csv --map text=question --map answer=key --answer-is text
        suffrage prompts import --lm-eval gsm8k --lm-eval arc_easy
    """
    from tracker.cli.open_store import open_store
    from tracker.ingest.datasets.ingest_prompts import PromptOptions, ingest_prompts

    harness_options = {name: options.pop(name) for name in HARNESS_OPTIONS}
    if lm_eval_tasks:
        _reject_options("have no effect with --lm-eval", options)
        _import_lm_eval(benchmark, source, lm_eval_tasks, database, on_conflict, dry_run, **harness_options)
        return
    if benchmark is None or source is None:
        raise click.UsageError(
            "BENCHMARK and SOURCE are required, except with --lm-eval. "
            "Example: suffrage prompts import mmlu cais/mmlu --config all"
        )
    _reject_options("need --lm-eval TASK", harness_options)
    with open_store(database, dry_run=dry_run) as engine, progress(benchmark) as advance:
        result = ingest_prompts(
            engine,
            benchmark,
            source,
            PromptOptions(**options),
            on_conflict=on_conflict,
            dry_run=dry_run,
            progress=advance,
        )
    _print_result(result)


def _reject_options(problem: str, options: dict[str, Any]) -> None:
    """Reject options that have no effect."""
    parameters = {parameter.name: parameter for parameter in import_prompts.params}
    context = click.get_current_context()
    explicit = [name for name in options if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    if explicit:
        raise click.UsageError(f"{parameters[explicit[0]].opts[0]} and similar options {problem}. Omit it.")


def _import_lm_eval(
    benchmark: str | None,
    source: str | None,
    tasks: tuple[str, ...],
    database: str | None,
    on_conflict: OnConflict,
    dry_run: bool,
    **options: Any,
) -> None:
    """Import tasks of lm-evaluation-harness."""
    from tracker.cli.open_store import open_store
    from tracker.ingest.datasets.lm_eval.ingest_tasks import LmEvalOptions, ingest_lm_eval_tasks

    lm_eval_options = LmEvalOptions(
        folder=options["lm_eval_folder"],
        source=Path(source) if source else None,
        few_shot=options["few_shot"],
        few_shot_seed=options["few_shot_seed"],
        trust_code=options["trust_code"],
    )
    with open_store(database, dry_run=dry_run) as engine, progress(benchmark or tasks[0]) as advance:
        imports = ingest_lm_eval_tasks(
            engine,
            tasks,
            lm_eval_options,
            benchmark=benchmark,
            on_conflict=on_conflict,
            dry_run=dry_run,
            progress=advance,
        )
    for imported in imports:
        _print_result(imported.result)
    for imported in imports if not dry_run else ():
        words = ("suffrage", "evaluate", imported.result.benchmark, "--model", "MODEL", *imported.next_options)
        inform(f"Next: {shlex.join(words)}")


def _print_result(result: PromptIngestResult) -> None:
    inform(result.summary())
    for reason, n in list(result.skipped.items())[:N_REASONS]:
        inform(f"  left out: {n:,} {reason}")
    for warning in result.warnings:
        warn(warning)
