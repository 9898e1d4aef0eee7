"""Small files of text: templates and settings."""

from __future__ import annotations

import errno
from pathlib import Path

MAX_BYTES = 256 << 10


def read_text_file(path: Path, encoding: str = "utf-8") -> str:
    """Return the text of a template or settings file.

    Raises:
        OSError: it cannot be read, or is larger than 256 kB.
        UnicodeDecodeError: it is not UTF-8.
    """
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, "larger than 256 kB", str(path))
    return data.decode(encoding).replace("\r\n", "\n")
