"""Copy scores into PostgreSQL in its binary COPY format, packed as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_START = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_KEYS = ("run_id", "metric_id", "prompt_id", "trial", "benchmark_id")
_PACKED = np.dtype(
    [("fields", ">i2")]
    + [(f"{part}{name}", ">i4") for name in _KEYS for part in ("length of ", "")]
    + [("length", ">i4"), ("value", ">f8")]
)

Keys = NDArray[np.int64] | int


def pack_scores(
    run: Keys, metric: Keys, prompt: Keys, trial: Keys, benchmark: Keys, values: NDArray[np.float64]
) -> NDArray[Any]:
    """Pack rows of ``score`` in PostgreSQL's format; a key that all rows share may be one number."""
    packed = np.empty(len(values), dtype=_PACKED)
    packed["fields"] = len(_KEYS) + 1
    for name, key in zip(_KEYS, (run, metric, prompt, trial, benchmark), strict=True):
        packed[f"length of {name}"], packed[name] = 4, key
    packed["length"], packed["value"] = 8, values
    return packed


def copy_scores(cursor: Any, table: str, parts: Iterable[NDArray[Any]]) -> None:
    """Insert rows of `pack_scores` in one statement, inside the transaction of the driver's cursor.

    Args:
        cursor: the driver's cursor.
        table: ``score``, or the partition of the benchmark of all rows.
        parts: the rows.
    """
    with cursor.copy(f"COPY {table} ({', '.join(_KEYS)}, value) FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(_START)
        for part in parts:
            copy.write(part.tobytes())
        copy.write(_END)
