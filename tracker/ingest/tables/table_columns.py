"""The columns of a table's first rows: headings, kinds of cells, and the columns that the user named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property

from tracker.ingest.files.tabular.cells import is_missing, is_number
from tracker.ingest.files.tabular.headings import SYNONYMS, assign_roles, is_row_number
from tracker.ingest.files.tabular.table_head import TableHead
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.tables.names.column_headings import (
    attached_stem,
    clean_heading,
    find_part_summaries,
    has_summary,
    heading_direction,
    is_model_heading,
    is_side_heading,
    is_summary_heading,
    stderr_stem,
)
from tracker.name_lists import join_names
from tracker.suggestions import find_similar, format_guess

MAX_NAMES = 5
QUANTITY = re.compile(
    r"^[$€£]\s*[\d.,]+.*$|^~?[\d.,]+\s*[kmbt](?:illion)?\+?$|^\d+(?:st|nd|rd|th)$|^\d{4}-\d\d?(?:-\d\d?)?.*$", re.I
)
MARKUP = re.compile(r"</?[a-z]+>|\\[a-z]+\{?|[{}$]", re.I)
SCORE_LIKE = re.compile(r"^[^\w]*\d+(?:[.,]\d+)?(?:[^A-Za-z:]*|\s*(?:points|pts|pp)\.?|\s*[(\[]\d+[\s\-]shots?[)\]])$")
DATE_LIKE = re.compile(r"^\s*\d{1,4}([/.\-])\d{1,2}\1\d{1,4}\s*$|^\s*\d{4}_\d\d_\d\d\b")
YEARS = range(1990, 2100)
MIN_TEXTS = 3
"""Distinct texts beside a few numbers, such as the company 360, that make a column one of texts."""


class ColumnRole(StrEnum):
    """What a column is for in a table of one row per model, prompt or task."""

    NUMBERS = "numbers"
    TEXTS = "texts"
    EMPTY = "empty"
    SIDE = "side"
    SUMMARY = "summary"
    STDERR = "stderr"
    ROW_NUMBER = "row number"


@dataclass(frozen=True, eq=False)
class TableColumn:
    """A column, by the first rows.

    Attributes:
        name: its name in the file.
        heading: its name without sort marks.
        cells: its cells that are not missing.
        numbers: the cells of the table that are numbers, in any notation.
        is_explicit: whether the user named it as a column of scores.
        is_part_summary: whether its heading summarizes other columns.
    """

    name: str
    heading: str
    cells: Sequence[str]
    numbers: Collection[str]
    is_explicit: bool = False
    is_part_summary: bool = False

    @cached_property
    def direction(self) -> bool | None:
        """Return whether larger scores are better, by the arrow in the heading; None without."""
        return heading_direction(self.name)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Return how often each text occurs among the cells."""
        return Counter(self.cells)

    @cached_property
    def share_of_numbers(self) -> float:
        """Return the share of cells that are numbers."""
        return sum(cell in self.numbers for cell in self.cells) / len(self.cells) if self.cells else 0.0

    @cached_property
    def is_unique(self) -> bool:
        """Return whether no two cells are equal."""
        return len(self.counts) == len(self.cells)

    @cached_property
    def has_summary(self) -> bool:
        """Return whether a cell states a summary of the other rows, such as an average."""
        return has_summary(list(self.counts))

    @cached_property
    def role(self) -> ColumnRole:
        """Return the role by heading and cells."""
        if self.is_explicit:
            return ColumnRole.NUMBERS
        if not self.cells:
            return ColumnRole.SIDE if self.heading and is_side_heading(self.heading) else ColumnRole.EMPTY
        if is_row_number(self.name) and self.share_of_numbers == 1:
            return ColumnRole.ROW_NUMBER
        if self.is_part_summary or is_summary_heading(self.heading):
            return ColumnRole.SUMMARY
        if self.share_of_numbers and stderr_stem(self.heading) is not None:
            return ColumnRole.STDERR
        if is_side_heading(self.heading) or (self.share_of_numbers and self._is_rank_or_year()):
            return ColumnRole.SIDE
        return ColumnRole.TEXTS if not self.share_of_numbers or self._is_mostly_texts() else ColumnRole.NUMBERS

    def looks_like_scores(self) -> bool:
        """Return whether most cells hold a number in an unknown notation, such as ``71.2 (0.3)`` or ``71,2``."""
        if self.share_of_numbers or not self.cells or is_side_heading(self.heading):
            return False
        plain = [cell.strip() for cell in self.cells if not QUANTITY.match(cell.strip()) and not DATE_LIKE.match(cell)]
        return 2 * sum(SCORE_LIKE.match(MARKUP.sub("", cell)) is not None for cell in plain) > len(self.cells)

    def _is_mostly_texts(self) -> bool:
        """Return whether few cells are numbers, and the others are different texts without digits."""
        if self.share_of_numbers >= 0.5:
            return False
        texts = [cell for cell in self.counts if cell not in self.numbers]
        return len(texts) >= MIN_TEXTS and not any(re.search(r"\d", cell) for cell in texts)

    def _is_rank_or_year(self) -> bool:
        """Return whether the cells are 1, 2, 3, … in order, perhaps with medals for the first, or years."""
        if self.share_of_numbers < 1 and any(re.search(r"\w", cell) is None for cell in self.counts):
            plain = [cell.strip() for cell in self.cells if re.search(r"\w", cell)]
            ranks = [int(cell) for cell in plain if cell.isdecimal()]
            n_medals = len(self.cells) - len(plain)
            return len(ranks) == len(plain) > 1 and ranks == sorted(set(ranks)) and ranks[0] <= n_medals + 1
        starts_as_rank = len(self.cells) > 2 and self.cells[0].strip()[:1] == "1" and self.cells[1].strip()[:1] == "2"
        starts_as_year = self.cells[0].strip()[:2] in ("19", "20")
        if not (starts_as_rank or starts_as_year):
            return False
        if not all(re.fullmatch(r"\d{1,4}(?:\.0+)?", cell.strip()) for cell in self.cells):
            return False
        numbers = [int(float(cell)) for cell in self.cells]
        return len(numbers) > 2 and (
            numbers == list(range(1, len(numbers) + 1)) or all(number in YEARS for number in numbers)
        )


