"""plotly.js, compressed to a fifth of its size."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, kw_only=True)
class DrawingLibrary:
    """The library that draws the charts.

    Attributes:
        packed: its source, compressed (gzip) and encoded (Base64).
        fingerprint: SHA-256 of the source in Base64, for the page's content security policy.
        version: such as ``4.1.1``.
    """

    packed: str
    fingerprint: str
    version: str


@cache
def load_plotly() -> DrawingLibrary:
    """Load the version installed with plotly."""
    import plotly

    source = files(plotly).joinpath("package_data", "plotly.min.js").read_bytes()
    match = re.search(rb"plotly\.js v([\w.-]+)", source[:400])
    return DrawingLibrary(
        packed=base64.b64encode(gzip.compress(source, 9, mtime=0)).decode(),
        fingerprint=fingerprint(source),
        version=match[1].decode() if match else "",
    )


def fingerprint(source: bytes) -> str:
    """Return the SHA-256 in Base64."""
    return base64.b64encode(hashlib.sha256(source).digest()).decode()
