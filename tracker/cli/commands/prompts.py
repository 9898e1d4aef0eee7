"""The command `suffrage prompts`."""

from __future__ import annotations

import sys
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.help_text import Group
from tracker.cli.options import database_option, format_option, parse_pairs
from tracker.cli.output import inform, join_lines, print_rows, warn
from tracker.cli.progress import progress

if TYPE_CHECKING:
    from tracker.ingest.datasets.ingest_prompts import OnConflict

N_REASONS = 6
MAX_TEXT = 60


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

    with transaction(connect(database, create=False), write=False) as session:
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

    with transaction(connect(database, create=False), write=False) as session:
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
@click.argument("benchmark")
@click.argument("source")
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
@database_option
def import_prompts(
    benchmark: str, source: str, database: str | None, on_conflict: OnConflict, dry_run: bool, **options: Any
) -> None:
    """Import the prompts of a published data set.

    SOURCE is a file in JSON Lines, JSON, CSV, Parquet or Arrow format, or a folder of such files. It can also be a
    folder saved by the package `datasets`, or a name on the hub, which needs the extra `hub`. The presets are anli,
    arc, cnn_dailymail, commonsense_qa, hellaswag and mmlu. The prompts are stored completely or not at all.

    Examples:
        suffrage prompts import mmlu cais/mmlu --config all
        suffrage prompts import quiz questions.csv --map text=question --map answer=key --answer-is text
        suffrage prompts import quiz questions.csv --map text=question --map answer=key --answer-is text --dry-run
    """
    from tracker.cli.open_store import open_store
    from tracker.ingest.datasets.ingest_prompts import PromptOptions, ingest_prompts

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
    inform(result.summary())
    for reason, n in list(result.skipped.items())[:N_REASONS]:
        inform(f"  left out: {n:,} {reason}")
    for warning in result.warnings:
        warn(warning)
