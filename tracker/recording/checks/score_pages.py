"""Read all scores of a SQLite file from its pages, several times as fast as by queries.

`score` is a table without rowids: a B-tree whose cells, also those of inner pages, hold one record each, in the order
of the primary key. Whatever is unexpected raises `UnexpectedPageError`, so that the caller reads the scores by a query.

Source: "Database file format", https://www.sqlite.org/fileformat2.html, sections 1.6 and 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.integrity.file_pages import FilePages, UnexpectedPageError, open_pages
from tracker.recording.checks.score_records import INNER, decode, is_filled

COLUMNS = [("run_id", 1), ("metric_id", 2), ("prompt_id", 3), ("trial", 4), ("value", 0)]
"""Columns of the table with their places in the primary key, which is the order of a record."""
MAX_DEPTH = 12
BYTES_AT_ONCE = 1 << 20
"""Leaves that are decoded together."""
SMALLEST_CELL = 6
"""Bytes of a cell and its pointer."""

ScoreColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""``(n,)`` runs, metrics, prompts with trials in one number, and scores."""


@dataclass(frozen=True)
class _Part:
    """Records that follow each other: those of leaves, or cells of inner pages.

    Attributes:
        pages: ``(n_pages,)`` numbers.
        places: ``(n,)`` which of the pages.
        cells: ``(n,)`` the cell that is read; -1 for all of a leaf.
    """

    pages: NDArray[np.int64]
    places: NDArray[np.int64]
    cells: NDArray[np.int64]

    def extend(self, page: int, cell: int) -> _Part:
        """Return these records and the one of a cell of an inner page."""
        return _Part(np.append(self.pages, page), np.append(self.places, len(self.pages)), np.append(self.cells, cell))


def open_scores(connection: sa.Connection) -> ScoreTree:
    """Return the B-tree of all scores.

    Args:
        connection: a transaction on SQLite that has read before, and stays open until the last scores are read: it
            keeps other programs from changing the file itself.

    Raises:
        UnexpectedPageError: the pages are not as expected; or changes wait beside the file.
    """
    path = Path(str(connection.engine.url.database)).resolve()  # a log lies beside the file, not beside a link to it
    _check_table(connection)
    root = connection.exec_driver_sql("SELECT rootpage FROM sqlite_master WHERE name = 'score'").scalar_one()
    if any(log.exists() and log.stat().st_size for log in (Path(f"{path}-wal"), Path(f"{path}-journal"))):
        raise UnexpectedPageError("changes are not merged yet")
    return ScoreTree(open_pages(connection), int(root))


