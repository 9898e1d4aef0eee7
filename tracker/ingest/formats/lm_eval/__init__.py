"""Output of lm-evaluation-harness: results_*.json with samples_*.jsonl, or either alone.

A samples file is read with the results file of the same time stamp, and a results file with all its samples. Tasks
without samples become task scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracker.ingest.files.json_values import first_bytes
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.formats.lm_eval.results import LmEvalResults
from tracker.ingest.formats.lm_eval.samples import read_samples
from tracker.ingest.measurement import Measurement, ReadOptions
from tracker.ingest.reported_score import ReportedScore
from tracker.name_lists import join_names

SPECIFICITY = 30
RECOGNIZED_BY = "results_<time>.json, samples_<task>_<time>.jsonl"
STAMP = r"\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?"
RESULTS_NAME = re.compile(rf"(?:.*_(?P<stamp>{STAMP})|results.*)\.json(?:\.gz)?")
SAMPLES_NAME = re.compile(rf"(?:samples_)?(?P<task>.*?)(?:_(?P<stamp>{STAMP}))?\.jsonl(?:\.gz)?")
RESULTS_START = re.compile(rb'\s*\{\s*"results"\s*:')
SAMPLES_START = re.compile(rb'\s*(?:\[\s*)?\{\s*"doc_id"\s*:')


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not output of lm-evaluation-harness."""
    if SAMPLES_NAME.fullmatch(path.name):
        start, reason = SAMPLES_START, 'the first line does not start with {"doc_id":'
    elif RESULTS_NAME.fullmatch(path.name):
        start, reason = RESULTS_START, 'it does not start with {"results":'
    else:
        return "the name is neither results_<time>.json nor samples_<task>_<time>.jsonl"
    data = first_bytes(path, 4096)
    if isinstance(data, str):
        return data
    return None if start.match(data) else Mismatch(reason, 1 / 2)


def companion_files(path: Path) -> Sequence[Path]:
    """Return the samples files with the time stamp of the results."""
    name = None if SAMPLES_NAME.fullmatch(path.name) else RESULTS_NAME.fullmatch(path.name)
    return () if name is None else _beside(path, SAMPLES_NAME, name["stamp"])


def harness_name(path: Path) -> str | None:
    """Return the program, with its version if the results name it."""
    results = _results(path, ReadOptions())
    return f"lm-eval {results.version}" if results.version else "lm-eval"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield for each task and filter: metrics, the probability of the reference option, and responses."""
    results = _results(path, options)
    if warning := results.version_warning:
        yield warning
    samples = [path] if SAMPLES_NAME.fullmatch(path.name) else list(companion_files(path))
    sampled: list[str] = []
    without_numbers: set[tuple[str, str]] = set()
    for file in samples:
        name = SAMPLES_NAME.fullmatch(file.name)
        task = results.full_task_name(name["task"] if name else file.stem)
        sampled.append(task)
        skipped = yield from read_samples(file, task, results, options)
        without_numbers |= {(task, metric) for metric in skipped}
    tasks = sampled if path in samples else results.tasks
    yield from results.reported(tasks, without_numbers)
    yield from results.reported_groups(sampled)
    if unsampled := [task for task in tasks if task not in sampled]:
        yield f"{join_names(unsampled, 5)}: no scores per prompt, only task scores (run lm_eval with --log_samples)"


def _results(path: Path, options: ReadOptions) -> LmEvalResults:
    name = SAMPLES_NAME.fullmatch(path.name)
    if name is None:
        stamp = RESULTS_NAME.fullmatch(path.name)
        return LmEvalResults.read(path, stamp["stamp"] if stamp else None, options)
    beside = _beside(path, RESULTS_NAME, name["stamp"])
    return LmEvalResults.read(beside[0] if beside else None, name["stamp"], options, samples=path)


def _beside(path: Path, pattern: re.Pattern[str], stamp: str | None) -> tuple[Path, ...]:
    matches = (
        (candidate, pattern.fullmatch(candidate.name))
        for candidate in sorted(path.parent.iterdir())
        if candidate != path
    )
    return tuple(
        candidate
        for candidate, name in matches
        if name is not None and name["stamp"] == stamp and mismatch_reason(candidate, ReadOptions()) is None
    )
