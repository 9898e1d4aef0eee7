"""The options of a published prompt, and what its gold option is called."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracker.ingest.datasets.row import RowError
from tracker.option_labels import option_letter, option_name


@dataclass(frozen=True, slots=True)
class Choices:
    """Options.

    Attributes:
        texts: the options.
        labels: what the data set calls them; A, B, C, ... where it does not say.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]

    def place(self, label: object) -> int | None:
        """Place of the option with a label, None where there is none; letter case counts only if it must."""
        name = str(label).strip()
        if name in self.labels:
            return self.labels.index(name)
        upper = [label.upper() for label in self.labels]
        return upper.index(name.upper()) if upper.count(name.upper()) == 1 else None


def parse_choices(value: Any) -> Choices:
    """Options in any of the shapes in which they are published.

    A list of texts; a list of objects with ``text`` and ``label``; an object of two lists ``text`` and ``label``; an
    object with a text for each label; any of these as JSON.

    Raises:
        RowError: it is none of them, or has fewer than two options.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise RowError('the options are no JSON list of texts, such as ["Paris", "Rome"]') from None
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
        raise RowError("the options are no list of texts")
    if any(text is None or isinstance(text, (Mapping, list, tuple)) for text in texts):
        raise RowError("one of the options is no text")
    if len(texts) < 2:
        raise RowError(f"{len(texts)} options, where there must be two or more")
    if labels is None:
        labels = [option_letter(place) for place in range(len(texts))]
    if len(labels) != len(texts) or len(set(map(str, labels))) != len(labels):
        raise RowError("the options and their labels do not go together")
    return Choices(tuple(str(text).strip() for text in texts), tuple(str(label).strip() for label in labels))


def name_reference_answer(choices: Choices, label: Any) -> str | None:
    """Name of the option that a label means; None where there is no label: unpublished answers are empty.

    Raises:
        RowError: no option has this label.
    """
    if label is None or not str(label).strip():
        return None
    place = choices.place(label)
    if place is None:
        raise RowError(f"the answer {str(label)!r} is none of the labels {', '.join(choices.labels)}")
    return option_name(place, choices.texts)
