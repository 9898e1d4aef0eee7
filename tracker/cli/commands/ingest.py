"""The command `suffrage ingest`."""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, limits_option, mlflow_options, parse_pairs
from tracker.cli.output import inform, warn
from tracker.cli.process import OF_COMMAND
from tracker.cli.process.sealed_rows import run_with_sealed_rows
from tracker.cli.progress import progress
from tracker.errors import SuffrageError
from tracker.name_lists import join_names

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tracker.ingest.measurement import ReadOptions
    from tracker.ingest.pipeline import IngestResult
    from tracker.ingest.write.stored_runs import OnConflict
    from tracker.recording.mlflow.process.publishing_process import PublishingProcess


MAX_NAMES = 5


def _bounds(
    ctx: click.Context, option: click.Parameter, value: tuple[float, float] | None
) -> tuple[float, float] | None:
    if value is not None and not value[0] < value[1]:
        raise click.BadParameter(f"give the smaller number first, not {value[0]:g} {value[1]:g}")
    return value


class InputPath(click.Path):
    """A path that is not empty: '' would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a word to a path."""
        if value == "":
            self.fail("the path is empty. Is a variable of the shell unset?", param, ctx)
        return super().convert(value, param, ctx)


@click.command(cls=Command)
@click.argument("paths", nargs=-1, required=True, type=InputPath(path_type=Path, readable=False))
@click.option("--benchmark", metavar="NAME", show_default="as in the file", help="Name of the benchmark.")
@click.option(
    "--model",
    metavar="NAME",
    show_default="as in the file",
    help="Name of the model, for files with the results of one model.",
)
@click.option("--metric", metavar="NAME", show_default="as in the file", help="Name of the metric of the scores.")
@click.option(
    "--lower-is-better/--higher-is-better",
    default=None,
    show_default="by arrows in the headings, else higher",
    help="Whether smaller or larger scores are better under this metric.",
)
@click.option(
    "--bounds",
    type=(float, float),
    metavar="LOW HIGH",
    callback=_bounds,
    show_default="as in the file, else none",
    help="Smallest and largest possible score of the metric.",
)
@click.option(
    "--condition",
    type=click.Choice(["full", "answer_only"]),
    show_default="as in the file, else full",
    help="Condition of the runs. full: the models saw the question; answer_only: they saw the options only.",
)
@click.option(
    "--orient",
    type=click.Choice(["prompts", "models", "tasks"]),
    show_default="detected",
    help=(
        "Meaning of the rows of a table. prompts: the columns are models; models: the columns are prompts; "
        "tasks: the columns are models."
    ),
)
@click.option(
    "--model-column", metavar="COLUMN", show_default="detected", help="Column of a table that names models; may be ''."
)
@click.option(
    "--task-columns",
    metavar="COLUMN",
    multiple=True,
    show_default="detected",
    help="Column of a leaderboard that is a task, by name or pattern such as 'MMLU*'. Repeatable.",
)
@click.option(
    "--ignore-columns",
    metavar="COLUMN",
    multiple=True,
    help="Column of a table to skip, by name or pattern. Repeatable.",
)
@click.option(
    "--map",
    "columns",
    metavar="FIELD=COLUMN",
    multiple=True,
    callback=parse_pairs,
    help="Column of a table that holds a field: model, task, prompt, score, metric, split, … Repeatable.",
)
@click.option(
    "--values",
    type=click.Choice(["scores", "predictions"]),
    default="scores",
    show_default=True,
    help=(
        "Meaning of the cells of a wide table: scores, or predictions to be scored against the "
        "stored reference answers."
    ),
)
@click.option(
    "--probability-kind",
    type=click.Choice(["letters", "likelihoods"]),
    show_default="as in the file",
    help="What a column gold_probability was computed from: probabilities of letters or likelihoods of options.",
)
@click.option(
    "--format",
    "format_name",
    metavar="NAME",
    show_default="detected",
    help="Format to parse the files as; `suffrage formats` lists them.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(["rerun", "skip", "update", "error"]),
    default="rerun",
    show_default=True,
    help=(
        "Scores that contradict the stored ones. rerun: store a new run; skip: keep the stored "
        "scores; update: overwrite them; error: stop."
    ),
)
@click.option(
    "--split",
    "splits",
    metavar="NAME",
    multiple=True,
    show_default="all",
    help="Split of the prompts to import, of tables, HELM, Every Eval Ever or MTEB. Repeatable.",
)
@click.option(
    "--errored",
    type=click.Choice(["missing", "wrong"]),
    show_default="missing",
    help="Score of an answer that failed for technical reasons: missing, or wrong.",
)
@click.option(
    "--empty",
    type=click.Choice(["wrong", "missing"]),
    show_default="wrong",
    help="Score of an empty answer: wrong, or missing.",
)
@click.option(
    "--partial", is_flag=True, help="Import the readable part of a damaged file. Its runs are marked as partial."
)
@click.option(
    "--new-metric",
    is_flag=True,
    help="Store scores again that the benchmark has under another metric. Without it, the command fails.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Reject a file whose reported scores differ from those computed from its rows. Default: mark its runs as "
    "unverified.",
)
@click.option("--dry-run", is_flag=True, help="Report what would be stored, and store nothing.")
@limits_option
@database_option
@mlflow_options
def command(
    paths: tuple[Path, ...],
    lower_is_better: bool | None,
    bounds: tuple[float, float] | None,
    format_name: str | None,
    on_conflict: OnConflict,
    partial: bool,
    new_metric: bool,
    strict: bool,
    dry_run: bool,
    database: str | None,
    tracking_uri: str,
    no_mlflow: bool,
    splits: tuple[str, ...],
    columns: dict[str, str],
    model_column: str | None,
    **read: Any,
) -> None:
    """Import results from files and folders.

    Detects the format of each file; `suffrage formats` lists them. The rows and columns of tables are detected too;
    --dry-run shows what they are. Each file is stored completely or not at all.
    Importing the same file twice changes nothing. Scores that differ from the stored ones become a new run of the
    model.

    Examples:
        suffrage ingest results.csv --benchmark mmlu_pro
        suffrage ingest results.csv --benchmark mmlu_pro --metric accuracy --dry-run
        suffrage ingest lm_eval_output/ --on-conflict skip
    """
    from tracker.ingest.files.missing_files import explain_missing

    for path in paths:
        if not path.exists():
            raise explain_missing(path)
    with ExitStack() as stack:
        # It loads MLflow while this process loads what it needs itself.
        publishing = _start_publishing(stack, None if no_mlflow or dry_run else tracking_uri)
        from tracker.cli.open_store import open_store
        from tracker.ingest.measurement import ReadOptions

        options = ReadOptions(
            higher_is_better=None if lower_is_better is None else not lower_is_better,
            lower=bounds[0] if bounds and isfinite(bounds[0]) else None,
            upper=bounds[1] if bounds and isfinite(bounds[1]) else None,
            splits=splits,
            columns=columns if model_column is None else {**columns, "model": model_column},
            **read,
        )
        engine = stack.enter_context(open_store(database, dry_run=dry_run))
        if publishing:
            publishing.open_with(engine)
        run_ids, failed = ingest_files(
            engine,
            paths,
            options,
            format_name=format_name,
            on_conflict=on_conflict,
            dry_run=dry_run,
            partial=partial,
            new_metric=new_metric,
            strict=strict,
        )
        if run_ids and not no_mlflow and not dry_run:
            _publish(engine, run_ids, tracking_uri, publishing)
        if not failed:
            _print_next_step(engine, run_ids, dry_run=dry_run)
    if failed:
        sys.exit(1)


