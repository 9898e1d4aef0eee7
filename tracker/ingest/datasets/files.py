"""The files of a published data set: a file, a folder of files, or what the package `datasets` saves to disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tracker.errors import BadInputError
from tracker.ingest.datasets.row import split_named

SUFFIXES = (".jsonl", ".json", ".parquet", ".pq", ".arrow", ".csv", ".tsv")
"""Of files that differ in this alone, the first is read: ARC is published as JSON Lines and as CSV, side by side."""
STATE = "state.json"
BOOKKEEPING = (STATE, "dataset_dict.json", "dataset_info.json", "dataset_infos.json")
ORDER = ("test", "validation", "dev", "train")
"""Splits in the order in which they are read: of prompts with equal content, the tested one is stored first."""
MAX_HINTS = 2


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file with rows.

    Attributes:
        path: the file.
        name: what it is called in messages: its path below the source.
        split: as its name or its folders' names tell; '' where they do not.
        hints: names that may tell the task: the file without its ending, then folders from the inside out.
    """

    path: Path
    name: str
    split: str
    hints: tuple[str, ...]


def list_source_files(source: Path) -> list[SourceFile]:
    """The files of a data set, those of tested splits first; files of other kinds are passed over.

    Raises:
        BadInputError: it does not exist, or holds no file that could be read.
    """
    if not source.exists():
        raise BadInputError(source, "does not exist.")
    above = [part for part in reversed(source.absolute().parts) if part != os.sep]
    kinds = ", ".join(SUFFIXES)
    if not source.is_dir():
        if get_suffix(source) not in SUFFIXES:
            raise BadInputError(source, f"the name ends in none of {kinds} (also with .gz).")
        stem = _stem(source.name)
        return [
            SourceFile(
                path=source, name=source.name, split=split_named([stem]), hints=(stem, *above[1 : 1 + MAX_HINTS])
            )
        ]
    files = []
    for path, hint in _list_folder(source):
        below = PurePosixPath(path.relative_to(source).as_posix())
        folders = list(reversed(below.parts[:-1]))
        stem = _stem(below.name)
        hints = (stem, *folders, *above[:MAX_HINTS])
        files.append(SourceFile(path=path, name=str(below), split=split_named([stem, *folders, hint]), hints=hints))
    if not files:
        raise BadInputError(source, f"this folder holds no files of prompts (names that end in {kinds}).")
    return sorted(files, key=lambda file: (ORDER.index(file.split) if file.split in ORDER else len(ORDER), file.name))


def get_suffix(path: Path) -> str:
    """The ending of a file's name, in lower case, without .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _stem(name: str) -> str:
    return Path(name.removesuffix(".gz")).stem


def _list_folder(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files of a folder, and the split that the bookkeeping beside them tells."""

    def raise_error(error: OSError) -> None:
        raise BadInputError(error.filename or folder, f"cannot be opened: {error.strerror}.") from error

    for parent, folders, names in os.walk(folder, onerror=raise_error):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        data_files, split = _state(Path(parent, STATE)) if STATE in names else (None, "")
        paths = [Path(parent, name) for name in names if not name.startswith(".") and name not in BOOKKEEPING]
        paths = [
            path for path in paths if get_suffix(path) in SUFFIXES and (data_files is None or path.name in data_files)
        ]
        first: dict[str, Path] = {}
        for path in sorted(paths, key=lambda path: (SUFFIXES.index(get_suffix(path)), path.name)):
            first.setdefault(_stem(path.name), path)
        for path in first.values():
            yield path, split


def _state(path: Path) -> tuple[list[str], str]:
    """The data files of one saved split, in its folder beside files that are only cached; and the split's name."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        names = [str(entry["filename"]) for entry in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(path, "is not what the package `datasets` writes beside its files.") from error
    if state.get("_indices_data_files"):
        raise BadInputError(
            path, "the rows are chosen by a file of indices.", advice="Save it again: flatten_indices()."
        )
    return names, str(state.get("_split") or "")
