"""Detection of repeated lines in a stream, and of duplicate documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from tracker.ingest.resolve.sorted_int_map import SortedIntMap

NEVER = -1


class SampleLine(Protocol):
    """The compared fields of a line."""

    line: int
    filter_name: str | None
    number: Any
    key: str
    scores: Any


L = TypeVar("L", bound=SampleLine)


class Occurrences:
    """Remembers documents as hashes, with 48 bytes per line.

    A document is identified by number and hash, across filters. Documents with the same hash are numbered by first
    appearance.
    """

    def __init__(self) -> None:
        self._marks = SortedIntMap()
        self._places = SortedIntMap()
        self._counts = SortedIntMap()
        self._repeats = SortedIntMap()

    def drop_repeats(self, samples: Sequence[L], complain: Callable[[str], None]) -> tuple[list[L], list[str]]:
        """Yield new lines with the name of their document.

        Args:
            samples: samples in the order of the file.
            complain: receives lines that contradict an earlier one.
        """
        documents = _hashes([(str(sample.number), sample.key) for sample in samples])
        lines = _hashes([(sample.filter_name, str(sample.number), sample.key) for sample in samples])
        marks = _hashes([repr(sample.scores) for sample in samples])
        # The harness appends to existing files, so the same line may occur again.
        earlier = dict(zip(lines.tolist(), self._marks.get(lines, NEVER).tolist(), strict=True))
        rows = []
        for row, (line, mark) in enumerate(zip(lines.tolist(), marks.tolist(), strict=True)):
            if earlier[line] == NEVER:
                earlier[line] = mark
                rows.append(row)
            elif earlier[line] != mark:
                sample = samples[row]
                complain(f"line {sample.line}: prompt {sample.number} has different scores in an earlier line")
        self._marks.put(lines[rows], marks[rows])
        kept = [samples[row] for row in rows]
        return kept, self._names(kept, documents[rows])

    def repeats(self, samples: Sequence[L]) -> list[int]:
        """Return how many lines about the same document precede each one, across filters."""
        documents = _hashes([(str(sample.number), sample.key) for sample in samples])
        counts = dict(zip(documents.tolist(), self._repeats.get(documents, 0).tolist(), strict=True))
        before = []
        for document in documents.tolist():
            before.append(counts[document])
            counts[document] += 1
        self._repeats.put(np.array(list(counts), dtype=np.int64), np.array(list(counts.values()), dtype=np.int64))
        return before

    def _names(self, kept: Sequence[L], documents: np.ndarray[Any, np.dtype[np.int64]]) -> list[str]:
        keys = _hashes([sample.key for sample in kept])
        places = dict(zip(documents.tolist(), self._places.get(documents, NEVER).tolist(), strict=True))
        counts = dict(zip(keys.tolist(), self._counts.get(keys, 0).tolist(), strict=True))
        names = []
        for sample, document, key in zip(kept, documents.tolist(), keys.tolist(), strict=True):
            if places[document] == NEVER:
                places[document] = counts[key]
                counts[key] += 1
            names.append(f"{sample.key}#{places[document]}" if places[document] else sample.key)
        self._places.put(*_arrays(places))
        self._counts.put(*_arrays(counts))
        return names


def _hashes(values: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a 64-bit hash, never `NEVER`; stable within one process only."""
    return np.fromiter(map(hash, values), dtype=np.int64, count=len(values))


def _arrays(table: dict[int, int]) -> tuple[np.ndarray[Any, np.dtype[np.int64]], ...]:
    return np.array(list(table), dtype=np.int64), np.array(list(table.values()), dtype=np.int64)
