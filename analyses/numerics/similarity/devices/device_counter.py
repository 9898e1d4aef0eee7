"""Counts of the pairs of rows on a device of PyTorch: the integers of `pairs.pair_counts`, from products of matrices.

The numbers of common ones of two blocks of rows are the product of two matrices of 0 and 1. Every number in such a
product, and every partial sum in any order, is an integer from 0 to the number of columns. A format that represents
all of them adds them without rounding: float16 up to 2,048 columns, float32 (also with the short factors of TF32) up
to 2**24. All other numbers are integers. The counts therefore equal those of the kernels on every device.

Memory does not depend on the number of pairs: 4 bytes at most for each cell of the table, twice with missing cells, a
few numbers for each of ``tile**2`` pairs, and 8 bytes for each cell and lattice of a `Numbering`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from analyses.numerics.similarity.devices.numberings import Numbering, PairNumbers, Tensor, number_lattices
from analyses.numerics.similarity.devices.packed_bits import unpack_on_device
from analyses.numerics.similarity.pairs.pair_counter import PairCounter
from analyses.numerics.similarity.pairs.pair_counts import (
    BOTH_EMPTY,
    DISJOINT_ONES,
    N_SIDES,
    NO_OVERLAP,
    SAME_ONES,
    PairCounts,
)

TILE = 4096
"""Rows on either side of the pairs that are compared at once."""
MAX_HALF_COLUMNS = 1 << 11
"""Columns up to which float16 represents every number of common ones."""


def choose_dtype(device: str, n_columns: int) -> torch.dtype:
    """The format of the factors: CUDA devices multiply float16 faster, CPUs float32."""
    is_half = device.startswith("cuda") and n_columns <= MAX_HALF_COLUMNS
    return torch.float16 if is_half else torch.float32


@dataclass(frozen=True)
class DeviceRows:
    """The rows of a table on a device.

    Attributes:
        scores: ``(n, n_words * 64)`` 0 and 1; further columns are 0.
        ones: ``(n,)`` int32, number of ones of each row.
        measured: as ``scores``: 1 where a cell is measured; None for a complete table.
        n_measured: ``(n,)`` int32, number of measured cells of each row; None for a complete table.
    """

    scores: Tensor
    ones: Tensor
    measured: Tensor | None = None
    n_measured: Tensor | None = None

    def compare(self, left: slice, right: slice) -> PairNumbers:
        """Compare each of some rows with each of others."""

        def multiply(first: Tensor, second: Tensor) -> Tensor:
            return torch.mm(first[left], second[right].T).to(torch.int32)

        scores, measured = self.scores, self.measured
        common = multiply(scores, scores)
        if measured is None:
            return PairNumbers(None, self.ones[left].unsqueeze(1), self.ones[right].unsqueeze(0), common)
        return PairNumbers(multiply(measured, measured), multiply(scores, measured), multiply(measured, scores), common)

    def compare_with_themselves(self) -> PairNumbers:
        """Compare each row with itself."""
        return PairNumbers(self.n_measured, self.ones, self.ones, self.ones)

    def count_sides(self, left: slice, right: slice, pairs: PairNumbers) -> Tensor:
        """The side counts of the pairs of `compare`."""
        has_ones = (self.ones[left] > 0).unsqueeze(1) & (self.ones[right] > 0).unsqueeze(0)
        overlap, is_empty = pairs.shared > 0, pairs.common == 0
        is_same = (pairs.common == pairs.left) & (pairs.common == pairs.right)
        sides: list[Any] = [None] * N_SIDES
        sides[BOTH_EMPTY] = overlap & is_same & is_empty
        sides[DISJOINT_ONES] = overlap & is_empty & has_ones
        sides[NO_OVERLAP] = ~overlap
        sides[SAME_ONES] = overlap & is_same & ~is_empty
        return torch.stack([side.count_nonzero() for side in sides])


@dataclass(frozen=True)
class DevicePairCounter(PairCounter):
    """A `PairCounter` that compares the rows of a table without weights on a device.

    Attributes:
        device: a name that PyTorch knows, such as ``cuda``.
        tile: rows on either side of the pairs that are compared at once.
    """

    device: str = "cpu"
    tile: int = TILE

    def count(self, bits: NDArray[np.uint64]) -> PairCounts:
        """Counts of all lattices in one vector, and the side counts."""
        rows, n = self._send(bits), len(bits)
        cells = [self._zeros(numbering.n_cells + 1) for numbering in self._numberings]
        sides = self._zeros(N_SIDES)
        # A block beside itself has each of its pairs twice and each row beside itself. So every other block counts
        # twice too, rows beside themselves are subtracted, and half remains.
        for left in _split(n, self.tile):
            for right in _split(n, self.tile, left.start):
                times = 1 if left == right else 2
                pairs = rows.compare(left, right)
                for counts, further in zip(cells, self._count_cells(pairs), strict=True):
                    counts.add_(further, alpha=times)
                if rows.measured is not None:
                    sides.add_(rows.count_sides(left, right, pairs), alpha=times)
        for counts, further in zip(cells, self._count_cells(rows.compare_with_themselves()), strict=True):
            counts.sub_(further).floor_divide_(2)
        if rows.measured is None:
            by_union = cells[0][:-1].view(self.packed.n_columns + 1, -1)
            sides = _read_sides(by_union, rows.ones)
        else:
            n_empty = (rows.ones == 0).count_nonzero()
            sides[BOTH_EMPTY] -= n_empty
            sides[SAME_ONES] -= n - n_empty
            sides.floor_divide_(2)
        return PairCounts(self._find_values(cells).cpu().numpy(), sides.cpu().numpy())

    def sum_each_row(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """By lattice, the sum of each row's similarities to all others, and the number of those it shares cells with.

        A sum runs over the other rows in ascending order, as in the kernel, so that it rounds in the same way.
        """
        rows, n = self._send(self.packed.bits), len(self.packed.bits)
        sums = torch.zeros((len(self.lattices), n), dtype=torch.float64, device=self.device)
        partners = self._zeros(n)
        values = [torch.from_numpy(lattice.values).to(self.device) for lattice in self.lattices.values()]
        by_cell = [
            {place: values[place][position] for place, position in numbering.positions.items()}
            for numbering in self._numberings
        ]
        for left in _split(n, max(1, self.tile**2 // n)):
            pairs = rows.compare(left, slice(0, n))
            is_other = torch.ones_like(pairs.common, dtype=torch.bool) if pairs.shared is None else pairs.shared > 0
            is_other.diagonal(left.start).zero_()
            partners += is_other.sum(dim=0)
            for numbering, similarities in zip(self._numberings, by_cell, strict=True):
                cells = numbering.number_cells(pairs, self.packed.n_columns).masked_fill_(~is_other, 0)
                for place, of_cells in similarities.items():
                    similarity = of_cells[cells].masked_fill_(~is_other, 0.0)
                    total = sums[place]
                    for partner in similarity:
                        total.add_(partner)
        return sums.cpu().numpy(), partners.cpu().numpy()

    def _count_cells(self, pairs: PairNumbers) -> Iterator[Tensor]:
        """Pairs in each cell of each numbering; the last place has the pairs without a shared cell."""
        for numbering in self._numberings:
            cells = numbering.number_cells(pairs, self.packed.n_columns)
            if pairs.shared is not None:
                cells.masked_fill_(pairs.shared == 0, numbering.n_cells)
            yield torch.bincount(cells.view(-1), minlength=numbering.n_cells + 1)

    def _find_values(self, cells: list[Tensor]) -> Tensor:
        """Move the pairs of all cells to the values of the lattices."""
        values = [self._zeros(lattice.size) for lattice in self.lattices.values()]
        for numbering, counts in zip(self._numberings, cells, strict=True):
            for place, position in numbering.positions.items():
                values[place].index_add_(0, position, counts[:-1])
        return torch.cat(values)

    @cached_property
    def _numberings(self) -> list[Numbering]:
        numberings = number_lattices(
            list(self.lattices.values()), self.packed.n_columns, is_complete=self.packed.is_complete
        )
        return [numbering.convert(lambda array: torch.from_numpy(array).to(self.device)) for numbering in numberings]

    @cached_property
    def _measured(self) -> tuple[Tensor, Tensor] | tuple[()]:
        """The cells that are measured and how many each row has; none for a complete table."""
        if self.packed.is_complete:
            return ()
        cells = unpack_on_device(self.packed.masks, self.device)
        return cells.to(self._dtype), cells.sum(dim=1, dtype=torch.int32)

    @property
    def _dtype(self) -> torch.dtype:
        return choose_dtype(self.device, self.packed.n_columns)

    def _send(self, bits: NDArray[np.uint64]) -> DeviceRows:
        cells = unpack_on_device(bits, self.device)
        return DeviceRows(cells.to(self._dtype), cells.sum(dim=1, dtype=torch.int32), *self._measured)

    def _zeros(self, n: int) -> Tensor:
        return torch.zeros(n, dtype=torch.int64, device=self.device)


def _split(n: int, size: int, start: int = 0) -> Iterator[slice]:
    for first in range(start, n, size):
        yield slice(first, min(first + size, n))


def _read_sides(by_union: Tensor, ones: Tensor) -> Tensor:
    """The side counts of a complete table.

    Args:
        by_union: ``(k + 1, k + 1)`` int64, pairs by the number of columns with a one in either row, and in both.
        ones: ``(n,)`` ones of each row.
    """
    n, n_full = len(ones), (ones > 0).count_nonzero()
    n_with_empty_row = n * (n - 1) // 2 - n_full * (n_full - 1) // 2
    sides = torch.zeros(N_SIDES, dtype=torch.int64, device=by_union.device)
    sides[BOTH_EMPTY] = by_union[0, 0]
    sides[DISJOINT_ONES] = by_union[:, 0].sum() - n_with_empty_row
    sides[SAME_ONES] = by_union.diagonal()[1:].sum()
    return sides
