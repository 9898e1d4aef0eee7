"""One JSON value of any size as a stream of parts: the elements of one list in it, and what stands beside that list.

Nothing is parsed here: brackets, commas and quotes are counted, many at once, and a part is a slice of the bytes, which
the caller parses or drops. What is wrong inside a part is therefore kinds by whoever parses it. (Readers that parse
JSON as a stream refuse NaN, which harnesses write.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from tracker.errors import BadInputError

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
    """The elements of a list inside a JSON value, and the members of the objects that it stands in.

    Args:
        chunks: the bytes, as they come.
        path: the file, for messages.
        of: names that lead from the outermost object to the list; none means that the value is the list.
        only: members of the elements to keep; the others are dropped as they are read, so that they cost no memory.
            None named means all.
        beside: the same of the objects that the list stands in; None means all.
        where: the part of the file that this is, for messages.

    Yields:
        ``(None, element)``, and ``(name, value)`` of the members of the objects, both as JSON.

    Raises:
        BadInputError: it breaks off, or brackets close that were not opened; after what precedes has been yielded.
    """
    place = f"{where}: " if where else ""
    try:
        yield from _parts(chunks, list(of), frozenset(only), None if beside is None else frozenset((*of, *beside)))
    except _BrokenError as error:
        raise BadInputError(path, f"{place}the JSON is broken or ends too early ({error}).") from None


class _BrokenError(Exception):
    pass


def _parts(
    chunks: Iterable[bytes], names: list[str], only: frozenset[str], beside: frozenset[str] | None
) -> Iterator[tuple[str | None, bytes]]:
    the_list = len(names) + 1
    level = 0  # of the containers that lead to the list, how many are open, the list itself included
    done = dropping = False
    pieces: list[bytes] = []  # of the member or element that is being read
    mark: int | None = None  # where in it a member begins of which is not known yet whether it is wanted
    for text, token, depth in _shallow(chunks, the_list + bool(only)):
        if text and not dropping:
            pieces.append(text)
            if mark is not None:
                start = b"".join(pieces[mark:])
                name = _name(start)
                dropping = name is not None and name not in (only if level == the_list else beside or only)
                if dropping:
                    del pieces[mark:]
                # Names are sought in what is short only, or a long member would be joined again with each chunk.
                mark = None if name is not None or len(start) > MAX_NAME_LENGTH else mark
        if token is None:
            continue
        opens = token in b"{["
        if not opens and depth == level:
            yield from _part(b"".join(pieces).strip(SPACE), is_element=level == the_list)
            pieces, dropping = [], False
            if token != b",":
                level -= 1
                done = level == 0
            mark = 0 if beside is not None and 0 < level < the_list else None
        elif opens and depth == level + 1 <= the_list and _leads(b"".join(pieces).strip(SPACE), token, names, level):
            if done:
                raise _BrokenError("there is more after its end")
            pieces, level = [], level + 1
            mark = 0 if beside is not None and level < the_list else None
        elif level == 0:
            raise _BrokenError("there is more after its end" if done else "it does not begin as it should")
        elif only and level == the_list and depth == level + 1:
            if dropping and not opens and token != b"," and pieces[-1] == b",":
                pieces.pop()
            if not (dropping and token == b","):
                pieces.append(token)
            mark, dropping = len(pieces) if opens or token == b"," else None, False
        elif not dropping:
            pieces.append(token)
    if not done:
        raise _BrokenError("it ends before its last bracket closes")
    if b"".join(pieces).strip(SPACE):
        raise _BrokenError("there is more after its end")


def _leads(text: bytes, token: bytes, names: list[str], level: int) -> bool:
    """Whether a bracket opens the next container on the way to the list."""
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
    """The name that a member begins with; None where there is none yet."""
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
    """The place after the quote that closes the text which the bytes begin with; 0 where it does not close."""
    place = 1
    while (place := start.find(b'"', place)) > 0:
        before = start[:place]
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            return place + 1
        place += 1
    return 0


def _shallow(chunks: Iterable[bytes], deepest: int) -> Iterator[tuple[bytes, bytes | None, int]]:
    """The brackets and commas down to some depth, each with the bytes since the one before.

    Yields:
        Bytes, bracket or comma, and its depth: 1 for the outermost brackets and the commas between them. At the end
        of each chunk the bytes since, with None.
    """
    depth, in_string, kept = 0, 0, b""
    for number, chunk in enumerate(chunks):
        data = kept + (chunk.removeprefix(b"\xef\xbb\xbf") if number == 0 else chunk)
        # A backslash at the end may escape what the next chunk begins with.
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
        levels = after + (kinds == CLOSER)
        chosen = levels <= deepest
        start = 0
        for place, level in zip(at[chosen].tolist(), levels[chosen].tolist(), strict=True):
            if level < 1:
                text = data[start:place].strip(SPACE)
                raise _BrokenError("there is more after its end" if data[place : place + 1] == b"," or text
                                   else "a bracket closes that was not opened")  # fmt: skip
            yield data[start:place], data[place : place + 1], level
            start = place + 1
        yield data[start:], None, 0
