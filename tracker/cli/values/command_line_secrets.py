"""Passwords on the command line: out of the process list at once, and out of every traceback."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Sequence

VARIABLE = "_SUFFRAGE_ARGUMENTS"
"""Environment variable that holds the arguments with their passwords while the process replaces itself."""
URL = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"<>]+")
ADVICE = (
    "A password in the command line is visible to all users of this machine as the command starts, and stays in the "
    "history of the shell. Set the URL in SUFFRAGE_DATABASE_URL or MLFLOW_TRACKING_URI instead, or put the password "
    "into ~/.pgpass: docs/how-to/postgresql.md."
)


def read_arguments() -> list[str]:
    """Return the arguments of this process; if they hold a password, first replace the process by one without it.

    The process list shows the arguments with ``***`` from then on. Windows cannot replace a process.
    """
    arguments, passed = sys.argv[1:], os.environ.pop(VARIABLE, None)
    if passed is not None:
        complete = json.loads(passed)
        if _redact_all(complete) == arguments:
            _warn()
            return list(complete)
    redacted = _redact_all(arguments)
    if redacted == arguments:
        return arguments
    options = sys.orig_argv[1 : len(sys.orig_argv) - len(arguments)]
    if os.name == "posix" and sys.executable and sys.orig_argv[len(options) + 1 :] == arguments:
        environment = {**os.environ, VARIABLE: json.dumps(arguments)}
        os.execve(sys.executable, [sys.executable, *options, *redacted], environment)
    _warn()
    return arguments


def print_traceback(error: BaseException) -> None:
    """Print a traceback on stderr, with ``***`` for every password in a URL."""
    from tracker.cli.values.terminal_text import echo

    echo(redact_urls("".join(traceback.format_exception(error))), err=True, nl=False)


def redact_urls(text: str) -> str:
    """Return a text with ``***`` for every password, key and token in its URLs."""
    if "://" not in text:
        return text
    from tracker.settings.resolution import redact

    return URL.sub(lambda match: redact(match[0]), text)


def _redact_all(arguments: Sequence[str]) -> list[str]:
    if not any("://" in argument for argument in arguments):
        return list(arguments)
    from tracker.settings.resolution import redact

    return [redact(argument) for argument in arguments]


def _warn() -> None:
    from tracker.cli.output import warn

    warn(ADVICE)
