"""List the models in the store, or fill in what it knows of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracker.cli.options import database_option, format_option
from tracker.cli.output import inform, print_rows

if TYPE_CHECKING:
    from sqlalchemy import Engine

SHOWN = ("name", "organization", "open_weights", "parameters", "n_runs", "benchmarks")
N_NAMED = 20


@click.command()
@click.option(
    "--facts",
    type=click.Path(dir_okay=False, path_type=Path, readable=False),
    metavar="FILE",
    help="Take in facts of models first, from CSV, TSV, Parquet or JSON Lines.",
)
@click.option("--overwrite", is_flag=True, help="With --facts: change stored facts that the file contradicts.")
@database_option
@format_option
def command(facts: Path | None, overwrite: bool, database: str | None, output_format: str) -> None:
    """List the models in the store: who made them, how often they were run, on what.

    With --facts FILE, what the store lacks is filled in first. Columns of the file: model, and any of organization,
    family, parameters, released, open_weights, and alias for another name of the model. All of the file is taken in,
    or none of it; a model that the store does not hold is an error.
    """
    from tracker.database import connect, transaction
    from tracker.queries.catalogue.listing import list_models

    if overwrite and facts is None:
        raise click.UsageError("--overwrite belongs to --facts FILE.")
    engine = connect(database)
    if facts is not None:
        take_in_facts(engine, facts, overwrite=overwrite)
    with transaction(engine, write=False) as session:
        rows = list_models(session)
    print_rows(rows, output_format, columns=SHOWN if output_format == "table" else None)


def take_in_facts(engine: Engine, path: Path, *, overwrite: bool) -> None:
    """Store the facts of a file, all or none, and say what became of them."""
    from tracker.database import transaction
    from tracker.ingest.write.model_facts import read_model_facts, store_model_facts

    file = read_model_facts(path)
    with transaction(engine, exclusive=True) as session:
        stored = store_model_facts(session, file, overwrite=overwrite)
    counts = (
        (len(stored.filled), "filled in"),
        (len(stored.changed), "changed"),
        (len(stored.aliases), "as other names"),
        (stored.n_unchanged, "stored before"),
    )
    told = ", ".join(f"{n:,} {what}" for n, what in counts if n)
    inform(f"{path}: facts of models: {told or 'none'}")
    lines = [*(f"changed: {one}" for one in stored.changed), *stored.filled, *stored.aliases]
    for line in lines[:N_NAMED]:
        inform(f"  {line}")
    if len(lines) > N_NAMED:
        inform(f"  and {len(lines) - N_NAMED:,} more")
    if file.passed_over:
        inform(f"  note: columns that are no facts of models were passed over: {', '.join(file.passed_over)}")
