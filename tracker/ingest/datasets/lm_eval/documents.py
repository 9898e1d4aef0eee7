"""Documents of a task: from files, from a folder that replaces the published data set, or from the hub."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError, MissingExtraError, first_line
from tracker.ingest.datasets import hub
from tracker.ingest.datasets.file_rows import read_file_rows
from tracker.ingest.datasets.files import SourceFile, get_suffix, list_source_files
from tracker.ingest.datasets.lm_eval.task import LmEvalTask
from tracker.ingest.datasets.row import normalize_split

FILE_FORMATS = ("json", "csv", "parquet", "arrow", "pandas")
"""Builders of the package `datasets` that read files."""
LABELS_ENDING = "-labels.lst"
"""Ending of a file with one label per line, beside the file that it belongs to, as PIQA publishes them."""

Document = dict[str, Any]


@dataclass(kw_only=True)
class TaskDocuments:
    """The documents of a task by split; a split is read when it is first used.

    Attributes:
        task: the task.
        source: folder or file that replaces the data set of the task; None for that data set.
    """

    task: LmEvalTask
    source: Path | None = None
    files: list[Path] = field(default_factory=list)
    _splits: dict[str, list[Document]] | None = None

    def split(self, name: str, process: Any = None) -> list[Document]:
        """Return the documents of a split, changed by a function of the task.

        Raises:
            BadInputError: there is no such split, or its files are invalid.
            MissingExtraError: the package `datasets` is needed.
        """
        if self._splits is None:
            self._splits = self._load()
        rows = self._splits.get(name, self._splits.get(normalize_split(name)))
        if rows is None:
            known = ", ".join(sorted(filter(None, self._splits))) or "none"
            raise BadInputError(
                self.source or self.task.dataset_path,
                f"has no split {name!r}, which the task {self.task.name} uses. Splits: {known}.",
            )
        return rows if process is None else self._process(rows, process)

    def _process(self, rows: Sequence[Document], process: Any) -> list[Document]:
        """Apply a function to the documents as a data set of the package `datasets`, which it expects."""
        try:
            return hub.process_rows(rows, process)
        except MissingExtraError:
            raise
        except Exception as error:  # foreign code
            name = getattr(process, "__name__", "process_docs")
            raise BadInputError(
                self.task.path, f"the function {name} of the task {self.task.name} fails: {first_line(error)}."
            ) from error

    def _load(self) -> dict[str, list[Document]]:
        if self.source is not None:
            return self._load_folder(self.source)
        data_files = self.task.dataset_kwargs.get("data_files")
        if self.task.dataset_path in FILE_FORMATS and data_files:
            return self._load_files(data_files)
        local = self._find(self.task.dataset_path)
        return self._load_folder(local) if local.is_dir() else self._load_hub()

    def _find(self, name: str) -> Path:
        """Return a path relative to the working directory, else to the folder of the task's file."""
        path = Path(os.path.expanduser(name))
        return path if path.exists() else self.task.path.parent / path

    def _load_files(self, data_files: Any) -> dict[str, list[Document]]:
        by_split = data_files if isinstance(data_files, Mapping) else {"train": data_files}
        splits: dict[str, list[Document]] = {}
        for split, names in by_split.items():
            rows: list[Document] = []
            for name in [names] if isinstance(names, str) else list(names):
                paths = sorted(glob.glob(str(self._find(name)), recursive=True)) or [name]
                for path in map(Path, paths):
                    if not path.is_file():
                        raise BadInputError(path, f"does not exist. The task {self.task.name} reads it.")
                    rows += self._read(SourceFile(path=path, name=path.name, split="", hints=()))
            splits[str(split)] = _complete(rows)
        return splits

    def _load_folder(self, source: Path) -> dict[str, list[Document]]:
        files = list_source_files(source)
        name = self.task.dataset_name
        if name and (of_config := [file for file in files if any(_belongs(hint, name) for hint in file.hints)]):
            files = of_config
        splits: dict[str, list[Document]] = {}
        for file in files:
            for split, rows in _group_by_split(self._read_rows(file)).items():
                splits.setdefault(split, []).extend(rows)
        if set(splits) == {""}:  # one file without a split in its name holds the evaluated split
            splits = {self.task.test_split or self.task.validation_split or "test": splits[""]}
        return {normalize_split(split): _complete(rows) for split, rows in splits.items()}

    def _read(self, file: SourceFile) -> list[Document]:
        return [row for _, row in self._read_rows(file)]

    def _read_rows(self, file: SourceFile) -> list[tuple[str, Document]]:
        """Return split and fields of each row, with the labels of a separate file."""
        self.files.append(file.path)
        if get_suffix(file.path) in (".csv", ".tsv"):
            rows = [(file.split, row) for row in _read_table(file.path)]
        else:
            rows = [(row.split, dict(row.fields)) for row in read_file_rows(file)]
        labels = file.path.with_name(file.path.name.removesuffix(".gz").rpartition(".")[0] + LABELS_ENDING)
        if not labels.is_file() or not rows or "label" in rows[0][1]:
            return rows
        self.files.append(labels)
        lines = labels.read_text(encoding="utf-8").split()
        if len(lines) != len(rows):
            raise BadInputError(labels, f"has {len(lines):,} labels for {len(rows):,} rows of {file.path.name}.")
        numbers = [int(line) if line.lstrip("-").isdecimal() else line for line in lines]
        return [(split, {**row, "label": label}) for (split, row), label in zip(rows, numbers, strict=True)]

    def _load_hub(self) -> dict[str, list[Document]]:
        task = self.task
        try:
            return hub.load_splits(task.dataset_path, task.dataset_name, task.dataset_kwargs)
        except MissingExtraError:
            raise
        except Exception as error:
            raise BadInputError(
                task.dataset_path,
                f"cannot be loaded, as the task {task.name} needs: {first_line(error)}.",
                advice="Download it elsewhere, and name its folder: suffrage prompts import BENCHMARK FOLDER --lm-eval "
                "TASK.",
            ) from error


def _belongs(hint: str, config: str) -> bool:
    """Return whether a file or folder holds a configuration, as in ``anatomy_test.csv`` or ``ARC-Easy/``."""
    return hint == config or hint.startswith((f"{config}_", f"{config}-", f"{config}."))


def _group_by_split(rows: Sequence[tuple[str, Document]]) -> dict[str, list[Document]]:
    groups: dict[str, list[Document]] = {}
    for split, row in rows:
        groups.setdefault(split, []).append(row)
    return groups


def _read_table(path: Path) -> Iterator[Document]:
    """Yield the rows of a CSV file with the types that the package `datasets` infers, which are those of pandas."""
    import pandas as pd

    try:
        table = pd.read_csv(path, sep="\t" if get_suffix(path) == ".tsv" else ",")
    except (ValueError, OSError) as error:
        raise BadInputError(path, f"is not a readable CSV file ({first_line(error)}).") from error
    for record in table.astype(object).where(table.notna(), None).to_dict(orient="records"):
        yield {str(name): value for name, value in record.items()}


def _complete(rows: Sequence[Document]) -> list[Document]:
    """Return rows that all have the fields of all rows, as in the package `datasets`; a missing field is None."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]
