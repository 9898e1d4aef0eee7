"""One sample of a log, as its summary or as a whole: which prompt it is, and what it scored."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tracker.option_labels import option_letter

FIELDS = ("id", "epoch", "input", "choices", "target", "metadata", "scores", "score", "error")
"""What is read of a sample; its transcript is not."""
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
CUT = "...\n(content truncated)"
ELSEWHERE = "attachment://"
REMOVED = "Key removed from summary (> 1k)"
MAX_DETAIL_LENGTH = 200
MAX_ANSWER_LENGTH, ANSWER_BYTES_READ = 1024, 8192
MAX_EPOCHS = 1_000_000
PER_SAMPLE = 2_000
"""Bytes of a sample beside its texts, its scores and what they hold included."""


class InvalidSampleError(Exception):
    """What stands where a sample should; says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class InspectSample:
    """What is read of a sample.

    Attributes:
        key: the harness's id, as text.
        epoch: counted from 1.
        text: the question; None where the log holds only a part of it, or keeps it elsewhere.
        cut: whether the log holds only a part of it.
        errored: whether it ended with a technical error.
        scores: by scorer, as logged.
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
        """Bytes in memory, roughly."""
        return PER_SAMPLE + len(self.text or "") + sum(map(len, self.choices or ()))

    @property
    def content(self) -> int:
        """A number, 63 bits, by which contents are told apart; 0 where the text is not known."""
        if self.text is None:
            return 0
        return hash_to_int("\0".join((self.text, *(self.choices or ())))) or 1


def hash_to_int(text: str) -> int:
    """63 bits of a hash."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1


def sample(data: Any) -> InspectSample:
    """Read a sample.

    Raises:
        NotASampleError: it is none.
    """
    if not isinstance(data, dict):
        raise InvalidSampleError("is no sample")
    key = data.get("id")
    if isinstance(key, bool) or not isinstance(key, (int, float, str)) or key == "":
        raise InvalidSampleError("has no id")
    epoch = data.get("epoch", 1)
    if isinstance(epoch, bool) or not isinstance(epoch, int) or not 1 <= epoch <= MAX_EPOCHS:
        raise InvalidSampleError(f"its epoch is {str(epoch)[:40]!r}, not a number from 1 up")
    text, cut = question(data.get("input"))
    choices = _choices(data.get("choices"))
    targets = _targets(data.get("target"))
    details = _details(data.get("metadata"))
    if len(targets) > 1 and sum(map(len, targets)) <= MAX_DETAIL_LENGTH:
        details["target"] = targets
    scores = data.get("scores")
    if not isinstance(scores, dict):  # the first versions had one scorer
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
    """The text that was asked, the user's messages where there are messages; and whether the log cut it short."""
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
    """The metrics of a score, each with its value as logged: one, or one for each key of a mapping."""
    value = score.get("value") if isinstance(score, dict) else score
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"{name}/{key}", part
    else:
        yield name, value


def number(value: Any) -> float | None:
    """A value as Inspect counts it: C, I, P and N are 1, 0, 0.5 and 0, yes and no 1 and 0.

    NaN means not scored; None is what cannot be a score: lists, mappings, other words, infinity, numbers beyond 2^53.
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


def parse_answer(score: Any) -> str | None:
    """The answer that a scorer took from what the model parse_answer, in one line and cut as summaries have it."""
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
                # Summaries have the kind of a picture or a document in its place.
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
    """The one right answer; of multiple choice, its letter."""
    if len(targets) != 1:
        return None
    (target,) = targets
    if choices and choices.count(target) == 1 and target not in map(option_letter, range(len(choices))):
        return option_letter(choices.index(target))
    return target


def _details(metadata: Any) -> dict[str, Any]:
    """Short fields of the metadata."""
    return {
        str(name): value
        for name, value in (metadata.items() if isinstance(metadata, dict) else ())
        if (isinstance(value, str) and len(value) <= MAX_DETAIL_LENGTH and value != REMOVED)
        or (isinstance(value, (bool, int, float)) and -(2**53) <= value <= 2**53)
    }
