"""A smallest set of tasks or of models without which somebody else leads.

Sets are looked for whose removal takes the first place from everyone who holds it; to be tied first is to hold it.
Models in the first place are not removed themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import working_time


@dataclass(frozen=True, kw_only=True)
class Removal:
    """The smallest set found, and what is proven.

    Attributes:
        removed: ``(n,)`` tasks or models; None where no set is known.
        lower_bound: no smaller set does it; None where no set of any size does.
    """

    removed: NDArray[np.int64] | None
    lower_bound: int | None

    @property
    def is_exact(self) -> bool:
        """Whether the set is proven to be a smallest one, or that there is none."""
        return self.lower_bound is None if self.removed is None else self.lower_bound == len(self.removed)


@dataclass(frozen=True, kw_only=True)
class PivotalSet:
    """What the first place hangs on, by name.

    Attributes:
        removed: the smallest set found; None where no set is known.
        lower_bound: no smaller set takes the first place away; None where no set of any size does.
        new_leaders: who leads without that set; none where that is not known.
    """

    removed: tuple[str, ...] | None
    lower_bound: int | None
    new_leaders: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the set is proven to be a smallest one, or that there is none."""
        return self.lower_bound is None if self.removed is None else self.lower_bound == len(self.removed)


NO_REMOVAL = Removal(removed=None, lower_bound=None)

LeaderMargin = Callable[[NDArray[np.int64]], Any]
"""By how much the leaders are ahead without some items: below 0 somebody else leads; None = not known."""


def minimize_sum_removal(
    points: NDArray[Any], leaders: NDArray[np.int64], *, items_are_models: bool = False
) -> Removal:
    """Where what models get from the items that are left is added up.

    For one leader and one challenger, the items that favour the leader most are the ones to remove. Of several leaders
    each must fall behind: the hardest one gives the bound, and is tried first.

    Args:
        points: ``(n_items, n_models)`` whole numbers; the sum of each column ranks its model.
        leaders: columns with the largest sum.
        items_are_models: item k is model k: neither a leader nor the challenger is removed.
    """
    n_items, n_models = points.shape
    challengers = np.setdiff1d(np.arange(n_models), leaders)
    if not len(challengers):
        return NO_REMOVAL
    never = n_items + 1
    n_needed = np.zeros(len(challengers), dtype=np.int64)
    favours = []
    for leader in {tuple(points[:, leader].tolist()): leader for leader in leaders}.values():
        favour = points[:, [leader]] - points[:, challengers]
        total_lead = favour.sum(axis=0)
        movable = np.maximum(favour, 0)
        if items_are_models:
            movable[leaders] = 0
            movable[challengers, np.arange(len(challengers))] = 0
        after = total_lead - np.cumsum(np.sort(movable, axis=0)[::-1], axis=0)
        behind = np.asarray(after < 0, dtype=bool)
        hardest = np.where(behind.any(axis=0), behind.argmax(axis=0) + 1, never)
        favours.append((favour, movable))
        n_needed = np.maximum(n_needed, hardest)
    lower_bound = int(n_needed.min())
    if lower_bound == never:
        return NO_REMOVAL
    smallest: NDArray[np.int64] | None = None
    for challenger in np.argsort(n_needed, kind="stable"):
        if n_needed[challenger] == never or (smallest is not None and n_needed[challenger] >= len(smallest)):
            break
        candidate = _remove_greedily([(favour[:, challenger], movable[:, challenger]) for favour, movable in favours])
        if candidate is not None and (smallest is None or len(candidate) < len(smallest)):
            smallest = candidate
    return Removal(removed=smallest, lower_bound=lower_bound)


def _remove_greedily(favours: list[tuple[NDArray[Any], NDArray[Any]]]) -> NDArray[np.int64] | None:
    """Items without which one challenger is ahead of all leaders: each time, the one that keeps the foremost there.

    Args:
        favours: for each leader, how much more each item gives it than the challenger; and the same where the item may
            be removed and favours the leader, else 0.
    """
    n_items = len(favours[0][0])
    removed: list[int] = []
    while len(removed) < n_items:
        kept = np.delete(np.arange(n_items), removed)
        leads = [sum(favour[kept].tolist()) for favour, _ in favours]
        foremost = max(range(len(leads)), key=leads.__getitem__)
        if leads[foremost] < 0:
            return np.sort(np.array(removed, dtype=np.int64))
        movable = favours[foremost][1].copy()
        movable[removed] = 0
        if not movable.max() > 0:
            return None
        removed.append(int(np.argmax(movable)))
    return None


