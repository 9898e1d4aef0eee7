"""Field mapping of a data set without a preset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tracker.errors import SelectionError
from tracker.ingest.datasets.choices import Choices, parse_choices
from tracker.ingest.datasets.reference_parser import NOTATIONS, Guess, parse_reference
from tracker.ingest.datasets.row import (
    MAX_FIELD_NAMES,
    MISSING,
    DatasetRow,
    PublishedPrompt,
    RowError,
    get_value,
    normalize_split,
)
from tracker.ingest.files.tabular.headings import assign_roles
from tracker.name_lists import join_names
from tracker.option_labels import option_name
from tracker.suggestions import find_similar, format_guess

ALL_ANSWERS = "accepted_answers"
"""Detail that lists all accepted answers."""
PARTS = ("text", "choices", "answer", "task", "split", "id")
ROLES = {"text": "text", "choices": "choices", "answer": "answer", "task": "task", "split": "split", "prompt": "id"}
"""Parts of a prompt by heading of prompt tables."""


@dataclass(frozen=True, kw_only=True)
class FieldMap:
    """Maps the fields of a data set to the parts of a prompt.

    Attributes:
        parts: fields of each part in `PARTS`. Several fields of ``text`` are joined by line breaks; several fields of
            ``choices`` are one option each; other parts have one field. ``a.b`` is field b of field a.
        answer_is: notation of the answers, one of `NOTATIONS`; '' if it is unknown or the answer is a text.
    """

    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answer_is: str = ""

    def read(self, row: DatasetRow) -> PublishedPrompt | str:
        """Return the prompt of a row."""
        choices = self.choices(row)
        answers = self.answers(row)
        if choices is None:
            answer = str(answers[0]).strip() if answers else None
        elif not answers:
            answer = None
        elif len(answers) > 1:
            raise RowError(f"{len(answers)} correct options; exactly one is needed")
        else:
            place = parse_reference(self.answer_is, answers[0], choices)
            if place is None:
                raise RowError(f"the answer {answers[0]!r} is not {NOTATIONS[self.answer_is]}, of {len(choices.texts)}")
            answer = option_name(place, choices.texts)
        used = {name for names in self.parts.values() for name in names}
        details = {name: value for name, value in row.fields.items() if name not in used and value not in (None, "")}
        if len(answers) > 1:
            details[ALL_ANSWERS] = [str(answer).strip() for answer in answers]
        return PublishedPrompt(
            text="\n".join(row.text(name) for name in self.parts["text"]),
            choices=() if choices is None else choices.texts,
            answer=answer,
            task=self._text_of(row, "task"),
            split=normalize_split(self._text_of(row, "split")),
            id=self._text_of(row, "id"),
            details=details,
        )

    def choices(self, row: DatasetRow) -> Choices | None:
        """Return the options of a row; None if it has none."""
        names = self.parts.get("choices", ())
        values = [row.value(name) for name in names]
        if len(names) != 1:
            cells = ["" if value is None else str(value).strip() for value in values]
            while cells and not cells[-1]:
                cells.pop()
            if "" in cells:
                raise RowError(f"the option in the field {names[cells.index('')]!r} is empty, but a later one is not")
            return parse_choices(cells) if cells else None
        empty = values[0] is None or values[0] == "" or values[0] == []
        return None if empty else parse_choices(values[0])

    def answers(self, row: DatasetRow) -> list[Any]:
        """Return the reference answers of a row: none if unpublished, several if any of them is correct."""
        value = row.value(*self.parts.get("answer", ()))
        values = value if isinstance(value, list) else [value]
        return [answer for answer in values if answer is not None and str(answer).strip()]

    def _text_of(self, row: DatasetRow, part: str) -> str:
        value = row.value(*self.parts.get(part, ()))
        return "" if value is None else str(value).strip()


def make_field_map(fields: Mapping[str, str], answer_is: str | None, first: DatasetRow) -> FieldMap:
    """Return the mapping chosen by the user; by default, fields are recognized by their names.

    Args:
        fields: fields of each part, separated by commas.
        answer_is: one of `NOTATIONS`; None to detect it.
        first: the first row of the data set.

    Raises:
        SelectionError: unknown part or notation, or no field for the text.
    """
    if wrong := [part for part in fields if part not in PARTS]:
        raise SelectionError(f"--map {wrong[0]}=…: unknown part. Choose from: {', '.join(PARTS)}.")
    if answer_is is not None and answer_is not in NOTATIONS:
        raise SelectionError(f"--answer-is {answer_is}: unknown notation. Choose from: {', '.join(NOTATIONS)}.")
    parts = {part: tuple(name.strip() for name in names.split(",")) for part, names in fields.items()}
    if not fields:
        parts = {ROLES[role]: (name,) for role, name in assign_roles(list(first.fields)).items() if role in ROLES}
    if several := [part for part, names in parts.items() if len(names) > 1 and part not in ("text", "choices")]:
        raise SelectionError(f"--map {several[0]}=… accepts one field; only text and choices accept several.")
    if "text" not in parts:
        raise SelectionError(
            f"No field looks like the question; {first.place} has {first.names}. Name it with "
            "--map text=FIELD, or choose a --preset."
        )
    return FieldMap(parts=parts, answer_is=answer_is or "")


def check_fields(mapped: FieldMap, rows: Iterable[DatasetRow]) -> None:
    """Check that each mapped field exists in some row.

    Raises:
        SelectionError: no row has a field.
    """
    missing = {name: part for part, names in mapped.parts.items() for name in names}
    known: dict[str, None] = {}
    for row in rows:
        known |= dict.fromkeys(row.fields)
        missing = {name: part for name, part in missing.items() if get_value(row.fields, name) is MISSING}
        if not missing:
            return
    name, part = next(iter(missing.items()))
    guess = format_guess(find_similar(name, known, 2))
    hint = f"{guess} " if guess else ""
    raise SelectionError(f"--map {part}={name}: no such field. {hint}Fields: {join_names(known, MAX_FIELD_NAMES)}.")


def guess_answer_notation(mapped: FieldMap, rows: Iterable[DatasetRow]) -> FieldMap:
    """Return the mapping with the only notation of answers that fits all rows.

    Raises:
        SelectionError: none or several fit.
    """
    guess = Guess()
    for row in rows:
        try:
            choices, answers = mapped.choices(row), mapped.answers(row)
        except RowError:  # reported with its place when the rows are read
            continue
        if choices is not None and answers:
            guess.add(answers[0], choices, row.place)
    return replace(mapped, answer_is=guess.notation()) if guess.n_answers else mapped
