"""Every column of every table counts in a checksum, and equal values count equally."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from tracker.integrity.change_triggers import sqlite_triggers
from tracker.integrity.row_hashes import canonical_json, column_kinds, concatenate, hash_rows
from tracker.integrity.scopes import EXCLUDED, covered_tables, scope_column
from tracker.schema import metadata

VALUES = {
    "flag": (0, 1), "integer": (3, 4), "number": (0.5, 0.25), "json": ('{"a": 1}', '{"a": 2}'), "text": ("a", "b"),
    "time": ("2026-01-02 03:04:05.000006", "2026-01-02 03:04:05.000007"), "date": ("2026-01-02", "2026-01-03"),
    "bytes": (b"a", b"b"),
}  # fmt: skip
TEXTS = st.text(max_size=5) | st.sampled_from(["a", b"a", None, "\ud800", 1, 1.0])
PROMPT = metadata.tables["prompt"]


def row_hash(table: sa.Table, row: list[object]) -> tuple[int, ...]:
    return tuple(hash_rows(table, [row])[1][0].tolist())


def test_every_table_is_covered_or_excluded_for_a_reason() -> None:
    assert {table.name for table in covered_tables()} | set(EXCLUDED) == set(metadata.tables)
    assert all(EXCLUDED.values())
    for table in covered_tables():
        name = scope_column(table)
        assert name is None or isinstance(table.c[name].type, sa.Integer), table.name
        assert {f"record_{table.name}_{event}" for event in ("insert", "update", "delete")} <= set(sqlite_triggers())


@pytest.mark.parametrize("table", covered_tables(), ids=lambda table: table.name)
def test_every_column_is_covered(table: sa.Table) -> None:
    row: list[object] = [VALUES[kind][0] for kind in column_kinds(table)]
    hashes = {row_hash(table, row)}
    for place, kind in enumerate(column_kinds(table)):
        for value in (VALUES[kind][1], None):
            hashes.add(row_hash(table, [*row[:place], value, *row[place + 1 :]]))
    hashes.add(row_hash(table, [*row, 1]))
    assert len(hashes) == 2 + 2 * len(table.columns)


class TestLaws:
    @given(st.lists(st.tuples(st.integers(1, 5), TEXTS), max_size=12))
    def test_checksums_do_not_depend_on_the_order_or_the_batches(self, values: list[tuple[int, object]]) -> None:
        rows = [[key, 1, None, 0, text, None, None, None, None] for key, text in values]
        together = concatenate([hash_rows(PROMPT, rows)] if rows else [])
        single = concatenate([hash_rows(PROMPT, [row]) for row in reversed(rows)])
        assert np.array_equal(together[0], single[0])
        assert np.array_equal(together[1], single[1])

    @given(
        st.recursive(
            st.none() | st.integers() | st.text(), lambda part: st.lists(part) | st.dictionaries(st.text(), part)
        )
    )
    def test_json_counts_by_its_value(self, value: object) -> None:
        assert canonical_json(json.dumps(value)) == canonical_json(json.dumps(value, ensure_ascii=False, indent=1))


PLAIN = st.text('ab: ,!"\\{é\x7f\n\x08\x0b😀', max_size=4)


@given(st.lists(PLAIN | st.integers() | st.booleans() | st.none()) | st.dictionaries(PLAIN, PLAIN | st.integers()))
def test_plain_json_is_that_of_the_encoder(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        expected = json.dumps(json.loads(text), sort_keys=True).encode()
        assert canonical_json(text) == canonical_json(text.encode()) == expected


def test_every_escape_is_that_of_the_encoder() -> None:
    for code in range(0x10000):
        for character in (json.dumps(chr(code)), f'"\\u{code:04x}"', f'"\\u{code:04X}"'):
            text = f"[{character}]"
            assert canonical_json(text) == json.dumps(json.loads(text)).encode()


@pytest.mark.parametrize(
    "text", ['{"b": 1, "a": 2}', '{"a": 1, "a": 2}', '{"a b": 1, "a": 2}', "[-0]", "[1,2]", "[01]"]
)
def test_json_in_another_spelling_is_written_anew(text: str) -> None:
    assert canonical_json(text) != text.encode()


@pytest.mark.parametrize(
    "repeated", ['{"a": 1, "a": 2}', '{"a": "x", "a": 2}', '{"b":1,"a":2,"a":3}', '[{"a":1,"a":1}]']
)
def test_a_name_that_is_there_twice_counts(repeated: str) -> None:
    single = json.dumps(json.loads(repeated))
    assert canonical_json(repeated) == canonical_json(repeated.encode()) != canonical_json(single)


@pytest.mark.parametrize(("first", "second"), [("1.0", "1"), ("1e2", "100"), ("1e22", "10000000000000000000000")])
def test_numbers_that_postgresql_converts_are_equal(first: str, second: str) -> None:
    assert canonical_json(first) == canonical_json(second)


@pytest.mark.parametrize(
    ("first", "second"), [("1", "true"), ("0.1", "0.2"), ("12345678901234567890", "12345678901234567891")]
)
def test_different_values_of_json_differ(first: str, second: str) -> None:
    assert canonical_json(first) != canonical_json(second)
