"""Written answers: what is read off them, and how near it comes to the gold answers."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache

from tracker.errors import SelectionError
from tracker.evaluating.prompt_templates.rendered_prompt import Question
from tracker.evaluating.scoring import rouge
from tracker.evaluating.scoring.options import option_said
from tracker.evaluating.scoring.score_response import BY_PATTERN, PLAIN, WHOLE, JudgedAnswer
from tracker.option_labels import option_name

IGNORABLE: Mapping[str, str] = {
    "case": "capital and small letters",
    "punctuation": "punctuation, unless it stands between two digits or is a minus",
    "articles": "the words a, an and the",
    "number-format": "of answers that are a number: thousands commas, currency signs, zeros behind the point",
}
"""Differences between an answer and a gold answer that `exact_match` and `f1` may overlook."""
_ARTICLES = re.compile(r"\b(?:an?|the)\b", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?)[$€£]?([+-]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?\.?")

Read = tuple[dict[str, float], tuple[JudgedAnswer, ...]]


def exact_match(answer: str, references: Sequence[str], ignore: Collection[str] = ()) -> float:
    """1 where the answer is one of the references, else 0; surrounding space never counts."""
    said = normalised(answer, ignore)
    return float(any(normalised(reference, ignore) == said for reference in references))


def f1(answer: str, references: Sequence[str], ignore: Collection[str] = ()) -> float:
    """Harmonic mean of precision and recall of words, for the reference that is nearest; 1 where both have none."""
    return max(_shared_words(normalised(answer, ignore), normalised(reference, ignore)) for reference in references)


METRICS: Mapping[str, Callable[[str, Sequence[str], Collection[str]], float]] = {
    "exact_match": exact_match,
    "f1": f1,
    **{name: rouge.scorer(name) for name in rouge.KINDS},
}
"""What a written answer can be scored by: of the answer, the references and what to ignore, in [0, 1]."""


def judged_text(
    question: Question, text: str, metrics: Sequence[str], extract: str | None, ignore: Collection[str]
) -> Read:
    """Scores and answers of what a model wrote; no scores where the question has no references."""
    check_metrics(metrics)
    check_ignored(ignore)
    said, answers = _read(text, extract)
    if not question.references:
        return {}, answers
    if said is None:
        return dict.fromkeys(metrics, 0.0), answers
    return {name: METRICS[name](said, question.references, ignore) for name in metrics}, answers


def judged_option(
    question: Question,
    text: str,
    metrics: Sequence[str],
    extract: str | None,
    ignore: Collection[str],
    choices: Sequence[str],
) -> Read:
    """Scores and answers where a model wrote which option it takes.

    ``accuracy`` and ``exact_match`` are whether the option that it names is the right one; other metrics compare what
    it wrote with the references, or where there are none with the text of the right option. The answer is the option's
    name; the whole text is kept beside it.
    """
    own = ("accuracy", "exact_match")
    check_metrics([name for name in metrics if name not in own])
    check_ignored(ignore)
    said, written = _read(text, extract)
    place = None if said is None else option_said(said, question.options, choices)
    named = None if place is None else option_name(place, choices)
    answers = (_answer(PLAIN, named), _answer(WHOLE, written[0].text))
    if extract is not None:
        answers = (written[0], _answer(BY_PATTERN, named))
    if question.gold is None:
        return {}, answers
    references = question.references or (choices[question.gold],)
    scores = {
        name: float(place == question.gold) if name in own else METRICS[name](said or "", references, ignore)
        for name in metrics
    }
    return scores, answers


def _read(text: str, extract: str | None) -> tuple[str | None, tuple[JudgedAnswer, ...]]:
    """The answer that counts, None where there is none; and the answers to be stored, the whole text first."""
    whole = text.strip() or None
    answers = [_answer(PLAIN, whole)]
    if extract is None:
        return whole, tuple(answers)
    found = extracted(text, extract)
    return found, (*answers, _answer(BY_PATTERN, found))


def _answer(extraction: str, text: str | None) -> JudgedAnswer:
    return JudgedAnswer(extraction=extraction, text=text, status="empty" if text is None else "ok")


def extracted(text: str, extract: str) -> str | None:
    """What a pattern finds: of its last match the first group that takes part, or all of it where it has no groups.

    None where it finds nothing, or nothing but space.
    """
    matches = list(pattern(extract).finditer(text))
    if not matches:
        return None
    last = matches[-1]
    found = next((group for group in last.groups() if group is not None), None) if last.re.groups else last[0]
    return (found or "").strip() or None


@lru_cache(maxsize=16)
def pattern(extract: str) -> re.Pattern[str]:
    """The compiled pattern.

    Raises:
        SelectionError: it is none.
    """
    try:
        return re.compile(extract)
    except (re.error, RecursionError, OverflowError) as error:
        raise SelectionError(
            f"{extract!r} is no regular expression: {error}. An example: 'answer is ([A-D])'."
        ) from error


def check_metrics(metrics: Sequence[str]) -> None:
    """Refuse metrics that are not known, or whose packages are missing.

    Raises:
        SelectionError: there is no such metric.
        MissingExtraError: it needs packages that are not installed.
    """
    for name in metrics:
        if name not in METRICS:
            raise SelectionError(f"No metric {name!r} of written answers. Known: {', '.join(METRICS)}.")
        if name in rouge.KINDS:
            rouge.check()


def check_ignored(ignore: Collection[str]) -> None:
    """Refuse words that are no difference to ignore.

    Raises:
        SelectionError: there is no such difference.
    """
    for word in ignore:
        if word not in IGNORABLE:
            raise SelectionError(f"{word!r} cannot be ignored. Known: {', '.join(IGNORABLE)}.")


def normalised(text: str, ignore: Collection[str] = ()) -> str:
    """A text without surrounding space and without the differences that do not matter."""
    made = text.strip()
    if "number-format" in ignore:
        made = _plain_number(made)
    if "case" in ignore:
        made = made.casefold()
    if "punctuation" in ignore:
        made = "".join(letter for at, letter in enumerate(made) if not _is_mark(made, at))
    if "articles" in ignore:
        made = _ARTICLES.sub(" ", made)
    return " ".join(made.split()) if {"punctuation", "articles"} & set(ignore) else made


def _plain_number(text: str) -> str:
    """``1000`` for ``$1,000.00``; any other text as it is."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text
    sign, after, digits, fraction = found.groups()
    if sign and after:
        return text
    plain = f"{Decimal((sign or after) + digits.replace(',', '') + (fraction or '')):f}"
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return "0" if plain == "-0" else plain


def _is_mark(text: str, at: int) -> bool:
    letter = text[at]
    if letter not in string.punctuation and not unicodedata.category(letter).startswith("P"):
        return False
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    inside = before.isdigit() and after.isdigit()
    minus = letter == "-" and after.isdigit() and (not before or before.isspace())
    return not (inside or minus)


def _shared_words(said: str, reference: str) -> float:
    ours, theirs = said.split(), reference.split()
    if not ours or not theirs:
        return float(ours == theirs)
    n_shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * n_shared / (len(ours) + len(theirs))
