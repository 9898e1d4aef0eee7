"""Rows of prompts to store, with the same names and texts as in result files of lm-evaluation-harness."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracker.ingest.datasets.lm_eval.prompt_builder import BuiltPrompt, PromptBuilder, hash_document
from tracker.ingest.datasets.lm_eval.stored_prompt import EXAMPLE, PROMPT, LmEvalPrompt
from tracker.ingest.datasets.row import normalize_split
from tracker.ingest.formats.lm_eval import documents as logged
from tracker.ingest.resolve.duplicates import MARK
from tracker.option_labels import option_letter

LM_EVAL = "lm_eval"
"""Namespace of the harness's document hashes."""


@dataclass(kw_only=True)
class PromptRow:
    """A prompt to store.

    Attributes:
        key: hash of its document, unique in its task.
        text, choices, answer, split, details: as of `tracker.ingest.measurement.Prompts`.
    """

    key: str
    text: str
    choices: list[str] | None
    answer: str | None
    split: str
    details: dict[str, Any]


def list_prompt_rows(builder: PromptBuilder) -> list[PromptRow]:
    """Return the evaluated prompts of a task."""
    seen: Counter[str] = Counter()
    rows = []
    for built in builder.build():
        digest = hash_document(built.document)
        key = f"{digest}{MARK}{seen[digest]}" if seen[digest] else digest
        seen[digest] += 1
        details = {logged.DOC_ID: built.number, PROMPT: built.prompt.as_field()}
        rows.append(_make_row(key, built, normalize_split(builder.split), details))
    return rows


def list_example_rows(builder: PromptBuilder, prompts: Sequence[PromptRow]) -> list[PromptRow]:
    """Return the few-shot examples of a task, after its prompts are built.

    An example that is also an evaluated prompt becomes a further field of that.
    """
    by_key = {row.key: row for row in prompts}
    rows = []
    for document, example in builder.examples.values():
        key = hash_document(document)
        if key in by_key:
            by_key[key].details[EXAMPLE] = example.as_field()
            continue
        text = _find_question(document, example.question)
        split = normalize_split(builder.example_split)
        details = {EXAMPLE: example.as_field()}
        rows.append(PromptRow(key=key, text=text, choices=None, answer=example.answer, split=split, details=details))
    return rows


def _make_row(key: str, built: BuiltPrompt, split: str, details: dict[str, Any]) -> PromptRow:
    prompt = built.prompt
    is_choice = prompt.scoring.output_type == "multiple_choice"
    texts = list(prompt.contexts) or [prompt.question]
    continuations = [prompt.join + text for text in prompt.continuations] if is_choice else []
    sent = logged.Requests(texts * (1 if prompt.contexts else max(1, len(continuations))), continuations, [math.nan])
    return PromptRow(
        key=key,
        text=_find_question(built.document, texts[0]),
        choices=logged.choices(built.document, sent) if is_choice else None,
        answer=_find_answer(prompt, built.target),
        split=split,
        details=details,
    )


def _find_question(document: Mapping[str, Any], rendered: str) -> str:
    """Return the question as in result files; the rendered text if the document has no field of such a name."""
    return logged.question(document, logged.Requests([rendered], (), ()), 0) or rendered


def _find_answer(prompt: LmEvalPrompt, target: Any) -> str | None:
    """Return the letter of the correct option, else the target."""
    if prompt.scoring.output_type != "multiple_choice":
        return str(target).strip() or None
    if prompt.scoring.sums_probability and isinstance(target, int):
        return option_letter(target)
    return option_letter(prompt.correct[0]) if len(prompt.correct) == 1 else None
