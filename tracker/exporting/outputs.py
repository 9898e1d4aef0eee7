"""What an export format returns beside a table: a text, a binary file, or a folder of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

Progress = Callable[[int, int], None]
"""Called with the steps done and all steps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TextFile:
    """A text, which may also go to stdout.

    Attributes:
        content: UTF-8.
        warnings: what the reader should know.
    """

    content: bytes
    warnings: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class FileSummary:
    """What a binary file holds.

    Attributes:
        text: in a few words.
        warnings: what the reader should know.
    """

    text: str = ""
    warnings: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class BinaryFile:
    """A file that is written as a whole.

    Attributes:
        write: writes to an empty file and returns what it holds; progress is None where nobody watches.
    """

    write: Callable[[BinaryIO, Progress | None], FileSummary]


class FileTree(Mapping[str, Iterable[bytes]]):
    """Files by path, each in pieces that are made while it is written.

    Args:
        files: pieces by path, relative to the folder.
        warnings: what the reader should know.
    """

    def __init__(self, files: Mapping[str, Iterable[bytes]], warnings: Sequence[str] = ()) -> None:
        self._pieces, self._warnings = files, warnings

    def __getitem__(self, path: str) -> Iterable[bytes]:
        return self._pieces[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def warnings(self) -> Sequence[str]:
        """What the reader should know; complete once every file has been written."""
        return self._warnings
