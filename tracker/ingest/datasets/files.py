"""Files of a published data set: a file, a folder, or a data set saved by the package `datasets`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tracker.errors import BadInputError
from tracker.ingest.datasets.row import split_named

SUFFIXES = (".jsonl", ".json", ".parquet", ".pq", ".arrow", ".csv", ".tsv")
"""If files differ only in these suffixes, the first is read: ARC is published as both JSON Lines and CSV."""
STATE = "state.json"
BOOKKEEPING = (STATE, "dataset_dict.json", "dataset_info.json", "dataset_infos.json")
ORDER = ("test", "validation", "dev", "train")
"""Splits in reading order: of prompts with equal content, that of the test split is stored first."""
MAX_HINTS = 2


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A data file.

    Attributes:
        path: the file.
        name: path below the source, for messages.
        split: split in the name of the file or its folders; '' if there is none.
        hints: names that may contain the task: the file name without suffix, then folders from the innermost to the
            outermost.
    """

    path: Path
    name: str
    split: str
    hints: tuple[str, ...]


def list_source_files(source: Path) -> list[SourceFile]:
    """Return the files of a data set, test splits first. Files of other types are skipped.

    Raises:
        BadInputError: the source does not exist or holds no supported file.
    """
    if not source.exists():
        raise BadInputError(source, "does not exist.")
    above = [part for part in reversed(source.absolute().parts) if part != os.sep]
    kinds = ", ".join(SUFFIXES)
    if not source.is_dir():
        if get_suffix(source) not in SUFFIXES:
            raise BadInputError(source, f"its file type is not supported. Supported: {kinds} (also with .gz).")
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
        raise BadInputError(source, f"this folder holds no files of the types {kinds}.")
    return sorted(files, key=lambda file: (ORDER.index(file.split) if file.split in ORDER else len(ORDER), file.name))


def get_suffix(path: Path) -> str:
    """Return the suffix of a file name in lower case, without .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _stem(name: str) -> str:
    return Path(name.removesuffix(".gz")).stem


def _list_folder(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a folder, and the split in its state file."""

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
    """Return the data files of a saved split without cache files, and the name of the split."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        names = [str(entry["filename"]) for entry in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(path, "is not a state file of the package `datasets`.") from error
    if state.get("_indices_data_files"):
        raise BadInputError(
            path, "the data set has an indices mapping.", advice="Call flatten_indices() and save it again."
        )
    return names, str(state.get("_split") or "")
