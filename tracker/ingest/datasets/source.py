"""Sources of published prompts: local files or the hub."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracker.errors import BadInputError
from tracker.ingest.datasets import hub
from tracker.ingest.datasets.file_rows import read_file_rows
from tracker.ingest.datasets.files import SUFFIXES, get_suffix, list_source_files
from tracker.ingest.datasets.preset import Preset
from tracker.ingest.datasets.row import DatasetRow
from tracker.ingest.parsing.file_blocks import ReadProgress, hash_files


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """A published data set.

    Attributes:
        path: the file or folder, or the name on the hub.
        files: all files that are read.
        names: names of files and folders, which determine splits and tasks; renamed files are different prompts.
        rows: returns an iterator over the rows, from the first, on each call.
        digest: SHA-256 of the files' bytes, or of the rows.
    """

    path: Path
    files: tuple[Path, ...]
    names: tuple[str, ...]
    rows: Callable[[], Iterator[DatasetRow]]
    digest: str


def find_source(
    name: str | Path, preset: Preset | None, configs: Sequence[str], progress: Callable[[int, int], None] | None
) -> DatasetSource:
    """Return the data set at a local path, else on the hub.

    Raises:
        BadInputError: the path does not exist or holds no prompts, or the hub has no such data set.
        MissingExtraError: the package for the hub is not installed.
    """
    path = Path(os.path.expanduser(name))
    if not path.exists() and hub.is_hub_name(str(name)) and get_suffix(path) not in SUFFIXES:
        data_sets = hub.load(str(name), configs or (preset.configs if preset else ()))
        return DatasetSource(
            path=Path(name),
            files=(),
            names=(),
            rows=lambda: hub.iterate_split_rows(data_sets),
            digest=hub.hash_rows(hub.iterate_split_rows(data_sets)),
        )
    if configs:
        raise BadInputError(path, "is a local path, which has no configurations.", advice="Omit --config.")
    files = list_source_files(path)
    columns = preset.columns if preset else ()
    try:
        progress_bar = ReadProgress(sum(file.path.stat().st_size for file in files), progress)
        digest = hash_files([file.path for file in files], progress_bar)
    except OSError as error:
        raise BadInputError(path, f"cannot be read: {error.strerror or error}.") from error

    def rows() -> Iterator[DatasetRow]:
        for file in files:
            yield from read_file_rows(file, columns)
            progress_bar.add_parsed(file.path.stat().st_size)

    return DatasetSource(
        path=path,
        files=tuple(file.path for file in files),
        names=tuple("/".join((file.split, *file.hints)) for file in files),
        rows=rows,
        digest=digest,
    )
