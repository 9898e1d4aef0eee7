"""Streaming of one large JSON value: the elements of one list, and the members beside that list.

This module only counts brackets, commas and quotes, many at a time. Parts are slices of bytes; the caller parses or
drops them, and reports errors inside them. Streaming JSON parsers reject NaN, which harnesses write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.settings.input_limits import current_limits, explain_limit

QUOTE, OPENER, CLOSER, COMMA = 1, 2, 3, 4
CLASSES = bytearray(256)
for _class, _letters in ((QUOTE, b'"'), (OPENER, b"{["), (CLOSER, b"}]"), (COMMA, b",")):
    for _letter in _letters:
        CLASSES[_letter] = _class
TABLE = bytes(CLASSES)
MAX_NAME_LENGTH = 100
SPACE = b" \t\r\n"


def stream_parts(
    chunks: Iterable[bytes],
    path: Path,
    *,
    of: Sequence[str] = (),
    only: Collection[str] = (),
    beside: Collection[str] | None = None,
    where: str = "",
) -> Iterator[tuple[str | None, bytes]]:
    """Yield the elements of a list inside a JSON value, and the members of the objects around the list.

    Args:
        chunks: the bytes in chunks.
        path: the file, for messages.
        of: keys from the outermost object to the list; empty if the value is the list.
        only: members of the elements to keep; the others are dropped while reading to save memory. Empty for all.
        beside: members of the objects around the list to keep; None for all.
        where: part of the file, for messages.

    Yields:
        ``(None, element)`` for elements and ``(name, value)`` for members, both as JSON.

    Raises:
        BadInputError: the JSON is truncated or beyond the limits, or its brackets do not match; raised after the valid
            parts.
    """
    place = f"{where}: " if where else ""
    try:
        yield from _parts(chunks, list(of), frozenset(only), None if beside is None else frozenset((*of, *beside)))
    except _BrokenError as error:
        raise BadInputError(path, f"{place}the JSON is invalid or truncated ({error}).") from None
    except _ExcessError as error:
        raise BadInputError(path, f"{place}{error}") from None


class _BrokenError(Exception):
    pass


class _ExcessError(Exception):
    pass


def _parts(
    chunks: Iterable[bytes], names: list[str], only: frozenset[str], beside: frozenset[str] | None
) -> Iterator[tuple[str | None, bytes]]:
    the_list = len(names) + 1
    level = 0  # number of open containers on the way to the list, including the list
    done = dropping = False
    pieces: list[bytes] = []  # of the current member or element
    mark: int | None = None  # start of a member that may be dropped
    n_bytes, longest = 0, current_limits().value
    for text, token, depth in _shallow(chunks, the_list + bool(only)):
        if text and not dropping:
            pieces.append(text)
            n_bytes += len(text)
            if n_bytes > longest:
                n_bytes = sum(map(len, pieces))
            if n_bytes > longest:
                raise _ExcessError(explain_limit("value", f"an element or member has more than {longest:,} bytes"))
            if mark is not None:
                start = b"".join(pieces[mark:])
                name = _name(start)
                dropping = name is not None and name not in (only if level == the_list else beside or only)
                if dropping:
                    del pieces[mark:]
                # Search names in short pieces only; otherwise long members are joined again for each chunk.
                mark = None if name is not None or len(start) > MAX_NAME_LENGTH else mark
        if token is None:
            continue
        opens = token in b"{["
        if not opens and depth == level:
            yield from _part(b"".join(pieces).strip(SPACE), is_element=level == the_list)
            pieces, dropping, n_bytes = [], False, 0
            if token != b",":
                level -= 1
                done = level == 0
            mark = 0 if beside is not None and 0 < level < the_list else None
        elif opens and depth == level + 1 <= the_list and _leads(b"".join(pieces).strip(SPACE), token, names, level):
            if done:
                raise _BrokenError("extra data after its end")
            pieces, level = [], level + 1
            mark = 0 if beside is not None and level < the_list else None
        elif level == 0:
            raise _BrokenError("extra data after its end" if done else "it does not start with the expected bracket")
        elif only and level == the_list and depth == level + 1:
            if dropping and not opens and token != b"," and pieces[-1] == b",":
                pieces.pop()
            if not (dropping and token == b","):
                pieces.append(token)
            mark, dropping = len(pieces) if opens or token == b"," else None, False
        elif not dropping:
            pieces.append(token)
    if not done:
        raise _BrokenError("it ends before its last bracket is closed")
    if b"".join(pieces).strip(SPACE):
        raise _BrokenError("extra data after its end")


def measure_depth(data: bytes) -> int:
    """Return the number of nested brackets outside texts."""
    plain = data.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in data else data
    classes: NDArray[np.uint8] = np.frombuffer(plain.translate(TABLE), dtype=np.uint8)
    kinds = classes[classes != 0]
    quotes = kinds == QUOTE
    outside = kinds[~quotes & (np.cumsum(quotes) % 2 == 0)]
    depths = np.cumsum((outside == OPENER).astype(np.int64) - (outside == CLOSER))
    return int(depths.max(initial=0))


def _leads(text: bytes, token: bytes, names: list[str], level: int) -> bool:
    """Return whether a bracket opens the next container on the way to the list."""
    kind = b"[" if level == len(names) else b"{"
    return token == kind and (not text if level == 0 else _name(text) == names[level - 1])


def _part(data: bytes, *, is_element: bool) -> Iterator[tuple[str | None, bytes]]:
    if is_element and data:
        yield None, data
    elif data:
        name = _name(data)
        if name is None:
            raise _BrokenError(f"a member without a name: {data[:40]!r}")
        yield name, data[data.index(b":", _end_of_name(data)) + 1 :].strip(SPACE)


def _name(text: bytes) -> str | None:
    """Return the name at the start of a member; None if it is incomplete."""
    start = text.lstrip(SPACE)
    if not start.startswith(b'"'):
        return None
    stop = _end_of_name(start)
    if not stop or not start[stop:].lstrip(SPACE).startswith(b":"):
        return None
    try:
        name = orjson.loads(start[:stop])
    except orjson.JSONDecodeError:
        return None
    return name if isinstance(name, str) else None


def _end_of_name(start: bytes) -> int:
    """Return the index after the closing quote of the text at the start; 0 if it is not closed."""
    place = 1
    while (place := start.find(b'"', place)) > 0:
        before = start[:place]
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            return place + 1
        place += 1
    return 0


def _shallow(chunks: Iterable[bytes], deepest: int) -> Iterator[tuple[bytes, bytes | None, int]]:
    """Yield the brackets and commas down to some depth, each with the bytes before it.

    Yields:
        Bytes, bracket or comma, and its depth, which is 1 for the outermost brackets and their commas. At the end of
        each chunk,
        the remaining bytes with None.
    """
    depth, in_string, kept = 0, 0, b""
    deepest_allowed = current_limits().nesting
    for number, chunk in enumerate(chunks):
        data = kept + (chunk.removeprefix(b"\xef\xbb\xbf") if number == 0 else chunk)
        # A backslash at the end may escape the start of the next chunk.
        n_slashes = len(data) - len(data.rstrip(b"\\"))
        kept = b"\\" if n_slashes % 2 else b""
        data = data[: len(data) - len(kept)]
        plain = data.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in data else data
        classes: NDArray[np.uint8] = np.frombuffer(plain.translate(TABLE), dtype=np.uint8)
        at = np.flatnonzero(classes != 0)  # several times faster on bool
        kinds = classes[at]
        quotes = kinds == QUOTE
        n_quotes = np.cumsum(quotes, dtype=np.int64) + in_string
        outside = ~quotes & (n_quotes % 2 == 0)
        in_string = int(n_quotes[-1] % 2) if len(n_quotes) else in_string
        at, kinds = at[outside], kinds[outside]
        after = depth + np.cumsum((kinds == OPENER).astype(np.int64) - (kinds == CLOSER))
        depth = int(after[-1]) if len(after) else depth
        if len(after) and after.max() > deepest_allowed:
            raise _ExcessError(explain_limit("nesting", f"the JSON has more than {deepest_allowed} levels of nesting"))
        levels = after + (kinds == CLOSER)
        chosen = levels <= deepest
        start = 0
        for place, level in zip(at[chosen].tolist(), levels[chosen].tolist(), strict=True):
            if level < 1:
                text = data[start:place].strip(SPACE)
                raise _BrokenError("extra data after its end" if data[place : place + 1] == b"," or text
                                   else "unexpected closing bracket")  # fmt: skip
            yield data[start:place], data[place : place + 1], level
            start = place + 1
        yield data[start:], None, 0
