"""Description of a file's content, for messages about files that no format matches."""

from __future__ import annotations

import re
from pathlib import Path

from tracker.ingest.files.json_values import first_bytes
from tracker.ingest.files.tabular.table_head import TableHead, read_head
from tracker.name_lists import join_names

MAX_NAMES = 5
HEAD_BYTES = 1 << 14
ZIP = b"PK\x03\x04"
TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*+")(\s*:)?|([{\[])|([}\]])', re.S)


def describe_file(path: Path) -> str:
    """Return the kind of a file with its first columns or keys, such as ``a table with the columns a, b``."""
    head = read_head(path)
    if isinstance(head, TableHead):
        return f"a table with the columns {join_names((name or '(unnamed)' for name in head.names), MAX_NAMES)}"
    data = first_bytes(path, HEAD_BYTES)
    if isinstance(data, str):
        return "a file that cannot be read"
    start = data.lstrip()[:1]
    if start in (b"{", b"["):
        keys = first_keys(data)
        kind = "JSON" if start == b"{" else "a JSON list"
        return f"{kind} with the keys {join_names(keys, MAX_NAMES)}" if keys else kind
    if data.startswith(ZIP):
        return "a zip archive"
    if not data:
        return "an empty file"
    try:
        line = data[:200].decode("utf-8", "ignore" if len(data) > 200 else "strict").strip().partition("\n")[0]
    except UnicodeDecodeError:
        return "a binary file"
    return f"text that starts with {line[:40]!r}" if line.isprintable() else "a binary file"


def first_keys(data: bytes) -> list[str]:
    """Return the keys of the outermost object of a JSON text, or of the first object of a list; none of other data.

    Args:
        data: beginning of the text.
    """
    start = data.lstrip()[:1]
    if start not in (b"{", b"["):
        return []
    keys: list[str] = []
    depth, key_depth = 0, 1 if start == b"{" else 2
    for match in TOKEN.finditer(data):
        name, colon, opening, closing = match.groups()
        depth += bool(opening) - bool(closing)
        if closing and depth < key_depth:
            break
        if name and colon and depth == key_depth:
            keys.append(name[1:-1].decode("utf-8", "replace"))
    return keys
