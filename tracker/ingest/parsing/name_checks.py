"""Names and texts that are too long to store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from weakref import WeakSet

from tracker.errors import BadInputError
from tracker.ingest.measurement import Answers, Measurement, Prompts, Scores, TaskScores
from tracker.settings.input_limits import InputLimits, explain_limit

KEY_FACTOR = 50
"""The name of a prompt may be this many times as long as other names: some harnesses name prompts by their text."""
START_LENGTH = 40


class LengthChecks:
    """Reject blocks with a name or text beyond the limits; prompts that several blocks share are checked once.

    Args:
        path: the file, for messages.
        limits: of names and values.
    """

    def __init__(self, path: Path, limits: InputLimits) -> None:
        self._path, self._limits = path, limits
        self._checked: WeakSet[Prompts] = WeakSet()

    def check(self, block: Measurement) -> None:
        """Check a block.

        Raises:
            BadInputError: with the start of the name or text.
        """
        prompts = block if isinstance(block, Prompts) else getattr(block, "prompts", None)
        for part in (block, prompts):
            if isinstance(part, Prompts):
                if part not in self._checked:
                    self._checked.add(part)
                    self._check_part(part)
            elif part is not None:
                self._check_part(part)

    def _check_part(self, part: Measurement) -> None:
        for kind, names in _names(part):
            _check(self._path, kind, names, self._limits.name, "name", 1)
        if isinstance(part, Prompts):
            _check(self._path, "name of the prompt", part.keys, KEY_FACTOR * self._limits.name, "name", KEY_FACTOR)
        for kind, texts in _texts(part):
            _check(self._path, kind, texts, self._limits.value, "value", 1)


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


def _texts(block: Measurement) -> Iterator[tuple[str, Iterable[str | None]]]:
    if isinstance(block, Prompts):
        yield "text of the prompt", block.text or ()
        yield "reference answer", block.answer or ()
    elif isinstance(block, Answers):
        yield "answer", block.text
