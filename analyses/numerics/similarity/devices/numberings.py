"""Cells in which a device counts pairs: every lattice puts all pairs of one cell at the same value.

One numbering can serve several lattices, so that a device adds each pair to fewer counts. Fields are NumPy arrays as
created, and tensors after `Numbering.convert`; this module does not import PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.lattices import Lattice

Tensor = Any
"""A `torch.Tensor`."""


class PairNumbers(NamedTuple):
    """The integers of pairs of rows: matrices, for some rows on the left and some on the right, or vectors.

    Attributes:
        shared: int32, number of shared cells; None where every pair shares all columns.
        left, right: int32, ones of either row in these cells; a column and a row where `shared` is None.
        common: int32, ones of both.
    """

    shared: Tensor
    left: Tensor
    right: Tensor
    common: Tensor


class Numbering(NamedTuple):
    """Numbers of cells, and where each cell falls among the values of lattices.

    The cell of a pair is ``by_overlap[shared] + by_ones + stride * common``. The second term is
    ``by_ones[left] + by_ones[right]`` if ``by_ones`` has one number for each number of ones, otherwise
    ``by_ones[left * (k + 1) + right]``.

    Attributes:
        by_overlap: ``(k + 1,)`` int32; None if it is 0.
        by_ones: ``(k + 1,)`` or ``((k + 1)**2,)`` int32.
        stride: cells from one number of common ones to the next.
        n_cells: number of cells.
        positions: by the place of a lattice in the counts, ``(n_cells,)`` int64: the position of each cell among the
            values of that lattice; 0 for cells in which no pair can be.
    """

    by_overlap: Any
    by_ones: Any
    stride: int
    n_cells: int
    positions: dict[int, Any]

    def convert(self, send: Callable[[NDArray[Any]], Tensor]) -> Numbering:
        """Return the numbering with tensors in place of arrays."""
        return Numbering(
            by_overlap=None if self.by_overlap is None else send(self.by_overlap),
            by_ones=send(self.by_ones),
            stride=self.stride,
            n_cells=self.n_cells,
            positions={place: send(position) for place, position in self.positions.items()},
        )

    def number_cells(self, pairs: PairNumbers, n_columns: int) -> Tensor:
        """The cell of each pair, int32."""
        if len(self.by_ones) == n_columns + 1:
            cells = self.by_ones[pairs.left] + self.by_ones[pairs.right]
        else:
            cells = self.by_ones[pairs.left * (n_columns + 1) + pairs.right]
        cells.add_(pairs.common, alpha=self.stride)
        if self.by_overlap is not None and pairs.shared is not None:
            cells.add_(self.by_overlap[pairs.shared])
        return cells


def number_lattices(lattices: Sequence[Lattice], n_columns: int, *, is_complete: bool) -> list[Numbering]:
    """Return numberings for all lattices.

    In a complete table the first is by the ones of either row (union) and the common ones: cell ``union * (k + 1) +
    common``. It serves every lattice that depends on the ones of both rows through their sum, and may serve none. Other
    lattices, and all lattices of a table with missing cells, have a separate numbering: their own cells.
    """
    served = [is_complete and _depends_on_sum(lattice.by_ones) for lattice in lattices]
    numberings = [
        _number_own_cells(lattice, place)
        for place, (lattice, is_served) in enumerate(zip(lattices, served, strict=True))
        if not is_served
    ]
    if not is_complete:
        return numberings
    union, common = np.divmod(np.arange((n_columns + 1) ** 2), n_columns + 1)
    is_possible = common <= union
    positions = {}
    for place in np.flatnonzero(served).tolist():
        lattice = lattices[place]
        # a pair of this cell: one row has all the ones, the other has the common ones
        cells = lattice.by_overlap[n_columns] + lattice.by_ones[union, common] + lattice.stride * common
        positions[place] = np.where(is_possible, lattice.index[np.where(is_possible, cells, 0)], 0).astype(np.int64)
    by_ones = ((n_columns + 1) * np.arange(n_columns + 1)).astype(np.int32)
    return [Numbering(None, by_ones, -n_columns, union.size, positions), *numberings]


def _depends_on_sum(by_ones: NDArray[np.int32]) -> bool:
    """Whether the cell depends on the ones of both rows through their sum."""
    places = np.arange(len(by_ones))
    step = by_ones[0, 1] - by_ones[0, 0]
    return bool((by_ones == by_ones[0, 0] + step * (places[:, None] + places)).all())


def _number_own_cells(lattice: Lattice, place: int) -> Numbering:
    return Numbering(
        by_overlap=lattice.by_overlap.astype(np.int32) if lattice.by_overlap.any() else None,
        by_ones=lattice.by_ones.ravel(),
        stride=lattice.stride,
        n_cells=lattice.index.size,
        positions={place: lattice.index.clip(min=0).astype(np.int64)},
    )
