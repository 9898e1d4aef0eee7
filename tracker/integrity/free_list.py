"""Check the list of the free pages of a SQLite file, from which the next write takes pages.

SQLite's own check leaves the list out where a view or a virtual table precedes all tables in its memory, as it does
after `VACUUM`: a first root page of 0 marks the check of a single table.

Source: "Database file format", https://www.sqlite.org/fileformat2.html, sections 1.3.11, 1.5 and 1.8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.integrity.file_pages import Pages, UnexpectedPageError, open_pages
from tracker.integrity.page_trees import find_uses
from tracker.name_lists import join_names

ADVICE = "copy the store with `suffrage db copy` before anything is written to it"
ATTEMPTS = 5
"""How often the pages are read, while other programs start the log anew."""
MAX_PAGES = 5
"""Pages that a sentence names."""
LOCK_PLACE = 1 << 30
"""The byte of a file that SQLite locks; the page with it holds nothing."""
ENTRY_BYTES, FREE_ENTRY = 5, 2
"""Bytes that the map of a file with automatic vacuum has for a page, and the first one of a free page."""


@dataclass(frozen=True, kw_only=True)
class FreeList:
    """The list of free pages.

    Attributes:
        pages: ``(n,)`` the pages that it names, each once.
        faults: what is wrong with the list itself.
    """

    pages: NDArray[np.int64]
    faults: list[str]


def find_free_list_faults(connection: sa.Connection) -> list[str]:
    """Return what is wrong with the list of free pages of a SQLite file; empty if it is sound.

    Where the pages cannot be read, SQLite checks the list, but not whether tables use its pages.

    Args:
        connection: a transaction, which stays open meanwhile.
    """
    if connection.dialect.name != "sqlite":
        return []
    for _ in range(ATTEMPTS):
        with suppress(OSError, UnexpectedPageError):
            return _check_pages(connection)
    lines = connection.exec_driver_sql('PRAGMA integrity_check("sqlite_master")').scalars()
    return [str(line) for line in lines if line != "ok"]


def _check_pages(connection: sa.Connection) -> list[str]:
    rows = connection.exec_driver_sql("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0").all()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    pages = open_pages(connection)
    if int.from_bytes(pages.read(1, 40, 4)) != version & 0xFFFFFFFF:
        raise UnexpectedPageError("the tables were changed meanwhile")
    faults = check_free_list(pages, {1: "sqlite_master"} | {int(root): str(name) for name, root in rows})
    pages.check_unchanged()
    return faults


def check_free_list(pages: Pages, trees: Mapping[int, str]) -> list[str]:
    """Return what is wrong with the list of free pages.

    Args:
        pages: the pages of the file.
        trees: the names of tables and indexes by their first page.
    """
    free = read_free_list(pages)
    if not len(free.pages):
        return free.faults
    owners = find_uses(pages, trees).owners[free.pages]
    reserved = np.isin(free.pages, [1, *_reserved_pages(pages)])
    used = [
        _describe(free.pages[owners == root], f"of {trees.get(root, 'a table')}")
        for root in np.unique(owners[(owners > 0) & ~reserved]).tolist()
    ]
    if reserved.any():
        used.append(_describe(free.pages[reserved], "that SQLite needs itself"))
    return [*free.faults, *used, *_check_map(pages, free.pages[(owners == 0) & ~reserved])]


def read_free_list(pages: Pages) -> FreeList:
    """Read the list of free pages: pages that name the next one of them, a number of pages, and these pages."""
    page, stated = (int.from_bytes(pages.read(1, place, 4)) for place in (32, 36))
    seen, n, parent, room = np.zeros(pages.number + 1, dtype=bool), 0, 1, pages.usable // 4 - 2
    faults: list[str] = []
    while page:
        fault = _add(np.array([page]), seen, parent)
        if fault:
            faults += fault
            break
        n += 1
        words = np.frombuffer(pages.read(page, 0, pages.usable // 4 * 4), dtype=">u4").astype(np.int64)
        if words[1] > room:
            faults.append(
                f"page {page} of the list of free pages counts {words[1]:,} pages, but {room:,} fit; {ADVICE}"
            )
        else:
            faults += _add(words[2 : 2 + words[1]], seen, page)
            n += int(words[1])
        page, parent = int(words[0]), page
    if not faults and n != stated:
        faults.append(f"the list of free pages has {n:,} pages, but the file states {stated:,}; {ADVICE}")
    return FreeList(pages=np.flatnonzero(seen), faults=faults)


def are_used_once(pages: Pages, roots: Collection[int], counted: NDArray[np.int64]) -> bool:
    """Whether a tree uses each page once, or the list of free pages, or SQLite itself.

    Of files with automatic vacuum, or that state a part of it, the answer is no: their maps are left to SQLite.

    Args:
        pages: the pages of the file.
        roots: the first page of each tree.
        counted: ``(n,)`` pages of further trees, as often as these refer to them.
    """
    free = read_free_list(pages)
    if free.faults or any(pages.read(1, 52, 4)) or any(pages.read(1, 64, 4)):
        return False
    counts = find_uses(pages, roots).counts
    for used in (counted, free.pages, np.array([*_reserved_pages(pages)], dtype=np.int64)):
        np.add.at(counts, used, 1)
    return bool((counts[1:] == 1).all())


def _add(new: NDArray[np.int64], seen: NDArray[np.bool_], parent: int) -> list[str]:
    """Add pages that a page names to the list; returns what is wrong with them."""
    inside = (new > 0) & (new < len(seen))
    numbers, counts = np.unique(new[inside], return_counts=True)
    again = numbers[seen[numbers] | (counts > 1)]
    seen[numbers] = True
    where = "the header" if parent == 1 else f"page {parent}"
    faults = []
    if not inside.all():
        outside = join_names(np.unique(new[~inside]).tolist(), MAX_PAGES)
        faults.append(
            f"{where} names page {outside} as free, but the file has the pages 1 to {len(seen) - 1:,}; {ADVICE}"
        )
    if len(again):
        faults.append(f"{where} names page {join_names(again.tolist(), MAX_PAGES)} as free once more; {ADVICE}")
    return faults


def _describe(numbers: NDArray[np.int64], use: str) -> str:
    """Return that pages are in use, although the list names them."""
    pages, them = ("page", "it") if len(numbers) == 1 else ("pages", "them")
    names = join_names(numbers.tolist(), MAX_PAGES)
    return f"{pages} {names} {use} may be overwritten: the list of free pages names {them}; {ADVICE}"


def _reserved_pages(pages: Pages) -> Iterator[int]:
    """Yield the page with the lock, and those that map the others for automatic vacuum."""
    lock = LOCK_PLACE // pages.size + 1
    if lock <= pages.number:
        yield lock
    if int.from_bytes(pages.read(1, 52, 4)):
        for page in range(2, pages.number + 1, pages.usable // ENTRY_BYTES + 1):
            yield page + (page == lock)


def _check_map(pages: Pages, free: NDArray[np.int64]) -> list[str]:
    """Return the fault of the map for automatic vacuum, if it does not show free pages as free."""
    if not int.from_bytes(pages.read(1, 52, 4)):
        return []
    n_mapped = pages.usable // ENTRY_BYTES + 1
    starts = (free - 2) // n_mapped * n_mapped + 2
    starts += starts == LOCK_PLACE // pages.size + 1
    wrong = [
        page
        for page, start in zip(free.tolist(), starts.tolist(), strict=True)
        if pages.read(start, ENTRY_BYTES * (page - start - 1), 1) != bytes([FREE_ENTRY])
    ]
    if not wrong:
        return []
    names = join_names(wrong, MAX_PAGES)
    return [f"the map of pages for automatic vacuum does not show page {names} as free; {ADVICE}"]
