"""Leaderboards of AlpacaEval: <annotator>_leaderboard.csv, with the win rates of each model in percent.

Win rates are metrics of one task, not tasks: their mean has no meaning.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import check_text, read_bytes, read_first_records
from tracker.ingest.files.json_values import first_bytes, parsed_number
from tracker.ingest.files.mismatch import first_missing
from tracker.ingest.formats.alpaca_eval import BENCHMARKS, win_rate_metric
from tracker.ingest.measurement import Measurement, ReadOptions, RunDescription, TaskScores

SPECIFICITY = 31
RECOGNIZED_BY = ".csv with the columns win_rate and avg_length"
STDERR = {"win_rate": "standard_error", "length_controlled_winrate": "lc_standard_error", "discrete_win_rate": None}
"""Columns that are metrics, and their standard errors."""
FIELDS = ("win_rate", "avg_length")
MODELS = ("", "name")
END = "_leaderboard.csv"


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is no leaderboard of AlpacaEval."""
    if path.suffix != ".csv":
        return "the name does not end in .csv"
    start = first_bytes(path)
    records = start if isinstance(start, str) else read_first_records(start, whole=False)
    if isinstance(records, str):
        return records
    header = records[0]
    features = [(field in header, f"no column {field}") for field in FIELDS]
    return first_missing([*features, (header[0] in MODELS, "its first column is neither unnamed nor called name")])


def harness_name(path: Path) -> str | None:
    """Return the program; its leaderboards do not contain the version."""
    return "alpaca_eval"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield the win rates of each model as proportions.

    Raises:
        BadInputError: a row is incomplete, or a win rate is not a number from 0 to 100.
    """
    data = read_bytes(path)
    check_text(path, data)
    try:
        rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), restkey="", restval=""))
    except csv.Error as error:
        raise BadInputError(path, f"is not valid CSV: {error}.") from error
    annotator = path.name.removesuffix(END) if path.name.endswith(END) else None
    standard = {name: benchmark for benchmark, name in BENCHMARKS.values()}
    is_second = any("AlpacaEval_2" in part for part in path.absolute().parts)
    benchmark = standard.get(annotator or "", "alpaca_eval_2" if is_second else "alpaca_eval")
    judge = next((baseline for baseline, (name, _) in BENCHMARKS.items() if name == benchmark), None)
    seen: Counter[str] = Counter()
    for line, row in enumerate(rows, start=2):
        model = next((str(row[name]).strip() for name in MODELS if name in row), "")
        if not model:
            raise BadInputError(path, f"line {line}: has no model.")
        seen[model] += 1
        label = f"line {line}" if seen[model] > 1 else ""
        run = RunDescription(model=model, benchmark=options.benchmark or benchmark, label=label)
        for metric in (name for name in STDERR if row.get(name)):
            value = _proportion(path, line, row, metric)
            described = win_rate_metric(judge, annotator)
            n = parsed_number(row.get("n_total"))
            yield TaskScores(
                run=run,
                metric=replace(described, name=described.name.replace("win_rate", metric, 1)),
                tasks=[run.benchmark or benchmark],
                values=np.array([value]),
                stderr=np.array([(parsed_number(row.get(STDERR[metric] or "")) or math.nan) / 100]),
                n_prompts=[int(n) if n is not None and 0 < n < 2**31 else None],
            )
    yield "percentages converted to proportions"
    if repeated := [model for model, n in seen.items() if n > 1]:
        yield f"{repeated[0]} is in several lines: each is a run"


def _proportion(path: Path, line: int, row: Mapping[str, str], metric: str) -> float:
    value = parsed_number(row[metric])
    if value is None or not 0 <= value <= 100:
        raise BadInputError(path, f"line {line}: {metric} is {row[metric][:40]!r}, not a percentage.")
    return value / 100
