"""The scores and the answers of one response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

PLAIN, NORMALISED, BY_PATTERN, WHOLE = "", "acc_norm", "regex", "text"
"""Extraction methods: the default; the length-normalized likeliest option; the match of a pattern; the whole response
if the default answer is the option that it names.
"""
REASONING, FINISH_REASON, JUDGE, JUDGE_PROMPT = "reasoning", "finish_reason", "judge", "judge_prompt"
"""Stored beside the answers: what the model wrote before its answer, why its text ended, the text of a judge's verdict,
and the prompt of the judge.
"""

ScoresAndAnswers = tuple[dict[str, float], tuple["ExtractedAnswer", ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractedAnswer:
    """An answer extracted from a response by one method.

    Attributes:
        extraction: the method, one of the constants above.
        text: the answer; None without one.
        probability: the model's probability of it; None if unknown.
        status: ok, empty (nothing could be extracted), truncated (the text ended at the maximum number of tokens),
            error (the model failed).
    """

    extraction: str = PLAIN
    text: str | None = None
    probability: float | None = None
    status: str = "ok"


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseScores:
    """The scores and answers of one response.

    Attributes:
        prompt_id: key of the prompt.
        trial: 0 for the first response.
        scores: by name of the metric; empty if the model failed.
        answers: one per extraction method.
    """

    prompt_id: int
    trial: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    answers: tuple[ExtractedAnswer, ...] = ()


def make_failed_scores() -> ScoresAndAnswers:
    """Return the result of a failed response: no scores, and an answer with the status error."""
    return {}, (ExtractedAnswer(status="error"),)


def make_truncated_scores(text: str, metrics: Sequence[str], *, has_reference: bool) -> ScoresAndAnswers:
    """Return the result of a truncated response: 0 in every metric, and the text with the status truncated."""
    answer = ExtractedAnswer(text=text.strip() or None, status="truncated")
    return dict.fromkeys(metrics, 0.0) if has_reference else {}, (answer,)
