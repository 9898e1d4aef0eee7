"""The environment of the HTML templates: everything is escaped; numbers are formatted as in the report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tracker.report.number_format import format_code, format_count, format_number, format_score, format_share, shorten
from tracker.version import __version__
from tracker.web.access import STATIC_POLICY

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that change the direction of the text around them."""
INVISIBLE = re.compile("[\\s\u200b-\u200f\u2060-\u2064\ufeff]+")
"""A text that nobody can see, or follow as a link."""

EXPONENT = re.compile(r"\d[\d.]*e-\d+")
"""A number such as 2.6e-273, in which a line could end at the minus sign."""


def render_template(name: str, values: Mapping[str, Any]) -> str:
    """Render a template of the browser interface."""
    return _environment().get_template(name).render(values)


def with_query(address: str, **changes: Any) -> str:
    """Return an address with some of its query parameters changed; None removes one."""
    path, _, query = address.partition("?")
    values = dict(parse_qsl(query, keep_blank_values=True)) | changes
    kept = {name: value for name, value in values.items() if value is not None}
    return f"{path}?{urlencode(kept)}" if kept else path


def with_suffix(address: str, suffix: str) -> str:
    """Return the address of a page in another format."""
    path, mark, query = address.partition("?")
    return f"{'/index' if path == '/' else path}.{suffix}{mark}{query}"


def make_visible(value: object) -> object:
    """Return a text with every control and direction character replaced by U+FFFD; ␣ for one that nobody can see."""
    if not isinstance(value, str) or hasattr(value, "__html__"):  # the parts of markup are visible already
        return value
    return "␣" if INVISIBLE.fullmatch(value) else CONTROL.sub("\ufffd", value)


def keep_numbers_whole(text: object) -> Markup:
    """Return a sentence as markup in which no line ends within a number."""
    return Markup(EXPONENT.sub(r'<span class="short">\g<0></span>', str(escape(make_visible(text)))))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tracker.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=make_visible,
    )
    environment.filters |= {
        "score": format_score,
        "number": format_number,
        "share": format_share,
        "shorten": lambda text, length: shorten(text or "", length),
        "counted": format_count,
        "sentence": keep_numbers_whole,
        "code": lambda text: format_code(str(make_visible(text))),
        "pretty": lambda value: orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode(),
    }
    environment.globals |= {
        "version": __version__,
        "with_query": with_query,
        "with_suffix": with_suffix,
        "static_policy": STATIC_POLICY,
    }
    return environment
