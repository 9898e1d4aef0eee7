"""One instance: its prompt and the model's answers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from tracker.ingest.files.block_builder import PromptContent
from tracker.ingest.files.json_values import mapping, number, text, texts
from tracker.ingest.formats.every_eval_ever import vocabulary
from tracker.schema.measurements import ANSWER_STATUSES

LETTERS = [chr(ord("A") + place) for place in range(26)]


def content(
    input_fields: Mapping[str, Any], metadata: Mapping[str, Any], split: str | None, *, as_written: bool
) -> PromptContent:
    """Return the prompt of a row.

    Args:
        input_fields: its input.
        metadata: further fields.
        split: that of the result.
        as_written: whether Suffrage exported it, so that nothing is guessed.
    """
    choices = input_fields.get("choices")
    choices = (
        choices
        if isinstance(choices, list) and choices and all(isinstance(choice, str) for choice in choices)
        else None
    )
    references = texts(input_fields.get("reference"))
    gold = references[0] if references else None
    if gold is not None and choices and not as_written and not set(LETTERS[: len(choices)]) & set(choices):
        labels = [choice.strip() for choice in choices[:26]]
        gold = LETTERS[labels.index(gold.strip())] if gold.strip() in labels else gold
    decoded = _parsed(metadata.get(vocabulary.AS_JSON))
    encoded = decoded if isinstance(decoded, list) else []
    details = {
        name: _parsed(value) if name in encoded else value
        for name, value in metadata.items()
        if isinstance(value, str) and not name.startswith(vocabulary.PREFIX)
    }
    if len(references) > 1:
        details[vocabulary.ACCEPTED] = references
    own_split = text(metadata.get(vocabulary.SPLIT)) or (None if as_written else text(metadata.get("split"))) or split
    return PromptContent(text(input_fields.get("raw")), choices, gold, own_split, details or None)


def answers(row: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, tuple[str | None, str, float]]:
    """Return answer, status and probability by extraction."""
    more = mapping(_parsed(metadata.get(vocabulary.ANSWERS)))
    answers_by_extraction: dict[str, tuple[str | None, str, float]] = {}
    attributions = row.get("answer_attribution")
    for attribution in attributions if isinstance(attributions, list) else ():
        value = mapping(attribution).get("extracted_value")
        if not isinstance(value, str) or attribution.get("is_terminal") is False:
            continue
        method = text(attribution.get("extraction_method"))
        extraction = "" if method is None or method == vocabulary.UNKNOWN else method
        answers_by_extraction[extraction] = _answer(value, more.get(extraction))
    if not answers_by_extraction:
        raw = mapping(row.get("output")).get("raw")
        if isinstance(raw, list) and len(raw) == 1 and isinstance(raw[0], str):
            answers_by_extraction[""] = _answer(raw[0], None)
    if text(row.get("error")) and not more:
        first = next(iter(answers_by_extraction), "")
        answers_by_extraction = {
            **(answers_by_extraction or {}),
            first: (answers_by_extraction[first][0] if answers_by_extraction else None, "error", math.nan),
        }
    return answers_by_extraction


def _answer(value: str, more: Any) -> tuple[str | None, str, float]:
    status, probability = more if isinstance(more, list) and len(more) == 2 else (None, None)
    if status not in ANSWER_STATUSES:
        status = "ok" if value.strip() else "empty"
    chance = number(probability)
    inside = chance is not None and 0 <= chance <= 1
    return (value if value or status == "ok" else None), status, chance if inside and chance is not None else math.nan


def _parsed(written: Any) -> Any:
    """Return the value of a JSON text; the text itself if it is not JSON."""
    if not isinstance(written, str):
        return None
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written


def hash_to_int(*parts: str) -> int:
    """Return a hash of texts."""
    data = "\0".join(parts).encode("utf-8", errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
