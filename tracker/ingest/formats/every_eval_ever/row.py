"""One instance: which prompt it is about, and what the model said."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from tracker.ingest.files.block_builder import PromptContent
from tracker.ingest.files.json_values import mapping, number, text, texts
from tracker.ingest.formats.every_eval_ever import vocabulary as ours

LETTERS = [chr(ord("A") + place) for place in range(26)]


def content(
    asked: Mapping[str, Any], metadata: Mapping[str, Any], split: str | None, *, as_written: bool
) -> PromptContent:
    """The prompt of a row.

    Args:
        asked: its input.
        metadata: further fields.
        split: that of the result.
        as_written: whether our export wrote it, so that nothing is to be guessed.
    """
    choices = asked.get("choices")
    choices = (
        choices
        if isinstance(choices, list) and choices and all(isinstance(choice, str) for choice in choices)
        else None
    )
    references = texts(asked.get("reference"))
    gold = references[0] if references else None
    if gold is not None and choices and not as_written and not set(LETTERS[: len(choices)]) & set(choices):
        named = [one.strip() for one in choices[:26]]
        gold = LETTERS[named.index(gold.strip())] if gold.strip() in named else gold
    listed = _parsed(metadata.get(ours.AS_JSON))
    encoded = listed if isinstance(listed, list) else []
    details = {
        name: _parsed(value) if name in encoded else value
        for name, value in metadata.items()
        if isinstance(value, str) and not name.startswith(ours.OURS)
    }
    if len(references) > 1:
        details[ours.ACCEPTED] = references
    told = text(metadata.get(ours.SPLIT)) or (None if as_written else text(metadata.get("split"))) or split
    return PromptContent(text(asked.get("raw")), choices, gold, told, details or None)


def answers(row: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, tuple[str | None, str, float]]:
    """By extraction: what was read off, its status and probability."""
    more = mapping(_parsed(metadata.get(ours.ANSWERS)))
    found: dict[str, tuple[str | None, str, float]] = {}
    listed = row.get("answer_attribution")
    for one in listed if isinstance(listed, list) else ():
        value = mapping(one).get("extracted_value")
        if not isinstance(value, str) or one.get("is_terminal") is False:
            continue
        method = text(one.get("extraction_method"))
        extraction = "" if method is None or method == ours.UNKNOWN else method
        found[extraction] = _answer(value, more.get(extraction))
    if not found:
        raw = mapping(row.get("output")).get("raw")
        if isinstance(raw, list) and len(raw) == 1 and isinstance(raw[0], str):
            found[""] = _answer(raw[0], None)
    if text(row.get("error")) and not more:
        first = next(iter(found), "")
        found = {**(found or {}), first: (found[first][0] if found else None, "error", math.nan)}
    return found


def _answer(value: str, more: Any) -> tuple[str | None, str, float]:
    status, probability = more if isinstance(more, list) and len(more) == 2 else (None, None)
    if status not in ("ok", "error", "empty"):
        status = "ok" if value.strip() else "empty"
    chance = number(probability)
    inside = chance is not None and 0 <= chance <= 1
    return (value if value or status == "ok" else None), status, chance if inside and chance is not None else math.nan


def _parsed(said: Any) -> Any:
    """What a text spells in JSON; the text itself where it spells nothing."""
    if not isinstance(said, str):
        return None
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        return said


def number64(*parts: str) -> int:
    """Texts as one number, which others hardly share."""
    data = "\0".join(parts).encode("utf-8", errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
