"""One row of a published data set, and the prompt that it becomes."""

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
"""Words for splits, as they are stored. ``dev`` stays what it is: MMLU has both."""
MISSING = object()
MAX_FIELD_NAMES = 8


class RowError(ValueError):
    """A row that is no prompt; says why, and is told with its place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetRow:
    """A row as it is published, nothing interpreted yet.

    Attributes:
        fields: what it holds, by name.
        place: where it stands, for messages, such as ``R1/test.jsonl, line 3``.
        line: number of the line, or of the row counted from 1.
        split: what the names of file and folders say; '' where they do not.
        hints: names that may tell the task: file without its ending, folders from the inside out, configuration.
    """

    fields: Mapping[str, Any]
    place: str
    line: int
    split: str = ""
    hints: Sequence[str] = ()

    def value(self, *names: str) -> Any:
        """What the first of some fields that is there holds, None where none is; ``a.b`` is field b of field a."""
        for name in names:
            value = get_value(self.fields, name)
            if value is not MISSING and value is not None:
                return value
        return None

    def text(self, *names: str) -> str:
        """The same as a text, without space around it.

        Raises:
            RowError: none of them is there, or it holds no text.
        """
        value = self.value(*names)
        if value is None:
            raise RowError(f"no field {' or '.join(map(repr, names))}; it has {self.names}")
        if isinstance(value, (Mapping, list, tuple)):
            raise RowError(f"the field {names[0]!r} holds no text")
        text = str(value).strip()
        if not text:
            raise RowError(f"the field {names[0]!r} is empty")
        return text

    @property
    def names(self) -> str:
        """Names of its fields, for messages."""
        return join_names(self.fields, MAX_FIELD_NAMES) or "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedPrompt:
    """A prompt of a published data set.

    Attributes:
        text: what a person would read as the question.
        choices: the options; none where the answer is written.
        answer: the gold answer: name of the option (see `tracker.option_labels.option_name`), or the text; None
            where it is not published.
        task: '' where there is none.
        split: '' where the row does not say.
        id: what the data set calls it, unique in its task; '' where it has no names.
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
    """What a field holds; ``a.b`` is field b of field a where no field is called so; `MISSING` where there is none."""
    if name in fields:
        return fields[name]
    outer, dot, inner = name.partition(".")
    below = fields.get(outer)
    return get_value(below, inner) if dot and isinstance(below, Mapping) else MISSING


def split_named(names: Iterable[str]) -> str:
    """The split that the first of some names tells which tells any: its last word that is one; '' where none does."""
    for name in names:
        words = [SPLITS[word] for word in re.split(r"[^a-z0-9]+", name.lower()) if word in SPLITS]
        if words:
            return words[-1]
    return ""


def normalize_split(name: str) -> str:
    """A split as it is stored: val and valid are validation, other names are kept."""
    return SPLITS.get(name.strip().lower(), name.strip())
