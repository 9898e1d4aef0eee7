"""HellaSwag: which ending continues a description?"""

from __future__ import annotations

from tracker.ingest.datasets.choices import parse_choices
from tracker.ingest.datasets.preset import Preset
from tracker.ingest.datasets.row import DatasetRow, PublishedPrompt, RowError, normalize_split
from tracker.option_labels import option_name

KEPT = ("activity_label", "ctx", "source_id", "split_type")


def read(row: DatasetRow) -> PublishedPrompt | str:
    """The numbers ``ind`` restart in each split, so names of prompts include the published split."""
    choices = parse_choices(row.value("endings"))
    label = row.value("label")
    label_text = "" if label is None else str(label).strip()
    if label_text and (not label_text.isdecimal() or int(label_text) >= len(choices.texts)):
        raise RowError(f"the label {label!r} is not the index of one of {len(choices.texts)} endings, counted from 0")
    split = row.split or normalize_split(str(row.value("split") or ""))
    number = row.value("ind")
    return PublishedPrompt(
        text=row.text("ctx"),
        choices=choices.texts,
        answer=option_name(int(label_text), choices.texts) if label_text else None,
        split=split,
        id="" if number is None else f"{split}-{number}" if split else str(number),
        details={name: value for name in KEPT if (value := row.value(name)) not in (None, "")},
    )


PRESET = Preset(read=read, hub="Rowan/hellaswag")
