"""Normalization of text for storage, and hashes of prompt content."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import is_normalized, normalize

import numpy as np
import orjson

from tracker.ingest.measurement import Prompts
from tracker.option_labels import LETTERS, option_letters

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class PromptContents:
    """Content of a prompt in a form that can be stored.

    Attributes:
        hash: of text and choices; None if the file has no text.
    """

    text: str | None = None
    choices: list[str] | None = None
    answer: str | None = None
    split: str | None = None
    details: Any = None
    hash: str | None = None


def normalize_prompts(prompts: Prompts) -> list[PromptContents]:
    """Return the content of each prompt; empty if the file holds none."""
    columns = (prompts.text, prompts.choices, prompts.answer, prompts.split, prompts.details)
    if all(column is None for column in columns):
        return []
    parts = (make_storable_json(list(column)) if column is not None else [None] * len(prompts) for column in columns)
    return [
        PromptContents(text, choices, answer, split, details, None if text is None else hash_content(text, choices))
        for text, choices, answer, split, details in zip(*parts, strict=True)
    ]


def make_storable(text: str) -> str:
    """Return the text with NUL and lone surrogates replaced by U+FFFD, which no database stores."""
    if text.isascii():
        return text.replace("\0", REPLACEMENT) if "\0" in text else text
    try:
        text.encode()
    except UnicodeEncodeError:
        text = "".join(REPLACEMENT if "\ud800" <= letter <= "\udfff" else letter for letter in text)
    return text.replace("\0", REPLACEMENT)


def make_all_storable(texts: Sequence[str]) -> list[str]:
    """Do the same for many texts; those that are all plain are checked at once."""
    joined = "".join(texts)
    return list(texts) if joined.isascii() and "\0" not in joined else list(map(make_storable, texts))


def make_storable_json(value: Any) -> Any:
    """Do the same for nested values; non-finite numbers become null, unknown types their text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return make_storable(value)
    if isinstance(value, Mapping):
        return {make_storable(str(name)): make_storable_json(part) for name, part in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return make_storable_json(value.tolist())
    if isinstance(value, (list, tuple)):
        return [make_storable_json(part) for part in value]
    return make_storable(str(value))


def hash_content(text: str, choices: Sequence[str] | None) -> str:
    """Return the SHA-256 of a prompt's content: canonical JSON of text and choices, in Unicode form NFC."""
    content = [_nfc(text), None if choices is None else [_nfc(choice) for choice in choices]]
    return hashlib.sha256(orjson.dumps(content)).hexdigest()


def list_accepted_answers(gold: str, choices: Sequence[str] | None) -> frozenset[str]:
    """Return the accepted forms of a reference answer, without surrounding space.

    Letter case matters. With choices, the letter of an option (A for the first) and its text are the same answer,
    unless the text of an option is itself such a letter.
    """
    gold = gold.strip()
    if not choices:
        return frozenset([gold])
    options = [choice.strip() for choice in choices]
    letters = option_letters(len(options))
    if not set(letters) & set(options):
        for names, equivalents in ((options[: len(LETTERS)], letters), (letters, options)):
            if gold in names:
                return frozenset([gold, equivalents[names.index(gold)]])
    return frozenset([gold])


def _nfc(text: str) -> str:
    return text if is_normalized("NFC", text) else normalize("NFC", text)
