"""Text for a terminal: the only place where commands print, and where text from files loses its power over it.

A name from a file may hold escape sequences that clear the screen, marks that reverse the text after them, or letters
without width. They are printed as escapes such as ``\\u001b``, which JSON reads back as the same text.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import click

MAX_MESSAGE_LENGTH = 2_000
"""Characters of a message: names in it may be of any length."""
MAX_LAST_LINE = 500

# Controls but tab and newline, soft hyphens, marks of direction, letters without width, separators of lines, tags,
# and halves of surrogate pairs.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)


def make_printable(text: str) -> str:
    """Return a text in which every unsafe character is an escape of JSON."""
    return UNSAFE.sub(_escape, text)


def make_cell(text: str) -> str:
    """Return a text for one line of a table."""
    return make_printable(" ".join(text.splitlines()).replace("\t", " ") if not text.isprintable() else text)


def cut_message(text: str) -> str:
    """Return a message of at most `MAX_MESSAGE_LENGTH` characters; its last line, the advice, is kept."""
    if len(text) <= MAX_MESSAGE_LENGTH:
        return text
    body, newline, last = text.rpartition("\n")
    if not newline or len(last) > MAX_LAST_LINE:
        return text[: MAX_MESSAGE_LENGTH - 1] + "…"
    return f"{body[: MAX_MESSAGE_LENGTH - len(last) - 2]}…\n{last}"


def echo(text: Any = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text that may hold anything, on stdout or stderr."""
    click.echo(make_printable(str(text)), err=err, nl=nl)


def echo_data(content: bytes) -> None:
    """Print the content of a file on stdout: to a program every byte, to a terminal as `echo` does."""
    click.echo(make_printable(content.decode("utf-8", "replace")) if sys.stdout.isatty() else content, nl=False)


def echo_message(text: str, label: str = "") -> None:
    """Print a message on stderr after a label of our own, which may have colours."""
    click.echo(f"{label}{make_printable(cut_message(text))}", err=True)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
