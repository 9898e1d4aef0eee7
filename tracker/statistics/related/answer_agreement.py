"""Agreement of models on the same wrong answer.

Two models that fail on a prompt independently agree as often as any two of its wrong answers do. Near-copies agree more
often.

Source: Kim et al. 2025, "Correlated errors in large language models", section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.related.error_agreement import divide_pairs, find_near_copies

Floats = NDArray[np.float64]

NEAR_COPY_ANSWERS = 0.5
"""Share of the possible excess of equal wrong answers that near-copies reach, at least."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerAgreement:
    """Equal wrong answers of all pairs of models; every array is ``(k, k)``.

    Attributes:
        n: prompts with a wrong answer from both models.
        same: those with the same wrong answer from both.
        expected_same, variance: mean and variance of that number for two wrong answers drawn from those of all models.
    """

    n: Floats
    same: Floats
    expected_same: Floats
    variance: Floats

    @property
    def agreement(self) -> Floats:
        """Share of equal answers among the prompts that both answer wrongly; NaN without any."""
        return divide_pairs(self.same, self.n)

    @property
    def expected_agreement(self) -> Floats:
        """The same for two wrong answers drawn from those of all models."""
        return divide_pairs(self.expected_same, self.n)

    @property
    def near_copies(self) -> NDArray[np.bool_]:
        """Pairs whose equal answers are significantly more, by at least `NEAR_COPY_ANSWERS` of what is possible."""
        more = self.same - self.expected_same
        excess, z = divide_pairs(more, self.n - self.expected_same), divide_pairs(more, np.sqrt(self.variance))
        return find_near_copies(excess >= NEAR_COPY_ANSWERS, z)


def compare_answers(codes: NDArray[np.int32], is_wrong: NDArray[np.bool_]) -> AnswerAgreement:
    """Compare all pairs of models by their wrong answers.

    Args:
        codes: ``(n, k)`` code of each answer; -1 = no answer.
        is_wrong: ``(n, k)`` whether the score is that of a wrong answer.
    """
    is_wrong = is_wrong & (codes >= 0)
    places = _number_within_rows(np.where(is_wrong, codes, -1))
    wrong = is_wrong.astype(np.float64)
    n_wrong = wrong.sum(axis=1)
    same, n_equal = np.zeros((codes.shape[1], codes.shape[1])), np.zeros(len(codes))
    for place in range(int(places.max(initial=-1)) + 1):
        rows = np.flatnonzero((places == place).sum(axis=1) > 1)
        chosen = (places[rows] == place).astype(np.float64)
        same += chosen.T @ chosen
        count = chosen.sum(axis=1)
        n_equal[rows] += count * (count - 1)
    pairs = n_wrong * (n_wrong - 1)
    share = np.divide(n_equal, pairs, out=np.zeros(len(codes)), where=pairs > 0)[:, None]
    result = AnswerAgreement(
        n=wrong.T @ wrong,
        same=same,
        expected_same=(wrong * share).T @ wrong,
        variance=(wrong * (share * (1 - share))).T @ wrong,
    )
    for array in (result.same, result.expected_same, result.variance):
        np.fill_diagonal(array, 0.0)
    return result


def _number_within_rows(codes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return a number for each cell: equal codes of a row have the same one, from 0 on; -1 stays."""
    order = np.argsort(codes, axis=1, kind="stable")
    ordered = np.take_along_axis(codes, order, axis=1)
    is_new = np.ones(codes.shape, dtype=np.bool_)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    numbers = np.cumsum(is_new & (ordered >= 0), axis=1) - 1
    result = np.empty(codes.shape, dtype=np.int64)
    np.put_along_axis(result, order, np.where(ordered >= 0, numbers, -1), axis=1)
    return result
