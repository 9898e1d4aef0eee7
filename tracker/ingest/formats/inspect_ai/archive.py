"""The members of a zip archive as streams, zstd among them, and what can be saved of one that breaks off."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tracker.errors import BadInputError
from tracker.ingest.contents import opened

LOCAL = b"PK\x03\x04"
STORED, DEFLATED, ZSTD = 0, 8, 93
ENCRYPTED, SIZES_FOLLOW = 0x1, 0x8
CHUNK = 1 << 18
LARGEST_PART = 1 << 28
AGAIN = "Copy the file again from where it was written."


@dataclass(frozen=True)
class Member:
    """One file in the archive.

    Attributes:
        method: how it is compressed, by its number in the zip format.
        start: where its header begins.
        size: of its compressed bytes.
        crc: CRC-32 of its content.
    """

    name: str
    method: int
    flags: int
    start: int
    size: int
    crc: int


@dataclass(frozen=True)
class Archive:
    """A zip archive.

    Attributes:
        members: by name; of two with one name the later.
        damage: what is wrong with it as a whole; '' where nothing is.
    """

    path: Path
    members: Mapping[str, Member]
    damage: str = ""

    @classmethod
    def open(cls, path: Path) -> Archive:
        """Read its table of contents, or where that is lost the headers before the members.

        Raises:
            BadInputError: it holds nothing that can be read.
        """
        try:
            with zipfile.ZipFile(path) as file:
                found = {
                    one.filename: Member(
                        one.filename, one.compress_type, one.flag_bits, one.header_offset, one.compress_size, one.CRC
                    )
                    for one in file.infolist()
                }
            return cls(path, found)
        # Whatever bytes stand where numbers should, the standard library trips over them in as many ways.
        except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError, OverflowError, EOFError) as error:
            reason = str(error)
        except OSError as error:
            raise BadInputError(path, f"cannot be read: {error.strerror or error}.") from error
        found = _found_by_headers(path)
        if not found:
            raise BadInputError(
                path, f"is a damaged zip archive, and nothing in it can be read ({reason}).", advice=AGAIN
            )
        return cls(path, found, "the zip archive breaks off: its table of contents is missing or damaged")

    def read(self, name: str) -> bytes:
        """All of a member.

        Raises:
            BadInputError: it is damaged, or too large to be held whole.
        """
        held = bytearray()
        for chunk in self.stream(name):
            held += chunk
            if len(held) > LARGEST_PART:
                raise BadInputError(self.path, f"{name}: is larger than {LARGEST_PART >> 20} MB.")
        return bytes(held)

    def stream(self, name: str) -> Iterator[bytes]:
        """The content of a member, in chunks.

        Raises:
            BadInputError: it is damaged, after what precedes the damage has been yielded.
        """
        member = self.members[name]
        crc = 0
        try:
            with opened(self.path) as file:
                for chunk in _content(file, member):
                    crc = zlib.crc32(chunk, crc)
                    yield chunk
        except _DamagedError as error:
            raise BadInputError(self.path, f"{name}: {error}.", advice=AGAIN) from error
        if crc != member.crc:
            raise BadInputError(self.path, f"{name}: is damaged: its checksum differs.", advice=AGAIN)


class _DamagedError(Exception):
    pass


class _Compressed(io.RawIOBase):
    """The compressed bytes of one member, and not one more."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(self._left, CHUNK if size < 0 else size))
        if not data and self._left:
            raise _DamagedError("its data end too early")
        self._left -= len(data)
        return data


def _content(file: IO[bytes], member: Member) -> Iterator[bytes]:
    if member.flags & ENCRYPTED:
        raise _DamagedError("is encrypted")
    try:
        file.seek(member.start)
    except (OSError, ValueError) as error:
        raise _DamagedError("its place in the file is impossible") from error
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
        raise _DamagedError(f"is compressed in a way that is not known here (method {member.method})")


def _inflated(raw: _Compressed) -> Iterator[bytes]:
    machine = zlib.decompressobj(wbits=-15)
    try:
        while not machine.eof:
            data = machine.unconsumed_tail or raw.read(CHUNK)
            # A bound on what comes out, since a few bytes may stand for very many.
            chunk = machine.decompress(data, CHUNK) if data else machine.flush()
            if chunk:
                yield chunk
            elif not data:
                raise _DamagedError("its data end too early")
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


def _found_by_headers(path: Path) -> dict[str, Member]:
    """The members whose bytes are all there, by the headers before each."""
    found: dict[str, Member] = {}
    try:
        with path.open("rb") as file:
            end, place = file.seek(0, io.SEEK_END), 0
            while True:
                file.seek(place)
                header = file.read(30)
                if len(header) < 30 or not header.startswith(LOCAL):
                    return found
                _, flags, method, _, crc, size, plain_size, n_name, n_extra = struct.unpack("<HHHIIIIHH", header[4:])
                name, extra = file.read(n_name), file.read(n_extra)
                if size == 0xFFFFFFFF:
                    size = _long_size(extra, plain_size)
                start, place = place, place + 30 + n_name + n_extra + size
                if flags & SIZES_FOLLOW or place > end:
                    return found
                told = name.decode("utf-8", errors="replace")
                found[told] = Member(told, method, flags, start, size, crc)
    except (OSError, struct.error, OverflowError):
        return found


def _long_size(extra: bytes, plain_size: int) -> int:
    """The compressed size that stands in the header's extension for members of 4 GB and more."""
    place = 0
    while place + 4 <= len(extra):
        kind, size = struct.unpack("<HH", extra[place : place + 4])
        if kind == 1:
            skipped = 8 if plain_size == 0xFFFFFFFF else 0
            (found,) = struct.unpack("<Q", extra[place + 4 + skipped : place + 12 + skipped])
            return int(found)
        place += 4 + size
    raise struct.error("no size")
