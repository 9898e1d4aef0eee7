"""Hash rows to 128 bits, equally on both engines.

A row is hashed from the values of all columns of its table in order. Rows are read in one plain form: numbers, texts
(times and JSON too), bytes and None. JSON counts by its value, 0 and -0 are equal, and everything else by its bits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import sqlalchemy as sa
import xxhash
from numpy.typing import NDArray

from tracker.hashing import SEEDS, mix_bits
from tracker.integrity.scopes import scope_column

Row = Sequence[Any]
Words = NDArray[np.uint64]

ROWS_PER_BATCH = 5_000
LARGE_ROWS_PER_BATCH = 50
"""Rows read at once; of tables with files, few."""

TEXTS = ("text", "json", "time", "date")
"""Kinds of columns that SQLite stores as text."""

_NULL = b"\x00null"
_NULL_WORD = np.uint64(0xA0761D6478BD642F)
_STEP = np.uint64(0xE7037ED1A0B428DB)
_SEEDS = np.array(SEEDS, dtype=np.uint64)
_KINDS: tuple[tuple[type[Any], str], ...] = (
    (sa.JSON, "json"), (sa.Boolean, "flag"), (sa.Integer, "integer"), (sa.Float, "number"), (sa.DateTime, "time"),
    (sa.Date, "date"), (sa.LargeBinary, "bytes"),
)  # fmt: skip


@cache
def column_kinds(table: sa.Table) -> tuple[str, ...]:
    """Return the kind of each column."""
    return tuple(
        next((kind for known, kind in _KINDS if isinstance(column.type, known)), "text") for column in table.columns
    )


def hash_rows(table: sa.Table, rows: Sequence[Row]) -> tuple[NDArray[np.int64], Words]:
    """Hash rows in the plain form.

    Args:
        table: the table.
        rows: values of all columns in order; one more at the end counts values of a wrong type.

    Returns:
        ``(n,)`` keys of their scopes, and ``(n, 2)`` hashes.
    """
    columns = [[row[place] for row in rows] for place in range(len(rows[0]))]  # zip would keep an iterator for each row
    kinds = column_kinds(table)
    keys, name = {}, scope_column(table)
    if name is not None:
        values = columns[list(table.columns.keys()).index(name)]
        keys[name] = np.array([key if isinstance(key, int) else -1 for key in values], dtype=np.int64)
    scopes, words = hash_columns(table, map(hash_words, kinds, columns), keys)
    if len(columns) > len(kinds):
        words += np.array(columns[-1], dtype=np.uint64)[:, None] * _STEP
    return scopes, words


def hash_columns(
    table: sa.Table, columns: Iterable[Words], keys: Mapping[str, NDArray[np.int64]]
) -> tuple[NDArray[np.int64], Words]:
    """Hash rows from the words of their columns.

    Args:
        table: the table.
        columns: `hash_words` of each column in order.
        keys: columns by name, with at least that of the scope.

    Returns:
        ``(n,)`` keys of their scopes, and ``(n, 2)`` hashes.
    """
    words = _SEEDS[:, None]
    for column in columns:
        words = mix_bits((words + _STEP) * np.uint64(3) + column)
    name = scope_column(table)
    return np.zeros(words.shape[1], dtype=np.int64) if name is None else keys[name], words.T


def hash_words(kind: str, values: Sequence[Any]) -> Words:
    """Return the words that the values of a column add to the hashes of their rows: ``(1, n)``, of texts ``(2, n)``."""
    return _WORDS[kind](values)


def word_of_null(kind: str) -> Words:
    """Return the words of NULL, as `hash_words`."""
    return hash_words(kind, [None])[:, 0]


def _integer_words(values: Sequence[Any]) -> Words:
    array = np.array(values) if set(map(type, values)) <= {int, bool} else None
    if array is not None and array.dtype.kind in "ib":
        return array.astype(np.int64).view(np.uint64)[None, :]
    return _mixed_words(values)


def _number_words(values: Sequence[Any]) -> Words:
    if set(map(type, values)) == {float}:
        return (np.array(values) + 0.0).view(np.uint64)[None, :]
    if all(value is None or type(value) in (float, int) for value in values):
        is_null = np.array([value is None for value in values])
        bits = (np.array([0.0 if value is None else value for value in values], dtype=np.float64) + 0.0).view(np.uint64)
        return np.where(is_null, _NULL_WORD, bits)[None, :]
    return _mixed_words([value + 0.0 if type(value) is float else value for value in values])


def _mixed_words(values: Sequence[Any]) -> Words:
    """Hash values of which some are missing or of a wrong type."""
    words = [
        int(_NULL_WORD)
        if value is None
        else value & 0xFFFF_FFFF_FFFF_FFFF
        if type(value) in (int, bool)
        else xxhash.xxh3_64_intdigest(f"{type(value).__name__} {value!r}".encode())
        for value in values
    ]
    return np.array(words, dtype=np.uint64)[None, :]


def _text_words(values: Sequence[Any]) -> Words:
    if _are_same(values):
        return np.broadcast_to(_digest_texts(values[:1]), (2, len(values)))
    return _digest_texts(values)


def _json_words(values: Sequence[Any]) -> Words:
    if _are_same(values):
        return np.broadcast_to(_json_words(values[:1]), (2, len(values)))
    if set(map(type, values)) <= {str, bytes, type(None)}:  # 1, 1.0 and True are one key of a mapping
        canonical = {value: _canonical_value(value) for value in set(values)}
        return _digest_texts([canonical[value] for value in values])
    return _digest_texts([*map(_canonical_value, values)])


def _canonical_value(value: Any) -> bytes | None:
    return None if value is None else canonical_json(value)


def _are_same(values: Sequence[Any]) -> bool:
    """Return whether all of at least two values are the same text, or all are missing."""
    return len(values) > 1 and type(values[0]) in (str, bytes, type(None)) and values.count(values[0]) == len(values)


def _digest_texts(values: Sequence[Any]) -> Words:
    if set(map(type, values)) == {str}:
        try:
            encoded: Iterable[bytes] = [*map(str.encode, values)]
        except UnicodeEncodeError:
            encoded = map(_encode, values)
    else:
        encoded = [value if type(value) is bytes else _encode(value) for value in values]
    return np.frombuffer(b"".join(map(xxhash.xxh3_128_digest, encoded)), dtype="<u8").reshape(-1, 2).T


def _encode(value: Any) -> bytes:
    if value is None:
        return _NULL
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass")
    return f"\x00{type(value).__name__} {value!r}".encode()


def canonical_json(text: Any) -> bytes:
    """Return JSON with sorted names, and one spelling of each number; what is no JSON stays as it is.

    So does an object with a name twice, of which SQLite reads the first value and Python the last.
    """
    plain = text.encode("utf-8", "surrogatepass") if type(text) is str else text
    if type(plain) is bytes and PLAIN_JSON.fullmatch(plain):
        if plain[:1] == b"[":
            return plain
        pairs = NAMED_VALUE.findall(plain)
        if all(first[1:-1] < second[1:-1] for (first, _), (second, _) in pairwise(pairs)):
            return plain
        if len(dict(pairs)) == len(pairs):
            return b"{%b}" % b", ".join([b"%b: %b" % pair for pair in sorted(pairs, key=_name_of_pair)])
    try:
        return json.dumps(_DECODER.decode(text if type(text) is str else text.decode()), sort_keys=True).encode()
    except (ValueError, AttributeError, RecursionError):
        return b"\x00" + _encode(text) if type(text) is not bytes else b"\x00" + text


def _name_of_pair(pair: tuple[bytes, bytes]) -> bytes:
    return pair[0][1:-1]


_NAME = rb'"[ !#-\[\]-~]*"'
_CODE = rb"00(?:0[0-7bef]|1[0-9a-f]|7f|[89a-f][0-9a-f])|0[1-9a-f][0-9a-f]{2}|[1-9a-f][0-9a-f]{3}"
_ESCAPE = rb'\\(?:["\\bfnrt]|u(?:%b))' % _CODE
_STRING = rb'"[ !#-\[\]-~]*+(?:%b[ !#-\[\]-~]*+)*+"' % _ESCAPE
_VALUE = rb"(?:%b|0|-?[1-9][0-9]{0,17}|true|false|null)" % _STRING
_PAIR = rb"%b: %b" % (_NAME, _VALUE)
PLAIN_JSON = re.compile(rb"\[%b(?:, %b)*+\]|\{%b(?:, %b)*+\}" % (_VALUE, _VALUE, _PAIR, _PAIR))
"""Lists and objects of plain values that `canonical_json` leaves as they are, or sorts by name."""
NAMED_VALUE = re.compile(rb"(%b): (%b)" % (_NAME, _VALUE))


def _parse_number(literal: str) -> int | float:
    """Return an integral number as an integer, since PostgreSQL may convert 1e2 to 100."""
    number = Decimal(literal)
    if number.is_finite() and abs(number.adjusted()) < 400 and number == number.to_integral_value():
        return int(number)
    return float(literal)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a name is there twice")
    return values


_DECODER = json.JSONDecoder(parse_float=_parse_number, object_pairs_hook=_make_object)

_WORDS: dict[str, Callable[[Sequence[Any]], Words]] = {
    "flag": _integer_words, "integer": _integer_words, "number": _number_words, "json": _json_words,
    "text": _text_words, "time": _text_words, "date": _text_words, "bytes": _text_words,
}  # fmt: skip


# --- reading rows in the plain form ---

_POSTGRESQL = {
    "flag": "{}::int", "json": "{}::text", "date": "to_char({}, 'YYYY-MM-DD')",
    "time": "to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
}  # fmt: skip


def plain_columns(table: sa.Table, engine: str, row: str = "") -> list[str]:
    """Return SQL for the values of a row in the plain form.

    Args:
        table: the table.
        engine: ``sqlite`` or ``postgresql``.
        row: name of the row, in a trigger.
    """
    prefix = f"{row}." if row else ""
    forms = _POSTGRESQL if engine == "postgresql" else {}
    return [
        forms.get(kind, "{}").format(f'{prefix}"{column.name}"')
        for column, kind in zip(table.columns, column_kinds(table), strict=True)
    ]


def read_plain_rows(
    connection: sa.Connection, table: sa.Table, keys: Sequence[int] | None = None
) -> Iterator[list[Row]]:
    """Yield the rows of a table in batches, in the plain form.

    Args:
        connection: an open transaction.
        table: the table.
        keys: of scopes to read; None for all.
    """
    engine = connection.dialect.name
    values = plain_columns(table, engine)
    if engine == "sqlite":
        values.append(_count_wrong_types(table))
    statement = f'SELECT {", ".join(values)} FROM "{table.name}"'
    if keys is not None and (name := scope_column(table)) is not None:
        statement += f' WHERE "{name}" IN ({", ".join(map(str, keys))})'
    raw: Any = connection.connection
    cursor = raw.cursor() if engine == "sqlite" else raw.cursor(name="reading", binary=True)
    try:
        with _texts_as_bytes(connection):
            cursor.execute(statement)
        while True:
            with _texts_as_bytes(connection):
                rows = cursor.fetchmany(_batch_size(table))
            if not rows:
                return
            yield rows
    finally:
        cursor.close()


def _batch_size(table: sa.Table) -> int:
    return LARGE_ROWS_PER_BATCH if table.name in ("finding_artifact", "undo_record") else ROWS_PER_BATCH


def _count_wrong_types(table: sa.Table) -> str:
    """Return SQL that counts texts stored as bytes, and bytes stored as text: SQLite accepts both."""
    wrong = [
        f"(typeof(\"{column.name}\") = '{'text' if kind == 'bytes' else 'blob'}')"
        for column, kind in zip(table.columns, column_kinds(table), strict=True)
        if kind in (*TEXTS, "bytes")
    ]
    return " + ".join(wrong) or "0"


@contextmanager
def _texts_as_bytes(connection: sa.Connection) -> Iterator[None]:
    """Let SQLite return texts as bytes: damaged ones may not be valid UTF-8."""
    if connection.dialect.name != "sqlite":
        yield
        return
    raw: Any = connection.connection.dbapi_connection
    raw.text_factory = bytes
    try:
        yield
    finally:
        raw.text_factory = str


def concatenate(parts: Iterable[tuple[NDArray[np.int64], Words]]) -> tuple[NDArray[np.int64], Words]:
    """Sum the hashes of equal keys; keys ascend."""
    part_list = list(parts)
    if not part_list:
        return np.empty(0, dtype=np.int64), np.empty((0, 2), dtype=np.uint64)
    keys = np.concatenate([part[0] for part in part_list])
    words = np.concatenate([part[1] for part in part_list])
    if not len(keys):
        return keys, words
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys, kind="stable")
        keys, words = keys[order], words[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[starts], np.add.reduceat(words, starts, axis=0)
