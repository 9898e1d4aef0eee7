"""Options of a published prompt, and the name of the correct one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracker.ingest.datasets.row import RowError
from tracker.option_labels import option_letter, option_name


@dataclass(frozen=True, slots=True)
class Choices:
    """Options of a prompt.

    Attributes:
        texts: texts of the options.
        labels: labels in the data set; A, B, C, ... by default.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]

    def place(self, label: object) -> int | None:
        """Return the index of the option with a label; None if there is none. Exact letter case has priority."""
        name = str(label).strip()
        if name in self.labels:
            return self.labels.index(name)
        upper = [label.upper() for label in self.labels]
        return upper.index(name.upper()) if upper.count(name.upper()) == 1 else None


def parse_choices(value: Any) -> Choices:
    """Parse options in any of the published shapes.

    Accepts a list of texts; a list of objects with ``text`` and ``label``; an object with two lists ``text`` and
    ``label``; an object that maps labels to texts; or any of these as JSON.

    Raises:
        RowError: the shape is unknown, or there are fewer than two options.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise RowError('the options are not a JSON list of texts, such as ["Paris", "Rome"]') from None
    texts: Sequence[Any]
    labels: Sequence[Any] | None = None
    if isinstance(value, Mapping) and isinstance(value.get("text"), (list, tuple)):
        texts, labels = value["text"], value.get("label")
    elif isinstance(value, Mapping):
        texts, labels = list(value.values()), list(value)
    elif isinstance(value, (list, tuple)) and value and all(isinstance(option, Mapping) for option in value):
        texts = [option.get("text") for option in value]
        labels = [option["label"] for option in value] if all("label" in option for option in value) else None
    elif isinstance(value, (list, tuple)):
        texts = value
    else:
        raise RowError("the options are not a list of texts")
    if any(text is None or isinstance(text, (Mapping, list, tuple)) for text in texts):
        raise RowError("one of the options is not a text")
    if len(texts) < 2:
        raise RowError(f"only {len(texts)} options; two or more are needed")
    if labels is None:
        labels = [option_letter(place) for place in range(len(texts))]
    if len(labels) != len(texts) or len(set(map(str, labels))) != len(labels):
        raise RowError("the numbers of options and labels differ")
    return Choices(tuple(str(text).strip() for text in texts), tuple(str(label).strip() for label in labels))


def name_reference_answer(choices: Choices, label: Any) -> str | None:
    """Return the name of the option with a label; None without a label, as in unpublished answers.

    Raises:
        RowError: no option has this label.
    """
    if label is None or not str(label).strip():
        return None
    place = choices.place(label)
    if place is None:
        raise RowError(f"the answer {str(label)!r} is not one of the labels {', '.join(choices.labels)}")
    return option_name(place, choices.texts)
