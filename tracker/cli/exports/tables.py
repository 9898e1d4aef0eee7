"""Write scores, runs, prompts, findings and weights as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracker.cli.exports.destination import Destination, say_all, table_options, write_table
from tracker.cli.options import database_option, selection_options, split_values
from tracker.cli.output import inform
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from tracker.exporting.table_files import StreamedTable


def _all_metrics(function: click.decorators.FC) -> click.decorators.FC:
    return selection_options(function, {"metric": "Only these scores; else those under every metric."})


@click.command("scores")
@click.argument("benchmark")
@_all_metrics
@click.option(
    "--all-runs", is_flag=True, help="Every complete run, of every condition and variant; else each model's latest."
)
@click.option(
    "--of",
    "unit",
    type=click.Choice(["prompts", "tasks"]),
    help="Scores of single prompts, or of whole tasks; else of prompts where there are any.",
)
@click.option("--no-answers", is_flag=True, help="Leave out what the models said.")
@table_options("every-eval-ever")
@database_option
def scores(
    selection: Selection,
    all_runs: bool,
    unit: str | None,
    no_answers: bool,
    destination: Destination,
    database: str | None,
) -> None:
    """Write the scores of a benchmark, a row for each: a long table, as `suffrage ingest` takes it in.

    Columns: benchmark, model, prompt_id, task, metric, score, trial, condition, variant, run, few_shot, and what the
    model said (predicted, confidence) where the store holds it. With --format every-eval-ever: a folder of files in
    the format of that name, two for each run.
    """
    if all_runs and (selection.runs or selection.as_of):
        raise click.UsageError("--all-runs takes every complete run; leave --runs and --as-of out.")
    if destination.file_format == "every-eval-ever":
        if unit or no_answers or destination.for_spreadsheets:
            raise click.UsageError(
                "Every Eval Ever has room for all; leave --of, --no-answers, --for-spreadsheets out."
            )
        if destination.output is None:
            raise click.UsageError("Every Eval Ever is a folder of files: add --output FOLDER.")
        _every_eval_ever(selection, all_runs, destination.output, destination.force, database)
        return
    destination.told()  # what does not go together is said before anything is opened
    from tracker.database import connect, transaction

    with transaction(connect(database), write=False) as session:
        from tracker.exporting.exported_runs import select_exported_runs
        from tracker.exporting.formats.long_scores import scores_of_prompts, scores_of_tasks
        from tracker.queries.filtering.filter_warnings import filter_warnings
        from tracker.queries.resolution import find_benchmark

        def made() -> StreamedTable:
            benchmark = find_benchmark(session, selection.benchmark)
            wanted = {"prompts": "prompt", "tasks": "task"}.get(unit or "")
            chosen = select_exported_runs(session, benchmark, selection, wanted, every=all_runs)  # type: ignore[arg-type]
            if chosen.unit == "task":
                table = scores_of_tasks(session, benchmark, selection, chosen)
            else:
                table = scores_of_prompts(session, benchmark, selection, chosen, answers=not no_answers)
                say_all(filter_warnings(session, benchmark, selection))
            if chosen.n_left_out and not (selection.runs or selection.models or selection.metric):
                more = "" if all_runs else "; --all-runs takes every complete one"
                table.warnings.append(f"{chosen.n_left_out:,} other runs with such scores are left out{more}.")
            return table

        write_table(made, destination)


def _every_eval_ever(selection: Selection, all_runs: bool, output: Path, force: bool, database: str | None) -> None:
    from tracker.database import connect, transaction
    from tracker.exporting.folders import check_folder, written_folder
    from tracker.exporting.formats.every_eval_ever import every_eval_ever

    check_folder(output, force=force)
    with transaction(connect(database), write=False) as session:
        files = every_eval_ever(session, selection, every=all_runs)
        with written_folder(output, force=force) as folder:
            for name, pieces in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with (folder / name).open("wb") as file:
                    for piece in pieces:
                        file.write(piece)
    say_all(files.warnings)
    inform(f"Wrote {output}: {len(files):,} files.")


@click.command("runs")
@click.argument("benchmark", required=False)
@table_options()
@database_option
def runs(
    benchmark: str | None,
    destination: Destination,
    database: str | None,
) -> None:
    """Write the runs of the store, or of a benchmark: who answered, how, when, from which files."""
    destination.told()  # what does not go together is said before anything is opened
    from tracker.database import connect, transaction

    with transaction(connect(database), write=False) as session:
        from tracker.exporting.formats.run_list import runs_of

        write_table(lambda: runs_of(session, benchmark), destination)


@click.command("prompts")
@click.argument("benchmark")
@click.option("--tasks", "tasks", metavar="A,B", multiple=True, help="Only these tasks.")
@click.option("--filter", "filter_id", type=int, metavar="ID", help="Only the prompts that this finding keeps.")
@table_options()
@database_option
def prompts(
    benchmark: str,
    tasks: tuple[str, ...],
    filter_id: int | None,
    destination: Destination,
    database: str | None,
) -> None:
    """Write the prompts of a benchmark: a prompt table, as `suffrage ingest` takes it in.

    Columns: benchmark, prompt_id, task, text, choices, gold_answer, split, and one for each further field.
    """
    destination.told()  # what does not go together is said before anything is opened
    from tracker.database import connect, transaction

    selection = Selection(benchmark=benchmark, tasks=split_values(tasks), filter=filter_id)
    with transaction(connect(database), write=False) as session:
        from tracker.exporting.formats.prompt_list import prompts_of
        from tracker.queries.filtering.filter_warnings import filter_warnings
        from tracker.queries.resolution import find_benchmark

        def made() -> StreamedTable:
            found = find_benchmark(session, benchmark)
            say_all(filter_warnings(session, found, selection))
            return prompts_of(session, found, selection)

        write_table(made, destination)


@click.command("findings")
@click.argument("which", metavar="[BENCHMARK|ID]", required=False)
@table_options()
@database_option
def findings(
    which: str | None,
    destination: Destination,
    database: str | None,
) -> None:
    """Write the numbers of all findings, of those about a benchmark, or of one, a row for each number."""
    destination.told()  # what does not go together is said before anything is opened
    from tracker.database import connect, transaction

    with transaction(connect(database), write=False) as session:
        from tracker.exporting.formats.finding_metrics import numbers_of_findings

        write_table(lambda: numbers_of_findings(session, which), destination)


@click.command("weights")
@click.argument("which", metavar="ID[:SCHEME]")
@table_options()
@database_option
def weights(
    which: str,
    destination: Destination,
    database: str | None,
) -> None:
    """Write the weights of a finding, a row for each prompt, as `suffrage weights` takes them in."""
    destination.told()  # what does not go together is said before anything is opened
    from tracker.database import connect, transaction

    with transaction(connect(database), write=False) as session:
        from tracker.exporting.formats.weight_list import weights_of

        write_table(lambda: weights_of(session, which), destination)
