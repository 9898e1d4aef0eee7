"""Fixes of errors that follow from the command line."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from tracker.errors import NotFoundError, SuffrageError


def describe_error(error: SuffrageError, arguments: Sequence[str]) -> str:
    """Return the message of an error, with the fix that the command line shows.

    Args:
        error: raised by the command.
        arguments: of the command line, without the program's name.
    """
    if not isinstance(error, NotFoundError):
        return str(error)
    name, (command, *rest) = str(error.name), arguments
    if error.kind == "benchmark" and os.path.exists(name):  # unlike Path.exists, of a name of any length
        fix = f"suffrage ingest {shlex.quote(name)} --benchmark NAME"
        return f"No benchmark {name!r}: it is a file. Ingest it first: {fix}"
    if command == "analyze" and error.kind == "analysis":
        known = next((argument for argument in rest if argument in error.known), None)
        if known is not None:
            return f"No analysis {name!r}. The analysis comes first: {_moved(arguments, known)}"
    if command == "compare" and error.kind == "model" and rest[2:3] == [name] and rest[0] in error.known:
        return f"No model {name!r}. The benchmark comes first: {_moved(arguments, name)}"
    return str(error)


def _moved(arguments: Sequence[str], first: str) -> str:
    """The command line with one of its arguments right after the command."""
    command, *rest = arguments
    rest.remove(first)
    return shlex.join(["suffrage", command, first, *rest])
