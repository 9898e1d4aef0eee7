"""The command `suffrage models`."""

from __future__ import annotations

import shlex
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.changed_runs import describe_findings, update_mlflow
from tracker.cli.help_text import Command
from tracker.cli.listing_group import listing_group
from tracker.cli.options import (
    database_option,
    format_option,
    limits_option,
    missing_options,
    mlflow_options,
    selection_options,
)
from tracker.cli.output import inform, print_rows, warn
from tracker.cli.progress import show_activity
from tracker.name_lists import join_names
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tracker.queries.related_models.related_pairs import RelatedPair

PAIR_DROP_ORDER = ("n", "pvalue", "expected_same_answer", "same_answer", "same_family")
COLUMNS = ("name", "organization", "open_weights", "parameters", "n_runs", "benchmarks")
MAX_LINES = 20
MAX_NAMES = 8
MAX_PAIRS = 20
"""Pairs that the table of related models shows; CSV and JSON have all."""


@click.command("list", cls=Command)
@database_option
@format_option
def list_models(database: str | None, output_format: str) -> None:
    """List the models in the store.

    Each row shows the organization, the number of parameters, the runs and the benchmarks of a model.
    `suffrage models import` adds such facts.

    Examples:
        suffrage models list
        suffrage models list --format json
    """
    from tracker.database import connect

    _print_models(connect(database, create=False), output_format)


@listing_group(list_models)
def command() -> None:
    """List the models in the store.

    Each row shows the organization, the number of parameters, the runs and the benchmarks of a model.
    `suffrage models import` adds such facts.

    Examples:
        suffrage models
        suffrage models --format json
    """


@command.command("import")
@click.argument("facts", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path, readable=False))
@click.option("--overwrite", is_flag=True, help="Overwrite stored facts that the file contradicts.")
@limits_option
@database_option
@format_option
def import_facts(facts: Path, overwrite: bool, database: str | None, output_format: str) -> None:
    """Import facts of models from a file.

    The file is CSV, TSV, Parquet or JSON Lines. It has a column model, and any of organization, family, parameters,
    released, open_weights and alias, which is another name of the model. The file is imported completely or not at all.
    Each model must be in the store.

    Examples:
        suffrage models import models.csv
        suffrage models import models.csv --overwrite
    """
    from tracker.database import connect

    engine = connect(database, create=False)
    _store_facts(engine, facts, overwrite=overwrite)
    _print_models(engine, output_format)


@command.command("merge")
@click.argument("model")
@click.argument("merged")
@database_option
@mlflow_options
def merge(model: str, merged: str, database: str | None, tracking_uri: str, no_mlflow: bool) -> None:
    """Merge a model into another one that is the same model.

    The runs of MERGED become runs of MODEL, and its name becomes an alias. Facts that MODEL lacks are added. A run that
    MODEL already has is kept under another label. Recorded findings keep their names. `suffrage models unmerge`
    reverses it.

    Examples:
        suffrage models merge org/llama-3 Llama-3
    """
    from tracker.database import connect, transaction
    from tracker.recording.model_merges import merge_models

    engine = connect(database, create=False)
    with show_activity("models"), transaction(engine, exclusive=True) as session:
        result = merge_models(session, model, merged)
    n = len(result.run_ids)
    inform(f"{result.alias} is merged into {result.name}: {n:,} run{'s' * (n != 1)} moved.")
    if result.relabeled:
        runs = join_names(result.relabeled, MAX_NAMES)
        inform(f"Runs with another label, because {result.name} has such a run: {runs}.")
    if result.stale:
        inform(f"Stale now: {describe_findings(result.stale)}. See why: `suffrage show ID`.")
    inform(f"To separate them: suffrage models unmerge {shlex.quote(result.alias)}")
    if not no_mlflow:
        update_mlflow(engine, result.run_ids, tuple(result.stale), tracking_uri)


@command.command("unmerge")
@click.argument("merged")
@database_option
@mlflow_options
def unmerge(merged: str, database: str | None, tracking_uri: str, no_mlflow: bool) -> None:
    """Separate a model that was merged into another one.

    Restores the runs, labels, names and facts from before the merge. Runs that were imported under the name since stay
    with the other model.

    Examples:
        suffrage models unmerge Llama-3
    """
    from tracker.database import connect, transaction
    from tracker.recording.model_merges import unmerge_models

    engine = connect(database, create=False)
    with show_activity("models"), transaction(engine, exclusive=True) as session:
        result = unmerge_models(session, merged)
    n = len(result.run_ids)
    inform(f"{merged} is a separate model again, with {n:,} run{'s' * (n != 1)}.")
    if result.sound:
        inform(f"No longer stale: {describe_findings(result.sound)}.")
    if not no_mlflow:
        update_mlflow(engine, result.run_ids, (*result.stale, *result.sound), tracking_uri)


