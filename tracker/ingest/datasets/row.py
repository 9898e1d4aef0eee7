"""A row of a published data set, and the prompt read from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracker.name_lists import join_names

SPLITS: Mapping[str, str] = {
    "test": "test",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "dev",
    "train": "train",
}
"""Standard names of splits. ``dev`` is kept because MMLU has both dev and validation."""
MISSING = object()
MAX_FIELD_NAMES = 8


class RowError(ValueError):
    """A row that is not a valid prompt; the caller adds its place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetRow:
    """A published row, not interpreted yet.

    Attributes:
        fields: values by field name.
        place: location for messages, such as ``R1/test.jsonl, line 3``.
        line: number of the line, or of the row, from 1.
        split: split in the names of file and folders; '' if there is none.
        hints: names that may contain the task: file name without suffix, folders from the innermost to the outermost,
            configuration.
    """

    fields: Mapping[str, Any]
    place: str
    line: int
    split: str = ""
    hints: Sequence[str] = ()

    def value(self, *names: str) -> Any:
        """Return the value of the first existing field; None if there is none. ``a.b`` is field b of field a."""
        for name in names:
            value = get_value(self.fields, name)
            if value is not MISSING and value is not None:
                return value
        return None

    def text(self, *names: str) -> str:
        """Return the same value as a text, without surrounding space.

        Raises:
            RowError: no such field, or it holds no text.
        """
        value = self.value(*names)
        if value is None:
            raise RowError(f"no field {' or '.join(map(repr, names))}; it has {self.names}")
        if isinstance(value, (Mapping, list, tuple)):
            raise RowError(f"the field {names[0]!r} is not a text")
        text = str(value).strip()
        if not text:
            raise RowError(f"the field {names[0]!r} is empty")
        return text

    @property
    def names(self) -> str:
        """Return the names of its fields, for messages."""
        return join_names(self.fields, MAX_FIELD_NAMES) or "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedPrompt:
    """A prompt of a published data set.

    Attributes:
        text: the question.
        choices: the options; empty for open questions.
        answer: reference answer: name of the option (see `tracker.option_labels.option_name`) or text; None if
            unpublished.
        task: '' if there is none.
        split: '' if unknown.
        id: name in the data set, unique in its task; '' if it has no names.
        details: further fields.
    """

    text: str
    choices: tuple[str, ...] = ()
    answer: str | None = None
    task: str = ""
    split: str = ""
    id: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


def get_value(fields: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field.

    ``a.b`` is field b of field a if no field has that name; `MISSING` if there is none.
    """
    if name in fields:
        return fields[name]
    outer, dot, inner = name.partition(".")
    below = fields.get(outer)
    return get_value(below, inner) if dot and isinstance(below, Mapping) else MISSING


def split_named(names: Iterable[str]) -> str:
    """Return the split in the first of some names that contains one (its last such word); '' if there is none."""
    for name in names:
        words = [SPLITS[word] for word in re.split(r"[^a-z0-9]+", name.lower()) if word in SPLITS]
        if words:
            return words[-1]
    return ""


def normalize_split(name: str) -> str:
    """Return the standard name of a split: val and valid become validation; other names are kept."""
    return SPLITS.get(name.strip().lower(), name.strip())
