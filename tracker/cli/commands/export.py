"""The command `suffrage export`, with a subcommand for each kind of data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.help_text import Command, Group
from tracker.cli.options import database_option, missing_options, selection_options
from tracker.cli.output import inform, warn
from tracker.cli.values.terminal_text import echo_data

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from tracker.exporting.declaration import ExportCommand, ExportFormat
    from tracker.exporting.outputs import BinaryFile, FileTree, TextFile
    from tracker.exporting.table_files import StreamedTable
    from tracker.plugins.discovery import PluginModule

SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
RESERVED = ("file_format", "output", "force", "for_spreadsheets", "database")


class Exports(Group):
    """A group whose commands are the exports that are installed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names of the exports, read from their sources."""
        return list(_exports())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import an export and return its command."""
        from tracker.exporting.declaration import load_export

        return export_command(load_export(cmd_name)) if cmd_name in _exports() else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exports; one that cannot be used has the reason in place of its help."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, f"(not usable: {plugin.problem})" if plugin.problem else plugin.description)
                    for name, plugin in _exports().items()
                ]
            )


@click.group(cls=Exports)
def command() -> None:
    """Export data from the store to files.

    Examples:
        suffrage export scores mmlu_pro --output scores.parquet
        suffrage export archive --output archive.db
    """


