"""Export the scores of a benchmark, one row each.

The columns are benchmark, model, prompt_id, task, metric, score, trial, condition, variant, run and few_shot, with the
answers (predicted, confidence) if they are stored. `suffrage ingest` imports such a table. `--missing worst` and
`--missing impute` add scores that are not measured; the column filled_by marks them, and `suffrage ingest` leaves them
out. The format every-eval-ever
is a folder with two files for each run.

Examples:
    suffrage export scores mmlu_pro --output scores.parquet
    suffrage export scores mmlu_pro --format every-eval-ever --output every_eval_ever
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from sqlalchemy.orm import Session

from tracker.errors import OptionsError
from tracker.exporting.declaration import export
from tracker.exporting.exported_runs import select_exported_runs
from tracker.exporting.formats.scores.complete_prompts import select_complete_prompts
from tracker.exporting.formats.scores.prompt_scores import build_prompt_score_table
from tracker.exporting.formats.scores.task_scores import build_task_score_table
from tracker.exporting.table_files import StreamedTable
from tracker.queries.catalogue.unverified_runs import list_unverified_warnings
from tracker.queries.filtering.filter_warnings import list_filter_warnings
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import POLICIES, Selection, Unit

UNITS: Mapping[str, Unit] = {"prompts": "prompt", "tasks": "task"}


def check_run_options(options: Mapping[str, Any]) -> None:
    """Reject --runs and --as-of together with --all-runs.

    Raises:
        OptionsError: both are set.
    """
    selection = options["selection"]
    if options["all_runs"] and (selection.runs or selection.as_of):
        raise OptionsError("--all-runs exports every complete run. Leave out --runs and --as-of.")


@export(check=check_run_options, policies=POLICIES)
def export_scores(
    session: Session,
    selection: Annotated[Selection, {"metric": "Name of the metric. By default all metrics."}],
    *,
    all_runs: Annotated[
        bool, "Export every complete run of each condition and variant. By default the most complete run of each model."
    ] = False,
    of: Annotated[
        Literal["prompts", "tasks"] | None,
        ("Scores to export: of prompts, or of whole tasks. By default of prompts if there are any."),
    ] = None,
    no_answers: Annotated[bool, "Omit the answers of the models."] = False,
) -> StreamedTable:
    """Return the scores of a selection as a long table.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run does not exist.
        SelectionError: nothing is left, or a filter is selected for scores of whole tasks.
    """
    benchmark = find_benchmark(session, selection.benchmark)
    runs = select_exported_runs(session, benchmark, selection, UNITS.get(of or ""), every=all_runs)
    warnings: tuple[str, ...] = ()
    prompt_ids = None
    if selection.missing is not None:
        runs, prompt_ids, warnings = select_complete_prompts(session, benchmark, selection, runs)
    if runs.unit == "task":
        table = build_task_score_table(session, benchmark, selection, runs)
    else:
        table = build_prompt_score_table(
            session, benchmark, selection, runs, answers=not no_answers, only=prompt_ids, every=all_runs
        )
        table.warnings[:0] = warnings
        table.warnings[:0] = list_filter_warnings(session, benchmark, selection)
    table.warnings.extend(list_unverified_warnings(session, [run.id for run in runs.runs]))
    if runs.n_left_out and not (selection.runs or selection.models or selection.metric):
        advice = "" if all_runs else "; --all-runs exports every complete run"
        table.warnings.append(f"{runs.n_left_out:,} other runs with such scores are left out{advice}.")
    return table
