"""CommonsenseQA: questions about everyday knowledge with five options."""

from __future__ import annotations

from tracker.ingest.datasets.choices import name_reference_answer, parse_choices
from tracker.ingest.datasets.preset import Preset
from tracker.ingest.datasets.row import DatasetRow, PublishedPrompt


def read(row: DatasetRow) -> PublishedPrompt | str:
    """In the JSON Lines files, ``question`` holds stem and options; on the hub they are separate.

    The test split has no answers.
    """
    concept = row.value("question.question_concept", "question_concept")
    choices = parse_choices(row.value("question.choices", "choices"))
    return PublishedPrompt(
        text=row.text("question.stem", "question"),
        choices=choices.texts,
        answer=name_reference_answer(choices, row.value("answerKey")),
        id=str(row.value("id") or ""),
        details={"question_concept": concept} if concept else {},
    )


PRESET = Preset(read=read, hub="tau/commonsense_qa")