def _exports() -> Mapping[str, PluginModule]:
    from tracker.exporting.registry import discover_exports

    return discover_exports()


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where an export goes, and as what.

    Attributes:
        file_format: what to write; '' where there is no choice.
        output: None is stdout.
        force: whether an existing file is replaced.
        for_spreadsheets: of CSV, whether it is for a spreadsheet.
    """

    file_format: str
    output: Path | None
    force: bool
    for_spreadsheets: bool


def export_command(export: ExportCommand) -> click.Command:
    """The command of an export with all its formats."""
    from tracker.cli.parameter_options import check_option_names, parameter_argument, parameter_option

    def run(
        database: str | None,
        output: Path | None,
        force: bool,
        file_format: str | None = None,
        for_spreadsheets: bool = False,
        **values: Any,
    ) -> None:
        from tracker.connections.store_url import store_file
        from tracker.database import connect, transaction

        destination = Destination(
            file_format=_resolve_format(export, file_format, output, for_spreadsheets),
            output=output,
            force=force,
            for_spreadsheets=for_spreadsheets,
        )
        chosen = export.further.get(destination.file_format, export.main)
        _check_options(export, chosen, destination, values)
        engine = connect(database, create=False)
        store = store_file(engine)
        _check_output(chosen, destination, store)
        with transaction(engine, write=False) as session:
            _write(session, chosen, values, destination)

    decorated: Any = database_option(run)
    decorated = _destination_options(export)(decorated)
    shared = {parameter.name for parameter in (*export.main.arguments, *export.main.options)}
    options = list(export.main.options)
    for further in export.further.values():
        options += [option for option in further.options if option.name not in shared]
    check_option_names("export", export.main.name, options, RESERVED)
    for parameter in reversed(options):
        decorated = parameter_option(parameter)(decorated)
    if export.main.policies:
        decorated = missing_options("scores as stored", export.main.policies)(decorated)
    if export.main.selection:
        decorated = click.argument("benchmark")(selection_options(decorated, export.main.meanings, "all"))
    for parameter in reversed(export.main.arguments):
        decorated = parameter_argument(parameter)(decorated)
    built: click.Command = click.command(cls=Command, name=export.main.name, help=export.main.help)(decorated)
    return built


def _destination_options(export: ExportCommand) -> Callable[[Any], Any]:
    """Add the options for the destination and its format."""
    from tracker.exporting.outputs import BinaryFile
    from tracker.exporting.table_files import StreamedTable

    def decorate(function: Any) -> Any:
        decorated = function
        if export.main.output is StreamedTable:
            decorated = click.option(
                "--for-spreadsheets",
                is_flag=True,
                help=(
                    "Write CSV that is safe to open in a spreadsheet: texts that begin like a formula get an "
                    "apostrophe in front. Such files cannot be imported again."
                ),
            )(decorated)
        decorated = click.option("--force", is_flag=True, help="Overwrite the file if it exists.")(decorated)
        is_binary = export.main.output is BinaryFile
        decorated = click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path, writable=False),
            metavar="PATH",
            required=is_binary,
            help=f"File to write, such as results{export.main.suffix}." if is_binary else "File or folder to write.",
            show_default=False if is_binary else "stdout",
        )(decorated)
        if export.formats:
            decorated = click.option(
                "--format",
                "file_format",
                type=click.Choice(export.formats),
                show_default="from the suffix of --output, else csv",
                help="Format of the file.",
            )(decorated)
        return decorated

    return decorate


def _resolve_format(export: ExportCommand, file_format: str | None, output: Path | None, for_spreadsheets: bool) -> str:
    """What to write.

    Raises:
        click.UsageError: it is not clear what.
    """
    if not export.formats or file_format in export.further:
        return file_format or ""
    by_suffix = {further.suffix: name for name, further in export.further.items() if further.suffix}
    suffixes = SUFFIXES | by_suffix
    suffix = output.suffix.lower() if output else ""
    if file_format is None and suffix and suffix not in suffixes:
        raise click.UsageError(f"A name that ends in {suffix} does not say what to write: add --format.")
    return file_format or suffixes.get(suffix, "csv")


def _check_options(
    export: ExportCommand, chosen: ExportFormat, destination: Destination, values: Mapping[str, Any]
) -> None:
    """Raise where options do not go together.

    Raises:
        click.UsageError: some do not.
    """
    from tracker.errors import OptionsError

    options = {**values, "for_spreadsheets": destination.for_spreadsheets}
    try:
        for checked in dict.fromkeys((export.main, chosen)):
            if checked.check is not None:
                checked.check(options)
    except OptionsError as error:
        raise click.UsageError(str(error)) from error
    if destination.for_spreadsheets and destination.file_format != "csv":
        raise click.UsageError("--for-spreadsheets belongs to --format csv.")
    for name, owner in export.own_options.items():
        if values[name] and destination.file_format != owner:
            raise click.UsageError(f"--{name.replace('_', '-')} belongs to --format {owner}.")


def _check_output(chosen: ExportFormat, destination: Destination, store: Path | None) -> None:
    """Raise where nothing can be written, before work is done for it.

    Raises:
        click.UsageError: the content is not for stdout.
        OutputError: something is there and may not be replaced, or the folder is not there.
    """
    from tracker.exporting.output_paths import check_output_path
    from tracker.exporting.outputs import BinaryFile, FileTree

    if destination.output is None:
        if chosen.output is FileTree:
            raise click.UsageError(f"{chosen.title} is a folder of files: add --output FOLDER.")
        if destination.file_format == "parquet":
            raise click.UsageError("Parquet is not for the screen: add --output PATH.")
    else:
        check_output_path(
            destination.output,
            force=destination.force,
            is_folder=chosen.output is FileTree,
            is_database=chosen.output is BinaryFile,
            store=store,
        )


def _write(session: Session, chosen: ExportFormat, values: Mapping[str, Any], destination: Destination) -> None:
    """Run an export and write what it returns; warnings and the result go to stderr."""
    from tracker.exporting.outputs import BinaryFile, FileTree, TextFile
    from tracker.queries.notices import list_notices

    output = chosen.run(session, values)
    _inform_all(list_notices(session))
    if isinstance(output, FileTree):
        result = _write_folder(output, destination)
    elif isinstance(output, BinaryFile):
        result = _write_binary(output, destination)
    elif isinstance(output, TextFile):
        result = _write_text(output, destination)
    else:
        result = _write_table(output, destination)
    if destination.output is not None:
        inform(f"Wrote {destination.output}{result}.")


def _write_table(table: StreamedTable, destination: Destination) -> str:
    from tracker.exporting.output_paths import open_atomically
    from tracker.exporting.table_files import write_rows

    spreadsheet = destination.for_spreadsheets
    if destination.output is None:
        n_rows = write_rows(sys.stdout.buffer, table, destination.file_format, for_spreadsheets=spreadsheet)
    else:
        with open_atomically(destination.output, force=destination.force) as file:
            n_rows = write_rows(file, table, destination.file_format, for_spreadsheets=spreadsheet)
    _inform_all(table.warnings)
    return f": {n_rows:,} row{'' if n_rows == 1 else 's'}" if table.counts_rows else ""


def _write_text(text: TextFile, destination: Destination) -> str:
    from tracker.exporting.output_paths import write_file

    _inform_all(text.warnings)
    if destination.output is None:
        echo_data(text.content)
    else:
        write_file(destination.output, text.content, force=destination.force)
    return ""


def _write_binary(binary: BinaryFile, destination: Destination) -> str:
    from tracker.cli.progress import progress
    from tracker.exporting.output_paths import unfinished_file

    path = destination.output
    if path is None:
        raise click.UsageError("A binary file is not for the screen: add --output PATH.")
    with unfinished_file(path, force=destination.force, is_database=True) as file, progress(path.name) as advance:
        summary = binary.write(file, advance)
    _inform_all(summary.warnings)
    return f": {summary.text}" if summary.text else ""


def _write_folder(tree: FileTree, destination: Destination) -> str:
    from tracker.exporting.output_paths import write_folder

    assert destination.output is not None  # `_check_output` demands it
    with write_folder(destination.output, force=destination.force) as folder:
        for name, pieces in tree.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("wb") as file:
                for piece in pieces:
                    file.write(piece)
    _inform_all(tree.warnings)
    return f": {len(tree):,} files"


def _inform_all(warnings: Iterable[str]) -> None:
    for warning in warnings:
        warn(warning)
