"""Which option is right, and which written answers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracker.evaluating.prompt_templates.fields import option_labels
from tracker.option_labels import option_letters

NO_REFERENCE_ANSWER = "no gold answer"
NOT_AN_OPTION = "gold answer is none of the options"
SEVERAL_OPTIONS = "gold answer names several options"

FURTHER_ANSWERS = "accepted_answers"
"""Further field of a prompt that lists all answers that count as right."""


def find_correct_option(gold: str | None, choices: Sequence[str]) -> int | str:
    """Place of the right option, or why it is not known.

    A gold answer is the letter of an option (A for the first, letter case included) or its text, space around them
    taken off. Where it is the letter of one option and the text of another, or the text of two, it names several.

    Args:
        gold: as stored.
        choices: texts of the options.
    """
    gold = (gold or "").strip()
    if not gold:
        return NO_REFERENCE_ANSWER
    lettered = option_letters(len(choices))
    texts = [place for place, choice in enumerate(choices) if choice.strip() == gold]
    places = {*texts, lettered.index(gold)} if gold in lettered else {*texts}
    if len(places) == 1:
        return places.pop()
    return SEVERAL_OPTIONS if places else NOT_AN_OPTION


def list_written_answers(gold: str, details: Any) -> tuple[str, ...]:
    """The gold answers of a prompt without options, any of which is right.

    Args:
        gold: as stored.
        details: further fields of the prompt; a list of texts in `FURTHER_ANSWERS` is taken too.
    """
    more = details.get(FURTHER_ANSWERS)
    several = (
        [answer for answer in more if isinstance(answer, str) and answer.strip()] if isinstance(more, list) else []
    )
    return tuple(dict.fromkeys([gold.strip(), *(answer.strip() for answer in several)]))


def list_option_answers(kind: str, place: int, choices: Sequence[str], *, texts_only: bool) -> tuple[str, ...]:
    """What a model may write to name an option.

    Its label and its text; of these only the one that names no other option.

    Args:
        kind: of the labels.
        place: of the right option.
        choices: texts of the options.
        texts_only: whether the model is shown no labels.
    """
    labels, texts = option_labels(kind, choices), [choice.strip() for choice in choices]
    label, text = labels[place], texts[place]
    if texts_only:
        return (text,)
    return (label, text) if text not in labels or text == label else (label,)
