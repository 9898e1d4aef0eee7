"""Copy scores into PostgreSQL in its binary COPY format, packed as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_START = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_PACKED = np.dtype(
    [("fields", ">i2")]
    + [(f"{part}{n}", ">i4") for n in range(4) for part in ("length", "key")]
    + [("length", ">i4"), ("value", ">f8")]
)

Keys = NDArray[np.int64] | int


def pack_scores(run: Keys, metric: Keys, prompt: Keys, trial: Keys, values: NDArray[np.float64]) -> NDArray[Any]:
    """Pack rows of ``score`` in PostgreSQL's format; a key that all rows share may be one number."""
    packed = np.empty(len(values), dtype=_PACKED)
    packed["fields"] = 5
    for n, key in enumerate((run, metric, prompt, trial)):
        packed[f"length{n}"], packed[f"key{n}"] = 4, key
    packed["length"], packed["value"] = 8, values
    return packed


def copy_scores(cursor: Any, parts: Iterable[NDArray[Any]]) -> None:
    """Insert rows of `pack_scores` in one statement, inside the transaction of the driver's cursor."""
    statement = "COPY score (run_id, metric_id, prompt_id, trial, value) FROM STDIN (FORMAT BINARY)"
    with cursor.copy(statement) as copy:
        copy.write(_START)
        for part in parts:
            copy.write(part.tobytes())
        copy.write(_END)
