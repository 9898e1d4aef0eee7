"""Read all scores of a SQLite file from its pages, several times as fast as by queries.

`score` is a table without rowids: a B-tree whose cells, also those of inner pages, hold one record each, in the order
of the primary key. Whatever is unexpected raises `UnexpectedPageError`, so that the caller reads the scores by a query.

Source: "Database file format", https://www.sqlite.org/fileformat2.html, sections 1.6 and 2.1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.ingest.write.score_columns import TRIAL_BITS
from tracker.integrity.file_pages import UnexpectedPageError, find_descriptor
from tracker.statistics.jit import INT, jit

COLUMNS = [("run_id", 1), ("metric_id", 2), ("prompt_id", 3), ("trial", 4), ("value", 0)]
"""Columns of the table with their places in the primary key, which is the order of a record."""
INNER, LEAF = 2, 10
"""Kinds of pages in a B-tree without rowids."""
MAX_DEPTH = 12
PARTS_AT_ONCE = 64
"""Leaves and single cells of inner pages that are decoded together."""
SMALLEST_CELL = 6
"""Bytes of a cell and its pointer."""

ScoreColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""``(n,)`` runs, metrics, prompts with trials in one number, and scores."""
Parts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""``(n,)`` pages, and the cell that is read; -1 for all of a leaf."""


def read_score_pages(connection: sa.Connection) -> Iterator[ScoreColumns]:
    """Yield all scores, in the order of their primary key.

    Args:
        connection: a transaction on SQLite that has read before, and stays open until the last scores are read: it
            keeps other programs from changing the file itself.

    Raises:
        UnexpectedPageError: the pages are not as expected, or are out of order; or changes wait beside the file.
    """
    path = Path(str(connection.engine.url.database)).resolve()  # a log lies beside the file, not beside a link to it
    _check_table(connection)
    root = connection.exec_driver_sql("SELECT rootpage FROM sqlite_master WHERE name = 'score'").scalar_one()
    if any(log.exists() and log.stat().st_size for log in (Path(f"{path}-wal"), Path(f"{path}-journal"))):
        raise UnexpectedPageError("changes are not merged yet")
    try:
        yield from _Pages(find_descriptor(path)).read(int(root))
    except (OSError, IndexError, ValueError) as error:
        raise UnexpectedPageError(str(error)) from error


def _check_table(connection: sa.Connection) -> None:
    rows = connection.exec_driver_sql("PRAGMA table_xinfo('score')").all()
    sql = str(connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'score'").scalar())
    n_indexes = connection.exec_driver_sql(
        "SELECT count(*) FROM sqlite_master WHERE tbl_name = 'score' AND type = 'index'"
    ).scalar()
    if [(row[1], row[5]) for row in rows] != COLUMNS or not sql.rstrip().endswith("WITHOUT ROWID") or n_indexes:
        raise UnexpectedPageError("the table has another form")


class _Pages:
    """The pages of a file.

    Args:
        descriptor: of the open file.
    """

    def __init__(self, descriptor: int) -> None:
        header = os.pread(descriptor, 100, 0)
        self.descriptor = descriptor
        self.size = {1: 65536}.get(size := int.from_bytes(header[16:18]), size)
        self.usable = self.size - header[20]
        self.number = os.fstat(descriptor).st_size // self.size

    def read(self, root: int) -> Iterator[ScoreColumns]:
        """Yield the scores of the B-tree at a page."""
        pages, cells = self._list_parts(root)
        capacity = PARTS_AT_ONCE * (self.size // SMALLEST_CELL)
        last = np.full(3, np.iinfo(np.int64).min)
        for start in range(0, len(pages), PARTS_AT_ONCE):
            part = slice(start, start + PARTS_AT_ONCE)
            needed, places = np.unique(pages[part], return_inverse=True)
            keys, values = np.empty((3, capacity), dtype=np.int64), np.empty(capacity)
            n = int(
                _decode(self._load(needed), places, cells[part], self.usable, keys, values, values.view("u8"), last)
            )
            if n < 0:
                raise UnexpectedPageError("a record has another form, or is out of order")
            yield keys[0, :n], keys[1, :n], keys[2, :n], values[:n]

    def _load(self, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return pages, ``(n, size)``; numbers are ascending, the first page of a file is 1."""
        if numbers[0] < 2 or numbers[-1] > self.number:
            raise UnexpectedPageError("a page lies outside of the file")
        loaded = np.empty((len(numbers), self.size), dtype=np.uint8)
        ends = np.append(np.flatnonzero(np.diff(numbers) != 1) + 1, len(numbers))
        start = 0
        for end in ends.tolist():
            content = os.pread(self.descriptor, (end - start) * self.size, (int(numbers[start]) - 1) * self.size)
            loaded[start:end] = np.frombuffer(content, dtype=np.uint8).reshape(end - start, self.size)
            start = end
        return loaded

    def _list_parts(self, root: int) -> Parts:
        """Return the leaves, and between them the cells of inner pages, in order."""
        depth, page = 0, root
        while (content := self._load(np.array([page]))[0])[0] == INNER:
            depth, page = depth + 1, int(self._children(content)[0])
            if depth > MAX_DEPTH:
                raise UnexpectedPageError("the tree is too deep")
        parts: list[Parts] = []
        self._add_parts(root, depth, parts)
        return np.concatenate([pages for pages, _ in parts]), np.concatenate([cells for _, cells in parts])

    def _add_parts(self, page: int, depth: int, parts: list[Parts]) -> None:
        if depth == 0:
            parts.append((np.array([page]), np.array([-1])))
            return
        content = self._load(np.array([page]))[0]
        children = self._children(content)
        if len(parts) > 2 * self.number:
            raise UnexpectedPageError("the tree has a loop")
        if depth == 1:
            pages, cells = np.full(2 * len(children) - 1, page), np.full(2 * len(children) - 1, -1)
            pages[::2], cells[1::2] = children, np.arange(len(children) - 1)
            parts.append((pages, cells))
            return
        for place, child in enumerate(children.tolist()):
            self._add_parts(child, depth - 1, parts)
            if place < len(children) - 1:
                parts.append((np.array([page]), np.array([place])))

    def _children(self, content: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the pages below an inner page, ``(n,)``."""
        if content[0] != INNER:
            raise UnexpectedPageError("a page is not an inner page")
        n = int(content[3]) * 256 + int(content[4])
        starts = np.frombuffer(content[12 : 12 + 2 * n].tobytes(), dtype=">u2").astype(np.int64)
        places = np.append(starts, 8)
        return np.asarray(content[places[:, None] + np.arange(4)] @ np.array([1 << 24, 1 << 16, 1 << 8, 1]))


@jit
def _decode(pages: Any, places: Any, cells: Any, usable: Any, keys: Any, values: Any, bits: Any, last: Any) -> Any:
    """Decode the records of parts in order; return their number, or -1 if one is unexpected.

    Args:
        pages: ``(n_pages, size)`` bytes.
        places: ``(n_parts,)`` page of each part.
        cells: ``(n_parts,)`` cell of an inner page, or -1 for all cells of a leaf.
        usable: bytes of a page that hold records.
        keys: ``(3, capacity)`` set to runs, metrics, and prompts with trials.
        values: ``(capacity,)`` set to scores.
        bits: ``values`` as bits.
        last: ``(3,)`` the last key before; set to the last one.
    """
    n = 0
    sizes = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0])
    for part in range(len(places)):
        page, first, is_leaf = pages[places[part]], cells[part], cells[part] < 0
        end = first + 1
        if is_leaf:
            first, end = INT(0), INT(page[3]) * 256 + INT(page[4])
        head = 8 if is_leaf else 12
        if page[0] != (LEAF if is_leaf else INNER) or head + 2 * end > usable or n + end - first > len(values):
            return -1
        for cell in range(first, end):
            at = INT(page[head + 2 * cell]) * 256 + INT(page[head + 2 * cell + 1]) + (0 if is_leaf else 4)
            if not _decode_record(page[:usable], at, n, keys, values, bits, sizes) or not _follows(keys, n, last):
                return -1
            n += 1
    return n


@jit
def _decode_record(page: Any, at: Any, n: Any, keys: Any, values: Any, bits: Any, sizes: Any) -> Any:
    """Decode a record into the ``n``-th column of the keys; False if it is unexpected.

    Its payload's size, its header's size and its five types are single bytes, at ``at``.
    """
    if at + 7 > len(page) or page[at + 1] != 6:
        return False
    data = at + 7
    for column in range(5):
        kind = page[at + 2 + column]
        if kind == 0 or kind > 9 or (kind == 7 and column < 4) or data + sizes[kind] > len(page):
            return False
        number = INT(kind == 9)
        if sizes[kind] and page[data] >= 128:
            number = INT(-1)
        for byte in range(data, data + sizes[kind]):
            number = (number << 8) | INT(page[byte])
        data += sizes[kind]
        if column < 2:
            keys[column, n] = number
        elif column == 2:
            if number < -(1 << 31) or number >= (1 << 31):
                return False
            keys[2, n] = number << TRIAL_BITS
        elif column == 3:
            if number < 0 or number >= (1 << TRIAL_BITS):
                return False
            keys[2, n] |= number
        elif kind == 7:
            bits[n] = np.uint64(number)
        else:
            values[n] = number
    return data == at + 1 + INT(page[at])


@jit
def _follows(keys: Any, n: Any, last: Any) -> Any:
    """Whether the ``n``-th key is larger than the last one, which it replaces."""
    is_larger = False
    for place in range(3):
        if keys[place, n] < last[place] and not is_larger:
            return False
        is_larger = is_larger or keys[place, n] > last[place]
        last[place] = keys[place, n]
    return is_larger
