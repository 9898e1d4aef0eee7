"""Hash the rows of a large SQLite table from Arrow batches: the hashes of `row_hashes`, several times faster.

SQLite accepts values of any type in any column. A batch with a value of a wrong type is rejected, and its table has to
be read row by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.integrity.row_hashes import TEXTS, Words, column_kinds, hash_columns, hash_words, word_of_null

if TYPE_CHECKING:
    import pyarrow as pa

_WRONG, _NULL = 0, 2
_BITS = 2
_DEFAULTS = {"flag": "0", "integer": "0", "number": "0.0", **dict.fromkeys(TEXTS, "''")}


class UnexpectedTypeError(ValueError):
    """A column holds a value of another type."""


@cache
def columns_query(table: sa.Table) -> str | None:
    """Return the query for all columns of a table, NULL replaced, with the states of the values at the end.

    The state of a value that may be NULL or of a wrong type is 0: wrong, 1: expected, 2: NULL, in two bits. None if the
    table has a column of bytes.
    """
    kinds = column_kinds(table)
    if "bytes" in kinds:
        return None
    values = [
        f'ifnull("{column.name}", {_DEFAULTS[kind]})' if _has_state(column, kind) else f'"{column.name}"'
        for column, kind in zip(table.columns, kinds, strict=True)
    ]
    states = [_state(column, kind) for column, kind in zip(table.columns, kinds, strict=True)]
    shifted = [f"({state} << {_BITS * place})" for place, state in enumerate(filter(None, states))]
    return f'SELECT {", ".join([*values, " + ".join(shifted) or "0"])} FROM "{table.name}"'


def hash_batch(table: sa.Table, batch: pa.RecordBatch) -> tuple[NDArray[np.int64], Words]:
    """Hash the rows of a batch of `columns_query`.

    Returns:
        ``(n,)`` keys of their scopes, and ``(n, 2)`` hashes.

    Raises:
        UnexpectedTypeError: a value has a wrong type.
    """
    *values, states = batch.columns
    remaining = read_numbers(states, np.int64)
    words = []
    for column, kind, value in zip(table.columns, column_kinds(table), values, strict=True):
        column_words = _words(kind, value)
        if _has_state(column, kind):
            state = remaining & ((1 << _BITS) - 1)
            remaining = remaining >> _BITS
            if (state == _WRONG).any():
                raise UnexpectedTypeError(f"{table.name}.{column.name}")
            if (is_null := state == _NULL).any():
                column_words = np.where(is_null, word_of_null(kind)[:, None], column_words)
        words.append(column_words)
    return hash_columns(table, words, read_keys(table, batch))


def read_keys(table: sa.Table, batch: pa.RecordBatch) -> Mapping[str, NDArray[np.int64]]:
    """Return the columns of integers that are never NULL, by name."""
    return {
        column.name: read_numbers(values, np.int64)
        for column, kind, values in zip(table.columns, column_kinds(table), batch.columns, strict=False)
        if kind == "integer" and not column.nullable
    }


def read_numbers(column: pa.Array, kind: type[np.generic]) -> NDArray[Any]:
    """Return a column of numbers as an array, without copying it.

    Raises:
        UnexpectedTypeError: the numbers are of another type, or missing.
    """
    if str(column.type) != {"int64": "int64", "float64": "double"}[kind.__name__] or column.null_count:
        raise UnexpectedTypeError(str(column.type))
    return np.from_dlpack(column)


def _has_state(column: sa.Column[Any], kind: str) -> bool:
    return kind in TEXTS or bool(column.nullable)


def _state(column: sa.Column[Any], kind: str) -> str:
    """Return SQL for the state of a value; '' if it has none."""
    if not _has_state(column, kind):
        return ""
    if kind in TEXTS:  # in the order of SQLite, numbers are before texts, and texts before bytes
        return f"ifnull(\"{column.name}\" >= '' AND \"{column.name}\" < x'', {_NULL})"
    return f'({_NULL} - ("{column.name}" IS NOT NULL))'


def _words(kind: str, column: pa.Array) -> Words:
    """Return the ``(1, n)`` or ``(2, n)`` words of a column."""
    import pyarrow as pa

    if kind not in TEXTS:
        numbers = read_numbers(column, np.float64 if kind == "number" else np.int64)
        return (numbers + 0.0 if kind == "number" else numbers).view(np.uint64)[None, :]
    if column.type != pa.string() or column.null_count:
        raise UnexpectedTypeError(str(column.type))
    encoded = column.view(pa.binary()).dictionary_encode()
    return hash_words(kind, encoded.dictionary.to_pylist())[:, np.from_dlpack(encoded.indices)]
