"""What MLflow is to show of a finding or a run, in plain Python, made from the store alone."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

LAYOUT = "2"
"""Number of the form in which things are shown; a new one has everything published anew."""

STALE_TAG = "suffrage.stale"
STALE_MARK = " stale "
"""Stands in the version of a stale finding between what is shown and why it is stale; the former is not shown anew."""

LONGEST_NAME = 250
LONGEST_PARAMETER = 6000
LONGEST_TAG = 8000
MOST_METRICS = 50

Kind = Literal["finding", "run"]


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """One MLflow run.

    Attributes:
        kind: what it shows.
        ref_id: key of the finding or run, or of the benchmark that a report is about.
        version: changes when what is shown changes.
        experiment: the MLflow experiment it belongs to.
        about_experiment: what the experiment holds, in a sentence.
        primary_metric: the metric the experiment's runs are compared by first; '' where there is none.
        higher_is_better: whether more of it is better.
        run_name: what people call it.
        started, ended: when the thing itself happened.
        parameters: by name.
        metrics: finite numbers by name; at most about fifty.
        tags: by name.
        note: a description in Markdown.
        files: contents by path.
    """

    kind: Kind | Literal["report"]
    ref_id: int
    version: str
    experiment: str
    about_experiment: str
    primary_metric: str = ""
    higher_is_better: bool = True
    run_name: str
    started: datetime
    ended: datetime
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    note: str
    files: Mapping[str, bytes] = field(default_factory=dict)


def allowed_names(names: Iterable[str]) -> dict[str, str]:
    """For each name one that MLflow takes: different ones for different names, the same wherever it can be."""
    allowed: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        plain = re.sub(r"[^A-Za-z0-9_\-. :/]", "_", name)[:LONGEST_NAME] or "_"
        if posixpath.normpath(plain) != plain or plain.startswith(("/", "..")) or plain == ".":
            plain = re.sub(r"[/.]", "_", plain)
        candidate, number = plain, 1
        while candidate in taken:
            number += 1
            candidate = f"{plain[: LONGEST_NAME - 8]}_{number}"
        taken.add(candidate)
        allowed[name] = candidate
    return allowed


def renamed(allowed: Mapping[str, str]) -> dict[str, bytes]:
    """A file that says what the names that had to be changed stand for; none where all could be kept."""
    changed = {shown: name for name, shown in allowed.items() if shown != name}
    return {"names.json": json.dumps(changed, indent=2, ensure_ascii=False).encode()} if changed else {}


def as_text(value: Any) -> str:
    """A parameter as MLflow shows it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(one, (str, int, float)) for one in value):
        return ", ".join(str(one) for one in value)
    return json.dumps(value, ensure_ascii=False)


def cut(text: str, longest: int) -> str:
    """The text, or its beginning with a word on how much there is."""
    if len(text) <= longest:
        return text
    ending = f"... ({len(text):,} characters; the store has them all)"
    return text[: longest - len(ending)] + ending


def ascii_name(text: str) -> str:
    """The text for a place where only ASCII shows everywhere."""
    return text.encode("ascii", "replace").decode()
