"""The command `suffrage db`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracker.cli.help_text import Group
from tracker.cli.options import database_option, format_option
from tracker.cli.output import inform, print_rows
from tracker.cli.progress import show_activity
from tracker.cli.values.terminal_text import echo

if TYPE_CHECKING:
    import sqlalchemy as sa


@click.group(cls=Group)
def command() -> None:
    """Upgrade, check, copy, back up and restore the store.

    Examples:
        suffrage db current
        suffrage db upgrade --database sqlite:///results.db
    """


@command.command()
@database_option
def upgrade(database: str | None) -> None:
    """Upgrade the store to the version of this program.

    Creates the store if there is none. Applies the database migrations that it lacks, and makes a faulty
    search index anew. An interrupted upgrade is undone; that of a PostgreSQL store of version 0014 or
    earlier continues when the command runs again.

    Examples:
        suffrage db upgrade
        suffrage db upgrade --database sqlite:///results.db
    """
    from tracker.connections.schema_versions import current_version, upgrade
    from tracker.database import create_unchecked_engine

    engine = create_unchecked_engine(database)
    before = current_version(engine)
    with show_activity("upgrading") as progress:
        upgrade(engine, progress=progress)
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
    from tracker.connections.schema_versions import current_version, known_versions
    from tracker.connections.store_url import format_url
    from tracker.database import create_unchecked_engine

    engine = create_unchecked_engine(database)
    echo(f"store   {format_url(engine.url)}")
    echo(f"version {current_version(engine) or 'none: the store is empty'}")
    echo(f"program {known_versions()[-1]}")


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
@click.option(
    "--from",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Backup, archive or imported file that may hold damaged rows; repeatable.",
)
@click.option("--repair", is_flag=True, help="Restore the damaged rows that have a sound copy.")
@click.option("--remove-unknown", is_flag=True, help="With --repair: remove rows without a checksum. Back up first.")
@database_option
def check(files: tuple[Path, ...], repair: bool, remove_unknown: bool, database: str | None) -> None:
    """Check the tables, search index, references and all content of the store.

    Prints each fault, and for damaged rows what can restore them: a backup or archive, the file they were imported
    from, or a rerun of the analysis. Exits with 1 if there is a fault. `suffrage doctor` checks more and advises what
    to do.

    --repair restores each damaged row, run or finding completely or not at all, and only with the content whose
    checksum was recorded. It checks the store again, and exits with 1 if a fault remains. Rows without a checksum stay:
    another program added them, or the checksums are lost. A copy with the same content restores the checksum, and
    --remove-unknown removes the rest.

    Examples:
        suffrage db check
        suffrage db check --repair
        suffrage db check --repair --from backup.db
    """
    import sys

    from tracker.database import connect
    from tracker.recording.doctor import find_faults
    from tracker.recording.repair.repair import plan_repair

    engine = connect(database, create=False)
    if remove_unknown and not repair:
        raise click.UsageError("--remove-unknown needs --repair.")
    if repair:
        _repair(engine, files, remove_unknown)
        return
    with show_activity("checking"):
        faults = list(find_faults(engine))
        remedies = plan_repair(engine, files) if any(fault.content for fault in faults) else []
    by_sentence = {remedy.damage.sentence: remedy for remedy in remedies}
    for fault in faults:
        echo(f"{fault.about}: {fault}")
        if remedy := by_sentence.get(fault.sentence):
            echo(f"  can be restored: {remedy.origin}" if remedy.origin else f"  cannot be restored: {remedy.problem}")
    if not faults:
        inform("Sound: no faults in tables, search index, references and content.")
        return
    if n := sum(bool(remedy.origin) for remedy in remedies):
        options = shlex.join([part for file in files for part in ("--from", str(file))])
        inform(
            f"{n:,} of {len(remedies):,} damaged parts can be restored: "
            f"suffrage db check --repair{' ' * bool(options)}{options}"
        )
    elif remedies:
        inform("No damaged part can be restored from what is here. Name a backup: suffrage db check --from FILE")
    sys.exit(1)


def _repair(engine: sa.Engine, files: tuple[Path, ...], remove_unknown: bool) -> None:
    """Repair a store, and print what was restored; exits with 1 if a fault remains."""
    import sys

    from tracker.recording.repair.repair import repair

    with show_activity("repairing"):
        result = repair(engine, files, remove_unknown=remove_unknown)
    lost = [remedy for remedy in result.remedies if not remedy.is_restored]
    if not result.remedies and not result.remaining:
        inform("Sound: there is nothing to repair.")
        return
    names = [f"{remedy.damage.name} ({remedy.problem})" for remedy in lost]
    restored = f"{result.n_restored:,} of {len(result.remedies):,} damaged parts restored"
    inform(f"{restored}; {len(lost):,} cannot be: {'; '.join(names[:3])}." if lost else f"{restored}.")
    for remedy in result.remedies:
        verdict = "restored" if remedy.is_restored else "damaged "
        echo(f"{verdict} {remedy.damage.name}: {remedy.origin or remedy.problem}")
    for fault in result.remaining:
        echo(f"remains  {fault.about}: {fault}")
    if result.remaining:
        inform("The store is not sound yet. Restore a whole backup: suffrage db restore FILE --replace")
        sys.exit(1)
    inform("The store is sound.")


@command.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@database_option
def backup(file: Path, force: bool, database: str | None) -> None:
    """Back up the store to a SQLite file.

    The backup is a snapshot with everything in the store, while others may write. It is written to a temporary file,
    verified, and moved to FILE. A backup is a store by itself: use it with --database, or restore it.

    Examples:
        suffrage db backup backup.db
        suffrage db backup backup.db --force --database postgresql://user@host/suffrage
    """
    from tracker.cli.progress import progress
    from tracker.connections.store_url import store_file
    from tracker.copying.backup import back_up
    from tracker.database import connect
    from tracker.exporting.output_paths import unfinished_file

    engine = connect(database, create=False)
    store = store_file(engine)
    output = unfinished_file(file, force=force, is_private=True, is_database=True, store=store)
    with output as unfinished, progress("backing up") as advance:
        back_up(engine, unfinished, advance)
        size = unfinished.stat().st_size
    inform(f"Backed up and verified: {file}, {size:,} bytes.")


@command.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--replace", is_flag=True, help="Replace everything in a store that is not empty.")
@click.option("--yes", is_flag=True, help="Replace without confirmation; required without a terminal.")
@database_option
def restore(file: Path, replace: bool, yes: bool, database: str | None) -> None:
    """Restore a backup into the store.

    The backup is verified first. A store that does not exist is created; one with data is replaced only with --replace.
    Everything is one transaction, compared row by row with the backup: if anything fails, the store is as before.
    A backup of an earlier version is upgraded on the way.

    Examples:
        suffrage db restore backup.db --database sqlite:///restored.db
        suffrage db restore backup.db --replace --yes
    """
    from tracker.cli.progress import progress
    from tracker.connections.store_url import format_url
    from tracker.copying.backup import restore
    from tracker.database import create_unchecked_engine

    engine = create_unchecked_engine(database)
    if replace:
        _confirm(f"Replace everything in {format_url(engine.url)} by {file}?", yes)
    with progress("restoring") as advance:
        restored = restore(file, engine, replace=replace, progress=advance)
    inform(f"Restored and compared {restored.n_rows:,} rows in {restored.seconds:.1f} s.")


@command.command()
@click.argument("version", metavar="VERSION")
@click.option("--yes", is_flag=True, help="Downgrade without confirmation; required without a terminal.")
@database_option
@format_option
def downgrade(version: str, yes: bool, database: str | None, output_format: str) -> None:
    """Downgrade the store to an earlier VERSION of its tables.

    Lists first what the earlier version cannot hold, with the number of rows and values that are lost. The downgrade is
    one transaction. Back up the store first: an upgrade afterwards does not bring the values back.

    Examples:
        suffrage db downgrade 0012 --yes
        suffrage db downgrade 0012 --yes --database sqlite:///results.db
    """
    from tracker.connections.partition_conversion import BEGUN
    from tracker.connections.schema_versions import downgrade, known_versions
    from tracker.copying.downgrade import list_losses
    from tracker.database import connect
    from tracker.errors import NotFoundError

    engine = connect(database, create=False)
    earlier = [known for known in known_versions()[:-1] if known != BEGUN]  # a store is never left in between
    if version not in earlier:
        raise NotFoundError("version", version, earlier)
    with show_activity("looking what would be lost"):
        losses = list_losses(engine, version)
    print_rows(losses, output_format, if_empty=f"Version {version} can hold everything in this store.")
    _confirm(f"Downgrade to {version}?", yes)
    with show_activity("downgrading"):
        downgrade(engine, version)
    inform(f"Downgraded to {version}. `suffrage db upgrade` brings the store to this program's version again.")


@command.command()
@click.argument("store", metavar="STORE")
@click.argument("compared", metavar="OTHER")
@format_option
def verify(store: str, compared: str, output_format: str) -> None:
    """Compare the content of two stores, row by row.

    STORE and OTHER, such as a store and its backup, are files or URLs of SQLite or PostgreSQL databases. Every row of
    both is read, in one snapshot each, and compared by the checksums of runs, findings and single rows. Lists what
    differs, and exits with 1 if anything does. The identity of a store, its publications and unfinished evaluations are
    not compared.

    Examples:
        suffrage db verify suffrage.db backup.db
        suffrage db verify suffrage.db postgresql://user@host/suffrage
    """
    import sys

    from tracker.cli.progress import progress
    from tracker.copying.comparison import compare_stores
    from tracker.database import create_unchecked_engine

    first, second = create_unchecked_engine(store), create_unchecked_engine(compared)
    with progress("comparing") as advance:
        differences = compare_stores(first, second, advance)
    if differences:
        print_rows(differences, output_format)
        inform(f"Different: {len(differences):,} parts of the stores.")
        sys.exit(1)
    inform("Equal: every row of both stores.")


def _confirm(question: str, yes: bool) -> None:
    """Ask whether to go on.

    Raises:
        click.UsageError: standard input is no terminal.
    """
    import sys

    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("Nothing was changed, since there is no terminal to confirm on. Add --yes.")
    click.confirm(question, abort=True, err=True)
