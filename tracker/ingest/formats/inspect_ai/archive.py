"""Members of a zip archive as streams, including zstd, with recovery of truncated archives."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import check_expansion, open_file
from tracker.settings.input_limits import current_limits, explain_limit

LOCAL, ENTRY, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
LONG_END, LONG_LOCATOR = b"PK\x06\x06", b"PK\x06\x07"
MAX_END_LENGTH = 22 + 20 + (1 << 16)
TOO_LARGE = 0xFFFFFFFF
STORED, DEFLATED, ZSTD = 0, 8, 93
ENCRYPTED, SIZES_FOLLOW = 0x1, 0x8
CHUNK = 1 << 18
AGAIN = "Copy the file again from its source."


@dataclass(frozen=True)
class Member:
    """A member of the archive.

    Attributes:
        method: compression method, as in the zip format.
        start: offset of its header.
        size: size of its compressed data in bytes.
        crc: CRC-32 of its content.
    """

    name: str
    method: int
    flags: int
    start: int
    size: int
    crc: int


@dataclass(frozen=True)
class InspectArchive:
    """A zip archive.

    Attributes:
        members: members by name; of duplicates, the last.
        damage: damage of the archive; '' if it is intact.
    """

    path: Path
    members: Mapping[str, Member]
    damage: str = ""

    @classmethod
    def open(cls, path: Path, is_wanted: Callable[[str], bool]) -> InspectArchive:
        """Read the central directory, or the local headers if it is lost.

        Args:
            path: the file.
            is_wanted: returns whether a member with this name is read; others are not kept because there may be very
                many.

        Raises:
            BadInputError: no member can be read.
        """
        try:
            with path.open("rb") as file:
                try:
                    return cls(path, {member.name: member for member in _table(file) if is_wanted(member.name)})
                except (_DamagedError, struct.error, OverflowError) as error:
                    reason = str(error)
                members = {member.name: member for member in _whole_members(file) if is_wanted(member.name)}
        except _TooManyMembersError as error:
            raise BadInputError(path, str(error)) from None
        except OSError as error:
            raise BadInputError(path, f"cannot be read: {error.strerror or error}.") from error
        if not members:
            raise BadInputError(path, f"is a damaged zip archive; no member can be read ({reason}).", advice=AGAIN)
        return cls(path, members, "the zip archive is truncated: its central directory is missing or damaged")

    def read(self, name: str) -> bytes:
        """Return the content of a member.

        Raises:
            BadInputError: the member is damaged or too large for memory.
        """
        content, longest = bytearray(), current_limits().value
        for chunk in self.stream(name):
            content += chunk
            if len(content) > longest:
                raise BadInputError(self.path, explain_limit("value", f"{name}: has more than {longest:,} bytes"))
        return bytes(content)

    def stream(self, name: str) -> Iterator[bytes]:
        """Yield the content of a member in chunks.

        Raises:
            BadInputError: the member is damaged; raised after the valid part.
        """
        member = self.members[name]
        crc = size = 0
        packed = self.path.stat().st_size
        try:
            with open_file(self.path) as file:
                for chunk in _content(file, member):
                    size += len(chunk)
                    check_expansion(self.path, size, packed, f"{name}: ")
                    crc = zlib.crc32(chunk, crc)
                    yield chunk
        except _DamagedError as error:
            raise BadInputError(self.path, f"{name}: {error}.", advice=AGAIN) from error
        if crc != member.crc:
            raise BadInputError(self.path, f"{name}: is damaged: its checksum differs.", advice=AGAIN)


class _DamagedError(Exception):
    pass


class _TooManyMembersError(Exception):
    pass


class _Compressed(io.RawIOBase):
    """Yield exactly the compressed bytes of one member."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(self._left, CHUNK if size < 0 else size))
        if not data and self._left:
            raise _DamagedError("its data are truncated")
        self._left -= len(data)
        return data


def _content(file: IO[bytes], member: Member) -> Iterator[bytes]:
    if member.flags & ENCRYPTED:
        raise _DamagedError("is encrypted")
    try:
        file.seek(member.start)
    except (OSError, ValueError, OverflowError) as error:
        raise _DamagedError("its offset is invalid") from error
    header = file.read(30)
    if len(header) < 30 or not header.startswith(LOCAL):
        raise _DamagedError("its header is damaged")
    file.seek(sum(struct.unpack("<HH", header[26:30])), io.SEEK_CUR)
    raw = _Compressed(file, member.size)
    if member.method == STORED:
        while chunk := raw.read(CHUNK):
            yield chunk
    elif member.method == DEFLATED:
        yield from _inflated(raw)
    elif member.method == ZSTD:
        yield from _zstd(raw)
    else:
        raise _DamagedError(f"uses an unsupported compression method ({member.method})")


