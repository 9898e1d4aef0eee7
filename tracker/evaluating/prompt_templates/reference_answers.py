"""Find the correct option or the accepted texts from a prompt's reference answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracker.evaluating.prompt_templates.fields import option_labels
from tracker.option_labels import option_letters

NO_REFERENCE_ANSWER = "no reference answer"
NOT_AN_OPTION = "reference answer is none of the options"
SEVERAL_OPTIONS = "reference answer matches several options"

FURTHER_ANSWERS = "accepted_answers"
"""Further field of a prompt that lists all accepted answers."""


def find_correct_option(gold: str | None, choices: Sequence[str]) -> int | str:
    """Return the index of the correct option, or the reason why it is unknown.

    A reference answer is the letter of an option (A for the first, case-insensitive) or its text, without surrounding
    space. It is ambiguous if it is the letter of one option and the text of another, or the text of two.

    Args:
        gold: reference answer as stored.
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
    """Return the reference answers of a prompt without options, any of which is correct.

    Args:
        gold: reference answer as stored.
        details: further fields of the prompt; a list of texts in `FURTHER_ANSWERS` is included.
    """
    more = details.get(FURTHER_ANSWERS)
    several = (
        [answer for answer in more if isinstance(answer, str) and answer.strip()] if isinstance(more, list) else []
    )
    return tuple(dict.fromkeys([gold.strip(), *(answer.strip() for answer in several)]))


def list_option_answers(kind: str, place: int, choices: Sequence[str], *, texts_only: bool) -> tuple[str, ...]:
    """Return the texts by which a response may name an option: its label and its text, without those that name another
    option.

    Args:
        kind: kind of the labels.
        place: index of the correct option.
        choices: texts of the options.
        texts_only: whether the model sees no labels.
    """
    labels, texts = option_labels(kind, choices), [choice.strip() for choice in choices]
    label, text = labels[place], texts[place]
    if texts_only:
        return (text,)
    return (label, text) if text not in labels or text == label else (label,)
