"""Limits on the time and the size of one SQL statement, and its result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tracker.errors import SqlError

ROWS_AT_ONCE = 1000
BYTES_AT_ONCE = 8 << 20
"""Size of values after which a block of rows ends."""
MAX_BYTES = 500_000_000
"""Default limit on the size of a result."""
BYTES_OF_NUMBER = 8
STOP_AGAIN_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class SqlResult:
    """The result of a statement.

    Attributes:
        columns: their names, in order.
        rows: tuples of values as returned by the engine, read on demand.
        warnings: warnings for the user.
    """

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    warnings: tuple[str, ...] = ()


def limit_bytes(rows: Iterator[tuple[Any, ...]], max_bytes: int) -> Iterator[tuple[Any, ...]]:
    """Yield rows up to a total size.

    Raises:
        SqlError: the rows are larger.
    """
    size = 0
    for row in rows:
        size += measure_row(row)
        if size > max_bytes:
            raise SqlError(
                f"The result is larger than {max_bytes / 1e6:g} MB. Select fewer rows or columns, or raise the limit."
            )
        yield row


def measure_row(row: tuple[Any, ...]) -> int:
    """Return the size of a row in bytes: characters of texts, bytes, and 8 for any other value."""
    return sum(len(v) if isinstance(v, str | bytes | memoryview) else BYTES_OF_NUMBER for v in row)


class StatementClock:
    """Limits the engine's time, counted only between entering and leaving.

    At the end of the time another thread stops the engine, again and again until it does: a first attempt may come
    just before the engine begins.
    """

    def __init__(
        self, seconds: float, on_end: Callable[[], object] | None = None, rows_at_once: int = ROWS_AT_ONCE
    ) -> None:
        self.limit, self.left, self.on_end, self.rows_at_once = seconds, seconds, on_end, rows_at_once
        self._deadline = 0.0
        self._left = threading.Event()
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> None:
        self._deadline = time.monotonic() + self.left
        if self.on_end is not None:
            self._left.clear()
            self._watcher = threading.Thread(target=self._watch, args=(self.on_end,), daemon=True)
            self._watcher.start()

    def __exit__(self, *_: object) -> None:
        self.left = self._deadline - time.monotonic()
        if self._watcher is not None:
            self._left.set()
            self._watcher.join()  # what it stops must be this statement, not the next one
            self._watcher = None

    def _watch(self, stop: Callable[[], object]) -> None:
        wait = max(self.left, 0)
        while not self._left.wait(wait):
            stop()
            wait = STOP_AGAIN_SECONDS

    @property
    def error(self) -> SqlError:
        """Return the error of a statement that was stopped."""
        return SqlError(f"The statement was stopped after {self.limit:g} s. Narrow it down, or raise the limit.")
