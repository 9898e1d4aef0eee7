"""ANLI: does a hypothesis follow from a premise? Three rounds, each a task."""

from __future__ import annotations

import re

from tracker.ingest.datasets.preset import Preset
from tracker.ingest.datasets.row import PublishedPrompt, Row, RowError

CHOICES = ("True", "Neither", "False")
LABELS = {"0": "A", "1": "B", "2": "C", "e": "A", "n": "B", "c": "C",
          "entailment": "A", "neutral": "B", "contradiction": "C"}  # fmt: skip
NO_LABEL = ("", "-1")
"""How the hub writes that a label is not published."""


def read(row: Row) -> PublishedPrompt | str:
    """The JSON Lines call the premise ``context``; the hub has the round in the name of the split: ``test_r3``."""
    premise, hypothesis = row.text("premise", "context"), row.text("hypothesis")
    label = row.value("label")
    said = "" if label is None else str(label).strip().lower()
    if said not in LABELS and said not in NO_LABEL:
        raise RowError(f"the label {label!r} is none of 0, 1, 2, e, n, c")
    reason = str(row.value("reason") or "").strip()
    return PublishedPrompt(
        text=f"{premise}\n{hypothesis}",
        choices=CHOICES,
        answer=LABELS.get(said),
        task=_round(row),
        id=str(row.value("uid") or ""),
        details={"premise": premise, "hypothesis": hypothesis, **({"reason": reason} if reason else {})},
    )


def _round(row: Row) -> str:
    for hint in row.hints:
        found = re.search(r"(?:^|[^a-z0-9])r([123])(?:$|[^a-z0-9])", hint.lower())
        if found:
            return f"R{found[1]}"
    return ""


PRESET = Preset(read=read, hub="facebook/anli")
