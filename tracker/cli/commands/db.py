"""Look after the store: upgrade it, say its version, check that it is sound, copy it to another place."""

from __future__ import annotations

import click

from tracker.cli.options import database_option, format_option
from tracker.cli.output import inform, print_rows


@click.group()
def command() -> None:
    """Look after the store."""


@command.command()
@database_option
def upgrade(database: str | None) -> None:
    """Bring the store to this program's version; it is made if there is none."""
    from tracker.database import create_unchecked_engine, current_version, upgrade

    engine = create_unchecked_engine(database)
    before = current_version(engine)
    upgrade(engine)
    after = current_version(engine)
    inform(f"Already at version {after}." if before == after else f"Upgraded from {before or 'nothing'} to {after}.")


@command.command()
@database_option
def current(database: str | None) -> None:
    """Say the store's address, its version, and this program's."""
    from tracker.database import create_unchecked_engine, current_version, format_url, known_versions

    engine = create_unchecked_engine(database)
    click.echo(f"store   {format_url(engine.url)}")
    click.echo(f"version {current_version(engine) or 'none: the store is empty'}")
    click.echo(f"program {known_versions()[-1]}")


@command.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--new-identity", is_flag=True, help="The copy will live beside the original; see below.")
@format_option
def copy(source: str, target: str, new_identity: bool, output_format: str) -> None:
    """Copy a whole store into an empty one: SQLite or PostgreSQL, in any pair.

    FROM and TO are URLs, such as sqlite:///suffrage.db and postgresql://user@host/suffrage. TO is made if it
    is a file that is not there. Keys stay as they are; every table is read back and compared by number and
    checksum; if anything differs, TO stays empty.

    The copy is the same store in another place, and MLflow knows it as such: use one of them from then on. One
    that is to live beside the original needs --new-identity; it does not know what was published.
    """
    from tracker.cli.progress import progress
    from tracker.copying.store_copy import copy_store
    from tracker.database import create_unchecked_engine

    with progress("copying") as advance:
        copied = copy_store(
            create_unchecked_engine(source),
            create_unchecked_engine(target),
            new_identity=new_identity,
            progress=advance,
        )
    print_rows(copied.tables, output_format)
    inform(f"Copied and compared {copied.n_rows:,} rows in {copied.seconds:.1f} s.")


@command.command()
@database_option
def check(database: str | None) -> None:
    """Check the store: its tables, its references, the checksum of every run. Exit 1 if anything is wrong.

    `suffrage doctor` checks more, and says what to do.
    """
    import sys

    from tracker.database import connect
    from tracker.recording.doctor import find_faults

    wrong = [f"{about}: {sentence}" for about, sentence in find_faults(connect(database, create=False))]
    for line in wrong:
        click.echo(line)
    if wrong:
        sys.exit(1)
    inform("Sound: tables, references and checksums are as they should be.")
