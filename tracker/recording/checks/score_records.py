"""Decode the records of scores in pages of a B-tree, and check that they fill their pages, by compiled code.

Source: "Database file format", https://www.sqlite.org/fileformat2.html, sections 1.6 and 2.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracker.ingest.write.score_columns import TRIAL_BITS
from tracker.statistics.jit import INT, jit

INNER, LEAF = 2, 10
"""Kinds of pages in a B-tree without rowids."""
SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""Bytes of a value of each type: 0 is NULL, 7 a number with a fraction, 8 and 9 are the numbers 0 and 1."""
_SIZES = np.array(SIZES)
LEAST_BLOCK = 4
"""Bytes of the smallest free block, and between two of them: fewer are joined with the block before."""
MAX_SPANS = 32
"""Groups of records of a page, which lie one before the other, that are compared; of more, every byte is looked at."""


@jit
def decode(pages: Any, places: Any, cells: Any, usable: Any, keys: Any, values: Any, bits: Any, last: Any) -> Any:
    """Decode records in order; return their number, or -1 if one is unexpected.

    Args:
        pages: ``(n_pages, size)`` bytes.
        places: ``(n,)`` the pages that are read one after the other.
        cells: ``(n,)`` cell of an inner page, or -1 for all cells of a leaf, which has to be filled.
        usable: bytes of a page that hold records.
        keys: ``(3, capacity)`` set to runs, metrics, and prompts with trials.
        values: ``(capacity,)`` set to scores.
        bits: ``values`` as bits.
        last: ``(3,)`` the last key before; set to the last one.
    """
    n, types, content, size = INT(0), INT(-1), pages.reshape(-1), pages.shape[1]
    sizes, record, spans = np.zeros(5, dtype="i8"), np.zeros(5, dtype="i8"), np.zeros((2, MAX_SPANS), dtype="i8")
    last_run, last_metric, last_key = last
    for part in range(len(places)):
        page, first, is_leaf = places[part] * size, cells[part], cells[part] < 0
        end, head, skipped = first + 1, page + 12, INT(4)
        if is_leaf:
            first, end, head, skipped = INT(0), INT(content[page + 3]) * 256 + INT(content[page + 4]), page + 8, INT(0)
        stop, before, n_spans = page + usable, INT(-1), INT(0)
        if content[page] != (LEAF if is_leaf else INNER) or head + 2 * end > stop or n + end - first > len(values):
            return -1
        for cell in range(first, end):
            start = page + INT(content[head + 2 * cell]) * 256 + INT(content[head + 2 * cell + 1]) + skipped
            if start + 7 > stop or start + 1 + INT(content[start]) > stop:
                return -1
            if start + 1 + INT(content[start]) != before and n_spans < MAX_SPANS:
                spans[1, n_spans] = start + 1 + INT(content[start])
                n_spans += 1
            spans[0, n_spans - 1] = start
            before, new = start, INT(content[start])
            for byte in range(start + 1, start + 7):
                new = (new << 8) | INT(content[byte])
            new -= INT(content[start + 6] == 9)  # scores of 0 and 1 alternate
            if new != types and not _set_sizes(content, start, sizes):
                return -1
            types, at = new, start + 7
            for column in range(5):
                number = INT(np.int8(content[at])) if sizes[column] else INT(content[start + 2 + column] == 9)
                for byte in range(at + 1, at + sizes[column]):
                    number = (number << 8) | INT(content[byte])
                record[column] = number
                at += sizes[column]
            run, metric, prompt, trial = record[0], record[1], record[2], record[3]
            if prompt < -(1 << 31) or prompt >= (1 << 31) or trial < 0 or trial >= (1 << TRIAL_BITS):
                return -1
            key = prompt << TRIAL_BITS | trial
            if run < last_run or (run == last_run and (metric, key) <= (last_metric, last_key)):
                return -1
            last_run, last_metric, last_key = keys[0, n], keys[1, n], keys[2, n] = run, metric, key
            values[n] = record[4]
            if content[start + 6] == 7:
                bits[n] = np.uint64(record[4])
            n += 1
        if is_leaf and not _is_filled_by(content, page, usable, spans, n_spans):
            return -1
    last[:] = last_run, last_metric, last_key
    return n


