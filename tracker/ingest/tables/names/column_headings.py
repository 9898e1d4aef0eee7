"""Headings of columns: sort marks, directions, and the kind of content that a heading states."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tracker.ingest.files.tabular.headings import normalize_heading
from tracker.ingest.tables.names.vocabulary import (
    MODEL_HEADING_PARTS,
    MODEL_HEADINGS,
    MODEL_SIDES,
    OUTCOME_WORDS,
    ROW_SUMMARY,
    ROW_SUMMARY_START,
    SIDE_MODIFIERS,
    SIDE_UNITS,
    SIDE_WORDS,
    SMALLER_IS_BETTER,
    STDERR_WORDS,
    SUMMARIES,
    SUMMARIZED_WORDS,
    SUMMARY_WORDS,
    WEAK_MODEL_HEADINGS,
)

if TYPE_CHECKING:
    import pyarrow as pa

UP, DOWN = "↑⬆▲⇧🔼", "↓⬇▼⇩🔽"
SORT_MARKS = re.compile(rf"\[\s*sort\s*\]|[{UP}{DOWN}⇅↕]\ufe0f?", re.I)
BREAK = re.compile(r"\s*<br\s*/?>\s*", re.I)
STDERR = re.compile(
    r"(?:^|[\s_.\-,(])(?:std[\s_.\-]*err(?:or)?|standard[\s_\-]error|s\.?e\.?(?:m\.?)?|±|\+/-|\+-)[)\s]*(?:\.\d+)?$",
    re.I,
)
COUNT = re.compile(r"^#\s*\w|^(?:n|num|number of|no\.)[_ ]\w+", re.I)
EMPHASIS = re.compile(r"^[\s*_]+|[\s*_]+$|</?(?:b|i|u|strong|em)>", re.I)
ALL_SUMMARIES = SUMMARIES | SUMMARY_WORDS
SHORTEST_SUMMARIES = (word for word in ALL_SUMMARIES if not any(part in word for part in ALL_SUMMARIES - {word}))
MAYBE_SUMMARY_ROW = "|".join(["<", ROW_SUMMARY_START, *sorted(map(re.escape, SHORTEST_SUMMARIES))])
"""Matches a part of each name that `is_summary_row` accepts."""
PART_SUMMARY_WORDS = SUMMARY_WORDS | {"summary"}
ARITHMETIC = re.compile(r"[kmgtp]?(?:params|flops|macs|macts)")
"""Numbers of parameters or operations, such as ``gflops``."""
LETTERS = re.compile(r"[^\W\d_]+")
KEY_WORDS = SUMMARY_WORDS | {name for name in SUMMARIES if SUMMARY_WORDS.isdisjoint(LETTERS.findall(name))}
"""Words of which each name that `is_summary_heading` accepts has one."""
VOCABULARY = ALL_SUMMARIES.union(
    MODEL_HEADINGS, MODEL_HEADING_PARTS, MODEL_SIDES, OUTCOME_WORDS, PART_SUMMARY_WORDS, SIDE_MODIFIERS, SIDE_WORDS,
    STDERR_WORDS, SUMMARIZED_WORDS, WEAK_MODEL_HEADINGS,
)  # fmt: skip
NUMBER = re.compile("[0-9]+")
ANY_NUMBER = "7"
MEANINGFUL_NUMBERS = frozenset(number for word in VOCABULARY for number in NUMBER.findall(word))
"""Numbers that are parts of terms of the vocabulary, such as 2 in ``co2``."""

T = TypeVar("T")


@lru_cache(maxsize=1 << 15)
def heading_shape(name: str) -> str:
    """Return a heading with 7 for each number without a meaning: ``q17`` and ``q12000`` have one shape."""
    return NUMBER.sub(_hide_number, name)


def _hide_number(match: re.Match[str]) -> str:
    number = match[0]
    return number if number in MEANINGFUL_NUMBERS else ANY_NUMBER


def _by_shape(function: Callable[[str], T]) -> Callable[[str], T]:
    """Call a function of headings once for all headings of one shape, since their numbers do not change its result."""
    of_shape = lru_cache(maxsize=1 << 12)(function)

    @wraps(function)
    def of_heading(name: str) -> T:
        return of_shape(heading_shape(name))

    return of_heading


@lru_cache(maxsize=1 << 15)
def clean_heading(name: str) -> str:
    """Return a heading without sort marks and arrows."""
    if name.isalnum():
        return name
    cleaned = BREAK.sub(" ", SORT_MARKS.sub(" ", name))
    cleaned = re.sub(r"\(\s*\)|\[\s*\]", " ", cleaned) if cleaned != name else cleaned
    return re.sub(r"\s+", " ", cleaned).strip() if cleaned != name else name.strip()


@_by_shape
def heading_direction(name: str) -> bool | None:
    """Return whether larger scores are better, by the arrow or the metric in a heading, such as ``WER``.

    None without an arrow or such a metric, and with arrows in both directions.
    """
    up, down = any(mark in name for mark in UP), any(mark in name for mark in DOWN)
    if up == down:
        is_smaller = not up and SMALLER_IS_BETTER.search(name) is not None and stderr_stem(name) is None
        return False if is_smaller else None
    return up


@lru_cache(maxsize=1 << 15)
def _words(name: str) -> tuple[str, ...]:
    words = re.split(r"[\s_\-()\[\]{},:;|/%]+", clean_heading(name).lower().replace("+/-", "±"))
    stripped = (word.lstrip("#").strip(".*'\"") or word for word in words if word)
    return tuple(word for word in stripped if re.search(r"[\w$€±#]", word))


@_by_shape
def is_model_heading(name: str) -> bool:
    """Return whether a heading states that the column names models: model, Model Name, LLM, Model/adapter, …"""
    words = _words(name)
    return bool(MODEL_HEADINGS & set(words)) and all(
        word in MODEL_HEADINGS or word in MODEL_HEADING_PARTS for word in words
    )


def is_weak_model_heading(name: str) -> bool:
    """Return whether a heading may state that the column names models: name, system, method, run, …"""
    return normalize_heading(clean_heading(name)) in WEAK_MODEL_HEADINGS


@_by_shape
def is_summary_heading(name: str) -> bool:
    """Return whether a heading states a summary of the other columns, such as ``Average`` or ``Overall Acc (%)``."""
    plain = EMPHASIS.sub("", clean_heading(name))
    if normalize_heading(plain).rstrip(".") in SUMMARIES:
        return True
    words = _words(re.sub(r"\s*[(\[].*$", "", plain))
    return any(word in SUMMARY_WORDS for word in words) and all(
        word in SUMMARY_WORDS or word in SUMMARIZED_WORDS or word.isdigit() for word in words
    )


def is_summary_row(name: str) -> bool:
    """Return whether the name of a row states a summary of the other rows, such as ``Average`` or ``Std. dev.``."""
    return is_summary_heading(name) or ROW_SUMMARY.match(EMPHASIS.sub("", name)) is not None


def find_summary_rows(names: pa.Array) -> list[int]:
    """Return the positions of the names that `is_summary_row` accepts; other names cost a tenth of its time."""
    import pyarrow.compute as pc

    candidates = pc.match_substring_regex(names, MAYBE_SUMMARY_ROW, ignore_case=True).fill_null(False)
    return [row for row in np.flatnonzero(candidates).tolist() if is_summary_row(names[row].as_py())]


def has_summary(cells: Sequence[str]) -> bool:
    """Return whether `is_summary_heading` accepts a cell."""
    words = LETTERS.findall("\n".join(cells).lower())
    return not KEY_WORDS.isdisjoint(words) and any(map(is_summary_heading, cells))


@_by_shape
def mentions_summary(name: str) -> bool:
    """Return whether a word of a heading states a summary, perhaps of some columns only, such as ``Maths average``."""
    return any(word in PART_SUMMARY_WORDS for word in _words(name))


def find_part_summaries(names: Sequence[str]) -> set[str]:
    """Return the headings that summarize others, such as ``AST Summary`` beside ``Simple AST`` and ``Parallel AST``."""
    candidates = list(filter(mentions_summary, names))
    if not candidates:
        return set()
    words = [set(_words(name)) for name in names if name not in candidates]
    summarized = {name: set(_words(name)) - PART_SUMMARY_WORDS - SUMMARIZED_WORDS for name in candidates}
    return {name for name, parts in summarized.items() if parts and sum(parts <= heading for heading in words) > 1}


@_by_shape
def is_outcome_heading(name: str) -> bool:
    """Return whether a heading states an outcome, such as ``is_correct``, and hence names no model."""
    words = _words(name)
    return bool(words) and all(word in OUTCOME_WORDS for word in words)


@_by_shape
def is_side_heading(name: str) -> bool:
    """Return whether a heading describes a model or its evaluation, by its words or its unit: ``Params (B)``."""
    return _has_side_words(name) or states_unit(name)


@_by_shape
def states_unit(name: str) -> bool:
    """Return whether a heading states a duration, a cost, a size or a count, such as ``Cost to run ($)``."""
    return SIDE_UNITS.search(clean_heading(name)) is not None


def _has_side_words(name: str) -> bool:
    words = _words(name)
    if not words or COUNT.match(clean_heading(name)):
        return bool(clean_heading(name))  # only symbols, such as a medal, or a count
    return any(_is_side_word(word) for word in words) and all(
        _is_side_word(word) or word in SIDE_MODIFIERS or word.isdigit() for word in words
    )


@_by_shape
def is_model_side_heading(name: str) -> bool:
    """Return whether a heading describes models, and neither tasks nor prompts."""
    return is_side_heading(name) and any(word in MODEL_SIDES or "$" in word or "€" in word for word in _words(name))


def _is_side_word(word: str) -> bool:
    return word in SIDE_WORDS or "$" in word or "€" in word or ARITHMETIC.fullmatch(word) is not None


def stderr_stem(name: str) -> str | None:
    """Return the column to which a column of standard errors belongs, '' if its heading names none; None if the
    heading does not state standard errors.
    """
    if not _states_stderr(name):
        return None
    cleaned = clean_heading(name)
    match = STDERR.search(cleaned)
    return cleaned[: match.start()].strip(" _-.,(") if match is not None else ""


@_by_shape
def _states_stderr(name: str) -> bool:
    cleaned = clean_heading(name)
    return STDERR.search(cleaned) is not None or normalize_heading(cleaned) in STDERR_WORDS


def attached_stem(name: str, headings: frozenset[str]) -> str | None:
    """Return the column whose heading this heading extends by words of side columns, such as ``MMLU tokens``."""
    cleaned = clean_heading(name)
    if cleaned.isalnum():
        return None
    for match in reversed(list(re.finditer(r"[\s_\-(/|,:]+", cleaned))):
        stem, rest = cleaned[: match.start()], cleaned[match.end() :]
        if stem in headings and stem != cleaned and is_side_heading(rest):
            return stem
    return None
