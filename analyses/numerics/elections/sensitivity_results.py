"""Both sensitivities, each with the rankings before and after its largest changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.cardinal_sensitivity import cardinal_sensitivity
from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.gradient_descent import descend_cardinal_sensitivity, descend_ordinal_sensitivity
from analyses.numerics.elections.largest_change import CardinalSensitivity, OrdinalSensitivity
from analyses.numerics.elections.ordinal.ordinal_sensitivity import ordinal_sensitivity, select_leading_models
from analyses.numerics.elections.reranking import Reranking, rerank_by_weights, rerank_with_additions
from analyses.numerics.elections.win_rates import WinRateRule, win_rates


@dataclass(frozen=True, kw_only=True)
class CardinalResult:
    """Cardinal sensitivity with what it was found of.

    Attributes:
        tasks: name of each row: those with a score from every model.
        is_standardised: whether tasks were standardised before they were weighed.
        sensitivity: both largest changes.
        reranking: all models before and after them.
    """

    tasks: tuple[str, ...]
    is_standardised: bool
    sensitivity: CardinalSensitivity
    reranking: Reranking


@dataclass(frozen=True, kw_only=True)
class OrdinalResult:
    """Ordinal sensitivity with what it was found of.

    Attributes:
        addable: name of each model that may be added.
        rates: win rate of every model over the whole field.
        rule: of win rates.
        is_explicit: whether the leading models were named, rather than the first by win rate.
        sensitivity: both largest changes.
        reranking: the leading models before and after them.
    """

    addable: tuple[str, ...]
    rates: tuple[Fraction, ...]
    rule: WinRateRule
    is_explicit: bool
    sensitivity: OrdinalSensitivity
    reranking: Reranking


def compute_cardinal(
    scores: ExactScores,
    T: NDArray[np.float64],
    tasks: tuple[str, ...],
    models: Sequence[str],
    *,
    epsilon: Fraction,
    is_standardised: bool,
    time_limit: float,
    seed: int | None = None,
) -> CardinalResult:
    """What weights of tasks can do.

    Args:
        scores: complete.
        T: the same with the sign they were read with.
        tasks, models: names of rows and columns.
        epsilon: least weight.
        is_standardised: whether tasks are standardised before they are weighed.
        time_limit: seconds, where the search is exact.
        seed: of the paper's algorithm; None searches exactly.
    """
    if seed is None:
        sensitivity = cardinal_sensitivity(scores, epsilon=epsilon, standardised=is_standardised, time_limit=time_limit)
    else:
        sensitivity = descend_cardinal_sensitivity(scores, epsilon=epsilon, standardised=is_standardised, seed=seed)
    return CardinalResult(
        tasks=tasks,
        is_standardised=is_standardised,
        sensitivity=sensitivity,
        reranking=rerank_by_weights(T, models, sensitivity),
    )


def compute_ordinal(
    scores: ExactScores,
    models: Sequence[str],
    *,
    leading: float | Sequence[str],
    rule: WinRateRule,
    time_limit: float,
    seed: int | None = None,
) -> OrdinalResult:
    """What the presence of other models can do to the leading ones.

    Args:
        scores: complete or not.
        models: name of each column.
        leading: share or number of the models that lead, or their names; at least 2 and not all.
        rule: of win rates.
        time_limit: seconds, where the search is exact.
        seed: of the paper's algorithm; None searches exactly.
    """
    rates = win_rates(scores, rule=rule)
    is_explicit = not isinstance(leading, (int, float))
    if isinstance(leading, (int, float)):
        leading_columns = select_leading_models(scores, models, top=leading, rule=rule)
    else:
        leading_set = {models.index(name) for name in leading}
        leading_columns = np.array(
            sorted(leading_set, key=lambda model: (-rates[model], models[model])), dtype=np.int64
        )
    if seed is None:
        sensitivity = ordinal_sensitivity(scores, leading=leading_columns, rule=rule, time_limit=time_limit)
    else:
        sensitivity = descend_ordinal_sensitivity(scores, leading=leading_columns, rule=rule, seed=seed)
    return OrdinalResult(
        addable=tuple(models[model] for model in sensitivity.addable.tolist()),
        rates=tuple(rates),
        rule=rule,
        is_explicit=is_explicit,
        sensitivity=sensitivity,
        reranking=rerank_with_additions(scores, models, sensitivity, rule),
    )
