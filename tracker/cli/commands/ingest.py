"""Take in results: tables, leaderboards, and the files of evaluation harnesses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.options import database_option, mlflow_options
from tracker.cli.output import inform
from tracker.cli.progress import progress
from tracker.errors import SuffrageError
from tracker.ingest.measurement import ReadOptions
from tracker.name_lists import join_names

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tracker.ingest.write.stored_runs import OnConflict


MAX_NAMES = 5


def _bounds(
    ctx: click.Context, option: click.Parameter, value: tuple[float, float] | None
) -> tuple[float, float] | None:
    if value is not None and not value[0] < value[1]:
        raise click.BadParameter(f"give the smaller number first, not {value[0]:g} {value[1]:g}")
    return value


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, readable=False))
@click.option("--benchmark", metavar="NAME", help="What the prompts belong to; over what the file says.")
@click.option("--model", metavar="NAME", help="Who answered; for files of one model.")
@click.option("--metric", metavar="NAME", help="How the scores are called, where the file does not say.")
@click.option("--lower-is-better", is_flag=True, help="Smaller scores are better under this metric.")
@click.option(
    "--bounds",
    type=(float, float),
    metavar="LOW HIGH",
    callback=_bounds,
    help="Smallest and largest possible score.",
)
@click.option("--condition", type=click.Choice(["full", "answer_only"]), help="Whether the models saw the question.")
@click.option(
    "--orient",
    type=click.Choice(["prompts", "models"]),
    default="prompts",
    show_default=True,
    help="What the rows of a wide table are.",
)
@click.option(
    "--values",
    type=click.Choice(["scores", "predictions"]),
    default="scores",
    show_default=True,
    help="What the cells of a wide table are; predictions are scored against the stored gold answers.",
)
@click.option(
    "--probability-kind",
    type=click.Choice(["letters", "likelihoods"]),
    help="What a column gold_probability was computed from.",
)
@click.option("--format", "format_name", metavar="NAME", help="Read as this format instead of recognising it.")
@click.option(
    "--on-conflict",
    type=click.Choice(["rerun", "skip", "update", "error"]),
    default="rerun",
    show_default=True,
    help="Scores that contradict those stored: a new run of the model, keep the stored, overwrite them, or stop.",
)
@click.option(
    "--split",
    "splits",
    metavar="NAME",
    multiple=True,
    help="Take this split of the prompts only, of HELM or Every Eval Ever; repeatable.",
)
@click.option(
    "--errored",
    type=click.Choice(["missing", "wrong"]),
    help="What an answer counts as that failed for technical reasons; missing unless said.",
)
@click.option(
    "--empty",
    type=click.Choice(["wrong", "missing"]),
    help="What an answer counts as that holds nothing; wrong unless said.",
)
@click.option(
    "--partial", is_flag=True, help="Of a damaged file, store what is sound; its runs are then marked as partial."
)
@click.option("--dry-run", is_flag=True, help="Say what would be stored, and store nothing.")
@database_option
@mlflow_options
def command(
    paths: tuple[Path, ...],
    lower_is_better: bool,
    bounds: tuple[float, float] | None,
    format_name: str | None,
    on_conflict: OnConflict,
    partial: bool,
    dry_run: bool,
    database: str | None,
    tracking_uri: str,
    no_mlflow: bool,
    splits: tuple[str, ...],
    **read: Any,
) -> None:
    """Take in results from files and folders.

    Formats are recognised by themselves: `suffrage formats` lists them. Each file is stored whole or not at
    all; the same file twice changes nothing; a rerun of a model is a new run.
    """
    from tracker.cli.dry_run_store import open_store
    from tracker.ingest.files.missing_files import explain_missing

    for path in paths:
        if not path.exists():
            raise explain_missing(path)
    options = ReadOptions(
        higher_is_better=False if lower_is_better else None,
        lower=bounds[0] if bounds and isfinite(bounds[0]) else None,
        upper=bounds[1] if bounds and isfinite(bounds[1]) else None,
        splits=splits,
        **read,
    )
    with open_store(database, dry_run=dry_run) as engine:
        run_ids, failed = ingest_files(
            engine, paths, options, format_name=format_name, on_conflict=on_conflict, dry_run=dry_run, partial=partial
        )
        if run_ids and not no_mlflow and not dry_run:
            _publish(engine, run_ids, tracking_uri)
    if failed:
        sys.exit(1)


def _publish(engine: Engine, run_ids: Sequence[int], tracking_uri: str) -> None:
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.publishing import publish_runs

    try:
        publish_runs(engine, run_ids, tracking_uri)
    except PublishingError as error:
        inform(f"Warning: {error}")


def ingest_files(
    engine: Engine,
    paths: Sequence[Path],
    options: ReadOptions,
    *,
    format_name: str | None = None,
    on_conflict: OnConflict = "rerun",
    dry_run: bool = False,
    partial: bool = False,
) -> tuple[list[int], int]:
    """Store each file in a transaction of its own, saying on stderr what became of it.

    Returns:
        keys of the runs that are new or were extended, and how many files could not be taken in.
    """
    from tracker.ingest.parsing.detection import find_files
    from tracker.ingest.pipeline import ingest_file

    run_ids: list[int] = []
    failed = 0
    passed_over: list[Path] = []
    files = find_files(paths, options, format=format_name, skipped=lambda path, _: passed_over.append(path))
    if passed_over:
        names = join_names(passed_over, MAX_NAMES)
        inform(f"Skipped, because no format matches them: {names}. Ingest one by its path to see the nearest format.")
    paths_by_model: dict[str, Path] = {}
    for path in files:
        try:
            if options.model and len(files) > 1:
                _check_model(path, options, format_name, paths_by_model)
            with progress(path.name) as advance:
                result = ingest_file(
                    engine,
                    path,
                    options,
                    format=format_name,
                    on_conflict=on_conflict,
                    dry_run=dry_run,
                    partial=partial,
                    progress=advance,
                )
        except SuffrageError as error:
            inform(f"Error: {error}")
            failed += 1
            continue
        except KeyboardInterrupt:
            inform(f"Stopped while taking in {path}. Each file is stored whole or not at all; run it again to go on.")
            raise
        run_ids += result.changes.run_ids
        inform(result.summary())
        if result.changes.damage:
            inform(f"  stored in part, for the file is damaged: {result.changes.damage}")
        if result.changes.n_runs_partial:
            inform(
                "  Its new runs are partial: no ranking takes them unless --runs names them. The whole file mends them."
            )
        for warning in result.changes.warnings:
            inform(f"  note: {warning}")
    return run_ids, failed


def _check_model(path: Path, options: ReadOptions, format_name: str | None, paths_by_model: dict[str, Path]) -> None:
    """Refuse a file that calls its model otherwise than an earlier one did: one name would make both one run.

    Raises:
        BadInputError: it does.
    """
    from tracker.errors import BadInputError
    from tracker.ingest.parsing.detection import read_model_name

    model = read_model_name(path, options, format=format_name)
    if model is None:
        return
    conflicting = next((name for name in paths_by_model if name != model), None)
    if conflicting is not None:
        raise BadInputError(
            path,
            f"calls its model {model!r}, and {paths_by_model[conflicting]} calls it {conflicting!r}: "
            f"--model {options.model} would make them one.",
            advice="Leave --model out, or take in the files of each model by themselves.",
        )
    paths_by_model[model] = path
