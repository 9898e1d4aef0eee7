"""The content of an MLflow run, in plain Python, built from the store alone."""

from __future__ import annotations

import json
import posixpath
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

LAYOUT = "2"
"""Version of the layout of MLflow runs; a new one publishes everything again."""

STALE_TAG = "suffrage.stale"
STALE_MARK = " stale "
"""Separator in the version of a stale finding between its content and its staleness; the content is not published
again.
"""

MAX_NAME_LENGTH = 250
MAX_PARAMETER_LENGTH = 6000
MAX_TAG_LENGTH = 8000
MAX_METRICS = 50

Kind = Literal["finding", "run"]


@dataclass(frozen=True, kw_only=True)
class MlflowRunSpec:
    """The content of one MLflow run.

    Attributes:
        kind: kind of the item.
        ref_id: key of the finding or run, or of the benchmark of a report.
        version: changes with the content.
        experiment: its MLflow experiment.
        about_experiment: description of the experiment.
        primary_metric: the metric by which the experiment's runs are compared first; '' without one.
        higher_is_better: whether larger values of it are better.
        n_models: number of runs that the experiment should have.
        run_name: display name.
        started, ended: times of the item itself.
        parameters: by name.
        metrics: finite numbers by name; at most about fifty.
        tags: by name.
        description: in Markdown.
        page: path of its page in `suffrage serve`; '' without one.
        experiment_page: that of the experiment's benchmark; '' without one.
        files: contents by path.
    """

    kind: Kind | Literal["report"]
    ref_id: int
    version: str
    experiment: str
    about_experiment: str
    primary_metric: str = ""
    higher_is_better: bool = True
    n_models: int = 0
    run_name: str
    started: datetime
    ended: datetime
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    description: str
    page: str = ""
    experiment_page: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as values that JSON can express."""
        return asdict(self) | {
            "started": self.started.isoformat(),
            "ended": self.ended.isoformat(),
            "files": {name: b64encode(content).decode() for name, content in self.files.items()},
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> MlflowRunSpec:
        """Return the spec that `as_json` describes."""
        times = {name: datetime.fromisoformat(values[name]) for name in ("started", "ended")}
        return cls(**values | times | {"files": {name: b64decode(text) for name, text in values["files"].items()}})


def allowed_names(names: Iterable[str]) -> dict[str, str]:
    """Map each name to one that MLflow accepts: distinct for distinct names, unchanged if possible."""
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
    """Return a file that lists the changed names with their originals; none if all are unchanged."""
    changed = {mlflow_name: name for name, mlflow_name in allowed.items() if mlflow_name != name}
    return {"names.json": json.dumps(changed, indent=2, ensure_ascii=False).encode()} if changed else {}


def format_parameter(value: Any) -> str:
    """Format a parameter for MLflow."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(str(item) for item in value)
    return json.dumps(value, ensure_ascii=False)


def truncate(text: str, longest: int) -> str:
    """Return the text, or its beginning with its full length."""
    if len(text) <= longest:
        return text
    ending = f"... ({len(text):,} characters; the store has them all)"
    return text[: longest - len(ending)] + ending


def ascii_name(text: str) -> str:
    """Return the text in ASCII, for places where MLflow shows nothing else correctly."""
    return text.encode("ascii", "replace").decode()
