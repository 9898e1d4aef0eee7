"""ARC: school science questions. Easy and Challenge are tasks; questions without four options are skipped."""

from __future__ import annotations

import re

from tracker.ingest.datasets.choices import name_reference_answer, parse_choices
from tracker.ingest.datasets.preset import Preset
from tracker.ingest.datasets.row import DatasetRow, PublishedPrompt

N_OPTIONS = 4


def read(row: DatasetRow) -> PublishedPrompt | str:
    """Labels are A to D or 1 to 4; some questions have three or five options."""
    choices = parse_choices(row.value("question.choices", "choices"))
    if len(choices.texts) != N_OPTIONS:
        return f"with {len(choices.texts)} options"
    return PublishedPrompt(
        text=row.text("question.stem", "question"),
        choices=choices.texts,
        answer=name_reference_answer(choices, row.value("answerKey")),
        task=_set(row),
        id=str(row.value("id") or ""),
    )


def _set(row: DatasetRow) -> str:
    for hint in row.hints:
        words = re.split(r"[^a-z]+", hint.lower())
        for word, name in (("easy", "ARC-Easy"), ("challenge", "ARC-Challenge")):
            if word in words:
                return name
    return ""


PRESET = Preset(read=read, hub="allenai/ai2_arc", configs=("ARC-Challenge", "ARC-Easy"))
