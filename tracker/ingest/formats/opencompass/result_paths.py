"""Model, dataset and time of a run of OpenCompass, read from the path of its file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracker.errors import BadInputError
from tracker.ingest.measurement import ReadOptions, RunDescription

RESULTS, PREDICTIONS = "results", "predictions"
NAME = re.compile(r"(?P<unfinished>tmp_)?(?P<dataset>.+?)(?:_(?P<part>\d{1,4}))?\.(?P<kind>jsonl?)(?:\.gz)?")
STAMP = re.compile(r"\d{8}_\d{6}")
BESIDE = (PREDICTIONS, "configs", "logs", "summary")


@dataclass(frozen=True)
class OpenCompassPath:
    """A file, with the metadata in its path.

    Attributes:
        path: the file.
        kind: `RESULTS` or `PREDICTIONS`.
        model, dataset: names of its folder and file.
        stamp: folder of the time, '' if there is none.
        is_unfinished: whether the harness did not finish writing it.
        is_in_lines: whether it holds one prediction per line.
    """

    path: Path
    kind: str
    model: str
    dataset: str
    stamp: str
    is_unfinished: bool
    is_in_lines: bool

    @classmethod
    def of(cls, path: Path, *, forced: bool = False) -> OpenCompassPath | str:
        """Return the metadata of a path, or why it is not of OpenCompass.

        Args:
            path: the file.
            forced: whether the user named the format, so that the folders are not checked.
        """
        name = NAME.fullmatch(path.name)
        folders = path.absolute().parents
        outer = folders[1].name if len(folders) > 1 else ""
        if not forced:
            if name is None:
                return "the name does not end in .json or .jsonl"
            if outer not in (RESULTS, PREDICTIONS):
                return "its folder is not results/<model>/ or predictions/<model>/"
            work = folders[2]
            if not STAMP.fullmatch(work.name) and not any((work / sibling).is_dir() for sibling in BESIDE):
                return f"{outer}/ is not in a folder of OpenCompass, <date>_<time>/"
        stamp = folders[2].name if len(folders) > 2 and STAMP.fullmatch(folders[2].name) else ""
        kind = outer if outer in (RESULTS, PREDICTIONS) else RESULTS
        unfinished = kind == PREDICTIONS and name is not None and name["unfinished"] is not None
        dataset = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
        if unfinished:
            dataset = dataset.removeprefix("tmp_")
        if kind == PREDICTIONS and name is not None and name["part"] is not None:
            # A trailing number counts parts, unless the results show that it belongs to the dataset's name.
            stem = dataset.removesuffix(f"_{name['part']}")
            first = path.with_name(f"{'tmp_' if unfinished else ''}{stem}_0.{name['kind']}")
            whole = folders[2] / RESULTS / folders[0].name / f"{dataset}.json" if len(folders) > 2 else path
            if first.is_file() and not whole.is_file():
                dataset = stem
        in_lines = name is not None and name["kind"] == "jsonl"
        return cls(path, kind, folders[0].name, dataset, stamp, unfinished, in_lines)

    @property
    def work_folder(self) -> Path:
        """Return the folder that holds results and predictions."""
        return self.path.absolute().parents[2] if len(self.path.absolute().parents) > 2 else self.path.absolute().parent

    def _folder(self, kind: str) -> Path:
        return self.path.parent if self.kind == kind else self.work_folder / kind / self.model

    @property
    def results(self) -> Path | None:
        """Return the results of the dataset."""
        path = self._folder(RESULTS) / f"{self.dataset}.json"
        return path if path.is_file() else None

    @property
    def predictions(self) -> Sequence[Path]:
        """Return the finished predictions of the dataset: one file, or its parts in order."""
        folder = self._folder(PREDICTIONS)
        whole = folder / f"{self.dataset}.json"
        if whole.is_file():
            return [whole]
        parts: list[Path] = []
        while (part := folder / f"{self.dataset}_{len(parts)}.json").is_file():
            parts.append(part)
        return parts

    @property
    def companion_files(self) -> Sequence[Path]:
        """Return the files that are read with this one."""
        if self.is_unfinished:
            return ()
        if self.kind == RESULTS:
            return self.predictions
        # If there are results, they are read together with the predictions.
        return [path for path in self.predictions if path.absolute() != self.path.absolute()] if self.is_first else ()

    @property
    def is_first(self) -> bool:
        """Return whether it is the only file of its predictions, or the first part."""
        parts = self.predictions
        return bool(parts) and parts[0].absolute() == self.path.absolute()

    def run(self, options: ReadOptions) -> RunDescription:
        """Return the run of the file.

        Raises:
            BadInputError: no folder names a model.
        """
        model = options.model or self.model
        if not model.strip():
            raise BadInputError(self.path, "is not in a folder named after a model; add --model NAME.")
        return RunDescription(
            model=model,
            benchmark=options.benchmark or self.dataset,
            condition=options.condition_of_runs,
            label=self.stamp,
            limited=self.is_unfinished,
        )
