"""What rows can hold at once in a box of weights: conflict cliques and the rows' hulls together."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.boxes.conflict_cliques import cover_with_cliques
from analyses.numerics.elections.cardinal.boxes.row_hulls import Majorant, MajorantBundle, majorize
from analyses.numerics.elections.cardinal.boxes.rows_in_box import RowsInBox

N_MAJORANTS = 10
"""Points of a box at which the hulls are evaluated."""

BOUND_ERROR = 1e-6
"""Rounding of a sum of bounds is far less."""

MAX_AGE = 2
"""So often a box is halved before its rows are covered anew: cliques of a box are cliques in its halves."""


@dataclass(frozen=True, kw_only=True)
class BoxBound:
    """A bound of the worth of the rows that hold in a box, and what the halves of the box begin with.

    Attributes:
        worth: no weights in the box do more.
        constant, slopes: constant + slopes · w bounds the worth as well; ``(n_weights,)``.
        point: ``(n_weights,)`` weights in the box at which many rows may hold.
        branching_weight: along which to halve the box.
        rows, clique_of: undecided rows, ascending, and the clique of each; empty where they are not kept.
        age: how often the box with this cover has been halved.
    """

    worth: int
    constant: float
    slopes: NDArray[np.float64]
    point: NDArray[np.float64]
    branching_weight: int
    rows: NDArray[np.int32]
    clique_of: NDArray[np.int32]
    age: int


def bound_box(
    rows: RowsInBox,
    ends: NDArray[np.float64],
    parent: BoxBound | None,
    *,
    max_worth: int,
    incumbent: int,
    keep_cliques: bool = True,
) -> BoxBound:
    """Bound the rows that hold in a box, no closer than ``incumbent`` needs.

    Args:
        rows: undecided in the box, at least one.
        ends: ``(2, n_weights)`` of the box.
        parent: of the box that this is a half of.
        max_worth: a bound that is known.
        incumbent: a bound that suffices.
        keep_cliques: whether the halves may have the cliques.
    """
    clique_of, age = _cover(rows, parent)
    most = np.zeros(int(clique_of.max()) + 1)
    np.maximum.at(most, clique_of, rows.worth)
    worth = min(max_worth, rows.certain_worth + int(most.sum()))
    bundle = _begin_bundle(rows, ends, parent)
    x = bundle.centre
    for _ in range(N_MAJORANTS):
        if worth <= incumbent:
            break
        x = bundle.add(majorize(rows, clique_of, most, x), x)
        worth = min(worth, floor(bundle.best.maximum + BOUND_ERROR))
    slopes, point = np.zeros(ends.shape[1]), ends[0].copy()
    slopes[rows.free] = bundle.best.slopes / rows.half_width
    point[rows.free] = np.clip(rows.middle + rows.half_width * bundle.centre, ends[0, rows.free], ends[1, rows.free])
    order = np.argsort(rows.index) if keep_cliques else np.zeros(0, np.int64)
    return BoxBound(
        worth=worth,
        constant=bundle.best.constant - float(slopes[rows.free] @ rows.middle),
        slopes=slopes,
        point=point,
        branching_weight=int(rows.free[np.argmax(rows.worth @ np.abs(rows.slopes))]),
        rows=rows.index[order].astype(np.int32),
        clique_of=clique_of[order].astype(np.int32),
        age=age if keep_cliques else MAX_AGE,
    )


def _cover(rows: RowsInBox, parent: BoxBound | None) -> tuple[NDArray[np.int64], int]:
    """Cliques of the rows, from the larger box while that is not too old, and their age."""
    if parent is None or parent.age >= MAX_AGE:
        return cover_with_cliques(rows), 0
    inherited = parent.clique_of[np.searchsorted(parent.rows, rows.index)]
    return np.unique(inherited, return_inverse=True)[1].astype(np.int64), parent.age + 1


def _begin_bundle(rows: RowsInBox, ends: NDArray[np.float64], parent: BoxBound | None) -> MajorantBundle:
    """The bundle that has the majorant of the larger box, or that of all rows."""
    if parent is None:
        largest = Majorant(constant=float(rows.certain_worth + rows.worth.sum()), slopes=np.zeros(len(rows.free)))
        return MajorantBundle(mixture=largest, best=largest, centre=np.zeros(len(rows.free)))
    inherited = Majorant(
        constant=parent.constant + float(parent.slopes @ (ends[0] + ends[1])) / 2,
        slopes=parent.slopes[rows.free] * rows.half_width,
    )
    centre = np.clip((parent.point[rows.free] - rows.middle) / rows.half_width, -1.0, 1.0)
    return MajorantBundle(mixture=inherited, best=inherited, centre=centre)