@command.command("related")
@click.argument("benchmark")
@missing_options("common")
@selection_options
@database_option
@format_option
def related(selection: Selection, database: str | None, output_format: str) -> None:
    """Find near-copies and families among the models of a benchmark.

    Compares the errors of each pair of models. `expected` is the agreement of independent models with these accuracies
    on prompts of these difficulties; `excess` is the share of the expected disagreements that do not occur. A near-copy
    has a significant excess of a third or more. Families unite near-copies with models of one stored family, else of
    one series by name. The best model represents its family.

    Examples:
        suffrage models related mmlu_pro
        suffrage models related mmlu_pro --format csv
    """
    from tracker.database import connect, transaction
    from tracker.queries.related_models import related_pairs

    engine = connect(database, create=False)
    with show_activity(f"comparing models of {selection.benchmark}"), transaction(engine, write=False) as session:
        result = related_pairs.load_related(session, selection)
    for warning in result.warnings:
        warn(warning)
    rows = related_pairs.list_pairs(result, every=output_format != "table")
    if output_format != "table":
        columns = [field.name for field in fields(related_pairs.RelatedPair)]
        print_rows(rows, output_format, columns=columns)
        return
    inform(related_pairs.describe_related(result))
    columns = [field.name for field in fields(related_pairs.RelatedPair) if any(_is_known(row, field) for row in rows)]
    print_rows(rows[:MAX_PAIRS], "table", columns=columns, drop_order=PAIR_DROP_ORDER, if_empty="No pair of models.")
    if len(rows) > MAX_PAIRS:
        inform(f"and {len(rows) - MAX_PAIRS:,} more pairs of related models. Add --format csv to see all pairs.")
    for line in related_pairs.describe_families(result):
        inform(f"  {line}")
    copies = related_pairs.group_near_copies(result)
    if copies.kept.size < len(result.models):
        inform(f"Leave near-copies out: {related_pairs.format_command(result, copies, selection.benchmark)}")
    if result.n_families < copies.kept.size:
        inform(f"One model per family: {related_pairs.format_command(result, result.families, selection.benchmark)}")


def _is_known(row: RelatedPair, field: Field[Any]) -> bool:
    return getattr(row, field.name) is not None


def _print_models(engine: Engine, output_format: str) -> None:
    from tracker.database import transaction
    from tracker.queries.catalogue import listing

    with show_activity("models"), transaction(engine, write=False) as session:
        rows = listing.list_models(session)
    columns = (*COLUMNS, "n_unverified") if any(row.n_unverified for row in rows) else COLUMNS
    print_rows(
        rows,
        output_format,
        columns=columns if output_format == "table" else None,
        if_empty="No models yet. Import results: `suffrage ingest RESULTS --benchmark NAME`",
    )


def _store_facts(engine: Engine, path: Path, *, overwrite: bool) -> None:
    """Store the facts of a file, all or none, and report what changed."""
    from tracker.database import transaction
    from tracker.ingest.write.model_facts import read_model_facts, store_model_facts

    file = read_model_facts(path)
    with show_activity("models"), transaction(engine, exclusive=True) as session:
        stored = store_model_facts(session, file, overwrite=overwrite)
    counts = (
        (len(stored.filled), "filled in"),
        (len(stored.changed), "changed"),
        (len(stored.aliases), "as other names"),
        (stored.n_unchanged, "stored before"),
    )
    summary = ", ".join(f"{n:,} {outcome}" for n, outcome in counts if n)
    inform(f"{path}: facts of models: {summary or 'none'}")
    lines = [*(f"changed: {change}" for change in stored.changed), *stored.filled, *stored.aliases]
    for line in lines[:MAX_LINES]:
        inform(f"  {line}")
    if len(lines) > MAX_LINES:
        inform(f"  and {len(lines) - MAX_LINES:,} more")
    if file.passed_over:
        warn(f"ignored columns that are no facts of models: {', '.join(file.passed_over)}")
