"""MMLU: questions of 57 subjects with four options; each subject is a task."""

from __future__ import annotations

from tracker.ingest.datasets.choices import name_reference_answer, parse_choices
from tracker.ingest.datasets.preset import Preset
from tracker.ingest.datasets.row import DatasetRow, PublishedPrompt, RowError, split_named
from tracker.option_labels import option_name

LETTERS = ("A", "B", "C", "D")


def read(row: DatasetRow) -> PublishedPrompt | str:
    """CSV files have no header, and answers are letters.

    The hub has lists of options, and answers are indices from 0.
    """
    answer = row.value("answer")
    if "choices" in row.fields:
        choices = parse_choices(row.value("choices"))
        answer_text = "" if answer is None else str(answer).strip()
        if answer_text and (not answer_text.isdecimal() or int(answer_text) >= len(choices.texts)):
            raise RowError(
                f"the answer {answer!r} is not the index of one of {len(choices.texts)} options, counted from 0"
            )
        option = option_name(int(answer_text), choices.texts) if answer_text else None
    else:
        choices = parse_choices([row.value(letter) for letter in LETTERS])
        option = name_reference_answer(choices, answer)
    return PublishedPrompt(
        text=row.text("question"),
        choices=choices.texts,
        answer=option,
        task=str(row.value("subject") or "").strip() or _subject(row),
    )


def _subject(row: DatasetRow) -> str:
    """Return the file name without its split, such as ``abstract_algebra``; else the name of the folder."""
    for hint in row.hints:
        words = hint.split("-")[0].split("_")
        if split_named(words[-1:]):
            words = words[:-1]
        if words and words[0]:
            return "_".join(words)
    return ""


PRESET = Preset(read=read, hub="cais/mmlu", configs=("all",), columns=("question", *LETTERS, "answer"))
