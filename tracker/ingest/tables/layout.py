"""The layout of a table: what its rows and columns are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tracker.ingest.files.tabular.headings import SYNONYMS, normalize_heading
from tracker.ingest.measurement import KNOWN_METRICS
from tracker.ingest.tables.names.column_headings import clean_heading

Orientation = Literal["prompts", "models", "leaderboard", "tasks", "long"]
"""What the rows are: prompts with a column per model, models with a column per prompt, models with a column per task,
tasks with a column per model, or single scores."""

FORMATS: Mapping[Orientation, str] = {
    "prompts": "wide-table",
    "models": "wide-table",
    "leaderboard": "leaderboard-table",
    "tasks": "leaderboard-table",
}
MAX_PREVIEW = 3


@dataclass(frozen=True, kw_only=True)
class TableLayout:
    """What the rows and columns of a table are.

    Attributes:
        format: name of the format that reads it.
        orientation: what a row is.
        roles: column of each role, such as ``model``; see `tracker.ingest.files.tabular.headings.SYNONYMS`.
        key: column that names the rows; '' for tables of single scores.
        values: columns of scores or answers.
        details: columns that describe a model or a prompt.
        stderr: column of standard errors of a column of scores.
        skipped: columns that are not read.
    """

    format: str
    orientation: Orientation
    roles: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    values: Sequence[str] = ()
    details: Sequence[str] = ()
    stderr: Mapping[str, str] = field(default_factory=dict)
    skipped: Sequence[str] = ()


@dataclass(frozen=True)
class TableRejection:
    """Why a table has no layout.

    Attributes:
        problem: one sentence.
        advice: lines with the fix.
        format: the nearest format.
        similarity: share of the format's features that the table has, in [0, 1).
        is_final: whether the file is certainly a table of results, so that it must not be skipped silently.
    """

    problem: str
    advice: str = ""
    format: str = ""
    similarity: float = 0.0
    is_final: bool = False


def metric_of_columns(layout: TableLayout) -> dict[str, str | None]:
    """Return the columns of scores in a table of single scores, and the metric that each names.

    The metric is None if a column metric or the options name it.
    """
    score = layout.roles.get("score")
    if score is not None:
        plain = normalize_heading(clean_heading(score))
        return {score: "accuracy" if "correct" in plain else None if plain in SYNONYMS["score"] else plain}
    return {name: plain for name in layout.values if (plain := normalize_heading(clean_heading(name))) in KNOWN_METRICS}
