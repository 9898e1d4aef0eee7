"""Headings of columns: sort marks, directions, and the kind of content that a heading states."""

from __future__ import annotations

import re
from functools import lru_cache

from tracker.ingest.files.tabular.headings import normalize_heading
from tracker.ingest.tables.names.vocabulary import (
    MODEL_HEADING_PARTS,
    MODEL_HEADINGS,
    MODEL_SIDES,
    SIDE_MODIFIERS,
    SIDE_WORDS,
    STDERR_WORDS,
    SUMMARIES,
    WEAK_MODEL_HEADINGS,
)

UP, DOWN = "↑⬆▲⇧🔼", "↓⬇▼⇩🔽"
SORT_MARKS = re.compile(rf"\[\s*sort\s*\]|[{UP}{DOWN}⇅↕]\ufe0f?", re.I)
STDERR = re.compile(
    r"(?:^|[\s_.\-,(])(?:std[\s_.\-]*err(?:or)?|standard[\s_\-]error|s\.?e\.?(?:m\.?)?|±|\+/-|\+-)[)\s]*(?:\.\d+)?$",
    re.I,
)
COUNT = re.compile(r"^#\s*\w|^(?:n|num|number of|no\.)[_ ]\w+", re.I)
PERCENTAGE = re.compile(r"\(\s*%\s*\)|(?:^|\s)%(?:\s|$)")


@lru_cache(maxsize=1 << 15)
def clean_heading(name: str) -> str:
    """Return a heading without sort marks and arrows."""
    cleaned = SORT_MARKS.sub(" ", name)
    cleaned = re.sub(r"\(\s*\)|\[\s*\]", " ", cleaned) if cleaned != name else cleaned
    return re.sub(r"\s+", " ", cleaned).strip() if cleaned != name else name.strip()


def heading_direction(name: str) -> bool | None:
    """Return whether larger scores are better, by the arrow in a heading; None without an arrow, or with both."""
    up, down = any(mark in name for mark in UP), any(mark in name for mark in DOWN)
    return None if up == down else up


@lru_cache(maxsize=1 << 15)
def _words(name: str) -> tuple[str, ...]:
    words = re.split(r"[\s_\-()\[\]{},:;|/%]+", clean_heading(name).lower().replace("+/-", "±"))
    stripped = (word.lstrip("#").strip(".*'\"") or word for word in words if word)
    return tuple(word for word in stripped if re.search(r"[\w$€±#]", word))


def is_model_heading(name: str) -> bool:
    """Return whether a heading states that the column names models: model, Model Name, LLM, Model/adapter, …"""
    words = _words(name)
    return bool(MODEL_HEADINGS & set(words)) and all(
        word in MODEL_HEADINGS or word in MODEL_HEADING_PARTS for word in words
    )


def is_weak_model_heading(name: str) -> bool:
    """Return whether a heading may state that the column names models: name, system, method, run, …"""
    return normalize_heading(clean_heading(name)) in WEAK_MODEL_HEADINGS


def is_summary_heading(name: str) -> bool:
    """Return whether a heading states a summary of the other columns, such as an average."""
    return normalize_heading(clean_heading(name)).rstrip(".") in SUMMARIES


def is_side_heading(name: str) -> bool:
    """Return whether all words of a heading describe a model or its evaluation, such as ``Params (B)``."""
    words = _words(name)
    if not words or COUNT.match(clean_heading(name)):
        return bool(clean_heading(name))  # only symbols, such as a medal, or a count
    return any(_is_side_word(word) for word in words) and all(
        _is_side_word(word) or word in SIDE_MODIFIERS or word.isdigit() for word in words
    )


def is_model_side_heading(name: str) -> bool:
    """Return whether a heading describes models, and neither tasks nor prompts."""
    return is_side_heading(name) and any(word in MODEL_SIDES or "$" in word or "€" in word for word in _words(name))


def _is_side_word(word: str) -> bool:
    return word in SIDE_WORDS or "$" in word or "€" in word


def stderr_stem(name: str) -> str | None:
    """Return the column to which a column of standard errors belongs, '' if its heading names none; None if the
    heading does not state standard errors.
    """
    cleaned = clean_heading(name)
    match = STDERR.search(cleaned)
    if match is None:
        plain = normalize_heading(cleaned)
        return "" if plain in STDERR_WORDS else None
    return cleaned[: match.start()].strip(" _-.,(")


def attached_stem(name: str, headings: frozenset[str]) -> str | None:
    """Return the column whose heading this heading extends by words of side columns, such as ``MMLU tokens``."""
    cleaned = clean_heading(name)
    for match in reversed(list(re.finditer(r"[\s_\-(/|,:]+", cleaned))):
        stem, rest = cleaned[: match.start()], cleaned[match.end() :]
        if stem in headings and stem != cleaned and is_side_heading(rest):
            return stem
    return None


def states_percentages(name: str) -> bool:
    """Return whether a heading states percentages: ``MMLU (%)``."""
    return PERCENTAGE.search(name) is not None
