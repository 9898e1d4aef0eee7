"""Score options by their log-probabilities, and find the option that a generated response names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.scoring.response_scores import (
    NORMALISED,
    ExtractedAnswer,
    ScoresAndAnswers,
    make_failed_scores,
)
from tracker.option_labels import option_name

WRAPPING = " \t\r\n*_`\"'()[]{}<>.,:;!"
"""Characters that may surround an answer."""

LABEL_PROBABILITY = "label_probability"
"""Metric: the probability that the response begins with any of the labels; small if the model answers otherwise."""
MAX_UNLISTED_SHARE = 0.05
"""Maximum share of the probability of all options that may be unknown for a probability to be reported."""


def score_options(
    prompt: RenderedPrompt,
    logprobs: NDArray[np.float64],
    method: str,
    choices: Sequence[str],
    *,
    unlisted_share: float = 0.0,
) -> ScoresAndAnswers:
    """Return scores and answers from the log-probabilities of a prompt's options.

    An unlisted option (-inf) has probability 0. If unlisted options may have more than `MAX_UNLISTED_SHARE` of the
    total probability, the likeliest option is scored, and no probability is returned. Ties are broken in favour of the
    first option.

    The length-normalized log-probability is divided by the number of characters of the option, without the text that
    joins it to the question; an empty option has length 1.

    Args:
        prompt: with its options.
        logprobs: ``(n_options,)``.
        method: ``letters`` or ``loglikelihood``.
        choices: texts of the options.
        unlisted_share: upper bound of the probability share of unlisted options.

    Source: lm-evaluation-harness, tasks of output type multiple_choice, for ``acc`` and ``acc_norm``.
    """
    if not np.isfinite(logprobs).any() or np.isnan(logprobs).any() or np.isposinf(logprobs).any():
        return make_failed_scores()
    probabilities = softmax(logprobs)
    best = int(np.argmax(logprobs))
    is_known = unlisted_share <= MAX_UNLISTED_SHARE
    sure = float(probabilities[best]) if is_known else None
    answers = [ExtractedAnswer(text=option_name(best, choices), probability=sure)]
    scores: dict[str, float] = {}
    gold = prompt.correct_option
    if method == "letters":
        if gold is not None:
            scores["accuracy"] = float(best == gold)
            if is_known:
                scores["gold_probability_letters"] = float(probabilities[gold])
                scores[LABEL_PROBABILITY] = min(1.0, float(np.exp(logprobs).sum()))
        return scores, tuple(answers)
    lengths = np.array([max(1, len(option)) for option in prompt.options], dtype=np.float64)
    by_length = int(np.argmax(logprobs / lengths))
    answers.append(
        ExtractedAnswer(
            extraction=NORMALISED, text=option_name(by_length, choices), probability=float(probabilities[by_length])
        )
    )
    if gold is not None:
        scores["acc"] = float(best == gold)
        scores["acc_norm"] = float(by_length == gold)
        scores["gold_probability_likelihoods"] = float(probabilities[gold])
    return scores, tuple(answers)


def softmax(logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax of log-probabilities, at least one of which is finite; -inf gives 0."""
    weights = np.exp(logprobs - logprobs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def find_option(text: str, labels: Sequence[str], choices: Sequence[str] = ()) -> int | None:
    """Return the index of the option that a generated response names; None if it names none or is ambiguous.

    The first matching rule decides:

    1. the whole text is a label, or the text of an option (case and wrapping ignored);
    2. "the answer is X", "Answer: X": the last such statement;
    3. the text begins with a label, as in "B. Because" or "(B)";
    4. exactly one label occurs as a separate word.

    Labels of one character are case-sensitive, longer ones are not; "A" and "I" before a word in lower case are
    English, not labels.

    Args:
        text: the response.
        labels: expected labels.
        choices: texts of the options, if the labels differ from them.
    """
    whole = _bare(text)
    for known in (labels, choices):
        places = [place for place, name in enumerate(known) if _bare(name) == whole != ""]
        if len(places) == 1:
            return places[0]
    names = tuple(labels)
    if not all(map(str.strip, names)) or not names:
        return None
    places_by_label = {_key(label): place for place, label in enumerate(names)}
    if len(places_by_label) < len(names):
        return None
    after_answer, at_start, anywhere = _patterns(names)
    if matches := after_answer.findall(text):
        return places_by_label[_key(matches[-1])]
    if begins := at_start.match(text):
        return places_by_label[_key(begins[1])]
    alone = {_key(label) for label in anywhere.findall(text)}
    return places_by_label[alone.pop()] if len(alone) == 1 else None


def _bare(text: str) -> str:
    return text.strip(WRAPPING).casefold()


def _key(label: str) -> str:
    bare = label.strip()
    return bare if len(bare) == 1 else bare.casefold()


@lru_cache(maxsize=64)
def _patterns(labels: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a label after "answer is", at the start, and anywhere; the label is their only group."""
    bare = sorted((label.strip() for label in labels), key=len, reverse=True)  # "true story" is tried before "true"
    long = "|".join(re.escape(label) for label in bare if len(label) > 1)
    short = "|".join(_single(label) for label in bare if len(label) == 1)
    label = rf"(?<![\w'’])({'|'.join(filter(None, (f'(?i:{long})' if long else '', short)))})(?![\w'’]|\.\d)"
    # A letter at the start is a label only if it is closed off: "A." but not "A cat".
    closed = r"(?!\.\d)(?=\s*(?:[.,:;)\]}*_`\"'!\-]|\n|$))"
    start = "|".join(filter(None, (rf"(?i:{long})(?!\w)" if long else "", rf"(?:{short}){closed}" if short else "")))
    return (
        re.compile(rf"(?i:\banswer\b\s*(?:is|:|=|would\s+be)\s*:?(?:\s+(?:option|choice))?)[\s\W]{{0,5}}{label}"),
        re.compile(rf"\W*({start})"),
        re.compile(label),
    )


def _single(label: str) -> str:
    return rf"{label}(?! [a-z])" if label in "AI" else re.escape(label)
