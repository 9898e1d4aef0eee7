"""Files broken on purpose: changed bytes, and changed structure wherever the bytes have one."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import zipfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet

WORDS = (b",", b'"', b"\n", b"nan", b"-1", b"1e999", b"null", b"[]", b"{}", b"[[1]]", b"\0", b"\xff", b"true")
DEEP = "deep nesting stands here"
FOREIGN_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 0.5, 1e308, -1e308, 10**400, -(10**30), 2**31, 2**53 + 1, 2**63, 2**64,
    float("nan"), float("inf"), "", " ", "x", "0", "nan", "\ud800", "\0", "9" * 400, [], {}, [[1]], [None], {"": None},
    {"a": {"b": [1, "c"]}}, DEEP,
)  # fmt: skip
ZSTANDARD = 93


def mutated(name: str, data: bytes, chance: random.Random) -> bytes:
    """A file with something in it changed, cut, doubled, moved, or put in place of something else."""
    if chance.random() < 0.4:
        return with_other_bytes(data, chance)
    try:
        return _restructured(name, data, chance)
    except (ValueError, KeyError, pa.ArrowException, OverflowError, RecursionError, TypeError):
        return with_other_bytes(data, chance)  # what was asked for cannot be written in this form


def with_other_bytes(data: bytes, chance: random.Random) -> bytes:
    """A file with some bytes changed, cut, doubled or moved."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        start = chance.randrange(len(changed) + 1)
        stop = min(len(changed), start + chance.choice((1, 2, 8, 64)))
        kind = chance.randrange(5)
        if kind == 0:
            changed[start:stop] = bytes(chance.randrange(256) for _ in range(stop - start))
        elif kind == 1:
            del changed[start:stop]
        elif kind == 2:
            changed[start:start] = changed[start:stop]
        elif kind == 3:
            changed[start:stop] = chance.choice(WORDS)
        else:
            changed = changed[: start + 1]
    return bytes(changed)


def _restructured(name: str, data: bytes, chance: random.Random) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        return gzip.compress(mutated(name.removesuffix(".gz"), gzip.decompress(data), chance), mtime=0)
    if data.startswith(b"PK"):
        return _other_archive(data, chance)
    if data.startswith(b"PAR1"):
        return _other_parquet(data, chance)
    if name.endswith(".jsonl") or b"}\n{" in data:
        return _other_lines(data, chance)
    if data.lstrip()[:1] in (b"{", b"["):
        return _written(_other_value(json.loads(data), chance))
    raise ValueError("has no structure")


def _other_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    kind = chance.randrange(8)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(chance.randrange(len(lines)), lines[at])
    elif kind == 2:
        chance.shuffle(lines)
    else:
        lines[at] = _written(_other_value(json.loads(lines[at]), chance)) + b"\n"
    return b"".join(lines)


def _other_archive(data: bytes, chance: random.Random) -> bytes:
    members = {info.filename: _member(data, info) for info in zipfile.ZipFile(io.BytesIO(data)).infolist()}
    name = chance.choice(list(members))
    if chance.random() < 0.15:
        del members[name]
    else:
        members[name] = mutated(name, members[name], chance)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", chance.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return sink.getvalue()


def _member(data: bytes, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type != ZSTANDARD:
        return zipfile.ZipFile(io.BytesIO(data)).read(info)
    import zstandard

    n_name, n_extra = struct.unpack("<HH", data[info.header_offset + 26 : info.header_offset + 30])
    start = info.header_offset + 30 + n_name + n_extra
    return zstandard.ZstdDecompressor().decompressobj().decompress(data[start : start + info.compress_size])


def _other_parquet(data: bytes, chance: random.Random) -> bytes:
    table = pa.parquet.read_table(io.BytesIO(data))
    at = chance.randrange(table.num_columns)
    name, kind = table.column_names[at], chance.randrange(6)
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        table = table.rename_columns([*table.column_names[:at], f"{name}_", *table.column_names[at + 1 :]])
    elif kind == 2:
        table = table.set_column(at, name, pa.nulls(len(table)))
    elif kind == 3:
        table = table.slice(chance.randrange(len(table) + 1))
    else:
        rows = table.column(at).to_pylist()
        rows = [_other_value(row, chance) for row in rows] if kind == 4 else _other_value(rows, chance)
        table = table.set_column(at, name, pa.array(rows))
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def _other_value(value: Any, chance: random.Random) -> Any:
    """The value with one of its parts, or itself, replaced or taken away."""
    places = list(_places(value))
    place = chance.choice(places) if places else None
    if place is None:
        return chance.choice(FOREIGN_VALUES)
    owner, key = place
    kind = chance.randrange(4)
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, list):
        owner.insert(key, owner[chance.randrange(len(owner))])
    elif kind == 1:
        owner[chance.choice((f"{key}_", "", key.upper()))] = owner.pop(key)
    else:
        owner[key] = chance.choice(FOREIGN_VALUES)
    return value


def _places(value: Any) -> Any:
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _written(value: Any) -> bytes:
    """As Python writes it, NaN and halves of surrogate pairs included."""
    text = json.dumps(value)
    return text.replace(f'"{DEEP}"', "[" * 2000 + "]" * 2000).encode()
