"""Compress figures of findings to embed them in one file."""

from __future__ import annotations

import base64
import io

MAX_COLOURS = 255
LEVEL = 7
"""Compression level: 9 takes five times as long and saves a tenth."""

NEARLY_WHITE = 252
MAX_WIDTH = 1600
"""Maximum width in pixels: twice the width of the text column, for high-resolution screens."""


def shrink_picture(png: bytes) -> bytes:
    """Convert a figure to at most 255 colours and 1,600 pixels of width; keep it if that is not smaller.

    Charts have few colours, so the difference is invisible. Content that is not an image is returned unchanged.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(png)) as opened:
            picture = Image.new("RGB", opened.size, "white")
            opaque = opened.convert("RGBA")
            picture.paste(opaque, mask=opaque.getchannel("A"))
    except (OSError, ValueError, Image.DecompressionBombError):
        return png
    if picture.width > MAX_WIDTH:
        height = max(1, round(picture.height * MAX_WIDTH / picture.width))
        picture = picture.resize((MAX_WIDTH, height), Image.Resampling.LANCZOS)
    drawn = picture.quantize(MAX_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    drawn.putpalette(_with_white(drawn.getpalette() or []))
    buffer = io.BytesIO()
    drawn.save(buffer, "PNG", compress_level=LEVEL)
    return min(png, buffer.getvalue(), key=len)


def _with_white(palette: list[int]) -> list[int]:
    """Return a palette whose nearly white colours are white; quantization darkens the background slightly."""
    colours = [palette[start : start + 3] for start in range(0, len(palette), 3)]
    return [part for colour in colours for part in ([255, 255, 255] if min(colour) >= NEARLY_WHITE else colour)]


def read_png_size(png: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels from the file's header; None if it is not a PNG."""
    if png[:8] != b"\x89PNG\r\n\x1a\n" or len(png) < 24:
        return None
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


def read_png_title(png: bytes) -> str:
    """Return the title in the file's metadata; '' without one."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(png)) as opened:
            return str(opened.info.get("Title", ""))
    except (OSError, ValueError, Image.DecompressionBombError):
        return ""


def make_data_url(png: bytes) -> str:
    """Return the figure as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
