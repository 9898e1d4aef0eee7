"""Data sets of the hub, by the package `datasets`, which is imported here alone."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracker.errors import BadInputError, MissingExtraError
from tracker.ingest.datasets.files import ORDER
from tracker.ingest.datasets.row import DatasetRow, split_named
from tracker.ingest.files.file_contents import first_line

EXTRA = "hub"
HUB = "https://huggingface.co"
SECONDS = 10
NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


def is_hub_name(source: str) -> bool:
    """Whether a source that is no path here could be a name on the hub."""
    return NAME.fullmatch(source) is not None


def load(name: str, configs: Sequence[str]) -> dict[str, Any]:
    """The splits of each configuration, downloaded unless they were before.

    Raises:
        MissingExtraError: the package is not installed.
        BadInputError: the hub cannot be reached, or has no such data set.
    """
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(f"The data set {name} of the hub", EXTRA) from error
    if not _hub_answers():
        raise BadInputError(
            name,
            "is no file or folder here, and the hub cannot be reached.",
            advice="Get the data set where there is a network, as files, or by the package `datasets` with "
            "save_to_disk, and give the folder.",
        )
    data_sets = {}
    for config in configs or ("",):
        try:
            data_sets[config] = datasets.load_dataset(name, config or None)
        except Exception as error:
            suffix = f" (configuration {config})" if config else ""
            raise BadInputError(name, f"cannot be had from the hub{suffix}: {first_line(error)}.") from error
    return data_sets


def iterate_split_rows(data_sets: Mapping[str, Mapping[str, Any]]) -> Iterator[DatasetRow]:
    """The rows of loaded data sets, those of tested splits first."""
    splits = [(config, name, rows) for config, parts in data_sets.items() for name, rows in parts.items()]

    def order(split_rows: tuple[str, str, Any]) -> int:
        split = split_named([split_rows[1]])
        return ORDER.index(split) if split in ORDER else len(ORDER)

    for config, name, rows in sorted(splits, key=order):
        where = f"{config}, {name}" if config else name
        for number, fields in enumerate(rows, start=1):
            yield DatasetRow(
                fields=fields,
                place=f"{where}, row {number}",
                line=number,
                split=split_named([name]),
                hints=(name, config),
            )


def hash_rows(rows: Iterator[DatasetRow]) -> str:
    """SHA-256 of all rows with their splits."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([row.split, row.hints, row.fields], default=str).encode())
    return digest.hexdigest()


def _hub_answers() -> bool:
    """Whether the hub can be reached: its own client would ask for minutes before it says no."""
    import requests

    try:
        requests.head(os.environ.get("HF_ENDPOINT", HUB), timeout=SECONDS)
    except requests.RequestException:
        return False
    return True
