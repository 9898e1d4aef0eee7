"""Details of lighteval: details_<task>_<time>.parquet, or the results_<time>.json of a run with all its details.

Both generations of columns are supported: doc, metric and model_response (also with two underscores around them), and
the flat columns of earlier versions. Tasks without details become task scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracker.ingest.files.json_values import first_bytes
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.files.tabular.cells import shorten
from tracker.ingest.files.tabular.table_head import read_head
from tracker.ingest.formats.lighteval.details import generation, read_details
from tracker.ingest.formats.lighteval.results import DETAILS_NAME, RESULTS_NAME, LightevalResults
from tracker.ingest.measurement import Measurement, ReadOptions
from tracker.ingest.reported_score import ReportedScore
from tracker.name_lists import join_names

SPECIFICITY = 30
RECOGNIZED_BY = "details_<task>_<time>.parquet, results_<time>.json"
START = re.compile(rb'\s*\{\s*"config_general"\s*:')


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is neither details nor results of lighteval."""
    if RESULTS_NAME.fullmatch(path.name):
        data = first_bytes(path, 4096)
        if isinstance(data, str):
            return data
        return None if START.match(data) else Mismatch('it does not start with {"config_general":', 1 / 2)
    top = read_head(path)
    if isinstance(top, str):
        return top
    return None if generation(top.names) else "no columns doc, metric and model_response, or those of earlier versions"


def companion_files(path: Path) -> Sequence[Path]:
    """Return the details of the results."""
    return LightevalResults.of(path, ReadOptions()).details() if RESULTS_NAME.fullmatch(path.name) else ()


def harness_name(path: Path) -> str | None:
    """Return the program, with the commit if the results name it."""
    commit = LightevalResults.of(path, ReadOptions()).commit
    return f"lighteval {commit}" if commit else "lighteval"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield for each task: metrics, the probability of the reference option, and responses.

    Raises:
        BadInputError: a file is invalid, or no file names the model.
    """
    results = LightevalResults.of(path, options)
    files = results.details() if RESULTS_NAME.fullmatch(path.name) else [path]
    tasks = []
    for file in files:
        name = DETAILS_NAME.fullmatch(file.name)
        task = yield from read_details(file, name["task"] if name else None, results)
        tasks.append(task)
    lacking = {name: task for name, task in results.evaluated.items() if task not in tasks and path not in files}
    if lacking:
        yield from results.reported_scores(lacking.values())
        yield f"no details for {join_names(map(shorten, lacking), 5)}: the task scores were read"
