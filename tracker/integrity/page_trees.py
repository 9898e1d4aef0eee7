"""Find the pages of a SQLite file that tables and indexes use, many pages at once.

Damage of the trees themselves is not reported: SQLite reports it. Pointers out of the file are passed over.

Source: "Database file format", https://www.sqlite.org/fileformat2.html, section 1.6.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.integrity.file_pages import HEADER_BYTES, Pages

INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
"""Kinds of pages; tables without rowids are stored like indexes."""
BYTES_AT_ONCE = 1 << 20
MAX_VARINT = 9

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PageUses:
    """Which trees use the pages of a file.

    Attributes:
        owners: ``(n_pages + 1,)`` the first page of the tree that uses each page; 0 if none does.
        counts: ``(n_pages + 1,)`` how often trees refer to it.
    """

    owners: NDArray[np.uint32]
    counts: NDArray[np.uint32]

    @property
    def number(self) -> int:
        """The number of pages."""
        return len(self.owners) - 1

    def add(self, owners: NDArray[np.uint32], children: Integers) -> Integers:
        """Count pages that trees refer to; return those that no tree has used yet.

        Args:
            owners: ``(n,)`` the first page of each tree.
            children: ``(n,)`` the page.
        """
        inside = (children > 0) & (children <= self.number)
        children, owners = children[inside], owners[inside]
        np.add.at(self.counts, children, 1)
        unseen = self.owners[children] == 0
        self.owners[children[unseen]] = owners[unseen]
        return np.asarray(children[unseen])

    def add_chain(self, pages: Pages, page: int, owner: int) -> None:
        """Count the overflow pages of a record, each of which names the next one."""
        while 0 < page <= self.number:
            self.counts[page] += 1
            if self.owners[page]:
                return
            self.owners[page] = owner
            page = int.from_bytes(pages.read(page, 0, 4))


def find_uses(pages: Pages, roots: Collection[int]) -> PageUses:
    """Follow trees through a file.

    Args:
        pages: the pages of the file.
        roots: the first page of each tree.
    """
    uses = PageUses(np.zeros(pages.number + 1, dtype=np.uint32), np.zeros(pages.number + 1, dtype=np.uint32))
    first = np.array(list(roots), dtype=np.int64)
    level = np.unique(uses.add(first.astype(np.uint32), first))
    n_at_once = max(1, BYTES_AT_ONCE // pages.size)
    while len(level):
        next_level = []
        for start in range(0, len(level), n_at_once):
            part = level[start : start + n_at_once]
            content = pages.load(part).reshape(-1)
            parents, children, chains = _read_pointers(pages, content, part == 1)
            next_level.append(uses.add(uses.owners[part[parents[0]]], children))
            for page, owner in zip(chains.tolist(), uses.owners[part[parents[1]]].tolist(), strict=True):
                uses.add_chain(pages, page, owner)
        level = np.unique(np.concatenate(next_level))
    return uses


def _read_pointers(
    pages: Pages, content: NDArray[np.uint8], is_first: NDArray[np.bool_]
) -> tuple[tuple[Integers, Integers], Integers, Integers]:
    """Return the places of pages with their children, and of pages with the first overflow pages of their records.

    Args:
        pages: the file.
        content: ``(n * size,)`` bytes of pages.
        is_first: ``(n,)`` whether a page is the first one of the file, whose header precedes it.
    """
    size = pages.size
    starts = np.arange(len(is_first)) * size
    heads = starts + np.where(is_first, HEADER_BYTES, 0)
    kinds = content[heads]
    is_inner = (kinds == INDEX_INNER) | (kinds == TABLE_INNER)
    cells_at = heads + np.where(is_inner, 12, 8)
    n_cells = np.minimum(_numbers(content, heads + 3, 2), (starts + size - cells_at) // 2)
    n_cells[~np.isin(kinds, [INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF])] = 0
    owners = np.repeat(np.arange(len(starts)), n_cells)
    order = np.arange(len(owners)) - np.repeat(np.cumsum(n_cells) - n_cells, n_cells)
    offsets = _numbers(content, cells_at[owners] + 2 * order, 2)
    least = np.where(kinds[owners] == INDEX_INNER, 5, 4)  # a child, and the size of the record
    owners, offsets = owners[fits := offsets <= pages.usable - least], offsets[fits]
    cells = starts[owners] + offsets
    inner_cells = is_inner[owners]
    parents = np.concatenate([np.flatnonzero(is_inner), owners[inner_cells]])
    children = _numbers(content, np.concatenate([heads[is_inner] + 8, cells[inner_cells]]), 4)
    records = kinds[owners] != TABLE_INNER
    owners, cells = owners[records], cells[records] + np.where(kinds[owners[records]] == INDEX_INNER, 4, 0)
    long = content[cells] > min(127, _most_local(pages.usable, is_table=False))
    owners, cells = owners[long], cells[long]
    overflow = _overflow_places(pages.usable, content, cells, kinds[owners] == TABLE_LEAF)
    present = (overflow >= 0) & (overflow + 4 <= starts[owners] + pages.usable)
    return (parents, owners[present]), children, _numbers(content, overflow[present], 4)


def _overflow_places(usable: int, content: NDArray[np.uint8], cells: Integers, is_table: NDArray[np.bool_]) -> Integers:
    """Return where each record names its first overflow page, ``(n,)``; -1 if it has none.

    Args:
        usable: bytes of a page that hold content.
        content: bytes of pages.
        cells: ``(n,)`` the places of the records' sizes.
        is_table: ``(n,)`` whether a record is one of a table with rowids, which has a number after its size.
    """
    payload, ends = _read_varints(content, cells)
    ends = np.where(is_table, _read_varints(content, ends)[1], ends)
    most = np.where(is_table, _most_local(usable, is_table=True), _most_local(usable, is_table=False))
    least = (usable - 12) * 32 // 255 - 23
    local = least + (payload - least) % (usable - 4)
    return np.where(payload > most, ends + np.where(local <= most, local, least), -1)


def _most_local(usable: int, *, is_table: bool) -> int:
    """Return the bytes of a record beyond which it has overflow pages."""
    return usable - 35 if is_table else (usable - 12) * 64 // 255 - 23


def _read_varints(content: NDArray[np.uint8], places: Integers) -> tuple[Integers, Integers]:
    """Return numbers of variable length, ``(n,)``, and the places after them."""
    values, ends = np.zeros(len(places), dtype=np.int64), places.copy()
    goes_on = np.ones(len(places), dtype=bool)
    for place in range(MAX_VARINT):
        byte = content[np.minimum(ends, len(content) - 1)].astype(np.int64)
        is_last = place == MAX_VARINT - 1
        read = (values << 8) | byte if is_last else (values << 7) | (byte & 127)
        values, ends = np.where(goes_on, read, values), ends + goes_on
        goes_on = goes_on & (byte >= 128)
    return values, ends


def _numbers(content: NDArray[np.uint8], places: Integers, n_bytes: int) -> Integers:
    """Return the numbers of so many bytes at places, ``(n,)``."""
    values = np.zeros(len(places), dtype=np.int64)
    for byte in range(n_bytes):
        values = (values << 8) | content[places + byte]
    return values
