"""Options compared by their log-probabilities, and found in what a model wrote."""

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
"""What may stand around an answer without being part of it."""

MAX_UNLISTED_SHARE = 0.05
"""Of the probability of all options: what may be unknown where a probability is told."""


def score_options(
    prompt: RenderedPrompt,
    logprobs: NDArray[np.float64],
    method: str,
    choices: Sequence[str],
    *,
    unlisted_share: float = 0.0,
) -> ScoresAndAnswers:
    """Scores and answers from the log-probabilities of a question's options.

    An option of which nothing is known (-inf) has probability 0; where such options may have more than
    `MAX_UNLISTED_SHARE` of the probability of all, the likeliest is scored, and no probability is returned. Of equal
    ones the first is chosen.
    The log-probability by length is divided by the number of characters of what the model was to say, without what
    joins it to the question; an empty option counts one.

    Args:
        prompt: with its options.
        logprobs: ``(n_options,)``.
        method: ``letters`` or ``loglikelihood``.
        choices: texts of the options.
        unlisted_share: largest part of the probability that options of which nothing is known may have.

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
    """Probabilities that sum to 1 in proportion to ``exp(logprobs)``; one at least is finite, -inf gives 0."""
    weights = np.exp(logprobs - logprobs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def find_option(text: str, labels: Sequence[str], choices: Sequence[str] = ()) -> int | None:
    """The place of the option that a written answer names; None where it names none, or it cannot be told which.

    The first of these that finds one:

    1. all of the text is a label, or the text of an option (letter case and wrapping aside);
    2. "the answer is X", "Answer: X": the last time that it says so;
    3. the text begins with a label, as in "B. Because" or "(B)";
    4. only one label stands in it as a word of its own.

    Labels of one character count in their own letter case, longer ones in any; "A" and "I" before a word in small
    letters are English, not labels.

    Args:
        text: what the model wrote.
        labels: what it was to say.
        choices: texts of the options, where the labels are something else.
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
    """Finds a label after "answer is", at the start, and anywhere; the label is their only group."""
    bare = sorted((label.strip() for label in labels), key=len, reverse=True)  # "true story" goes before "true"
    long = "|".join(re.escape(label) for label in bare if len(label) > 1)
    short = "|".join(_single(label) for label in bare if len(label) == 1)
    label = rf"(?<![\w'’])({'|'.join(filter(None, (f'(?i:{long})' if long else '', short)))})(?![\w'’]|\.\d)"
    # A letter at the start is a label only where something closes it off: "A." but not "A cat".
    closed = r"(?!\.\d)(?=\s*(?:[.,:;)\]}*_`\"'!\-]|\n|$))"
    start = "|".join(filter(None, (rf"(?i:{long})(?!\w)" if long else "", rf"(?:{short}){closed}" if short else "")))
    return (
        re.compile(rf"(?i:\banswer\b\s*(?:is|:|=|would\s+be)\s*:?(?:\s+(?:option|choice))?)[\s\W]{{0,5}}{label}"),
        re.compile(rf"\W*({start})"),
        re.compile(label),
    )


def _single(label: str) -> str:
    return rf"{label}(?! [a-z])" if label in "AI" else re.escape(label)
