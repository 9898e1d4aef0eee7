"""ANLI: does a hypothesis follow from a premise? Each of its three rounds is a task."""

from __future__ import annotations

import re

from tracker.ingest.datasets.preset import Preset
from tracker.ingest.datasets.row import DatasetRow, PublishedPrompt, RowError

CHOICES = ("True", "Neither", "False")
LABELS = {"0": "A", "1": "B", "2": "C", "e": "A", "n": "B", "c": "C",
          "entailment": "A", "neutral": "B", "contradiction": "C"}  # fmt: skip
NO_LABEL = ("", "-1")
"""Label of an unpublished answer on the hub."""


def read(row: DatasetRow) -> PublishedPrompt | str:
    """The JSON Lines files name the premise ``context``. On the hub, the split contains the round: ``test_r3``."""
    premise, hypothesis = row.text("premise", "context"), row.text("hypothesis")
    label = row.value("label")
    label_text = "" if label is None else str(label).strip().lower()
    if label_text not in LABELS and label_text not in NO_LABEL:
        raise RowError(f"the label {label!r} is not one of 0, 1, 2, e, n, c")
    reason = str(row.value("reason") or "").strip()
    return PublishedPrompt(
        text=f"{premise}\n{hypothesis}",
        choices=CHOICES,
        answer=LABELS.get(label_text),
        task=_round(row),
        id=str(row.value("uid") or ""),
        details={"premise": premise, "hypothesis": hypothesis, **({"reason": reason} if reason else {})},
    )


def _round(row: DatasetRow) -> str:
    for hint in row.hints:
        match = re.search(r"(?:^|[^a-z0-9])r([123])(?:$|[^a-z0-9])", hint.lower())
        if match:
            return f"R{match[1]}"
    return ""


PRESET = Preset(read=read, hub="facebook/anli")