class ColumnError(ValueError):
    """A column that the user named, and the table does not have."""


@dataclass(frozen=True, eq=False)
class TableColumns:
    """The columns of a table, without those to ignore.

    Attributes:
        columns: by name in the file.
        explicit: column of each role that the user named.
        roles: column of each role, by the user, else by its heading.
        is_whole: whether the first rows are all rows.
        rows: the first rows.
        ignored: columns to ignore, the last cells of each row.
        is_json: whether the file is JSON Lines, in which most fields are not columns of a table.
    """

    columns: Mapping[str, TableColumn]
    explicit: Mapping[str, str]
    roles: Mapping[str, str]
    is_whole: bool
    rows: Sequence[Sequence[str | None]]
    ignored: Sequence[str] = ()
    is_json: bool = False
    _repeated: dict[tuple[str, ...], float] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Return the number of the first rows."""
        return len(self.rows)

    def cells_of(self, name: str) -> list[str | None]:
        """Return the cells of a column in all first rows."""
        place = self._places[name]
        return [row[place] for row in self.rows]

    def repeated(self, names: tuple[str, ...]) -> float:
        """Return the share of the first rows that repeat the cells of an earlier row in some columns."""
        if names not in self._repeated:
            distinct = set(zip(*map(self.cells_of, names), strict=True))
            self._repeated[names] = 1 - len(distinct) / max(1, self.n_rows)
        return self._repeated[names]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate((*self.columns, *self.ignored))}

    def attached(self, names: Sequence[str]) -> dict[str, str]:
        """Return the columns among ``names`` that describe another one, such as ``MMLU tokens``, and that one."""
        headings = {self.columns[name].heading: name for name in names}
        known = frozenset(headings)
        stems = ((name, attached_stem(name, known)) for name in names if not self.columns[name].is_explicit)
        return {name: headings[stem] for name, stem in stems if stem is not None}


def profile_columns(head: TableHead, options: ReadOptions, *, is_json: bool = False) -> TableColumns:
    """Return the columns of a table.

    Args:
        head: its first rows.
        options: how to read it.
        is_json: whether the file is JSON Lines.

    Raises:
        ColumnError: the user named a column that the table does not have, or a role that does not exist.
    """
    if unknown := [role for role in options.columns if role not in SYNONYMS]:
        raise ColumnError(f"--map {unknown[0]}=…: unknown field. Choose from: {', '.join(SYNONYMS)}.")
    explicit = {role: _find(head.names, column, _option(role, column)) for role, column in options.columns.items()}
    ignored = {name for column in options.ignore_columns for name in _match(head.names, column, "--ignore-columns")}
    ignored -= set(explicit.values())
    tasks = {name for column in options.task_columns for name in _match(head.names, column, "--task-columns")}
    part_summaries = find_part_summaries(head.names)
    cells = frozenset[str | None]().union(*head.rows)
    missing = {cell for cell in cells if is_missing(cell)}
    numbers = frozenset(cell for cell in cells - missing if cell is not None and is_number(cell))
    columns = {
        name: TableColumn(
            name,
            clean_heading(name),
            [cell for cell in head.cells[name] if cell is not None and cell not in missing],
            numbers,
            is_explicit=name in tasks,
            is_part_summary=name in part_summaries,
        )
        for name in head.names
        if name not in ignored
    }
    free = [name for name in columns if name not in explicit.values() and name not in tasks]
    by_heading = {clean_heading(name): name for name in reversed(free)}
    assigned = assign_roles([clean_heading(name) for name in free])
    roles = {role: by_heading[heading] for role, heading in assigned.items() if role not in explicit}
    if "model" not in roles and "model" not in explicit:
        models = [name for name in free if is_model_heading(name) and name not in roles.values()]
        roles |= {"model": models[0]} if models else {}
    place_of = {name: place for place, name in enumerate(head.names)}
    places = [place_of[name] for name in (*columns, *sorted(ignored))] if ignored else None
    rows = head.rows if places is None else [[row[place] for place in places] for row in head.rows]
    return TableColumns(columns, explicit, roles | explicit, head.is_whole, rows, tuple(sorted(ignored)), is_json)


def _option(role: str, column: str) -> str:
    return f"--map {role}={column}" if role != "model" else f"--model-column {column!r}"


def _find(names: Sequence[str], column: str, option: str) -> str:
    if column in names:
        return column
    equal = [name for name in names if clean_heading(name).casefold() == clean_heading(column).casefold()]
    if len(equal) == 1:
        return equal[0]
    guess = format_guess(find_similar(column, names, 2))
    raise ColumnError(f"{option}: no such column. {f'{guess} ' if guess else ''}Columns: {list_names(names)}.")


def _match(names: Sequence[str], column: str, option: str) -> list[str]:
    if column in names or not any(mark in column for mark in "*?["):
        return [_find(names, column, f"{option} {column!r}")]
    matching = [name for name in names if fnmatchcase(name, column)]
    if not matching:
        raise ColumnError(f"{option} {column!r}: no such column. Columns: {list_names(names)}.")
    return matching


def list_names(names: Sequence[str], n: int = 20) -> str:
    """Return names for a message, '' as ``(unnamed)``."""
    return join_names((name or "(unnamed)" for name in names), n)
