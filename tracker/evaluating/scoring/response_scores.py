"""The scores and the answers of one response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PLAIN, NORMALISED, BY_PATTERN, WHOLE = "", "acc_norm", "regex", "text"
"""Extractions: the only or plain one; the option likeliest by length; the match of a pattern; all that a model wrote,
where the plain answer is the option that it names."""

ScoresAndAnswers = tuple[dict[str, float], tuple["ExtractedAnswer", ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractedAnswer:
    """An answer of a model, extracted by one method.

    Attributes:
        extraction: the method, one of the constants above.
        text: the answer; None where there is none.
        probability: the model's own probability of it; None where unknown.
        status: ok, empty (nothing could be extracted), error (the model failed).
    """

    extraction: str = PLAIN
    text: str | None = None
    probability: float | None = None
    status: str = "ok"


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseScores:
    """The scores and the answers of one response.

    Attributes:
        prompt_id: key of the prompt.
        trial: 0 for the first answer to it.
        scores: by name of the metric; empty where the model failed.
        answers: one for each extraction.
    """

    prompt_id: int
    trial: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    answers: tuple[ExtractedAnswer, ...] = ()


def make_failed_scores() -> ScoresAndAnswers:
    """No scores, and an answer that says so."""
    return {}, (ExtractedAnswer(status="error"),)
