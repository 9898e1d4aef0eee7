"""Which prompts of a group go, and which flagged ones stay: at random, and the same for the same seed.

Every prompt draws one number, whatever its group, in the order of the prompts, so that no step depends on another, nor
on how groups are numbered. Equal prompts and similar ones go by the same number: equal ones are similar too, and were
their draws different, the one step would take the first of two and the other the second, and nothing of them be left.

Source: Gupta et al. 2024, sections 3.1, 3.2 and 3.4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.rng_streams import DUPLICATES, RETAINED, generator


def remove_all_but_one(groups: NDArray[np.int32], *, seed: int) -> NDArray[np.bool_]:
    """Which prompts go so that one of each group stays: the one that `remove_half` takes last of them.

    Args:
        groups: ``(n,)``, the number of each prompt's group, -1 for none.
        seed: any non-negative integer.

    Returns:
        ``(n,)``, false where there is no group.
    """
    place, size = _places_in_group(groups, _draws(groups.size, seed, DUPLICATES))
    return place < size - 1


def remove_half(groups: NDArray[np.int32], *, seed: int) -> NDArray[np.bool_]:
    """Which prompts go so that half of each group stays, and one more where its size is odd.

    Args:
        groups: ``(n,)``, the number of each prompt's group, -1 for none.
        seed: any non-negative integer.

    Returns:
        ``(n,)``, false where there is no group.
    """
    place, size = _places_in_group(groups, _draws(groups.size, seed, DUPLICATES))
    return place < size // 2


def draw_retained(flagged: NDArray[np.bool_], share: float, *, seed: int) -> NDArray[np.bool_]:
    """Draw the flagged prompts that are kept: exactly ``round(share * n_flagged)``.

    It is Python's `round`, which takes halves to the even neighbour: of 25 flagged, 0.1 retains 2; of 35, 4. A larger
    share retains all that a smaller one does.

    Args:
        flagged: ``(n,)``.
        share: of the flagged, in [0, 1].
        seed: any non-negative integer.

    Raises:
        ValueError: the share is not in [0, 1].
    """
    if not 0 <= share <= 1:
        raise ValueError(f"The share to retain must be between 0 and 1, not {share}.")
    groups = np.where(flagged, 0, -1).astype(np.int32)
    place, _ = _places_in_group(groups, _draws(flagged.size, seed, RETAINED))
    return flagged & (place < round(share * int(np.count_nonzero(flagged))))


def _draws(n: int, seed: int, purpose: int) -> NDArray[np.float64]:
    """A number of each prompt."""
    return generator(seed, purpose).random(n)


def _places_in_group(
    groups: NDArray[np.int32], draws: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many of a prompt's group come before it by their draw, and how many the group has; 0 and 0 for none."""
    order = np.lexsort((draws, groups))
    by_group = groups[order]
    starts = np.searchsorted(by_group, by_group, side="left")
    place, size = np.zeros(groups.size, np.int64), np.zeros(groups.size, np.int64)
    place[order] = np.arange(groups.size) - starts
    size[order] = np.searchsorted(by_group, by_group, side="right") - starts
    place[groups < 0] = size[groups < 0] = 0
    return place, size
