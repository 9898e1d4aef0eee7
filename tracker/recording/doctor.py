"""Check whether a store is sound and up to date, with advice for each problem."""

from __future__ import annotations

import platform
import shutil
import sqlite3
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import sqlalchemy as sa

from tracker.connections.schema_versions import current_version, known_versions, schema_differences
from tracker.connections.store_url import format_url
from tracker.copying.store_faults import StoreFault, find_store_faults
from tracker.copying.store_files import UNREADABLE
from tracker.database import transaction
from tracker.errors import DatabaseError, PublishingError, first_line
from tracker.integrity.verification import snapshot
from tracker.name_lists import join_names
from tracker.recording.checks.content_checks import MAX_NAMES, Check, check_contents
from tracker.recording.checks.large_tables import check_large_tables
from tracker.recording.checks.sealed_check import SEALED, count_sealed_runs, find_sealed_faults
from tracker.recording.mlflow.publications import current_versions, published_versions, withdrawn_runs
from tracker.recording.mlflow.tracking_store import mlflow_store
from tracker.schema.search_index import find_search_faults
from tracker.version import __version__

PACKAGES = ("numpy", "SQLAlchemy", "sqlmodel", "alembic", "pyarrow", "mlflow")
MIN_FREE_BYTES = 500_000_000
LARGE_WAL = 64_000_000


def run_checks(engine: sa.Engine, tracking_uri: str | None) -> Iterator[Check]:
    """Yield every check; checks that need a sound store stop if its version is different.

    Args:
        engine: the store, of any version.
        tracking_uri: MLflow's tracking URI; None skips the check.
    """
    yield _programs()
    try:
        present = current_version(engine)
    except DatabaseError as error:
        yield Check(name="store", verdict="problem", result="it cannot be used", advice=str(error))
        return
    yield _version(engine, present)
    if present != known_versions()[-1]:
        return
    try:
        yield from _soundness(engine)
        with transaction(engine, write=False) as session:
            yield from check_contents(session)
        yield _room(engine)
        if tracking_uri is not None:
            yield from _mlflow(engine, tracking_uri)
    except DatabaseError as error:
        yield Check(name="store", verdict="problem", result="the store cannot be read further", advice=str(error))


def find_faults(engine: sa.Engine) -> Iterator[StoreFault]:
    """Yield the faults of a store of this version; nothing if it is sound."""
    try:
        for difference in schema_differences(engine):
            yield StoreFault(about="schema", sentence=difference)
    except UNREADABLE as error:
        yield StoreFault(about="schema", sentence=f"the tables cannot be read: {first_line(error)}")
        return
    large = check_large_tables(engine)
    with snapshot(engine) as connection:
        try:
            with connection.begin_nested():
                sentences = find_search_faults(connection)
        except UNREADABLE as error:
            sentences = [f"the store cannot be read: {first_line(error)}"]
        yield from (StoreFault(about="search", sentence=sentence) for sentence in sentences)
        yield from find_store_faults(connection, large)
        yield from find_sealed_faults(connection)


def _soundness(engine: sa.Engine) -> Iterator[Check]:
    faults_by_check: dict[str, list[str]] = {"schema": [], "search": [], "references": [], "content": [], "scores": []}
    faults_by_check[SEALED] = []
    for fault in find_faults(engine):
        of_run = fault.about == "scores" and fault.content
        faults_by_check[fault.about].append(f"run {of_run.key}" if of_run else fault.sentence)
    descriptions = {
        "schema": ("the tables match this version of the program", "Restore a backup, or export and ingest again."),
        "search": ("the search index holds every prompt", "Create it anew: suffrage db upgrade"),
        "references": ("every row refers to an existing row", "Restore a backup; see docs/how-to/postgresql.md."),
        "content": (
            "every row is as it was stored, by checksum",
            "It was changed outside of Suffrage. `suffrage db check` lists what can restore it, such as the imported "
            "file or a backup that --from names, and the command.",
        ),
        "scores": (
            "every run has its original scores, by number and checksum",
            "Their scores were changed outside of Suffrage. `suffrage db check` lists what can restore them, such as "
            "the imported file or a backup that --from names, and the command. If nothing can: suffrage ingest "
            "--on-conflict update, or suffrage runs delete ID --yes, then suffrage ingest or suffrage evaluate",
        ),
    }
    with snapshot(engine) as connection:
        n_sealed, n_moved = count_sealed_runs(connection)
    files = f"{n_sealed:,} runs, {n_moved:,} of them in sealed files only, which are as they were written"
    descriptions[SEALED] = (files, "Restore the folder from a backup; if it has moved: suffrage unseal --help")
    for name, wrong in faults_by_check.items():
        if name == SEALED and not n_sealed and not wrong:
            continue
        sound, advice = descriptions[name]
        yield (
            Check(name=name, verdict="problem", result=join_names(wrong, MAX_NAMES), advice=advice)
            if wrong
            else Check(name=name, verdict="ok", result=sound)
        )


