"""Why a path cannot be read, and what to do."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from tracker.errors import BadInputError
from tracker.suggestions import find_similar, format_guess

ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9]+):/+(?P<rest>.*)", re.DOTALL)
DOWNLOADS = {
    "http": "curl -LO http://{rest}",
    "https": "curl -LO https://{rest}",
    "s3": "aws s3 cp --recursive s3://{rest} results",
    "gs": "gcloud storage cp --recursive gs://{rest} results",
    "hf": "hf download {name} --repo-type {kind} --local-dir results",
}
"""Command that downloads what an address names, by its scheme."""


def explain_unreadable(path: Path, error: OSError) -> BadInputError:
    """Return the error of a file that the operating system does not open."""
    if isinstance(error, FileNotFoundError):
        return explain_missing(path)
    advice = f"Make it readable: chmod u+r {shlex.quote(str(path))}" if isinstance(error, PermissionError) else ""
    return BadInputError(path, f"cannot be read: {error.strerror or error}.", advice=advice)


def explain_missing(path: Path) -> BadInputError:
    """Return the error of a path that does not exist: an address, a misspelled name, or ``~`` in quotes."""
    if address := ADDRESS.fullmatch(str(path)):  # a path has one slash where an address has two
        scheme, rest = address["scheme"], address["rest"]
        if scheme in DOWNLOADS:
            parts = [part for part in rest.split("/") if part]
            kind = parts.pop(0)[:-1] if parts and parts[0] in ("datasets", "spaces") else "model"
            command = DOWNLOADS[scheme].format(rest=rest, name="/".join(parts[:2]), kind=kind)
            advice = f"Download it first: {command}"
        else:
            advice = "Download it first."
        return BadInputError(f"{scheme}://{rest}", "is an address, not a file.", advice=advice)
    if str(path).startswith("~"):
        return BadInputError(
            path,
            "does not exist: ~ has no meaning within quotes.",
            advice=f"Use the full path: {os.path.expanduser(path)}",
        )
    parent = path.parent
    if not parent.is_dir():
        return BadInputError(path, f"does not exist, nor does the folder {parent}.", advice="Check the path.")
    near = find_similar(path.name, sorted(file.name for file in parent.iterdir() if file.exists()), cutoff=0.75)
    guess = format_guess([str(parent / name) for name in near])
    return BadInputError(path, "does not exist.", advice=guess or f"List the files: ls {shlex.quote(str(parent))}")


def check_regular(path: Path) -> None:
    """Reject what is there and no regular file, such as a pipe, which would be waited for.

    Raises:
        BadInputError: it is not a regular file.
    """
    if not path.is_file():
        raise BadInputError(path, "is not a regular file.", advice="Write its content to a file, and ingest that.")