def _inflated(raw: _Compressed) -> Iterator[bytes]:
    machine = zlib.decompressobj(wbits=-15)
    try:
        while not machine.eof:
            data = machine.unconsumed_tail or raw.read(CHUNK)
            # Limit the output, since a few bytes may expand to very many.
            chunk = machine.decompress(data, CHUNK) if data else machine.flush()
            if chunk:
                yield chunk
            elif not data:
                raise _DamagedError("its data are truncated")
    except zlib.error as error:
        raise _DamagedError(f"its data are damaged ({error})") from error


def _zstd(raw: _Compressed) -> Iterator[bytes]:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=False) as file:  # type: ignore[arg-type]
            while chunk := file.read(CHUNK):
                yield chunk
    except zstandard.ZstdError as error:
        raise _DamagedError(f"its data are damaged ({error})") from error


def _table(file: IO[bytes]) -> Iterator[Member]:
    """Return the members by the central directory."""
    size = file.seek(0, io.SEEK_END)
    tail_start = max(0, size - MAX_END_LENGTH)
    file.seek(tail_start)
    tail = file.read(MAX_END_LENGTH)
    at = tail.rfind(END)
    if at < 0 or len(tail) - at < 22:
        raise _DamagedError("its end is missing")
    n, length, offset = struct.unpack_from("<HII", tail, at + 10)
    end = tail_start + at
    if at >= 20 and tail.startswith(LONG_LOCATOR, at - 20):  # zip64: very many or very large members
        (place,) = struct.unpack_from("<Q", tail, at - 12)
        record = _bytes_at(file, place, 56)
        if not record.startswith(LONG_END):
            raise _DamagedError("its end is damaged")
        n, length, offset = struct.unpack_from("<QQQ", record, 32)
        end = place
    if n > current_limits().members:
        raise _TooManyMembersError(explain_limit("members", f"has {n:,} members"))
    if length > end:
        raise _DamagedError("its central directory is damaged")
    shift = end - length - offset  # if other data precede the archive, offsets start at the archive
    table = _bytes_at(file, end - length, length)
    at = 0
    for _ in range(n):
        if not table.startswith(ENTRY, at):
            raise _DamagedError("its central directory is damaged")
        flags, method = struct.unpack_from("<HH", table, at + 8)
        crc, packed, plain, n_name, n_extra, n_comment = struct.unpack_from("<IIIHHH", table, at + 16)
        (start,) = struct.unpack_from("<I", table, at + 42)
        name = table[at + 46 : at + 46 + n_name].decode("utf-8", errors="replace")
        extra = table[at + 46 + n_name : at + 46 + n_name + n_extra]
        _, packed, start = _long(extra, [plain, packed, start])
        yield Member(name, method, flags, start + shift, packed, crc)
        at += 46 + n_name + n_extra + n_comment


def _whole_members(file: IO[bytes]) -> Iterator[Member]:
    """Return the complete members by their local headers, up to the first unreadable header."""
    size, place = file.seek(0, io.SEEK_END), 0
    while True:
        header = _bytes_at(file, place, 30)
        if len(header) < 30 or not header.startswith(LOCAL):
            return
        flags, method, _, crc, packed, plain, n_name, n_extra = struct.unpack("<HHIIIIHH", header[6:])
        name, extra = file.read(n_name).decode("utf-8", errors="replace"), file.read(n_extra)
        _, packed = _long(extra, [plain, packed])
        start, place = place, place + 30 + n_name + n_extra + packed
        if flags & SIZES_FOLLOW or place > size:
            return
        yield Member(name, method, flags, start, packed, crc)


def _long(extra: bytes, numbers: list[int]) -> list[int]:
    """Return 32-bit numbers, or their 64-bit values from the zip64 extra field."""
    if TOO_LARGE not in numbers:
        return numbers
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            size = min(size, len(extra) - at - 4) // 8
            extended = iter(struct.unpack_from(f"<{size}Q", extra, at + 4))
            return [next(extended, number) if number == TOO_LARGE else number for number in numbers]
        at += 4 + size
    return numbers


def _bytes_at(file: IO[bytes], place: int, size: int) -> bytes:
    try:
        file.seek(place)
    except (OSError, ValueError, OverflowError) as error:
        raise _DamagedError("its central directory is damaged") from error
    return file.read(size)
