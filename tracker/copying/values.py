"""Convert values between engines, whatever form their drivers use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.hashing import SEEDS, WORD, mix_bits

Convert = Callable[[Any], Any]
Row = Sequence[Any]

_NUMBERS = np.dtype([(name, np.int64) for name in ("run", "metric", "prompt", "trial")] + [("value", np.float64)])


def value_readers(table: sa.Table, engine: str) -> list[Convert | None]:
    """Return a converter per column from the driver's values to Python's; None if they are equal.

    Python's values are bool, times in UTC, dates, and JSON as lists and dictionaries.
    """
    if engine == "sqlite":
        return [_find_conversion(column.type, _FROM_SQLITE) for column in table.columns]
    return [
        _find_conversion(column.type, {sa.DateTime: lambda moment: moment.astimezone(UTC)}) for column in table.columns
    ]


def value_writers(table: sa.Table, engine: str) -> list[Convert | None]:
    """Return a converter per column from Python's values to the driver's; None if they are equal."""
    if engine == "sqlite":
        return [_find_conversion(column.type, _TO_SQLITE) for column in table.columns]
    from psycopg.types.json import Jsonb

    return [_find_conversion(column.type, {sa.JSON: Jsonb}) for column in table.columns]


def convert_rows(rows: Sequence[Row], converts: Sequence[Convert | None]) -> Sequence[Row]:
    """Convert every value that is not None."""
    if not rows or not any(converts):
        return rows
    columns: list[Iterable[Any]] = []
    for values, convert in zip(zip(*rows, strict=True), converts, strict=True):
        columns.append(values if convert is None else [None if v is None else convert(v) for v in values])
    return list(zip(*columns, strict=True))


class RowsChecksum:
    """An order-free checksum of rows: the sums of two 64-bit hashes of each row.

    Equal numbers have equal hashes, however an engine writes them: 0 and -0, which SQLite does not distinguish, and in
    JSON 1 and 1.0, which PostgreSQL may convert.
    """

    def __init__(self, table: sa.Table) -> None:
        self.n_rows = 0
        self._words = [0, 0]
        self._is_scores = table.name == "score"
        kinds: dict[type, Convert] = {sa.JSON: _plain_json, sa.Double: lambda value: value + 0.0}
        self._plain = [_find_conversion(column.type, kinds) for column in table.columns]

    def add(self, rows: Sequence[Row]) -> None:
        """Add some rows."""
        self.n_rows += len(rows)
        if self._is_scores:
            scores = score_array(rows)
            self._add(*(int(_hashes(scores, seed).sum(dtype=np.uint64)) for seed in SEEDS))
            return
        for row in convert_rows(rows, self._plain):
            serialized = repr(tuple(row)).encode("utf-8", "surrogatepass")
            self._add(*divmod(int.from_bytes(hashlib.blake2b(serialized, digest_size=16).digest()), WORD))

    def _add(self, high: int, low: int) -> None:
        """Sum each word separately: a carry between them would depend on the batches."""
        self._words = [(word + more) % WORD for word, more in zip(self._words, (high, low), strict=True)]

    @property
    def value(self) -> str:
        """32 hexadecimal digits."""
        return "".join(f"{word:016x}" for word in self._words)


def score_array(rows: Sequence[Row]) -> NDArray[Any]:
    """Return rows of ``score`` as a structured array."""
    return np.fromiter(rows, dtype=_NUMBERS, count=len(rows))


def _hashes(scores: NDArray[Any], seed: int) -> NDArray[np.uint64]:
    words = np.full(len(scores), seed, dtype=np.uint64)
    for name in ("run", "metric", "prompt", "trial"):
        words = _mix_next(words + scores[name].astype(np.uint64))
    return _mix_next(words + (scores["value"] + 0.0).view(np.uint64))


def _mix_next(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return mix_bits(words + np.uint64(SEEDS[0]))


def _find_conversion(kind: Any, converts: dict[type, Convert]) -> Convert | None:
    return next((convert for known, convert in converts.items() if isinstance(kind, known)), None)


def _plain_json(value: Any) -> str:
    return json.dumps(_plain_numbers(value), sort_keys=True)


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain_numbers(element) for element in value]
    if isinstance(value, dict):
        return {name: _plain_numbers(element) for name, element in value.items()}
    return value


_FROM_SQLITE: dict[type, Convert] = {
    sa.Boolean: bool,
    sa.DateTime: lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC),
    sa.Date: date.fromisoformat,
    sa.JSON: json.loads,
    sa.Double: float,
}
_TO_SQLITE: dict[type, Convert] = {
    sa.Boolean: int,
    sa.DateTime: lambda moment: f"{moment:%Y-%m-%d %H:%M:%S.%f}",
    sa.Date: date.isoformat,
    sa.JSON: json.dumps,
}
