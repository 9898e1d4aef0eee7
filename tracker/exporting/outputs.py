"""Outputs of export formats besides tables: a text, a binary file, or a folder of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[int, int], None]
"""Progress callback: called with the number of finished steps and of all steps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TextFile:
    """A text, which may also go to stdout.

    Attributes:
        content: UTF-8.
        warnings: warnings for the user.
    """

    content: bytes
    warnings: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class FileSummary:
    """The content of a binary file.

    Attributes:
        text: short description.
        warnings: warnings for the user.
    """

    text: str = ""
    warnings: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class BinaryFile:
    """A file that is written at once.

    Attributes:
        write: writes to the path of an empty file, and returns its content's description; progress may be
            None.
    """

    write: Callable[[Path, Progress | None], FileSummary]


class FileTree(Mapping[str, Iterable[bytes]]):
    """Files by path, each in pieces that are created while it is written.

    Args:
        files: pieces by path, relative to the folder.
        warnings: warnings for the user.
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
        """Warnings for the user; complete once every file has been written."""
        return self._warnings
