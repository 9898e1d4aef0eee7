"""Join names into one text, for messages."""

from __future__ import annotations

from collections.abc import Iterable

MAX_NAMES = 3
"""Names that a list in a sentence has before it is cut."""


def join_names(
    items: Iterable[object], max_items: int = MAX_NAMES, *, separator: str = ", ", noun: str = "more"
) -> str:
    """Names, one after the other; of long lists the first few, and how many more there are.

    Args:
        items: the names.
        max_items: maximum number of names; the others are counted.
        separator: text between two names.
        noun: noun of the others, after their number.
    """
    names = [str(item) for item in items]
    n_more = len(names) - max_items
    return f"{separator.join(names[:max_items])}{f' and {n_more:,} {noun}' if n_more > 0 else ''}"
