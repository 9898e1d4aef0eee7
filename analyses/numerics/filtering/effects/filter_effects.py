"""What leaving prompts out does: to scores and ranks, to agreement, to correlations, and to models never looked at.

Source: Gupta et al. 2024, section 4, tables 2, 3 and 10 to 12, figure 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.agreement import (
    ModelAgreement,
    RandomAgreement,
    measure_agreement,
    measure_random_agreement,
)
from analyses.numerics.filtering.effects.correlation_change import CorrelationChange, compare_correlations
from analyses.numerics.filtering.effects.ranking_change import RankingChange, compare_rankings
from analyses.numerics.filtering.effects.spread import summarize_spread
from analyses.numerics.filtering.effects.subset_error import SubsetError, measure_subset_error

Numbers = Mapping[str, tuple[float, str]]
"""By name; NaN goes with the reason why there is no number."""


@dataclass(frozen=True, kw_only=True)
class EffectDraws:
    """Random draws behind the effects of a filter, each number with its help.

    Attributes:
        n_subsets: random subsets of the prompts.
        n_splits: random halves of the models.
        n_draws: draws of the models, with replacement.
        seed: of all of them; the same seed gives the same numbers, whatever the number of workers.
    """

    n_subsets: Annotated[int, "Number of random subsets to compare the agreement of the models with."] = 200
    n_splits: Annotated[int, "Number of random halves of the models for the error of the subset."] = 100
    n_draws: Annotated[int, "Number of draws of models for the change of a correlation."] = 10_000
    seed: Annotated[int, "Seed of all random draws."] = 0


@dataclass(frozen=True, kw_only=True)
class FilterEffects:
    """A filter's effects on models with a score for every prompt.

    Attributes:
        ranking: scores and ranks before and after.
        before, after: agreement of the models' answers.
        random: that in random subsets as large as what stays.
        changes: of the correlation with other scores, by its name; empty where there are none.
        error: of foretelling the full score of models that had no part in filtering.
    """

    ranking: RankingChange
    before: ModelAgreement
    after: ModelAgreement
    random: RandomAgreement
    changes: Mapping[str, CorrelationChange]
    error: SubsetError

    @property
    def numbers(self) -> Numbers:
        """All of them in a fixed order."""
        tied = "fewer than two models, or one of the rankings ties them all"
        few = (
            f"models that are ranked and did not filter: {self.ranking.n_without_filter_models}"
            if self.ranking.n_without_filter_models < 2
            else tied
        )
        rankings = {
            "tau": (self.ranking.tau, tied),
            "tau_without_filter_models": (self.ranking.tau_without_filter_models, few),
        }
        return rankings | self._agreement() | self._correlations() | self._error()

    def _agreement(self) -> dict[str, tuple[float, str]]:
        numbers: dict[str, tuple[float, str]] = {}
        for name in ("share", "kappa"):
            drawn = summarize_spread(getattr(self.random, name))
            values = {
                "before": getattr(self.before, f"mean_{name}"),
                "after": getattr(self.after, f"mean_{name}"),
                "random_mean": drawn.mean,
                "random_low": drawn.low,
                "random_high": drawn.high,
            }
            numbers |= {f"agreement.{name}.{when}": (value, "no two models have one") for when, value in values.items()}
        return numbers

    def _correlations(self) -> dict[str, tuple[float, str]]:
        constant = "the scores of one of them are constant"
        return {
            f"against.{name}.{attribute}": (float(getattr(change, attribute)), constant)
            for name, change in self.changes.items()
            for attribute in ("n_models", "before", "after", "change", "low", "high", "share_not_above")
        }

    def _error(self) -> dict[str, tuple[float, str]]:
        reason, sizes = (
            self.error.reason or "it is not defined in any split",
            summarize_spread(np.where(self.error.n_kept > 0, self.error.n_kept, np.nan)),
        )
        numbers = {
            f"subset_error.n_kept.{statistic}": (getattr(sizes, statistic), reason)
            for statistic in ("mean", "low", "high")
        }
        for subset in ("chosen", "random"):
            for measure in ("fitted", "raw", "tau"):
                over_splits = summarize_spread(getattr(getattr(self.error, subset), measure))
                for statistic in ("mean", "low", "high"):
                    numbers[f"subset_error.{subset}.{measure}.{statistic}"] = (getattr(over_splits, statistic), reason)
        return numbers

    @property
    def arrays(self) -> Mapping[str, NDArray[np.float64]]:
        """Random subsets and splits, one by one."""
        arrays = {"random.share": self.random.share, "random.kappa": self.random.kappa}
        for subset in ("chosen", "random"):
            errors = getattr(self.error, subset)
            arrays |= {
                f"subset_error.{subset}.{measure}": getattr(errors, measure) for measure in ("fitted", "raw", "tau")
            }
        return arrays


def measure_effects(
    Q: NDArray[np.float64],
    kept: NDArray[np.bool_],
    is_filter_model: NDArray[np.bool_],
    answers: NDArray[np.int32],
    external_scores: NDArray[np.float64] | None,
    choose: Callable[[NDArray[np.intp]], NDArray[np.bool_]],
    draws: EffectDraws,
) -> FilterEffects:
    """Everything that follows from a filter.

    Args:
        Q: ``(n_prompts, n_models)`` finite scores, larger is better.
        kept: ``(n_prompts,)`` whether the prompt stays.
        is_filter_model: ``(n_models,)`` whether the filter looked at the model's answers.
        answers: ``(n_prompts, n_models)`` numbers of answers, -1 = none.
        external_scores: ``(n_models,)`` other scores of the models, larger is better; NaN where there is none.
        choose: what would stay if only some models could be looked at, see `measure_subset_error`.
        draws: random subsets, splits of the models, draws of the models.
    """
    ranking = compare_rankings(Q, kept, is_filter_model)
    changes: Mapping[str, CorrelationChange] = {}
    if external_scores is not None:
        changes = compare_correlations(
            ranking.score_before, ranking.score_after, external_scores, n_draws=draws.n_draws, seed=draws.seed
        )
    return FilterEffects(
        ranking=ranking,
        before=measure_agreement(answers),
        after=measure_agreement(answers[kept]),
        random=measure_random_agreement(answers, int(kept.sum()), n_draws=draws.n_subsets, seed=draws.seed),
        changes=changes,
        error=measure_subset_error(Q, choose, n_splits=draws.n_splits, seed=draws.seed),
    )
