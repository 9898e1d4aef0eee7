"""Common kinds of files that hold no results, and what to do with them."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import shlex
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from tracker.connections.sqlite_connections import SIGNATURE as SQLITE_SIGNATURE
from tracker.ingest.files.file_contents import is_named_like_a_table, open_file
from tracker.ingest.files.missing_files import explain_unreadable

SIGNATURES = (
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
)
HEAD_BYTES = 512
MAX_JSON_BYTES = 16 << 20
"""Size of the largest JSON file that is parsed to find an error in it."""


@dataclass(frozen=True, kw_only=True)
class FileKind:
    """A kind of file that no format reads.

    Attributes:
        name: such as ``a ZIP archive``.
        advice: how to get at the results.
    """

    name: str
    advice: str


def find_kind(path: Path) -> FileKind | None:
    """Return the kind of a file that holds no results in any format; None if it is of no such kind.

    Raises:
        BadInputError: the file cannot be opened.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise explain_unreadable(path, error) from error
    name = shlex.quote(str(path))
    for signature, kind in SIGNATURES:
        if head.startswith(signature):
            return FileKind(name=kind, advice="Ingest the table of scores behind it, saved as CSV.")
    if head.startswith(SQLITE_SIGNATURE):
        return FileKind(
            name="a SQLite database, but not a store", advice="Export its results as CSV, and ingest those."
        )
    if head[30:].startswith(b"suffrage-archive"):
        return FileKind(name="an archive of Suffrage 0.1", advice="Export it again with this version of Suffrage.")
    if head.startswith(b"version https://git-lfs"):
        return FileKind(name="a Git LFS pointer, not the file itself", advice="Download the file: git lfs pull")
    if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return FileKind(name="a web page", advice="Download the file itself, such as by the page's link `raw`.")
    if zipfile.is_zipfile(path) and path.suffix.lower() in (".xlsx", ".xlsm", ".ods"):
        return FileKind(name="a spreadsheet (Excel or ODS)", advice="Save the sheet of scores as CSV, and ingest that.")
    if zipfile.is_zipfile(path):
        return FileKind(name="a ZIP archive", advice=f"Unpack it, then ingest the folder: unzip {name} -d results")
    if not is_named_like_a_table(path) and _is_tar(path):
        return FileKind(name="a tar archive", advice=f"Unpack it, then ingest its files: tar -xf {name}")
    return None


def find_json_error(path: Path) -> str | None:
    """Return where a file that is named like JSON is not valid JSON; None if it is valid, or larger than 16 MiB."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in (".json", ".jsonl") or path.stat().st_size > MAX_JSON_BYTES:
        return None
    with open_file(path) as file:
        data = file.readline(MAX_JSON_BYTES + 1) if suffix == ".jsonl" else file.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        return None
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return f"is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}."
    except (ValueError, RecursionError) as error:  # no UTF-8, a number of thousands of digits, or nested too deeply
        return f"is not valid JSON: {str(error).partition(';')[0]}."
    return None


def _is_tar(path: Path) -> bool:
    """Return whether a file is a tar archive, packed or not; `tarfile` would unpack a first header of any size."""
    head = b""
    for opener in (open, gzip.open, bz2.open, lzma.open):
        try:
            with opener(path, "rb") as file:
                head = file.read(HEAD_BYTES)
        except (OSError, EOFError, zlib.error, lzma.LZMAError):
            continue
        if head[257:262] == b"ustar":
            return True
    return False
