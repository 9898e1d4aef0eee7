"""Lists in a sentence."""

from __future__ import annotations

from collections.abc import Iterable


def listed(things: Iterable[object], most: int, *, between: str = ", ", rest: str = "more") -> str:
    """Names, one after the other; of long lists the first few, and how many more there are.

    Args:
        things: what is listed.
        most: as many are named.
        between: what stands between two of them.
        rest: what those that are not named are called after their number.
    """
    named = [str(thing) for thing in things]
    n_more = len(named) - most
    return f"{between.join(named[:most])}{f' and {n_more:,} {rest}' if n_more > 0 else ''}"