def _print_next_step(engine: Engine, run_ids: Sequence[int], *, dry_run: bool) -> None:
    """Print the command that shows what was imported."""
    from tracker.database import transaction
    from tracker.queries.resolution import find_ranking

    if dry_run:
        inform("Nothing is stored. Next: the same command without --dry-run")
        return
    with transaction(engine, write=False) as session:
        label = find_ranking(session, run_ids)
    command_line = ["suffrage", "benchmarks"] if label is None else ["suffrage", "leaderboard", label]
    inform(f"Next: {shlex.join(command_line)}")


def _start_publishing(stack: ExitStack, tracking_uri: str | None) -> PublishingProcess | None:
    """Return a process that loads MLflow now, ended with the stack; None without MLflow, or if it is loaded here."""
    if tracking_uri is None or "mlflow" in sys.modules or click.get_current_context().find_root().obj != OF_COMMAND:
        return None
    from tracker.recording.mlflow.process.publishing_process import PublishingProcess

    return stack.enter_context(PublishingProcess(tracking_uri))


def _publish(engine: Engine, run_ids: Sequence[int], tracking_uri: str, publishing: PublishingProcess | None) -> None:
    from tracker.errors import PublishingError

    try:
        if publishing is not None:
            publishing.publish_runs(engine, run_ids)
        else:
            from tracker.recording.mlflow.publishing import publish_runs

            publish_runs(engine, run_ids, tracking_uri)
    except PublishingError as error:
        warn(str(error))


def ingest_files(
    engine: Engine,
    paths: Sequence[Path],
    options: ReadOptions,
    *,
    format_name: str | None = None,
    on_conflict: OnConflict = "rerun",
    dry_run: bool = False,
    partial: bool = False,
    new_metric: bool = False,
    strict: bool = False,
) -> tuple[list[int], int]:
    """Store each file in a separate transaction and report the result on stderr.

    Returns:
        IDs of the runs that are new or were extended, and the number of files that could not be imported.
    """
    from tracker.ingest.parsing.detection import find_files

    handling: dict[str, Any] = {"on_conflict": on_conflict, "dry_run": dry_run, "partial": partial}
    handling |= {"new_metric": new_metric, "strict": strict, "format": format_name}
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
            result = run_with_sealed_rows(functools.partial(_import_file, engine, path, options, handling))
        except SuffrageError as error:
            inform(f"Error: {error}")
            failed += 1
            continue
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"Stopped; nothing of {path} is stored. Run the same command again to continue."
            ) from None
        run_ids += result.changes.run_ids
        _print_changes(result)
    return run_ids, failed


def _import_file(engine: Engine, path: Path, options: ReadOptions, handling: Mapping[str, Any]) -> IngestResult:
    """Import a file, with a bar of its progress."""
    from tracker.ingest.pipeline import ingest_file

    with progress(path.name) as advance:
        return ingest_file(engine, path, options, progress=advance, **handling)


def _print_changes(result: IngestResult) -> None:
    """Report what importing a file changed, and its warnings."""
    inform(result.summary())
    if result.dry_run and result.reading:
        inform(f"  Reading: {result.reading}.")
    if result.changes.damage:
        inform(f"  The file is damaged and stored in part: {result.changes.damage}")
    if result.changes.n_runs_partial:
        inform("  Its new runs are partial: rankings use them only with --runs. The whole file completes them.")
    for warning in result.changes.warnings:
        warn(warning)


def _check_model(path: Path, options: ReadOptions, format_name: str | None, paths_by_model: dict[str, Path]) -> None:
    """Check that all files name the same model: with --model they would become one run.

    Raises:
        BadInputError: the file names another model than an earlier file.
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
            advice="Leave --model out, or import the files of each model separately.",
        )
    paths_by_model[model] = path