def minimize_minimax_removal(lost: NDArray[Any], leaders: NDArray[np.int64]) -> Removal:
    """Where models are ranked by their worst duel, the fewest models without which somebody else leads.

    A challenger leads if its worst defeat is at most u and every leader has a worse one left. For each u among its
    defeats, exactly those who beat it by more must go.

    Args:
        lost: ``(n_models, n_models)`` by how much the row loses to the column; on the diagonal less than anything.
        leaders: columns.
    """
    n_models = len(lost)
    best: NDArray[np.int64] | None = None
    for challenger in np.setdiff1d(np.arange(n_models), leaders):
        order = np.argsort(-lost[challenger], kind="stable")
        sorted_defeats = lost[challenger][order]
        n_removed = np.searchsorted(-sorted_defeats, -sorted_defeats, side="left")
        # A leader cannot be removed.
        allowed = n_removed <= int(np.isin(order, leaders).argmax())
        for leader in leaders:
            worst_left = np.maximum.accumulate(lost[leader][order][::-1])[::-1]
            allowed &= np.asarray(worst_left[n_removed] > sorted_defeats, dtype=bool)
        if allowed.any():
            fewest = int(n_removed[allowed].min())
            if best is None or fewest < len(best):
                best = np.sort(order[:fewest])
    return NO_REMOVAL if best is None else Removal(removed=best, lower_bound=len(best))


def search_removal(items: NDArray[np.int64], margin: LeaderMargin, *, deadline: float) -> Removal:
    """Where nothing better is known: one item after the other, then all sets by size while there is time.

    Args:
        items: what may be removed, together if need be.
        margin: of the leaders without some of the items.
        deadline: by `working_time`.
    """
    smallest = _search_greedily(items, margin, working_time() + (deadline - working_time()) / 2)
    largest = len(items) if smallest is None else len(smallest) - 1
    lower_bound, is_open = 1, False
    for n_removed in range(1, largest + 1):
        for subset in combinations(items.tolist(), n_removed):
            if working_time() > deadline:
                return Removal(removed=smallest, lower_bound=lower_bound)
            removed = np.array(subset, dtype=np.int64)
            remaining_margin = margin(removed)
            if remaining_margin is not None and remaining_margin < 0:
                return Removal(removed=removed, lower_bound=lower_bound)
            is_open |= remaining_margin is None
        if not is_open:
            lower_bound = n_removed + 1
    if smallest is None and not is_open:
        return NO_REMOVAL
    return Removal(removed=smallest, lower_bound=lower_bound)


def _search_greedily(items: NDArray[np.int64], margin: LeaderMargin, deadline: float) -> NDArray[np.int64] | None:
    """Each time the item that costs the leaders most; then those that were not needed are put back."""
    removed: list[int] = []
    candidates = items.tolist()
    while candidates:
        margins: dict[int, Any] = {}
        for item in candidates:
            if working_time() > deadline:
                return None
            remaining_margin = margin(np.array([*removed, item], dtype=np.int64))
            if remaining_margin is not None:
                margins[item] = remaining_margin
        if not margins:
            return None
        worst = min(margins, key=lambda item: (margins[item], item))
        removed.append(worst)
        candidates.remove(worst)
        if margins[worst] < 0:
            return np.sort(np.array(_drop_unnecessary(removed, margin), dtype=np.int64))
    return None


def _drop_unnecessary(removed: Iterable[int], margin: LeaderMargin) -> list[int]:
    kept = list(removed)
    for item in list(kept):
        reduced = [other_item for other_item in kept if other_item != item]
        remaining_margin = margin(np.array(reduced, dtype=np.int64)) if reduced else None
        if remaining_margin is not None and remaining_margin < 0:
            kept = reduced
    return kept