@jit
def _set_sizes(content: Any, start: Any, sizes: Any) -> Any:
    """Set the sizes of the values of a record; False if its types are unexpected, or have another size together.

    Its payload's size, its header's size and its five types are single bytes, at ``start``.
    """
    total = INT(6)
    for column in range(5):
        kind = content[start + 2 + column]
        if kind == 0 or kind > 9 or (kind == 7 and column < 4):
            return False
        sizes[column] = _SIZES[kind]
        total += sizes[column]
    return content[start + 1] == 6 and total == INT(content[start])


@jit
def _is_filled_by(content: Any, page: Any, usable: Any, spans: Any, n_spans: Any) -> Any:
    """Whether the records and free blocks of a leaf fill it as the head of the page states, and none overlap.

    Args:
        content: ``(n,)`` bytes of pages.
        page: where the page starts.
        usable: bytes of a page that hold records.
        spans: ``(2, MAX_SPANS)`` starts and ends of records that lie one before the other; changed here.
        n_spans: how many of them there are.
    """
    start, least = INT(content[page + 5]) * 256 + INT(content[page + 6]), INT(1)
    block = INT(content[page + 1]) * 256 + INT(content[page + 2])
    while block >= least and block + 4 <= usable and n_spans < MAX_SPANS:
        size = INT(content[page + block + 2]) * 256 + INT(content[page + block + 3])
        spans[0, n_spans], spans[1, n_spans] = page + block, page + block + size
        n_spans += 1
        least, block = block + size + LEAST_BLOCK, INT(content[page + block]) * 256 + INT(content[page + block + 1])
    if block != 0 or n_spans == MAX_SPANS or start == 0:
        return is_filled(content[page : page + usable], usable)
    end, unused = page + start, INT(0)
    if 8 + 2 * (INT(content[page + 3]) * 256 + INT(content[page + 4])) > start:
        return False
    for _ in range(n_spans):
        place = spans[0, :n_spans].argmin()
        if spans[0, place] < end or spans[1, place] < spans[0, place] + LEAST_BLOCK:
            return False
        unused += spans[0, place] - end
        end, spans[0, place] = spans[1, place], np.iinfo(np.int64).max
    return end <= page + usable and unused + page + usable - end == INT(content[page + 7])


@jit
def is_filled(page: Any, usable: Any) -> Any:
    """Whether the records and free blocks of a page fill it as the head of the page states, and none overlap.

    Args:
        page: ``(size,)`` bytes.
        usable: bytes of a page that hold records.
    """
    skipped = INT(0 if page[0] == LEAF else 4)
    n, start = INT(page[3]) * 256 + INT(page[4]), INT(page[5]) * 256 + INT(page[6])
    if start == 0:
        start = INT(65536)
    if 8 + skipped + 2 * n > start or start > usable:
        return False
    used = np.zeros(usable, dtype=np.bool_)
    for cell in range(n):
        place = 8 + skipped + 2 * cell
        at = INT(page[place]) * 256 + INT(page[place + 1])
        if at < start or at + skipped >= usable or not _use(used, at, skipped + 1 + INT(page[at + skipped])):
            return False
    least, block = start, INT(page[1]) * 256 + INT(page[2])
    while block != 0:
        if block < least or block + LEAST_BLOCK > usable:
            return False
        size = INT(page[block + 2]) * 256 + INT(page[block + 3])
        if size < LEAST_BLOCK or not _use(used, block, size):
            return False
        least, block = block + size + LEAST_BLOCK, INT(page[block]) * 256 + INT(page[block + 1])
    return usable - start - used.sum() == INT(page[7])


@jit
def _use(used: Any, start: Any, size: Any) -> Any:
    """Mark bytes of a page as used; False if they are not all free, or lie outside of it."""
    if start + size > len(used):
        return False
    for byte in range(start, start + size):
        if used[byte]:
            return False
        used[byte] = True
    return True
