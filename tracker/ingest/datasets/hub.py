"""Data sets of the Hugging Face Hub; the only importer of the package `datasets`."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracker.errors import BadInputError, MissingExtraError, first_line
from tracker.ingest.datasets.files import ORDER
from tracker.ingest.datasets.row import DatasetRow, split_named

EXTRA = "hub"
HUB = "https://huggingface.co"
SECONDS = 10
NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


def is_hub_name(source: str) -> bool:
    """Return whether a source that is not a local path can be a name on the hub."""
    return NAME.fullmatch(source) is not None


def load(name: str, configs: Sequence[str]) -> dict[str, Any]:
    """Return the splits of each configuration; they are downloaded if they are not cached.

    Raises:
        MissingExtraError: the package is not installed.
        BadInputError: the hub is unreachable or has no such data set.
    """
    datasets = _import_datasets(f"The data set {name} of the Hugging Face Hub")
    if not _hub_answers():
        raise BadInputError(
            name,
            "is not a local path, and the Hugging Face Hub cannot be reached.",
            advice="Download the data set on a machine with network access, "
            "for example with save_to_disk of the package `datasets`, and pass its folder.",
        )
    data_sets = {}
    for config in configs or ("",):
        try:
            data_sets[config] = datasets.load_dataset(name, config or None)
        except Exception as error:
            suffix = f" (configuration {config})" if config else ""
            raise BadInputError(
                name, f"cannot be loaded from the Hugging Face Hub{suffix}: {first_line(error)}."
            ) from error
    return data_sets


def load_splits(name: str, config: str | None, options: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each split of a data set, as a task of lm-evaluation-harness loads it.

    Args:
        name: on the hub.
        config: its configuration; None for the only one.
        options: further arguments of ``datasets.load_dataset``.

    Raises:
        MissingExtraError: the package is not installed.
    """
    datasets = _import_datasets(f"The data set {name} of the Hugging Face Hub")
    arguments = {key: value for key, value in options.items() if key != "trust_remote_code"}
    return {split: list(map(dict, rows)) for split, rows in datasets.load_dataset(name, config, **arguments).items()}


def process_rows(rows: Sequence[Mapping[str, Any]], function: Any) -> list[dict[str, Any]]:
    """Apply a function to rows as a data set of the package, and return the resulting rows.

    Raises:
        MissingExtraError: the package is not installed.
    """
    datasets = _import_datasets("A function that processes a data set")
    enabled = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        return list(map(dict, function(datasets.Dataset.from_list(list(map(dict, rows))))))
    finally:
        if enabled:
            datasets.enable_progress_bars()


def _import_datasets(purpose: str) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(purpose, EXTRA) from error
    return datasets


def iterate_split_rows(data_sets: Mapping[str, Mapping[str, Any]]) -> Iterator[DatasetRow]:
    """Yield the rows of loaded data sets, test splits first."""
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
    """Return the SHA-256 of all rows with their splits."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([row.split, row.hints, row.fields], default=str).encode())
    return digest.hexdigest()


def _hub_answers() -> bool:
    """Return whether the hub is reachable, without the long timeout of its client."""
    import requests

    try:
        requests.head(os.environ.get("HF_ENDPOINT", HUB), timeout=SECONDS)
    except requests.RequestException:
        return False
    return True
