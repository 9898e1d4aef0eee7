"""The paired permutation test: had the two models changed places on any prompt, would the difference be as large?

Under the null hypothesis each difference could as well have had the other sign. Where all signs can be gone through,
or differences are multiples of one number, the p-value is exact; else signs are drawn. Where prompts come in clusters,
whole clusters change sign, and the units are sums of differences.

Source: Fisher 1935, "The Design of Experiments", section 21; Phipson and Smyth 2010 for drawn signs; Canay, Romano and
Shaikh 2017, "Randomization tests under an approximate symmetry assumption", for clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.ranking import TIE_TOLERANCE
from tracker.statistics.rng_streams import SIGN_FLIPS, generator

ENUMERATED = 18
"""Up to so many units all signs are gone through."""
DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 25, 30, 32, 40, 50, 64, 100, 128, 1000)
"""Differences are looked for as multiples of one over these."""
MULTIPLE = 1e-7
"""A number so near to a whole one is meant to be it."""
MAX_MULTIPLICATIONS = 2e8
"""Multiplications that an exact distribution may cost."""
BLOCK = 64
"""Draws from one stream."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignFlips:
    """Outcome of the test.

    Attributes:
        pvalue: two-sided, in (0, 1].
        n_drawn: draws of signs; 0 where the p-value is exact.
    """

    pvalue: float
    n_drawn: int

    @property
    def is_exact(self) -> bool:
        """Whether all signs were counted."""
        return self.n_drawn == 0


def sign_flip_test(values: NDArray[np.float64], *, n_draws: int = 9999, seed: int = 0) -> SignFlips:
    """Two-sided test of the sum, by flipping signs of units.

    A unit of 0 does not count; if all are 0, p is 1. With random flips, the p-value is (1 + #{|sum| ≥ |observed|}) /
    (n_draws + 1).

    Args:
        values: ``(m,)`` finite differences, or their sums over clusters.
        n_draws: where not exact; at least 1.
        seed: of the draws; the same seed gives the same bytes, whatever the number of workers.
    """
    sizes, observed = np.abs(values[values != 0]), abs(float(values.sum()))
    if observed <= TIE_TOLERANCE * float(sizes.sum()):
        return SignFlips(pvalue=1.0, n_drawn=0)
    pvalue = _on_a_lattice(values)
    if pvalue is None and len(sizes) <= ENUMERATED:
        pvalue = _enumerated(sizes, observed)
    return SignFlips(pvalue=pvalue, n_drawn=0) if pvalue is not None else _drawn(sizes, observed, n_draws, seed)


def _enumerated(sizes: NDArray[np.float64], observed: float) -> float:
    """The first sign stays: all flipped together give the same absolute sum."""
    sums = sizes[:1]
    for size in sizes[1:].tolist():
        sums = np.concatenate([sums + size, sums - size])
    return float((np.abs(sums) >= observed - TIE_TOLERANCE * float(sizes.sum())).mean())


def _on_a_lattice(values: NDArray[np.float64]) -> float | None:
    """Exactly, where values are multiples of one number; None where they are not, or it would take long."""
    sizes = np.abs(values[values != 0])
    for denominator in DENOMINATORS:
        if sizes.min() * denominator < 0.5 or float(sizes.sum()) * denominator > MAX_MULTIPLICATIONS:
            continue
        scaled = values * denominator
        whole = np.rint(scaled)
        if (np.abs(scaled - whole) <= MULTIPLE).all():
            break
    else:
        return None
    sizes, counts = np.unique(np.abs(whole[whole != 0]).astype(np.int64), return_counts=True)
    observed, total = abs(int(whole.sum())), int((sizes * counts).sum())
    if observed == 0:
        return 1.0
    order = np.argsort(-counts, kind="stable")
    sizes, counts = sizes[order] // np.gcd.reduce(sizes), counts[order]
    step = total // int((sizes * counts).sum())
    observed, total = observed // step, total // step
    reached = np.cumsum(sizes * counts)
    if (counts[1:] * reached[:-1]).sum() > MAX_MULTIPLICATIONS or total > MAX_MULTIPLICATIONS:
        return None
    chances = _positive_sums(sizes, counts)
    return min(1.0, 2 * float(chances[(total + observed) // 2 :].sum()))


def _positive_sums(sizes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Chance of each sum of those units that keep their sign, ``0 .. Σ size · count``, each with chance one half."""
    from scipy.stats import binom

    chances = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        more = np.zeros(len(chances) + size * count)
        for kept, chance in enumerate(binom.pmf(np.arange(count + 1), count, 0.5).tolist()):
            more[size * kept : size * kept + len(chances)] += chance * chances
        chances = more
    return chances


def _drawn(sizes: NDArray[np.float64], observed: float, n_draws: int, seed: int) -> SignFlips:
    """Eight signs at a time: the bits of a byte select the units that keep their sign, and a table holds the sums."""
    total, blocks = float(sizes.sum()), split_blocks(n_draws, BLOCK)
    eights = np.pad(sizes, (0, -len(sizes) % 8)).reshape(-1, 8)
    kept = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    table = (eights @ kept.T.astype(np.float64)).ravel()
    start = np.arange(len(eights)) * 256

    def as_large(block: int) -> int:
        draw = generator(seed, SIGN_FLIPS, block)
        drawn = draw.integers(0, 256, (len(blocks[block]), len(eights)), dtype=np.uint8)
        sums = 2 * table[start + drawn].sum(axis=1) - total
        return int((np.abs(sums) >= observed - TIE_TOLERANCE * total).sum())

    n_as_large = sum(map_blocks(as_large, len(blocks)))
    return SignFlips(pvalue=(1 + n_as_large) / (n_draws + 1), n_drawn=n_draws)
