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

MAX_NAME_LENGTH = 250
MAX_PARAMETER_LENGTH = 6000
MAX_TAG_LENGTH = 8000
MAX_METRICS = 50

Kind = Literal["finding", "run"]


@dataclass(frozen=True, kw_only=True)
class MlflowRunSpec:
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
        description: in Markdown.
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
    description: str
    files: Mapping[str, bytes] = field(default_factory=dict)


def allowed_names(names: Iterable[str]) -> dict[str, str]:
    """For each name one that MLflow takes: different ones for different names, the same wherever it can be."""
    allowed: dict[str, str] = {}
    used: set[str] = set()
    for name in dict.fromkeys(names):
        plain = re.sub(r"[^A-Za-z0-9_\-. :/]", "_", name)[:MAX_NAME_LENGTH] or "_"
        if posixpath.normpath(plain) != plain or plain.startswith(("/", "..")) or plain == ".":
            plain = re.sub(r"[/.]", "_", plain)
        candidate, number = plain, 1
        while candidate in used:
            number += 1
            candidate = f"{plain[: MAX_NAME_LENGTH - 8]}_{number}"
        used.add(candidate)
        allowed[name] = candidate
    return allowed


def build_names_file(allowed: Mapping[str, str]) -> dict[str, bytes]:
    """A file that says what the names that had to be changed stand for; none where all could be kept."""
    changed = {mlflow_name: name for name, mlflow_name in allowed.items() if mlflow_name != name}
    return {"names.json": json.dumps(changed, indent=2, ensure_ascii=False).encode()} if changed else {}


def format_parameter(value: Any) -> str:
    """A parameter as MLflow shows it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(str(item) for item in value)
    return json.dumps(value, ensure_ascii=False)


def truncate(text: str, longest: int) -> str:
    """The text, or its beginning with a word on how much there is."""
    if len(text) <= longest:
        return text
    ending = f"... ({len(text):,} characters; the store has them all)"
    return text[: longest - len(ending)] + ending


def ascii_name(text: str) -> str:
    """The text for a place where only ASCII shows everywhere."""
    return text.encode("ascii", "replace").decode()