def _check_table(connection: sa.Connection) -> None:
    rows = connection.exec_driver_sql("PRAGMA table_xinfo('score')").all()
    sql = str(connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'score'").scalar())
    n_indexes = connection.exec_driver_sql(
        "SELECT count(*) FROM sqlite_master WHERE tbl_name = 'score' AND type = 'index'"
    ).scalar()
    if [(row[1], row[5]) for row in rows] != COLUMNS or not sql.rstrip().endswith("WITHOUT ROWID") or n_indexes:
        raise UnexpectedPageError("the table has another form")


class ScoreTree:
    """The B-tree of all scores.

    Args:
        pages: of the file.
        root: its first page.

    Attributes:
        pages: of the file.
        root: its first page.
        numbers: ``(n,)`` its pages, as often as it refers to them.

    Raises:
        UnexpectedPageError: the inner pages are not as expected.
    """

    def __init__(self, pages: FilePages, root: int) -> None:
        self.pages, self.root = pages, root
        self._inner, self._n_children = [root], 0
        self._parts: list[_Part] = []
        depth, page = 0, root
        while (content := self._load(np.array([page]))[0])[0] == INNER:
            depth, page = depth + 1, int(self._children(content)[0])
            if depth > MAX_DEPTH:
                raise UnexpectedPageError("the tree is too deep")
        self._add_parts(root, depth)
        leaves = [part.pages[part.places[part.cells < 0]] for part in self._parts]
        self.numbers = np.concatenate([np.array(self._inner[depth == 0 :], dtype=np.int64), *leaves])
        self._check(self.numbers)
        self._is_leaf_alone = depth == 0

    def read(self) -> Iterator[ScoreColumns]:
        """Yield all scores, in the order of their primary key.

        Raises:
            UnexpectedPageError: the pages are not as expected, or are out of order.
        """
        last = np.full(3, np.iinfo(np.int64).min)
        for part, pages in self._load_ahead():
            n_cells = np.minimum(pages[:, 3].astype(np.int64) * 256 + pages[:, 4], self.pages.size // SMALLEST_CELL)
            if not self._is_leaf_alone and not n_cells[part.places[part.cells < 0]].all():
                raise UnexpectedPageError("a leaf has no records")
            capacity = int(np.where(part.cells < 0, n_cells[part.places], 1).sum())
            keys, values = np.empty((3, capacity), dtype=np.int64), np.empty(capacity)
            bits, usable = values.view(np.uint64), self.pages.usable
            n = int(decode(pages, part.places, part.cells, usable, keys, values, bits, last))
            if n < 0 or not np.isfinite(values[:n]).all():
                raise UnexpectedPageError("a record has another form, or is out of order")
            yield keys[0, :n], keys[1, :n], keys[2, :n], values[:n]

    def _load_ahead(self) -> Iterator[tuple[_Part, NDArray[np.uint8]]]:
        """Yield the parts with their pages, which another thread loads while those before are decoded."""
        with ThreadPoolExecutor(1) as thread:
            coming = thread.submit(self._load, self._parts[0].pages)
            for part, following in zip(self._parts, [*self._parts[1:], None], strict=True):
                pages = coming.result()
                if following is not None:
                    coming = thread.submit(self._load, following.pages)
                yield part, pages

    def _load(self, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return pages, ``(n, size)``; the first page of a file is 1."""
        self._check(numbers)
        return self.pages.load(numbers)

    def _check(self, numbers: NDArray[np.int64]) -> None:
        if numbers.min() < 2 or numbers.max() > self.pages.number:
            raise UnexpectedPageError("a page lies outside of the file")

    def _add_parts(self, page: int, depth: int) -> None:
        """Add the records of the tree below a page, in order."""
        if depth == 0:
            self._parts.append(_Part(np.array([page]), np.array([0]), np.array([-1])))
            return
        content = self._load(np.array([page]))[0]
        if not is_filled(content, self.pages.usable):
            raise UnexpectedPageError("an inner page has another form")
        children = self._children(content)
        self._n_children += len(children)
        if self._n_children > self.pages.number:
            raise UnexpectedPageError("the tree has a loop")
        if depth == 1:
            self._add_leaves(page, children)
            return
        self._inner += children.tolist()
        for place, child in enumerate(children.tolist()):
            self._add_parts(child, depth - 1)
            if place < len(children) - 1:
                self._parts[-1] = self._parts[-1].extend(page, place)

    def _add_leaves(self, page: int, children: NDArray[np.int64]) -> None:
        """Add the leaves below an inner page, and the cells between them."""
        n_at_once = max(1, BYTES_AT_ONCE // self.pages.size)
        for start in range(0, len(children), n_at_once):
            leaves = children[start : start + n_at_once]
            places, cells = np.zeros(2 * len(leaves), dtype=np.int64), np.full(2 * len(leaves), -1)
            places[::2], cells[1::2] = np.arange(1, len(leaves) + 1), np.arange(start, start + len(leaves))
            if start + len(leaves) == len(children):
                places, cells = places[:-1], cells[:-1]
            self._parts.append(_Part(np.concatenate([[page], leaves]), places, cells))

    def _children(self, content: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the pages below an inner page, ``(n,)``."""
        n = int(content[3]) * 256 + int(content[4])
        starts = np.frombuffer(content[12 : 12 + 2 * n].tobytes(), dtype=">u2").astype(np.int64)
        places = np.append(starts, 8)
        if content[0] != INNER or not 0 < n <= len(starts) or places.max() + 4 > len(content):
            raise UnexpectedPageError("a page is not an inner page")
        return np.asarray(content[places[:, None] + np.arange(4)] @ np.array([1 << 24, 1 << 16, 1 << 8, 1]))
