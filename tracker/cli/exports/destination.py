"""Where an export goes and as what: options, and the writing, that all of them share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from tracker.cli.output import inform

if TYPE_CHECKING:
    from tracker.exporting.table_files import StreamedTable

F = TypeVar("F", bound=Callable[..., Any])
SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet", ".pq": "parquet"}


def output_option(function: F) -> F:
    """Where to; the command receives it as ``output``."""
    return click.option(
        "-o", "--output", type=click.Path(path_type=Path, writable=False), metavar="PATH", help="Where to; else stdout."
    )(function)


def force_option(function: F) -> F:
    """Whether a file that is there may go; the command receives it as ``force``."""
    return click.option("--force", is_flag=True, help="Replace the file if it is there.")(function)


def spreadsheet_option(function: F) -> F:
    """Whether the CSV is for a spreadsheet; the command receives it as ``for_spreadsheets``."""
    return click.option(
        "--for-spreadsheets",
        is_flag=True,
        help="CSV that is safe to open in one: texts that begin like a formula get an apostrophe in front. Not to be "
        "taken in again.",
    )(function)


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where rows go.

    Attributes:
        file_format: as the user says; None where the name of the file is to tell.
        output: None is stdout.
        force: whether a file that is there is replaced.
        for_spreadsheets: of CSV, whether it is for a spreadsheet.
    """

    file_format: str | None
    output: Path | None
    force: bool
    for_spreadsheets: bool

    def told(self) -> str:
        """What to write; see `told_format`."""
        return told_format(self.file_format, self.output, for_spreadsheets=self.for_spreadsheets)


def table_options(*further: str) -> Callable[[F], F]:
    """The options of an export of rows; the command receives them as ``destination``.

    Args:
        further: what ``--format`` may name beside csv, jsonl and parquet.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def to_destination(
            *args: Any, file_format: str | None, output: Path | None, force: bool, for_spreadsheets: bool, **others: Any
        ) -> Any:
            where = Destination(file_format=file_format, output=output, force=force, for_spreadsheets=for_spreadsheets)
            return function(*args, destination=where, **others)

        chosen = click.option(
            "--format",
            "file_format",
            type=click.Choice(["csv", "jsonl", "parquet", *further]),
            help="What to write; else told from the name of the file, else csv.",
        )
        return cast(F, chosen(output_option(force_option(spreadsheet_option(to_destination)))))

    return decorate


def told_format(file_format: str | None, output: Path | None, *, for_spreadsheets: bool = False, **more: str) -> str:
    """What to write.

    Args:
        file_format: as said by the user.
        output: where to; None is stdout.
        for_spreadsheets: whether the user asked for that.
        more: further formats by the end of a file's name, without its dot.

    Raises:
        click.UsageError: it is not clear what to write, or does not go together.
    """
    suffixes = SUFFIXES | {f".{end}": name for end, name in more.items()}
    suffix = output.suffix.lower() if output else ""
    if file_format is None and suffix and suffix not in suffixes:
        raise click.UsageError(f"A name that ends in {suffix} does not say what to write: add --format.")
    told = file_format or suffixes.get(suffix, "csv")
    if output is None and told == "parquet":
        raise click.UsageError("Parquet is not for the screen: add --output PATH.")
    if for_spreadsheets and told != "csv":
        raise click.UsageError("--for-spreadsheets belongs to --format csv.")
    return told


def write_table(made: Callable[[], StreamedTable], destination: Destination) -> None:
    """Write rows to a file, or to stdout, and say on stderr what there is to say.

    Args:
        made: makes the rows; not called where nothing could be written.
        destination: where to.
    """
    from tracker.exporting.table_files import check_output_path, open_atomically, write_rows

    told, output = destination.told(), destination.output
    if output is None:
        table = made()
        write_rows(sys.stdout.buffer, table, told, for_spreadsheets=destination.for_spreadsheets)
        say_all(table.warnings)
        return
    check_output_path(output, force=destination.force)
    table = made()
    with open_atomically(output, force=destination.force) as file:
        n_rows = write_rows(file, table, told, for_spreadsheets=destination.for_spreadsheets)
    say_all(table.warnings)
    inform(f"Wrote {output}: {n_rows:,} row{'' if n_rows == 1 else 's'}.")


def say_all(warnings: Iterable[str]) -> None:
    """Each remark on a line of stderr."""
    for note in warnings:
        inform(note)
