"""The command `suffrage show`."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, format_option
from tracker.cli.output import format_value, inform, print_numbers, print_record, print_rows, print_summary
from tracker.cli.progress import show_activity
from tracker.cli.values.terminal_text import echo
from tracker.errors import NotFoundError, OutputError

SUFFIX = ".parquet"
"""Of the files that hold tables."""


@click.command(cls=Command)
@click.argument("key", metavar="ID", type=int)
@click.option("--run", "is_run", is_flag=True, help="Show the run with this ID in place of a finding.")
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder to write the files of the finding to.",
)
@click.option("--table", metavar="NAME", help="Name of a table of the finding to print in place of the summary.")
@database_option
@format_option
def command(
    key: int, is_run: bool, save: Path | None, table: str | None, database: str | None, output_format: str
) -> None:
    """Show a finding: summary, numbers, options, data and files.

    `suffrage findings` lists the IDs.

    Examples:
        suffrage show 1
        suffrage show 2 --table decisions
        suffrage show 1 --save finding_1
    """
    import dataclasses

    from tracker.database import connect, transaction
    from tracker.queries.catalogue.listing import find_run
    from tracker.queries.findings.finding_records import get_finding, load_artifact
    from tracker.recording.multiplicity.looks import add_recorded_looks
    from tracker.recording.rerun_command import rerun_advice

    engine = connect(database, create=False)
    if is_run:
        with show_activity(f"run {key}"), transaction(engine, write=False) as session:
            run = find_run(session, key)
        print_record(run.as_record(), output_format)
        return
    if table is not None:
        from tracker.recording.artifacts import decode_table

        name = table.removesuffix(SUFFIX)
        with show_activity(f"finding {key}"), transaction(engine, write=False) as session:
            files = [file.name for file in get_finding(session, key).artifacts]
            names = [file.removesuffix(SUFFIX) for file in files if file.endswith(SUFFIX)]
            if name not in names:
                raise NotFoundError(f"table of finding {key}", name, names)
            rows = decode_table(load_artifact(session, key, f"{name}{SUFFIX}"))
        print_rows(rows.to_pylist(), output_format, columns=rows.column_names)
        return
    with show_activity(f"finding {key}"), transaction(engine, write=False) as session:
        [record] = add_recorded_looks(session, [get_finding(session, key)])
        contents = {file.name: load_artifact(session, key, file.name) for file in record.artifacts} if save else {}
    if output_format == "json":
        print_record(dataclasses.asdict(record), output_format)
    elif output_format == "csv":
        print_rows(record.numbers, output_format)
    else:
        about = f" on {record.benchmark}" if record.benchmark else ""
        echo(f"{record.name}{about}, {record.recorded:%Y-%m-%d %H:%M} UTC, finding {record.id}")
        echo()
        if record.status == "failed":
            echo(f"Failed: {record.error}")
        else:
            print_summary(record.summary)
        echo()
        if record.stale:
            inform(f"Stale: {record.stale}. {rerun_advice(record)}\n")
        print_numbers(record.numbers)
        echo()
        for warning in record.warnings:
            echo(f"Warning: {warning}")
        for name, value in (("data", record.selection), ("options", record.parameters)):
            options = {part: value for part, value in (value or {}).items() if value not in (None, "", [])}
            echo(f"{name:<9}{format_value(options)}")
        echo(f"{'leader':<9}{record.leader or 'none'}\n{'runs':<9}{format_value(record.run_ids) or 'none'}")
        tables = [file.name.removesuffix(".parquet") for file in record.artifacts if file.name.endswith(".parquet")]
        echo(f"{'tables':<9}{format_value(tables) or 'none'}")
        echo(f"{'files':<9}{format_value([file.name for file in record.artifacts]) or 'none'}")
        inform(
            f"\nPrint all {len(record.numbers)} numbers with --format csv, a table with --table NAME; write the files "
            "with --save FOLDER."
        )
    if save:
        try:
            save.mkdir(parents=True, exist_ok=True)
            for name, content in contents.items():
                (save / name).write_bytes(content)
        except OSError as error:
            raise OutputError(f"{save} cannot be written: {error.strerror}. Give --save another folder.") from error
        inform(f"Wrote {len(contents)} files to {save}.")
