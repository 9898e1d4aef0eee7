"""SQLite's own check of a file, in another process beside the checks of this one.

Another process may check a file that this one reads with two copies of SQLite; another thread may not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tracker.connections.sqlite_connections import BUSY_SECONDS
from tracker.database import CHECK_FILE, IGNORE_CHECKS, make_read_only_uri

_PROGRAM = Path(__file__).with_name("file_program.py")


@contextmanager
def check_file(path: Path, skipped: str = "") -> Iterator[Callable[[], list[str] | None]]:
    """Start to check a SQLite file; the result is a function that waits for the damage.

    The damage is None if the check failed. The process ends with the context.

    Args:
        path: the file.
        skipped: a table whose pages the caller checks, and whether each page of the file is used once; '' for none.
    """
    options = [make_read_only_uri(path), str(BUSY_SECONDS), IGNORE_CHECKS, CHECK_FILE, skipped]
    command = [sys.executable, "-I", "-S", str(_PROGRAM), *options]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except (OSError, TypeError):  # Python may not know its program
        yield lambda: None
        return

    def wait() -> list[str] | None:
        output, _ = process.communicate()
        try:
            return [str(line) for line in json.loads(output)] if process.returncode == 0 else None
        except ValueError:
            return None

    with process:
        try:
            yield wait
        finally:
            process.kill()
            process.wait()
