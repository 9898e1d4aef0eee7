"""One row of details in any version: prompt and response."""

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
    """A row of details.

    Attributes:
        name: the harness's number of the document; may be missing.
        task: the task in the row; may be missing.
        text: the question; None if there is none.
        options: texts of the options; empty for generated answers.
        gold: indices of the correct options, or of the correct answers in ``accepted``.
        accepted: correct texts of generated answers.
        loglikelihoods: one for each option; empty if unknown.
        written: the model's text for each sample.
        scores: scores by metric.
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
        """Return the letter of the correct option, or the first accepted answer."""
        if self.options:
            return option_letter(self.gold[0]) if len(self.gold) == 1 else None
        return next((answer.strip() for answer in self.accepted if answer.strip()), None)

    @property
    def shares(self) -> list[float] | None:
        """Return the options' likelihoods, normalized to sum 1."""
        if len(self.loglikelihoods) != len(self.options):
            return None
        return probabilities(Requests((), self.options, self.loglikelihoods))


def parse_document(row: Mapping[str, Any]) -> Document:
    """Parse a row in the columns of either generation."""
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
    """Return the question without the preceding instruction."""
    if not isinstance(query, str):
        return None
    before = instruction if isinstance(instruction, str) else ""
    return query.removeprefix(before).strip() or query.strip() or None


def _places(value: Any, n_choices: int) -> list[int]:
    places = [count(index) for index in (value if isinstance(value, list) else [value])]
    return [place for place in dict.fromkeys(places) if place is not None and place < n_choices]


def _loglikelihoods(value: Any) -> list[float]:
    """Return the numbers of a list, or the first numbers of its pairs; empty for anything else."""
    firsts = [entry[0] if isinstance(entry, (list, tuple)) and entry else entry for entry in _parse_list(value)]
    if any(isinstance(first, bool) or not isinstance(first, (int, float)) for first in firsts):
        return []
    try:
        return [float(first) for first in firsts]
    except OverflowError:
        return [math.nan] * len(firsts)


def _texts(value: Any) -> list[str | None]:
    """Return the response of each sample; of a nested list, the first text."""
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
    """Return a list, also if it is stored as text, as some versions do."""
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
