"""The command `suffrage db`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Group
from tracker.cli.options import database_option, format_option
from tracker.cli.output import inform, print_rows
from tracker.cli.progress import show_activity


@click.group(cls=Group)
def command() -> None:
    """Upgrade, check or copy the store.

    Examples:
        suffrage db current
        suffrage db upgrade --database sqlite:///results.db
    """


@command.command()
@database_option
def upgrade(database: str | None) -> None:
    """Upgrade the store to the version of this program.

    Creates the store if there is none. Applies the database migrations that it lacks, and makes a faulty
    search index anew.

    Examples:
        suffrage db upgrade
        suffrage db upgrade --database sqlite:///results.db
    """
    from tracker.database import create_unchecked_engine, current_version, upgrade

    engine = create_unchecked_engine(database)
    before = current_version(engine)
    with show_activity("upgrading"):
        upgrade(engine)
    after = current_version(engine)
    inform(f"Already at version {after}." if before == after else f"Upgraded from {before or 'nothing'} to {after}.")


@command.command()
@database_option
def current(database: str | None) -> None:
    """Show the URL and the version of the store.

    The last line is the version that this program needs. `suffrage db upgrade` brings the store to it.

    Examples:
        suffrage db current
        suffrage db current --database sqlite:///results.db
    """
    from tracker.database import create_unchecked_engine, current_version, format_url, known_versions

    engine = create_unchecked_engine(database)
    click.echo(f"store   {format_url(engine.url)}")
    click.echo(f"version {current_version(engine) or 'none: the store is empty'}")
    click.echo(f"program {known_versions()[-1]}")


@command.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "--new-identity",
    is_flag=True,
    help="Give the copy a separate identity, so that both stores can be used. It starts with nothing published.",
)
@format_option
def copy(source: str, target: str, new_identity: bool, output_format: str) -> None:
    """Copy a whole store into an empty one.

    FROM and TO are URLs of SQLite or PostgreSQL databases. A TO that does not exist is created. Keys stay the same.
    Every table is compared by row count and checksum after the copy; if anything differs, TO stays empty.

    The copy keeps the identity of the store, which links it to MLflow. Use only one of the two from then on, or
    add --new-identity.

    Examples:
        suffrage db copy sqlite:///suffrage.db sqlite:///backup.db
        suffrage db copy sqlite:///suffrage.db postgresql://user@host/suffrage
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
    """Check the tables, search index, references and checksums of the store.

    Prints each fault and exits with 1 if there is any. `suffrage doctor` checks more and advises what to do.

    Examples:
        suffrage db check
        suffrage db check --database sqlite:///results.db
    """
    import sys

    from tracker.database import connect
    from tracker.recording.doctor import find_faults

    engine = connect(database, create=False)
    with show_activity("checking"):
        wrong = [f"{about}: {sentence}" for about, sentence in find_faults(engine)]
    for line in wrong:
        click.echo(line)
    if wrong:
        sys.exit(1)
    inform("Sound: no faults in tables, search index, references and checksums.")
