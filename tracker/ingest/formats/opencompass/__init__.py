"""Results and predictions of OpenCompass, one file for each model and data set.

Details of results (``--dump-eval-details``) mark the correct answers. Without details, the predictions are compared
with their reference answers. Without predictions, the data set has a task score. Percentages become proportions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracker.ingest.files.json_values import first_bytes
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.formats.opencompass.reports import read_predictions, read_results
from tracker.ingest.formats.opencompass.result_paths import PREDICTIONS, RESULTS, OpenCompassPath
from tracker.ingest.measurement import Measurement, ReadOptions
from tracker.ingest.reported_score import ReportedScore

SPECIFICITY = 30
RECOGNIZED_BY = "<time>/results/<model>/<dataset>.json, the same under predictions/"
ROWS_START = re.compile(rb'\s*\{\s*(?:"\d{1,9}"\s*:\s*\{|\})')
LINES_START = re.compile(rb'\s*\{\s*"idx"\s*:\s*"?\d')
RESULTS_START = re.compile(rb'\s*\{\s*"(?P<name>(?:[^"\\]|\\.){1,100})"\s*:\s*(?P<value>-?\d|NaN|-?Infinity|["{\[])')
"""Results start with a number, such as ``"accuracy": 50.0``, or with the details."""
NO_NUMBERS = rb'"{['


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is neither results nor predictions of OpenCompass."""
    place = OpenCompassPath.of(path)
    if isinstance(place, str):
        return place
    data = first_bytes(path, 4096)
    if isinstance(data, str):
        return data
    if place.is_unfinished and (place.predictions or place.results):
        return Mismatch("it is a temporary file of a run that has finished since", 0.9)
    if place.kind == PREDICTIONS:
        start = LINES_START if place.is_in_lines else ROWS_START
        return None if start.match(data) else Mismatch('it does not start with a numbered prediction, {"0": {', 1 / 2)
    begin = RESULTS_START.match(data)
    if begin is None or (begin["value"] in NO_NUMBERS and begin["name"] not in (b"details", b"type")):
        return Mismatch('it starts neither with a number, such as {"accuracy": 50.0, nor with details', 1 / 2)
    return None


def companion_files(path: Path) -> Sequence[Path]:
    """Return the predictions of the results, or the further parts of the predictions."""
    place = OpenCompassPath.of(path)
    return () if isinstance(place, str) else place.companion_files


def harness_name(path: Path) -> str | None:
    """Return the program; its files do not contain the version."""
    return "opencompass"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield scores and answers of one dataset, or its task score.

    Raises:
        BadInputError: the file is invalid, or is not in the folder of a model.
    """
    place = OpenCompassPath.of(path, forced=True)
    assert isinstance(place, OpenCompassPath)
    if place.kind == RESULTS:
        yield from read_results(place, options)
    else:
        yield from read_predictions(place, options)
