"""Annotations of AlpacaEval: annotations.json, with a judge's preference between a model and the fixed baseline.

A preference from 1 (baseline) to 2 (model) is the score preference - 1; 0 and 1.5 are draws. The mean is AlpacaEval's
win rate.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import ERRORED, PromptContent, RunBuilders, describe_policy
from tracker.ingest.files.file_summary import first_keys
from tracker.ingest.files.json_files import read_json
from tracker.ingest.files.json_values import first_bytes, number, text
from tracker.ingest.files.mismatch import first_missing_key
from tracker.ingest.measurement import Measurement, MetricDescription, ReadOptions, RunDescription

SPECIFICITY = 30
RECOGNIZED_BY = ".json with a list of instruction, generator_2 and preference"
NAMESPACE = "alpaca_eval"
BENCHMARKS = {
    "text_davinci_003": ("alpaca_eval", "alpaca_eval_gpt4"),
    "gpt4_1106_preview": ("alpaca_eval_2", "weighted_alpaca_eval_gpt4_turbo"),
    "gpt4_turbo": ("alpaca_eval_2", "weighted_alpaca_eval_gpt4_turbo"),
}
"""Benchmark and annotator of the leaderboard of each baseline."""
FIELDS = ("instruction", "generator_2", "output_2", "preference")


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file does not hold annotations of AlpacaEval."""
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    is_list = data.lstrip().startswith(b"[")
    return first_missing_key(first_keys(data), FIELDS) if is_list else "it is not a JSON list"


def harness_name(path: Path) -> str | None:
    """Return the program; its annotations do not contain the version."""
    return "alpaca_eval"


def win_rate_metric(baseline: str | None, annotator: str | None) -> MetricDescription:
    """Return the metric of an annotator; those of annotators other than the leaderboard's name it."""
    is_standard = annotator is None or annotator == BENCHMARKS.get(baseline or "", ("", ""))[1]
    name = "win_rate" if is_standard else f"win_rate ({annotator})"
    return MetricDescription(name=name, higher_is_better=True, lower=0.0, upper=1.0)


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield a score and the model's output for each instruction.

    Raises:
        BadInputError: the file is not a list of annotations, an annotation names no instruction or model, or a model
            has two outputs for an instruction, for different judges or baselines.
    """
    annotations = read_json(path)
    if not isinstance(annotations, list):
        raise BadInputError(path, "is not a list of annotations.")
    builders = RunBuilders(NAMESPACE, path.name)
    seen: dict[tuple[str, str, str], int] = {}
    n_failed = 0
    for place, annotation in enumerate(annotations, start=1):
        row = annotation if isinstance(annotation, dict) else {}
        instruction, model = row.get("instruction"), options.model or text(row.get("generator_2"))
        if not isinstance(instruction, str) or model is None:
            problem = f"annotation {place} has no {'model (generator_2)' if model is None else 'instruction'}."
            yield from builders.blocks()
            raise BadInputError(path, problem)
        baseline, annotator = text(row.get("generator_1")), text(row.get("annotator"))
        builder = builders.builder(_run(model, baseline, annotator, options))
        metric = win_rate_metric(baseline, annotator)
        key = hashlib.sha256(instruction.encode("utf-8", "replace")).hexdigest()[:16]
        n_before = seen.setdefault((model, metric.name, key), 0)
        seen[model, metric.name, key] += 1
        content = PromptContent(text=instruction or None)
        at = builder.row(text(row.get("dataset")) or "", f"{key}#{n_before}" if n_before else key, 0, content)
        value = _score(row.get("preference"))
        n_failed += math.isnan(value)
        builder.score(at, metric, 0.0 if math.isnan(value) and options.errored == "wrong" else value)
        try:
            if isinstance(output := row.get("output_2"), str):
                builder.answer(at, output or None)
        except ValueError as error:  # of another judge, or against another baseline
            yield from builders.blocks()
            raise BadInputError(path, f"annotation {place}: {error}.") from error
        yield from builders.full_blocks()
    yield from builders.blocks()
    if n_failed:
        noun = "annotation has no preference|annotations have no preference"
        yield describe_policy(n_failed, ERRORED, options.errored or "missing", noun)


def _score(preference: Any) -> float:
    """Return preference - 1, one half for draws, NaN for anything that AlpacaEval drops."""
    value = number(preference)
    if value == 0:
        return 0.5
    return math.nan if value is None or not 1 <= value <= 2 else value - 1


def _run(model: str, baseline: str | None, annotator: str | None, options: ReadOptions) -> RunDescription:
    name = BENCHMARKS[baseline][0] if baseline in BENCHMARKS else f"alpaca_eval vs {baseline or 'unknown baseline'}"
    settings = {"baseline": baseline, "annotator": annotator}
    return RunDescription(
        model=model,
        benchmark=options.benchmark or name,
        settings={field: value for field, value in settings.items() if value},
    )
