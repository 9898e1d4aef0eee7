"""A sample of a log, complete or as a summary: its prompt and scores."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tracker.option_labels import option_letter

FIELDS = ("id", "epoch", "input", "choices", "target", "metadata", "scores", "score", "error")
"""Fields that are read of a sample; transcripts are not."""
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
CUT = "...\n(content truncated)"
ELSEWHERE = "attachment://"
REMOVED = "Key removed from summary (> 1k)"
MAX_DETAIL_LENGTH = 200
MAX_ANSWER_LENGTH, ANSWER_BYTES_READ = 1024, 8192
MAX_EPOCHS = 1_000_000
PER_SAMPLE = 2_000
"""Approximate size of a sample without texts, including its scores."""


class InvalidSampleError(Exception):
    """An entry that is not a valid sample, with the reason."""


@dataclass(frozen=True, slots=True)
class InspectSample:
    """The data of a sample.

    Attributes:
        key: id of the harness as text.
        epoch: number of the epoch, from 1.
        text: the question; None if the log truncates it or stores it elsewhere.
        cut: whether the log truncates the text.
        errored: whether it ended with a technical error.
        scores: logged scores by scorer.
    """

    key: str
    epoch: int
    text: str | None
    cut: bool
    choices: list[str] | None
    answer: str | None
    details: dict[str, Any] | None
    errored: bool
    scores: Mapping[str, Any]

    @property
    def size(self) -> int:
        """Return the approximate size in bytes."""
        return PER_SAMPLE + len(self.text or "") + sum(map(len, self.choices or ()))

    @property
    def content(self) -> int:
        """Return a 63-bit hash of the content; 0 if the text is unknown."""
        if self.text is None:
            return 0
        return hash_to_int("\0".join((self.text, *(self.choices or ())))) or 1


def hash_to_int(text: str) -> int:
    """Return 63 bits of a hash."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1


def sample(data: Any) -> InspectSample:
    """Read a sample.

    Raises:
        NotASampleError: the entry is not a sample.
    """
    if not isinstance(data, dict):
        raise InvalidSampleError("is not a sample")
    key = data.get("id")
    if isinstance(key, bool) or not isinstance(key, (int, float, str)) or key == "":
        raise InvalidSampleError("has no id")
    epoch = data.get("epoch", 1)
    if isinstance(epoch, bool) or not isinstance(epoch, int) or not 1 <= epoch <= MAX_EPOCHS:
        raise InvalidSampleError(f"its epoch is {str(epoch)[:40]!r}, not a whole number of at least 1")
    text, cut = question(data.get("input"))
    choices = _choices(data.get("choices"))
    targets = _targets(data.get("target"))
    details = _details(data.get("metadata"))
    if len(targets) > 1 and sum(map(len, targets)) <= MAX_DETAIL_LENGTH:
        details["target"] = targets
    scores = data.get("scores")
    if not isinstance(scores, dict):  # the first versions have one scorer
        score = data.get("score")
        scores = {"score": score} if isinstance(score, dict) else {}
    return InspectSample(
        key=str(key),
        epoch=epoch,
        text=text,
        cut=cut,
        choices=choices,
        answer=_gold(targets, choices),
        details=details or None,
        errored=bool(data.get("error")),
        scores=scores,
    )


def question(messages: Any) -> tuple[str | None, bool]:
    """Return the prompt text, or the user's messages, and whether the log truncates it."""
    if isinstance(messages, str):
        cut = messages.endswith(CUT)
        return None if cut or messages.startswith(ELSEWHERE) else messages.strip() or None, cut
    texts = list(_user_texts(messages))
    if not texts or any(text.startswith(ELSEWHERE) for text in texts):
        return None, False
    if any(text.endswith(CUT) for text in texts):
        return None, True
    return "\n".join(texts).strip() or None, False


def values(name: str, score: Any) -> Iterator[tuple[str, Any]]:
    """Yield the metrics of a score with their values: one, or one for each key of a mapping."""
    value = score.get("value") if isinstance(score, dict) else score
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"{name}/{key}", part
    else:
        yield name, value


def number(value: Any) -> float | None:
    """Convert a value as Inspect does: C, I, P and N are 1, 0, 0.5 and 0; yes and no are 1 and 0.

    NaN means not scored. None means that the value is not a score: lists, mappings, other words, infinity, numbers
    beyond 2^53.
    """
    if value is None:
        return math.nan
    if isinstance(value, str):
        grade = GRADES.get(value, WORDS.get(value.lower()))
        if grade is not None:
            return grade
        try:
            value = float(value)
        except ValueError:
            return None
        return value if math.isfinite(value) and abs(value) <= 2**53 else None
    if isinstance(value, (bool, int, float)):
        if value != value:
            return math.nan
        return float(value) if -(2**53) <= value <= 2**53 else None
    return None


def is_word(scorer: str, metric: str, value: Any) -> bool:
    """Return whether a value is a word that is no score, or a null within a mapping: Inspect's means count it as 0."""
    return (value is None and metric != scorer) or (isinstance(value, str) and number(value) is None)


def parse_answer(score: Any) -> str | None:
    """Return the answer that a scorer extracted, on one line and truncated as in summaries."""
    answer = score.get("answer") if isinstance(score, dict) else None
    if not isinstance(answer, str):
        return None
    line = " ".join(answer[:ANSWER_BYTES_READ].split())
    return line if len(line) <= MAX_ANSWER_LENGTH else textwrap.shorten(line, MAX_ANSWER_LENGTH, placeholder="...")


def _user_texts(messages: Any) -> Iterator[str]:
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict) or message.get("role") != "user":
            continue
        content = message.get("content")
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, str):
                yield part
            elif isinstance(part, dict):
                kind = part.get("type")
                part_text = part.get("text") if kind == "text" else None
                # Summaries contain the type of a picture or document instead of its content.
                yield part_text if isinstance(part_text, str) else f"({str(kind).capitalize()})"


def _choices(value: Any) -> list[str] | None:
    if not isinstance(value, list) or not value or not all(isinstance(choice, (str, int, float)) for choice in value):
        return None
    return [str(choice).strip() for choice in value]


def _targets(value: Any) -> list[str]:
    if isinstance(value, str):
        return [] if value.endswith(CUT) or not value.strip() else [value.strip()]
    values = value if isinstance(value, list) else [value]
    texts = [str(target).strip() for target in values if isinstance(target, (str, int, float))]
    return [] if any(text.endswith(CUT) for text in texts) else [text for text in texts if text]


def _gold(targets: list[str], choices: list[str] | None) -> str | None:
    """Return the only reference answer; the letter for multiple choice."""
    if len(targets) != 1:
        return None
    (target,) = targets
    if choices and choices.count(target) == 1 and target not in map(option_letter, range(len(choices))):
        return option_letter(choices.index(target))
    return target


def _details(metadata: Any) -> dict[str, Any]:
    """Return the short fields of the metadata."""
    return {
        str(name): value
        for name, value in (metadata.items() if isinstance(metadata, dict) else ())
        if (isinstance(value, str) and len(value) <= MAX_DETAIL_LENGTH and value != REMOVED)
        or (isinstance(value, (bool, int, float)) and -(2**53) <= value <= 2**53)
    }
