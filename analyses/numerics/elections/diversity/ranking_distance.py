"""How far two rankings of the same models are apart, in each of the definitions that are in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class RankingDistance:
    """Distances of two rankings, each in [0, 1], 0 = the same.

    Attributes:
        tau: pairs in strictly opposite order, over C(m, 2).
        tau_paper: the same, and pairs tied in exactly one of the two (Zhang & Hardt 2024, equation 4).
        tau_b: (1 − Kendall's tau-b) / 2, as their code has it; NaN where one of the two ties all models and the other
            does not, 0 where both do.
        mrc: largest change of rank of a model, over m − 1 (equation 5); ties share the mean of their ranks.
        n_reversed: pairs in strictly opposite order.
    """

    tau: float
    tau_paper: float
    tau_b: float
    mrc: float
    n_reversed: int


def average_ranks(totals: Sequence[int] | NDArray[Any]) -> NDArray[np.float64]:
    """Rank of each total: 1 is the largest, equal totals share the mean of their ranks; decided exactly.

    Args:
        totals: ``(m,)`` integers of any size, fractions, or floats whose ties are exact.
    """
    values = np.asarray(totals) if isinstance(totals, np.ndarray) else np.array(list(totals), dtype=object)
    distinct, group = np.unique(values, return_inverse=True)
    sizes = np.bincount(group.ravel(), minlength=len(distinct))[::-1]
    middle = np.cumsum(sizes) - (sizes - 1) / 2
    return np.asarray(middle[::-1][group.ravel()], dtype=np.float64)


def max_half_rank_change(before: NDArray[np.float64], after: NDArray[np.float64]) -> int:
    """The largest change of rank of a model, in halves.

    Args:
        before, after: ``(m,)`` ranks as of `average_ranks`; m at least 1.
    """
    return round(2 * float(np.abs(after - before).max()))


def ranking_distance(before: NDArray[np.float64], after: NDArray[np.float64]) -> RankingDistance:
    """All distances of two rankings.

    Args:
        before, after: ``(m,)`` ranks as of `average_ranks`; m at least 1.
    """
    m = len(before)
    n_pairs = m * (m - 1) // 2
    first, second = (ranks[:, None] < ranks[None, :] for ranks in (before, after))
    n_first, n_second = int(np.count_nonzero(first)), int(np.count_nonzero(second))
    n_concordant, n_reversed = int(np.count_nonzero(first & second)), int(np.count_nonzero(first & second.T))
    n_half_tied = n_first + n_second - 2 * (n_concordant + n_reversed)
    norm = float(n_first) * float(n_second)
    both_tied = not n_first and not n_second
    correlation = (n_concordant - n_reversed) / np.sqrt(norm) if norm else (1.0 if both_tied else np.nan)
    return RankingDistance(
        tau=n_reversed / n_pairs if n_pairs else 0.0,
        tau_paper=(n_reversed + n_half_tied) / n_pairs if n_pairs else 0.0,
        tau_b=float((1 - correlation) / 2),
        mrc=float(np.abs(before - after).max() / (m - 1)) if m > 1 else 0.0,
        n_reversed=n_reversed,
    )
