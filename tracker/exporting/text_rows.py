"""Format rows of Arrow batches as lines of CSV or JSON, column by column for speed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a text that a spreadsheet would compute as a formula."""


def format_csv_lines(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, header: bool = True, for_spreadsheets: bool = False
) -> Iterator[bytes]:
    """Yield CSV as UTF-8 in pieces, one line per row that ends in LF; a null or an empty list is an empty cell.

    Lists are JSON, as ``suffrage ingest`` reads them; booleans are yes and no; times are ISO 8601 in UTC.

    Args:
        schema: the columns.
        batches: their rows.
        header: whether the first line names the columns.
        for_spreadsheets: whether texts that look like a formula get a leading apostrophe, and the file a byte order
            mark.
    """
    alone = len(schema) == 1  # an empty cell alone would be an empty line, which is not a row

    def encode(text: str) -> str:
        return _quote_cells(f"'{text}" if for_spreadsheets and text.startswith(FORMULA) else text, alone=alone)

    if for_spreadsheets:
        yield b"\xef\xbb\xbf"
    if header:
        yield (",".join(map(encode, schema.names)) + "\n").encode()
    for batch in batches:
        if batch.num_rows:
            columns = [
                _cells(column, encode, '""' if alone else "", ("yes", "no"), _encode_list) for column in batch.columns
            ]
            yield _join_cells([columns[0], *(part for column in columns[1:] for part in (",", column))])


def format_json_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """Yield JSON Lines as UTF-8 in pieces, one object per line; times are ISO 8601 in UTC."""
    names = [json.dumps(name, ensure_ascii=False) for name in schema.names]
    for batch in batches:
        if batch.num_rows:
            parts: list[Any] = []
            for number, (name, column) in enumerate(zip(names, batch.columns, strict=True)):
                parts += [f"{', ' if number else '{'}{name}: ", _cells(column, _json, "null", ("true", "false"), _json)]
            yield _join_cells([*parts, "}"])


def _cells(
    column: pa.Array, text: Callable[[str], str], null: str, truth_values: tuple[str, str], nested: Callable[[Any], str]
) -> pa.Array:
    """Format a column as cells of a line.

    Args:
        column: any column of an export.
        text: formats a text.
        null: text for null.
        truth_values: texts for true and false.
        nested: formats a list or an object.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        coded = column if pa.types.is_dictionary(kind) else column.dictionary_encode()
        spelled = pa.array(
            [None if value is None else text(value) for value in coded.dictionary.to_pylist()], pa.string()
        )
        cells = spelled.take(coded.indices) if len(spelled) else pa.nulls(len(column), pa.string())
    elif pa.types.is_boolean(kind):
        cells = pc.if_else(column, *truth_values)
    elif pa.types.is_timestamp(kind):
        moments = pc.strftime(column, format="%Y-%m-%dT%H:%M:%SZ")
        cells = pa.array([None if value is None else text(value) for value in moments.to_pylist()], pa.string())
    elif pa.types.is_date(kind):
        cells = pa.array(
            [None if value is None else text(value.isoformat()) for value in column.to_pylist()], pa.string()
        )
    elif pa.types.is_nested(kind):
        cells = pa.array([None if value is None else nested(value) for value in column.to_pylist()], pa.string())
    else:
        cells = pc.cast(column, pa.string())
    return pc.fill_null(cells, null)


def _join_cells(parts: list[Any]) -> bytes:
    import pyarrow.compute as pc

    lines = pc.binary_join_element_wise(*parts, "")
    return ("\n".join(lines.to_pylist()) + "\n").encode()


def _quote_cells(text: str, *, alone: bool) -> str:
    if not text:
        return '""' if alone else ""
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _encode_list(value: Any) -> str:
    return _quote_cells(_json(value), alone=False) if value else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
