"""One row of details, whichever columns it came in: what was asked, and what the model said."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracker.ingest.files.json_values import count, identity, mapping, text, texts
from tracker.ingest.formats.lm_eval.documents import Requests, probabilities
from tracker.option_labels import option_letter

MAX_LITERAL_LENGTH = 1 << 20


@dataclass(frozen=True)
class Document:
    """A row.

    Attributes:
        name: the harness's own number of the document, where it has one.
        task: as the row names it, where it does.
        text: the question; None where there is none.
        options: texts of the options; empty where the model was to write.
        gold: places of the right options, or of the right ones among ``accepted``.
        accepted: right answers in words, where the model was to write.
        loglikelihoods: one for each option; empty where they are not known.
        written: what the model wrote, one text for each sample.
        scores: by metric, as they stand there.
    """

    name: str | None
    task: str | None
    text: str | None
    options: Sequence[str]
    gold: Sequence[int]
    accepted: Sequence[str]
    loglikelihoods: Sequence[float]
    written: Sequence[str | None]
    scores: Mapping[str, Any]

    @property
    def answer(self) -> str | None:
        """The letter of the right option, where there is one; else the first right answer."""
        if self.options:
            return option_letter(self.gold[0]) if len(self.gold) == 1 else None
        return next((answer.strip() for answer in self.accepted if answer.strip()), None)

    @property
    def shares(self) -> list[float] | None:
        """The options' likelihoods as shares of their sum."""
        if len(self.loglikelihoods) != len(self.options):
            return None
        return probabilities(Requests((), self.options, self.loglikelihoods))


def parse_document(row: Mapping[str, Any]) -> Document:
    """What a row says, in the columns of either generation."""
    parts = {str(name).strip("_"): value for name, value in row.items()}
    return _nested(parts) if "model_response" in parts else _flat(parts)


def _nested(parts: Mapping[str, Any]) -> Document:
    doc, response = _mapping(parts.get("doc")), _mapping(parts.get("model_response"))
    choices = texts(_parse_list(doc.get("choices")))
    gold = _places(doc.get("gold_index"), len(choices))
    methods = [str(method).upper().rpartition(".")[2] for method in _parse_list(doc.get("sampling_methods"))]
    likelihoods = _loglikelihoods(response.get("logprobs"))
    scores_options = "LOGPROBS" in methods if methods else len(likelihoods) == len(choices)
    has_options = len(choices) > 1 and scores_options
    processed = _texts(response.get("text_post_processed"))
    return Document(
        name=identity(doc.get("id")),
        task=text(doc.get("task_name")),
        text=_question(doc.get("query"), doc.get("instruction")),
        options=[choice.strip() for choice in choices] if has_options else (),
        gold=gold,
        accepted=() if has_options else [choices[place] for place in gold],
        loglikelihoods=likelihoods if has_options else (),
        written=() if has_options else processed if any(processed) else _texts(response.get("text")),
        scores=_mapping(parts.get("metric")),
    )


def _flat(parts: Mapping[str, Any]) -> Document:
    choices = texts(_parse_list(parts.get("choices")))
    gold = _places(parts.get("gold_index"), len(choices))
    golds = texts(_parse_list(parts.get("gold"))) or ([parts["gold"]] if text(parts.get("gold")) else [])
    predictions = _parse_list(parts.get("predictions"))
    likelihoods = _loglikelihoods(predictions)
    has_options = len(choices) > 1 and len(likelihoods) == len(choices)
    return Document(
        name=None,
        task=None,
        text=_question(parts.get("example"), parts.get("instruction")),
        options=[choice.strip() for choice in choices] if has_options else (),
        gold=gold,
        accepted=() if has_options else golds or [choices[place] for place in gold],
        loglikelihoods=likelihoods if has_options else (),
        written=() if has_options else _texts(predictions),
        scores=_mapping(parts.get("metrics")),
    )


def _question(query: Any, instruction: Any) -> str | None:
    """The question without the instruction that stands before it."""
    if not isinstance(query, str):
        return None
    before = instruction if isinstance(instruction, str) else ""
    return query.removeprefix(before).strip() or query.strip() or None


def _places(value: Any, n_choices: int) -> list[int]:
    places = [count(index) for index in (value if isinstance(value, list) else [value])]
    return [place for place in dict.fromkeys(places) if place is not None and place < n_choices]


def _loglikelihoods(value: Any) -> list[float]:
    """Numbers of a list, or first numbers of its pairs; empty where it holds anything else."""
    firsts = [entry[0] if isinstance(entry, (list, tuple)) and entry else entry for entry in _parse_list(value)]
    if any(isinstance(first, bool) or not isinstance(first, (int, float)) for first in firsts):
        return []
    try:
        return [float(first) for first in firsts]
    except OverflowError:
        return [math.nan] * len(firsts)


def _texts(value: Any) -> list[str | None]:
    """What was written, sample by sample; of a sample that is itself a list, the first text."""
    if isinstance(value, str):
        value = _parse_list(value) or [value]
    parsed = []
    for entry in value if isinstance(value, list) else ():
        while isinstance(entry, list):
            entry = entry[0] if entry else None
        parsed.append(entry if isinstance(entry, str) else None)
    return parsed


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str) and value.startswith("{"):
        value = _spell_label(value)
    return mapping(value)


def _parse_list(value: Any) -> list[Any]:
    """A list, also one spelled out as text, as some versions wrote columns of mixed kinds."""
    if isinstance(value, str) and value.startswith("["):
        value = _spell_label(value)
    return value if isinstance(value, list) else []


def _spell_label(literal: str) -> Any:
    if len(literal) > MAX_LITERAL_LENGTH:
        return None
    try:
        return json.loads(literal)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(literal)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
