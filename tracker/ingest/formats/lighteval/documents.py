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

LONGEST_LITERAL = 1 << 20


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
        return next((one.strip() for one in self.accepted if one.strip()), None)

    @property
    def shares(self) -> list[float] | None:
        """The options' likelihoods as shares of their sum."""
        if len(self.loglikelihoods) != len(self.options):
            return None
        return probabilities(Requests((), self.options, self.loglikelihoods))


def document(row: Mapping[str, Any]) -> Document:
    """What a row says, in the columns of either generation."""
    parts = {str(name).strip("_"): value for name, value in row.items()}
    return _nested(parts) if "model_response" in parts else _flat(parts)


def _nested(parts: Mapping[str, Any]) -> Document:
    doc, said = _mapping(parts.get("doc")), _mapping(parts.get("model_response"))
    choices = texts(_listed(doc.get("choices")))
    gold = _places(doc.get("gold_index"), len(choices))
    methods = [str(method).upper().rpartition(".")[2] for method in _listed(doc.get("sampling_methods"))]
    likelihoods = _loglikelihoods(said.get("logprobs"))
    asked_apart = "LOGPROBS" in methods if methods else len(likelihoods) == len(choices)
    has_options = len(choices) > 1 and asked_apart
    processed = _texts(said.get("text_post_processed"))
    return Document(
        name=identity(doc.get("id")),
        task=text(doc.get("task_name")),
        text=_question(doc.get("query"), doc.get("instruction")),
        options=[choice.strip() for choice in choices] if has_options else (),
        gold=gold,
        accepted=() if has_options else [choices[place] for place in gold],
        loglikelihoods=likelihoods if has_options else (),
        written=() if has_options else processed if any(processed) else _texts(said.get("text")),
        scores=_mapping(parts.get("metric")),
    )


def _flat(parts: Mapping[str, Any]) -> Document:
    choices = texts(_listed(parts.get("choices")))
    gold = _places(parts.get("gold_index"), len(choices))
    golds = texts(_listed(parts.get("gold"))) or ([parts["gold"]] if text(parts.get("gold")) else [])
    predictions = _listed(parts.get("predictions"))
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


def _places(told: Any, n_choices: int) -> list[int]:
    found = [count(one) for one in (told if isinstance(told, list) else [told])]
    return [place for place in dict.fromkeys(found) if place is not None and place < n_choices]


def _loglikelihoods(told: Any) -> list[float]:
    """Numbers of a list, or first numbers of its pairs; empty where it holds anything else."""
    firsts = [one[0] if isinstance(one, (list, tuple)) and one else one for one in _listed(told)]
    if any(isinstance(first, bool) or not isinstance(first, (int, float)) for first in firsts):
        return []
    try:
        return [float(first) for first in firsts]
    except OverflowError:
        return [math.nan] * len(firsts)


def _texts(told: Any) -> list[str | None]:
    """What was written, sample by sample; of a sample that is itself a list, the first text."""
    if isinstance(told, str):
        told = _listed(told) or [told]
    found = []
    for one in told if isinstance(told, list) else ():
        while isinstance(one, list):
            one = one[0] if one else None
        found.append(one if isinstance(one, str) else None)
    return found


def _mapping(told: Any) -> Mapping[str, Any]:
    if isinstance(told, str) and told.startswith("{"):
        told = _spelled(told)
    return mapping(told)


def _listed(told: Any) -> list[Any]:
    """A list, also one spelled out as text, as some versions wrote columns of mixed kinds."""
    if isinstance(told, str) and told.startswith("["):
        told = _spelled(told)
    return told if isinstance(told, list) else []


def _spelled(told: str) -> Any:
    if len(told) > LONGEST_LITERAL:
        return None
    try:
        return json.loads(told)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(told)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
