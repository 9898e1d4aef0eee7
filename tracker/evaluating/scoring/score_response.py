"""Scores and answers of one reply."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tracker.errors import SelectionError
from tracker.evaluating.choices import METHODS
from tracker.evaluating.prompt_templates.rendered_prompt import Question
from tracker.evaluating.responses import Reply

PLAIN, NORMALISED, BY_PATTERN, WHOLE = "", "acc_norm", "regex", "text"
"""How an answer was read off: the only or plain way; the option likeliest by length; what a pattern found; all that a
model wrote, where the plain answer is the option that it names."""

SCORING = 1
"""Raised when the same reply comes to be scored otherwise: one run is never scored in two ways."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedAnswer:
    """What a model answered, read off in one way.

    Attributes:
        extraction: the way.
        text: the answer; None where there is none.
        probability: the model's own probability of it; None where unknown.
        status: ok, empty (nothing could be read off), error (the model failed).
    """

    extraction: str = PLAIN
    text: str | None = None
    probability: float | None = None
    status: str = "ok"


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What becomes of one reply in the store.

    Attributes:
        prompt_id: key of the prompt.
        trial: 0 for the first answer to it.
        scores: by name of the metric; empty where the model failed.
        answers: one for each way of reading the answer off.
    """

    prompt_id: int
    trial: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    answers: tuple[JudgedAnswer, ...] = ()


def check_scoring(
    metrics: Sequence[str] = ("exact_match",), extract: str | None = None, ignore: Collection[str] = ()
) -> None:
    """Refuse what `judge` would refuse, before a model has worked for hours.

    Raises:
        SelectionError: a metric or a difference to ignore that is not known, or a pattern that is none.
        MissingExtraError: a metric needs packages that are not installed.
    """
    from tracker.evaluating.scoring.written_answers import check_ignored, check_metrics, pattern

    check_metrics(metrics)
    check_ignored(ignore)
    if extract is not None:
        pattern(extract)


def judge(
    question: Question,
    reply: Reply,
    *,
    method: str,
    metrics: Sequence[str] = ("exact_match",),
    extract: str | None = None,
    ignore: Collection[str] = (),
    choices: Sequence[str] | None = None,
) -> Judged:
    """Scores and answers of a reply.

    - ``letters``: ``accuracy`` and ``gold_probability_letters``. Where the model wrote instead of giving
      probabilities, the option is read off what it wrote, and there is no probability.
    - ``loglikelihood``: ``acc``, ``acc_norm`` and ``gold_probability_likelihoods``.
    - ``generation``: the metrics asked for.

    Of options that are equally likely, the first is chosen. A reply with an error, or in which no option has a finite
    probability, has no scores: the prompt was not measured. An answer from which nothing can be read off scores 0.

    Args:
        question: as it was asked.
        reply: to it.
        method: ``letters``, ``loglikelihood`` or ``generation``.
        metrics: of written answers.
        extract: pattern that finds the answer in what the model wrote: its last match, and of that the first group
            that takes part; the whole match where it has no groups.
        ignore: of written answers, differences that do not matter: see `written.IGNORABLE`.
        choices: texts of the prompt's options, in order; by default what the question calls them.

    Raises:
        SelectionError: a method, a metric or a difference to ignore that is not known, or a pattern that is none.
        MissingExtraError: a metric needs packages that are not installed.
    """
    from tracker.evaluating.scoring.options import compared
    from tracker.evaluating.scoring.written_answers import judged_option, judged_text

    if method not in METHODS:
        raise SelectionError(f"No method {method!r}. Known: {', '.join(METHODS)}.")
    names = tuple(choices) if choices is not None else question.options
    if reply.error:
        found = failed()
    elif method != "generation" and reply.logprobs is not None:
        found = compared(question, reply.logprobs, method, names, unlisted_share=reply.unlisted_share)
    elif reply.text is None or method == "loglikelihood":
        found = failed()
    elif method == "letters":
        found = judged_option(question, reply.text, ("accuracy",), extract, ignore, names)
    elif question.options:
        found = judged_option(question, reply.text, metrics, extract, ignore, names)
    else:
        found = judged_text(question, reply.text, metrics, extract, ignore)
    scores, answers = found
    return Judged(prompt_id=reply.prompt_id, trial=reply.trial, scores=scores, answers=answers)


def failed() -> tuple[dict[str, float], tuple[JudgedAnswer, ...]]:
    """No scores, and an answer that says so."""
    return {}, (JudgedAnswer(status="error"),)
