"""The HTML of the templates as a flat list of tokens, and back.

The templates are this project's and every value in them is escaped: a ``<`` always begins a tag, and a quote always
ends the value of an attribute. A tokenizer of one expression is enough, and rejects anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape, unescape
from typing import Any

VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})
"""Elements without an end tag."""
NAME = r"[a-zA-Z][\w:-]*"
TOKEN = re.compile(
    rf"""<!doctype[^>]*>|<(?P<end>/?)(?P<tag>{NAME})(?P<attributes>(?:\s+{NAME}(?:="[^"]*"|='[^']*')?)*)\s*/?>"""
    r"|(?P<text>[^<]+)",
    re.IGNORECASE,
)
ATTRIBUTE = re.compile(rf"""({NAME})(?:="([^"]*)"|='([^']*)')?""")


@dataclass(slots=True)
class Start:
    """A start tag.

    Attributes:
        tag: its name.
        attributes: values by name, without escapes; None for an attribute without a value.
    """

    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class End:
    """An end tag."""

    tag: str


Token = Start | End | str
"""A text token is a `str` without escapes."""


def parse_html(text: str) -> list[Token]:
    """Return the tokens of a page, without its document type.

    Raises:
        ValueError: the text is not what the templates write.
    """
    tokens: list[Token] = []
    place = 0
    for match in TOKEN.finditer(text):
        if match.start() != place:
            break
        place = match.end()
        if (content := match["text"]) is not None:
            tokens.append(unescape(content))
        elif match["end"]:
            tokens.append(End(match["tag"]))
        elif match["tag"]:
            tokens.append(Start(match["tag"], dict(_parse_attributes(match["attributes"]))))
    if place != len(text):
        raise ValueError(f"not HTML of a template: {text[place : place + 80]!r}")
    return tokens


@lru_cache(maxsize=10_000)
def _parse_attributes(text: str) -> Mapping[str, str | None]:
    values: dict[str, str | None] = {}
    for match in ATTRIBUTE.finditer(text):
        value = match[2] if match[2] is not None else match[3]
        values[match[1]] = None if value is None else unescape(value)
    return values


def write_html(tokens: Sequence[Token]) -> str:
    """Return tokens as HTML."""
    return "".join(map(_write_token, tokens))


def _write_token(token: Token) -> str:
    if isinstance(token, str):
        return escape(token, quote=False)
    if isinstance(token, End):
        return f"</{token.tag}>"
    attributes = "".join(
        f" {name}" if value is None else f' {name}="{escape(value)}"' for name, value in token.attributes.items()
    )
    return f"<{token.tag}{attributes}>"


def find_end(tokens: Sequence[Token], start: int) -> int:
    """Return the place after the element that begins at a start tag."""
    depth = 0
    for place in range(start, len(tokens)):
        token = tokens[place]
        if isinstance(token, Start):
            depth += token.tag not in VOID
        elif isinstance(token, End):
            depth -= 1
        if depth == 0:
            return place + 1
    raise ValueError("an element without an end")


def find_elements(tokens: Sequence[Token], tag: str, attributes: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the outermost elements of a name that have some attributes."""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if isinstance(token, Start) and token.tag == tag and attributes.items() <= token.attributes.items():
            end = find_end(tokens, place)
            yield place, end
            place = end
        else:
            place += 1


def encode_tokens(tokens: Sequence[Token]) -> list[Any]:
    """Return tokens as the script reads them: a text, ``[tag, attributes]``, or 0 for the end of an element."""
    encoded: list[Any] = []
    for token in tokens:
        if isinstance(token, str):
            encoded.append(token)
        elif isinstance(token, End):
            encoded.append(0)
        else:
            attributes = {name: value or "" for name, value in token.attributes.items()}
            encoded.append([token.tag, attributes] if attributes else [token.tag])
            if token.tag in VOID:
                encoded.append(0)
    return encoded
