"""The command `suffrage responses`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tracker.cli.help_text import Group
from tracker.cli.options import database_option
from tracker.cli.output import inform, warn
from tracker.cli.progress import show_activity
from tracker.report.number_format import format_count

if TYPE_CHECKING:
    from tracker.recording.erasure.responses import ErasureResult


@click.group(cls=Group)
def command() -> None:
    """Erase texts of responses.

    Examples:
        suffrage responses erase mmlu_pro --models llama-3.1-70b --dry-run
        suffrage responses erase --match jane@example.org --yes
    """


@command.command()
@click.argument("benchmark", required=False)
@click.option("--models", default="", metavar="NAMES", help="Names of models, separated by commas. By default all.")
@click.option("--runs", default="", metavar="IDS", help="IDs of runs, separated by commas. By default all.")
@click.option("--prompts", default="", metavar="IDS", help="Keys of prompts, separated by commas. By default all.")
@click.option("--match", default="", metavar="TEXT", help="Only responses that contain this text, in this letter case.")
@click.option("--dry-run", is_flag=True, help="Report what would be erased, and change nothing.")
@click.option("--yes", is_flag=True, help="Erase without confirmation; required without a terminal.")
@database_option
def erase(
    benchmark: str | None,
    models: str,
    runs: str,
    prompts: str,
    match: str,
    dry_run: bool,
    yes: bool,
    database: str | None,
) -> None:
    """Erase texts of responses, permanently.

    Erases answers, reasoning and verdicts of judges, also in records of imports. Scores, and options of
    multiple-choice prompts that were chosen, stay; findings stay valid. Each text is replaced by the date and its
    SHA-256, so that importing the same file again does not bring it back. The files of the store are rewritten,
    so that no erased text is left in them.

    Examples:
        suffrage responses erase mmlu_pro --models llama-3.1-70b --dry-run
        suffrage responses erase --match jane@example.org --yes
    """
    from datetime import UTC, datetime

    from tracker.cli.previews import preview
    from tracker.database import connect, transaction
    from tracker.queries.catalogue.model_names import find_model
    from tracker.queries.resolution import find_benchmark
    from tracker.recording.erasure.purging import purge
    from tracker.recording.erasure.responses import ErasureSelection, erase_responses, find_runs

    if not (benchmark or models or runs or prompts or match):
        raise click.UsageError("Name what to erase: BENCHMARK, --models, --runs, --prompts or --match.")
    run_ids, prompt_ids = _parse_keys("--runs", runs), _parse_keys("--prompts", prompts)
    engine, day = connect(database, create=False), datetime.now(UTC).date()
    with preview(engine) as session:
        names = [name.strip() for name in models.split(",") if name.strip()]
        chosen = find_runs(
            session,
            find_benchmark(session, benchmark).id if benchmark else None,
            [find_model(session, name).id for name in names],
            run_ids,
        )
        selection = ErasureSelection(run_ids=chosen, prompt_ids=set(prompt_ids) or None, match=match)
        result = erase_responses(session, selection, day)
    inform(f"To erase: {_describe_texts(result)}, {format_count(result.n_records, 'text')} in records.")
    if result.n_kept:
        inform(f"To keep: {result.n_kept:,} answers that are an option of their prompt.")
    if dry_run:
        inform("Dry run: nothing was changed.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Nothing was changed, since there is no terminal to confirm on. Add --yes to erase.")
        click.confirm("Erase permanently?", abort=True, err=True)
    with show_activity("erasing"):
        with transaction(engine, exclusive=True) as session:
            result = erase_responses(session, selection, day)
        purge(engine)
    inform(f"Erased {_describe_texts(result)}.")
    warn("Backups, archives, sealed or imported files and MLflow may still hold the texts: delete or replace them too.")


def _describe_texts(result: ErasureResult) -> str:
    return f"{format_count(result.n_texts, 'text')} of {format_count(result.n_runs, 'run')}"


def _parse_keys(option: str, text: str) -> list[int]:
    """Return the keys in an option.

    Raises:
        click.UsageError: it is no list of keys.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise click.UsageError(f"{option} takes whole numbers, separated by commas.")
    return [int(part) for part in parts]
