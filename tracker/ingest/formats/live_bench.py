"""Judgments of LiveBench: model_judgment/ground_truth_judgment.jsonl, a score of each question and model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import PromptContent, RunBuilders
from tracker.ingest.files.file_summary import first_keys
from tracker.ingest.files.json_files import iterate_json_lines
from tracker.ingest.files.json_values import first_bytes, mapping, number, score, text
from tracker.ingest.files.mismatch import first_missing_key
from tracker.ingest.files.question_file import find_questions, read_questions
from tracker.ingest.measurement import Measurement, MetricDescription, ReadOptions, RunDescription

SPECIFICITY = 30
RECOGNIZED_BY = ".jsonl that begins with question_id, task, model, score and tstamp"
NAMESPACE = "live_bench"
BENCHMARK = "livebench"
FIELDS = ("question_id", "task", "model", "score", "tstamp", "category")
SCORE = MetricDescription(name="score", higher_is_better=True, lower=0.0, upper=1.0)


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file does not hold judgments of LiveBench."""
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    is_object = data.lstrip().startswith(b"{")
    return first_missing_key(first_keys(data), FIELDS) if is_object else "it does not start with a JSON object"


def companion_files(path: Path) -> Sequence[Path]:
    """Return the file of the questions."""
    return find_questions(path)


def harness_name(path: Path) -> str | None:
    """Return the program; its judgments do not contain the version."""
    return "livebench"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield a score for each question and model; the latest judgment of a question counts.

    Raises:
        BadInputError: a line is no judgment.
    """
    builders, questions = RunBuilders(NAMESPACE, path.name), read_questions(path)
    latest: dict[tuple[str, str, str], tuple[float, int, float]] = {}
    categories: dict[tuple[str, str], str | None] = {}
    n_repeated = 0
    problem: BadInputError | None = None
    try:
        for line, data in iterate_json_lines(path):
            row = mapping(data)
            key, task, model = (text(row.get(name)) for name in ("question_id", "task", "model"))
            if key is None or task is None or model is None:
                raise BadInputError(path, f"line {line}: is no judgment with question_id, task and model.")
            try:
                value = score(row.get("score"))
            except ValueError as error:
                raise BadInputError(path, f"line {line}: the score is {error}.") from error
            judgment = (options.model or model, task, key)
            time = number(row.get("tstamp")) or -math.inf
            n_repeated += judgment in latest
            if judgment not in latest or time >= latest[judgment][0]:
                latest[judgment] = (time, line, value)
            categories[task, key] = text(row.get("category"))
    except BadInputError as error:
        problem = error
    for (model, task, key), (_, line, value) in latest.items():
        run = RunDescription(model=model, benchmark=options.benchmark or BENCHMARK)
        category = categories[task, key]
        content = PromptContent(text=questions.get(key), details={"category": category} if category else None)
        builder = builders.builder(run)
        builder.score(builder.row(task, key, 0, content, line), SCORE, value)
        yield from builders.full_blocks()
    yield from builders.blocks()
    if problem is not None:
        raise problem
    if n_repeated:
        yield f"{n_repeated:,} judgments are superseded by later ones of the same question and model"
