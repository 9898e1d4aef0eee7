"""Rows as a table of text that fits the terminal without cutting a number or losing a name."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from rich.cells import cell_len, chop_cells

GAP = "   "
MIN_COLUMN_WIDTH = 16


def format_text_table(
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    *,
    numeric: Collection[str] = (),
    width: int | None = None,
    drop_order: Sequence[str] = (),
) -> tuple[str, list[str]]:
    """A table with a header, numbers to the right and texts to the left.

    Texts are wrapped to at least 16 columns; numbers never are. If the table is still too wide, columns without any
    text are omitted, then those of ``drop_order``, one at a time. What is then too wide is printed in full.

    Args:
        names: of the columns; underscores are printed as spaces.
        cells: a text for each column of each row.
        numeric: names of the columns of numbers.
        width: columns of the terminal; None for no limit.
        drop_order: names of columns to omit if there is no room, the least important first.

    Returns:
        The lines, and the names of the columns of ``drop_order`` that were omitted.
    """
    columns = {
        name: [name.replace("_", " "), *(" ".join(row[at].splitlines()) for row in cells)]
        for at, name in enumerate(names)
    }
    full = {name: max(map(cell_len, column)) for name, column in columns.items()}
    least = {name: full[name] if name in numeric else min(full[name], MIN_COLUMN_WIDTH) for name in columns}
    omitted: list[str] = []
    if width is not None:
        silent = [name for name, column in columns.items() if not any(column[1:])]
        for name in [*silent, *drop_order]:
            if _total(least) > width and name in least:
                del columns[name], full[name], least[name]
                omitted += [name] if name not in silent else []
    wide = full if width is None else _distribute_width(full, least, width)
    lines = []
    for row in zip(*columns.values(), strict=True):
        folded = [_wrap_text(cell, wide[name]) for name, cell in zip(columns, row, strict=True)]
        for nth in range(max(map(len, folded))):
            parts = [
                _aligned(part, nth, wide[name], name in numeric) for name, part in zip(columns, folded, strict=True)
            ]
            lines.append(GAP.join(parts).rstrip())
        if len(lines) == max(map(len, folded)):
            lines.append("─" * _total(wide))
    return "\n".join(lines), [name.replace("_", " ") for name in omitted]


def _total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _distribute_width(full: dict[str, int], least: dict[str, int], width: int) -> dict[str, int]:
    """Widths between the least and the full ones: the widest column gives way first."""
    wide = dict(full)
    while _total(wide) > width:
        name = max(wide, key=lambda name: wide[name] - least[name])
        if wide[name] == least[name]:
            break
        wide[name] -= 1
    return wide


def _wrap_text(text: str, width: int) -> list[str]:
    """A text in lines of a width, broken after spaces, dashes, slashes and underscores where that will do."""
    lines = [""]
    for part in re.split(r"(?<=[\s\-/_])", text):
        if cell_len(lines[-1] + part.rstrip()) <= width:
            lines[-1] += part
        else:
            lines[-1:] = [*filter(None, [lines[-1]]), *chop_cells(part, width)]
    return [line.rstrip() for line in lines]


def _aligned(lines: Sequence[str], nth: int, width: int, right: bool) -> str:
    text = lines[nth] if nth < len(lines) else ""
    space = " " * (width - cell_len(text))
    return space + text if right else text + space
