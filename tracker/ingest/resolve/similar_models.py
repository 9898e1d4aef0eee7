"""Models whose names differ only in ways that a reader does not see, or hardly: they are often one model."""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterable, Mapping


def comparison_key(name: str) -> str:
    """Return the form in which names are compared: NFC, one space between words, no invisible characters, lower case.

    The name of a folder ``org__model`` means ``org/model``, as on model hubs.
    """
    visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    key = unicodedata.normalize("NFC", " ".join(visible.split()).casefold())
    return key if "/" in key else key.replace("__", "/", 1)


def find_similar_models(new: Iterable[str], stored: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return each new name that is similar to another one: the other one, and the new name.

    Args:
        new: names of the added models.
        stored: name of each earlier model by `comparison_key`.
    """
    known = dict(stored)
    pairs = [(known.setdefault(comparison_key(name), name), name) for name in new]
    return [(similar, name) for similar, name in pairs if similar != name]


def describe_similar(new: Iterable[str], stored: Mapping[str, str]) -> list[str]:
    """Return a warning for each new name that is similar to another one; see `find_similar_models`."""
    return [
        f"the new model {show_name(name)} and the model {show_name(similar)} differ only in case, spaces, "
        f"invisible characters or __ for /. If they are one model: suffrage models merge {show_name(similar)} "
        f"{show_name(name)}"
        for similar, name in find_similar_models(new, stored)
    ]


def show_name(name: str) -> str:
    """Return a name for a command line; all but plain characters are escapes, so that different names look different.

    Shells read ``$'caf\\u00e9'`` as the name itself.
    """
    if name.isascii() and name.isprintable():
        return shlex.quote(name)
    letters = [
        letter
        if letter.isascii() and letter.isprintable() and letter not in "\\'"
        else f"\\{letter}"
        if letter in "\\'"
        else f"\\u{ord(letter):04x}"
        if ord(letter) <= 0xFFFF
        else f"\\U{ord(letter):08x}"
        for letter in name
    ]
    return f"$'{''.join(letters)}'"
