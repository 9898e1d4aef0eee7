"""Names and texts that are too long to store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tracker.errors import BadInputError
from tracker.ingest.measurement import Answers, Measurement, Prompts, Scores, TaskScores
from tracker.settings.input_limits import InputLimits, explain_limit

KEY_FACTOR = 50
"""The name of a prompt may be this many times as long as other names: some harnesses name prompts by their text."""
START_LENGTH = 40


def check_lengths(path: Path, block: Measurement, limits: InputLimits) -> None:
    """Reject a block with a name or text beyond the limits.

    Raises:
        BadInputError: with the start of the name or text.
    """
    for kind, names in _names(block):
        _check(path, kind, names, limits.name, "name", 1)
    for kind, names in _keys(block):
        _check(path, kind, names, KEY_FACTOR * limits.name, "name", KEY_FACTOR)
    for kind, texts in _texts(block):
        _check(path, kind, texts, limits.value, "value", 1)


def _check(path: Path, kind: str, texts: Iterable[str | None], longest: int, limit: str, factor: int) -> None:
    known = list(filter(None, texts))
    if max(map(len, known), default=0) <= longest:
        return
    for text in known:
        if len(text) > longest:
            start = f"the {kind} {text[:START_LENGTH]!r}… has {len(text):,} characters"
            raise BadInputError(path, explain_limit(limit, start + (f" ({factor} times a name)" if factor > 1 else "")))


def _names(block: Measurement) -> Iterator[tuple[str, Iterable[str | None]]]:
    if isinstance(block, Prompts):
        yield "name of the task", dict.fromkeys(block.tasks or ())
        yield "name of the benchmark", (block.benchmark,)
        yield "name of the split", dict.fromkeys(block.split or ())
        return
    yield "name of the model", (block.run.model,)
    yield "name of the benchmark", (block.run.benchmark,)
    if isinstance(block, (Scores, TaskScores)):
        yield "name of the metric", (block.metric.name,)
    if isinstance(block, TaskScores):
        yield "name of the task", block.tasks
    else:
        yield from _names(block.prompts)


def _keys(block: Measurement) -> Iterator[tuple[str, Iterable[str | None]]]:
    if isinstance(block, Prompts):
        yield "name of the prompt", block.keys
    elif isinstance(block, (Scores, Answers)):
        yield from _keys(block.prompts)


def _texts(block: Measurement) -> Iterator[tuple[str, Iterable[str | None]]]:
    if isinstance(block, Prompts):
        yield "text of the prompt", block.text or ()
        yield "reference answer", block.answer or ()
    elif isinstance(block, Answers):
        yield "answer", block.text
