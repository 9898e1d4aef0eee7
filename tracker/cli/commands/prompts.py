"""Take in a benchmark's prompts from published data, for `suffrage evaluate` to ask; or list them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.options import database_option, format_option
from tracker.cli.output import inform, join_lines, print_rows
from tracker.cli.progress import progress

if TYPE_CHECKING:
    from tracker.ingest.datasets.ingest_prompts import OnConflict

N_REASONS = 6
MAX_TEXT = 60


def _parse_pairs(ctx: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for value in values:
        part, mark, names = value.partition("=")
        if not mark or not part.strip() or not all(name.strip() for name in names.split(",")):
            raise click.BadParameter(f"{value!r} is not of the form {option.metavar}")
        if part.strip() in pairs:
            raise click.BadParameter(f"{part.strip()} is given twice")
        pairs[part.strip()] = names
    return pairs


@click.group()
def command() -> None:
    """Take in a benchmark's prompts from published data, or list them."""


@command.command("list")
@click.argument("benchmark")
@database_option
@format_option
def list_prompts(benchmark: str, database: str | None, output_format: str) -> None:
    """List a benchmark's prompts: name, task, split and the first words; --format json and csv have the whole text."""
    from tracker.database import connect, transaction
    from tracker.queries.prompts import load_prompts
    from tracker.queries.selection import Selection

    with transaction(connect(database, create=False), write=False) as session:
        stored = load_prompts(session, Selection(benchmark=benchmark))
    texts = [join_lines(text, MAX_TEXT) for text in stored.texts] if output_format == "table" else stored.texts
    rows = zip(stored.names, stored.tasks, stored.splits, texts, strict=True)
    print_rows(rows, output_format, columns=("name", "task", "split", "text"), spare=("split",))


@command.command("import")
@click.argument("benchmark")
@click.argument("source")
@click.option("--preset", metavar="NAME", help="A known data set; by default that of the benchmark's name.")
@click.option(
    "--map",
    "fields",
    metavar="PART=FIELD",
    multiple=True,
    callback=_parse_pairs,
    help="Without a preset: the field that holds text, choices, answer, task, split or id; repeatable.",
)
@click.option(
    "--answer-is",
    type=click.Choice(["letter", "text", "index", "index1"]),
    help="Without a preset: how the right option is written; index counts from 0, index1 from 1.",
)
@click.option(
    "--task-name",
    "task_names",
    metavar="OLD=NEW",
    multiple=True,
    callback=_parse_pairs,
    help="Call a task as a harness does whose scores are of the same prompts; * stands for any name; repeatable.",
)
@click.option("--split", "splits", metavar="NAME", multiple=True, help="Take this published split only; repeatable.")
@click.option(
    "--test-fraction",
    type=float,
    metavar="F",
    help="Draw this fraction as the split test; the rest becomes train.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of that draw.")
@click.option("--config", "configs", metavar="NAME", multiple=True, help="Of the hub: this configuration; repeatable.")
@click.option(
    "--on-conflict",
    type=click.Choice(["error", "skip", "update"]),
    default="error",
    show_default=True,
    help="Gold answers that contradict those stored: stop, keep the stored, or overwrite them.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be stored, and store nothing.")
@database_option
def import_prompts(
    benchmark: str, source: str, database: str | None, on_conflict: OnConflict, dry_run: bool, **options: Any
) -> None:
    """Take in a benchmark's prompts from published data.

    SOURCE is a JSON Lines, JSON, CSV, Parquet or Arrow file, a folder of such files, a folder that the package
    `datasets` saved, or a name on the hub (extra `hub`). Presets: anli, arc, cnn_dailymail, commonsense_qa, hellaswag,
    mmlu. All of it is stored, or nothing; the same again changes nothing.
    """
    from tracker.cli.dry_run_store import open_store
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
        inform(f"  note: {warning}")
