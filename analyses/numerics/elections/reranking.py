"""The same models before a change of the benchmark and after the two that move them most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.largest_change import CardinalSensitivity, LargestChange, OrdinalSensitivity
from analyses.numerics.elections.win_rates import WinRateRule, win_rates


@dataclass(frozen=True, kw_only=True)
class ChangedRanking:
    """Models after one change.

    Attributes:
        change: what was done, and the ranks after it.
        score: ``(m,)`` by what they are ranked then.
    """

    change: LargestChange
    score: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Reranking:
    """Models before, and after the change with the most reversals and the one with the largest change of rank.

    Attributes:
        models: name of each.
        rank, score: ``(m,)`` before.
        tau, mrc: after each.
    """

    models: tuple[str, ...]
    rank: NDArray[np.float64]
    score: NDArray[np.float64]
    tau: ChangedRanking
    mrc: ChangedRanking


def preserved_shares(witness: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(n_tasks,)`` what each raw score is multiplied by, the largest 1; NaN for a task without weight.

    Args:
        witness: weights, NaN where a task ties all models.
        scale: what the scores of a task are divided by before they are weighed.
    """
    weighed = ~np.isnan(witness)
    share = np.full(len(witness), np.nan)
    share[weighed] = witness[weighed] / scale[weighed]
    return share / share[weighed].max() if weighed.any() else share


def rerank_by_weights(T: NDArray[np.float64], models: Sequence[str], sensitivity: CardinalSensitivity) -> Reranking:
    """Models by their mean, and by the weighted means of both witnesses.

    Args:
        T: ``(n_tasks, n_models)`` complete scores, with the sign they were read with.
        models: name of each column.
        sensitivity: of these scores.
    """

    def after(change: LargestChange) -> ChangedRanking:
        share = np.nan_to_num(preserved_shares(change.witness, sensitivity.scale))
        return ChangedRanking(change=change, score=share @ T / share.sum() if share.any() else T.mean(axis=0))

    return Reranking(
        models=tuple(models),
        rank=sensitivity.before,
        score=T.mean(axis=0),
        tau=after(sensitivity.tau),
        mrc=after(sensitivity.mrc),
    )


def rerank_with_additions(
    scores: ExactScores, models: Sequence[str], sensitivity: OrdinalSensitivity, rule: WinRateRule
) -> Reranking:
    """The leading models by their win rate among themselves, and with the models of both witnesses added.

    Args:
        scores: of all models.
        models: name of each column.
        sensitivity: of these scores.
        rule: of win rates.
    """

    def rates(added: NDArray[np.int64]) -> NDArray[np.float64]:
        field = np.concatenate([sensitivity.leading, added])
        return np.array([float(rate) for rate in win_rates(scores, field, rule=rule)[: len(sensitivity.leading)]])

    def after(change: LargestChange) -> ChangedRanking:
        return ChangedRanking(change=change, score=rates(sensitivity.addable[change.witness]))

    return Reranking(
        models=tuple(models[column] for column in sensitivity.leading.tolist()),
        rank=sensitivity.before,
        score=rates(sensitivity.addable[:0]),
        tau=after(sensitivity.tau),
        mrc=after(sensitivity.mrc),
    )
