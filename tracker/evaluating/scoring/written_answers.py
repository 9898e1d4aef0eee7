"""Generated answers: extract them, and compare them with the reference answers."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache

from tracker.errors import SelectionError
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.scoring import math_equality, rouge
from tracker.evaluating.scoring.options import find_option
from tracker.evaluating.scoring.response_scores import (
    BY_PATTERN,
    PLAIN,
    WHOLE,
    ExtractedAnswer,
    ScoresAndAnswers,
)
from tracker.evaluating.scoring.rules import ScoringRules
from tracker.option_labels import option_name

IGNORABLE: Mapping[str, str] = {
    "case": "upper and lower case",
    "punctuation": "punctuation, except between two digits or as a minus sign",
    "articles": "the words a, an and the",
    "number-format": "in answers that are a number: thousands separators, currency signs, trailing zeros",
}
"""Differences from a reference answer that `exact_match` and `f1` can ignore."""
_ARTICLES = re.compile(r"\b(?:an?|the)\b", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?)[$€£]?([+-]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?\.?")


def exact_match(answer: str, references: Sequence[str], ignore: Collection[str] = ()) -> float:
    """Return 1 if the answer equals a reference, else 0; surrounding space is always ignored."""
    normalized = normalize(answer, ignore)
    return float(any(normalize(reference, ignore) == normalized for reference in references))


def f1(answer: str, references: Sequence[str], ignore: Collection[str] = ()) -> float:
    """Return the harmonic mean of precision and recall of words, for the best reference; 1 if both have no words."""
    return max(_shared_words(normalize(answer, ignore), normalize(reference, ignore)) for reference in references)


METRICS: Mapping[str, Callable[[str, Sequence[str], Collection[str]], float]] = {
    "exact_match": exact_match,
    "f1": f1,
    "math_verify": math_equality.math_verify,
    **{name: rouge.make_scorer(name) for name in rouge.KINDS},
}
"""Metrics of generated answers: functions of the answer, the references and what to ignore, in [0, 1]."""


def score_text(prompt: RenderedPrompt, text: str, rules: ScoringRules) -> ScoresAndAnswers:
    """Return scores and answers of a generated response; no scores if the prompt has no references."""
    check_rules(rules)
    answer, answers = _extract(text, rules.extract)
    if not prompt.references:
        return {}, answers
    if answer is None:
        return dict.fromkeys(rules.response_metrics, 0.0), answers
    references = extract_references(prompt.references, rules)
    return {name: METRICS[name](answer, references, rules.ignore) for name in rules.response_metrics}, answers


def extract_references(references: Sequence[str], rules: ScoringRules) -> tuple[str, ...]:
    """Return the reference answers to compare with; one without a match is used whole."""
    pattern = rules.reference_pattern
    if pattern is None:
        return tuple(references)
    return tuple(extract_answer(reference, pattern) or reference for reference in references)


def score_written_option(
    prompt: RenderedPrompt, text: str, rules: ScoringRules, choices: Sequence[str]
) -> ScoresAndAnswers:
    """Return scores and answers if the model generated the option it chooses.

    ``accuracy`` and ``exact_match`` are 1 if the named option is correct. Other metrics compare the response with the
    references, or without references with the text of the correct option. The answer is the option's label; the whole
    text is stored beside it.
    """
    option_metrics = ("accuracy", "exact_match")
    metrics, ignore = rules.response_metrics, rules.ignore
    check_rules(replace(rules, metrics=tuple(name for name in metrics if name not in option_metrics)))
    answer, written = _extract(text, rules.extract)
    place = None if answer is None else find_option(answer, prompt.options or prompt.labels, choices)
    option = None if place is None else option_name(place, choices)
    answers = (_make_answer(PLAIN, option), _make_answer(WHOLE, written[0].text))
    if rules.extract is not None:
        answers = (written[0], _make_answer(BY_PATTERN, option))
    if prompt.correct_option is None:
        return {}, answers
    references = extract_references(prompt.references or (choices[prompt.correct_option],), rules)
    scores = {
        name: float(place == prompt.correct_option)
        if name in option_metrics
        else METRICS[name](answer or "", references, ignore)
        for name in metrics
    }
    return scores, answers


def _extract(text: str, extract: str | None) -> tuple[str | None, tuple[ExtractedAnswer, ...]]:
    """Return the answer to score, None without one, and the answers to store, the whole text first."""
    whole = text.strip() or None
    answers = [_make_answer(PLAIN, whole)]
    if extract is None:
        return whole, tuple(answers)
    match = extract_answer(text, extract)
    return match, (*answers, _make_answer(BY_PATTERN, match))


def _make_answer(extraction: str, text: str | None) -> ExtractedAnswer:
    return ExtractedAnswer(extraction=extraction, text=text, status="empty" if text is None else "ok")


def extract_answer(text: str, extract: str) -> str | None:
    """Return a pattern's last match: its first group that takes part, or the whole match without groups.

    None if there is no match, or only white space.
    """
    matches = list(compile_pattern(extract).finditer(text))
    if not matches:
        return None
    last = matches[-1]
    match = next((group for group in last.groups() if group is not None), None) if last.re.groups else last[0]
    return (match or "").strip() or None


@lru_cache(maxsize=16)
def compile_pattern(extract: str) -> re.Pattern[str]:
    """Compile a pattern.

    Raises:
        SelectionError: the pattern is not a regular expression.
    """
    try:
        return re.compile(extract)
    except (re.error, RecursionError, OverflowError) as error:
        raise SelectionError(
            f"{extract!r} is not a regular expression: {error}. An example: 'answer is ([A-D])'."
        ) from error


def check_rules(rules: ScoringRules) -> None:
    """Reject unknown metrics and differences, patterns that are none, and metrics whose packages are missing.

    Raises:
        SelectionError: a metric, a difference or a pattern is invalid.
        MissingExtraError: a metric needs packages that are not installed.
    """
    if rules.trial_metrics and not rules.correctness:
        raise SelectionError(f"{rules.trial_metrics[0]} needs a metric of correct answers: --metric exact_match.")
    for name in rules.response_metrics:
        if name not in METRICS:
            raise SelectionError(f"No metric {name!r} for generated answers. Known: {', '.join(METRICS)}.")
        if name in rouge.KINDS:
            rouge.check_installed()
        if name == "math_verify":
            math_equality.check_installed()
    for word in rules.ignore:
        if word not in IGNORABLE:
            raise SelectionError(f"{word!r} cannot be ignored. Known: {', '.join(IGNORABLE)}.")
    for pattern in (rules.extract, rules.reference_pattern):
        if pattern is not None:
            compile_pattern(pattern)


def normalize(text: str, ignore: Collection[str] = ()) -> str:
    """Return a text without surrounding space and without the differences to ignore."""
    normalized = text.strip()
    if "number-format" in ignore:
        normalized = _plain_number(normalized)
    if "case" in ignore:
        normalized = normalized.casefold()
    if "punctuation" in ignore:
        normalized = "".join(letter for at, letter in enumerate(normalized) if not _is_mark(normalized, at))
    if "articles" in ignore:
        normalized = _ARTICLES.sub(" ", normalized)
    return " ".join(normalized.split()) if {"punctuation", "articles"} & set(ignore) else normalized


def _plain_number(text: str) -> str:
    """Return ``1000`` for ``$1,000.00``; any other text unchanged."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    sign, after, digits, fraction = match.groups()
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


def _shared_words(answer: str, reference: str) -> float:
    answer_words, reference_words = answer.split(), reference.split()
    if not answer_words or not reference_words:
        return float(answer_words == reference_words)
    n_shared = sum((Counter(answer_words) & Counter(reference_words)).values())
    return 2 * n_shared / (len(answer_words) + len(reference_words))