def _programs() -> Check:
    programs = [f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, suffrage {__version__}"]
    missing = []
    for package in PACKAGES:
        try:
            programs.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        advice = "Reinstall it in the folder of its sources: pip install ."
        return Check(name="program", verdict="problem", result=f"not installed: {', '.join(missing)}", advice=advice)
    return Check(name="program", verdict="ok", result=", ".join(programs))


def _version(engine: sa.Engine, present: str | None) -> Check:
    where, head = format_url(engine.url), known_versions()[-1]
    if present is None and (damage := _damage(engine)):
        advice = "Restore a backup; see docs/how-to/postgresql.md."
        return Check(name="store", verdict="problem", result=f"{where} is damaged: {damage}", advice=advice)
    if present is None:
        advice = "Ingest results: suffrage ingest PATH --benchmark NAME; or name another store with --database."
        return Check(name="store", verdict="warning", result=f"{where} is empty", advice=advice)
    if present == head:
        return Check(name="store", verdict="ok", result=f"{where}, version {present}")
    newer = present not in known_versions()
    advice = (
        "Upgrade the program in the folder of its sources: git pull && pip install ."
        if newer
        else ("Back it up first (docs/how-to/postgresql.md), then: suffrage db upgrade")
    )
    return Check(
        name="store",
        verdict="problem",
        result=f"{where} is at version {present}, but this program needs {head}",
        advice=advice,
    )


def _damage(engine: sa.Engine) -> str:
    """Return the problem of a SQLite file without readable tables; '' if it is empty or missing."""
    path = Path(str(engine.url.database))
    if engine.dialect.name != "sqlite" or not path.exists():
        return ""
    try:
        with engine.connect() as connection:
            verdict = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
    except sa.exc.DatabaseError as error:
        return str(error.orig)
    return "" if verdict == "ok" else verdict.splitlines()[-1]


def _room(engine: sa.Engine) -> Check:
    if engine.dialect.name != "sqlite":
        with transaction(engine, write=False) as session:
            size = session.scalar(sa.text("SELECT pg_database_size(current_database())")) or 0
            server = session.scalar(sa.text("SHOW server_version"))
        return Check(name="room", verdict="ok", result=f"{format_size(size)} on PostgreSQL {server}")
    path = Path(str(engine.url.database)).absolute()
    wal = Path(f"{path}-wal")
    size, beside = path.stat().st_size, wal.stat().st_size if wal.exists() else 0
    free = shutil.disk_usage(path.parent).free
    sizes = f"{format_size(size)}, {format_size(beside)} not yet merged, {format_size(free)} free on the disk"
    if free < max(MIN_FREE_BYTES, size):
        return Check(
            name="room", verdict="warning", result=sizes, advice="An upgrade may copy tables. Free some space."
        )
    if beside > max(LARGE_WAL, size // 4):
        advice = "Close the other programs that have the store open; the last one to close merges it."
        return Check(name="room", verdict="warning", result=sizes, advice=advice)
    return Check(name="room", verdict="ok", result=sizes)


def _mlflow(engine: sa.Engine, tracking_uri: str) -> Iterator[Check]:
    from tracker.recording.mlflow.publishing import mlflow_version

    try:
        store = mlflow_store(tracking_uri, engine)
        if store.file is not None and not store.file.exists():
            yield Check(name="MLflow", verdict="ok", result=f"nothing is published at {store.display_uri}")
            return
        yield Check(name="MLflow", verdict="ok", result=f"{store.display_uri} answers, {mlflow_version(tracking_uri)}")
    except PublishingError as error:
        yield Check(name="MLflow", verdict="warning", result="it cannot be reached", advice=str(error))
        return
    with transaction(engine, write=False) as session:
        published, current = published_versions(session, store.display_uri), current_versions(session)
        gone = withdrawn_runs(session, store.display_uri)
    missing = sum(key not in published for key in current)
    outdated = sum(key in published and published[key] != version for key, version in current.items())
    if not published:
        yield Check(
            name="published", verdict="ok", result="nothing of this store", advice="To publish it: suffrage publish"
        )
    elif missing or outdated or gone:
        counts = ((missing, ("not published")), (outdated, "outdated"), (len(gone), "published but excluded"))
        counted = f"{len(published):,} published; " + ", ".join(f"{n:,} {label}" for n, label in counts if n)
        yield Check(name="published", verdict="warning", result=counted, advice="Run: suffrage publish")
    else:
        yield Check(name="published", verdict="ok", result=f"{len(published):,} runs and findings, all up to date")


def format_size(n: int) -> str:
    """Format a number of bytes: ``1.23 GB``."""
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
        if n >= 10**power:
            return f"{n / 10**power:.3g} {unit}"
    return f"{n} bytes"
