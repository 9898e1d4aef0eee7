"""Rankings under random weights of the prompts.

Source: Ailem et al. 2024, sections 3.3 and 5.2.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.weighting.random_weights import CENTRAL, RandomWeights, weigh_randomly
from tracker.queries.ranking.weighted_scores import WeightedScores
from tracker.recording.finding import Finding, Metric, Undefined
from tracker.statistics.ranking import mean_ranks


@dataclass(frozen=True, kw_only=True)
class WeightRobustness(Finding):
    """Outcome under random weights; arrays are in the order of ``models``.

    Attributes:
        models: best mean first.
        n_prompts: weighed.
        n_effective: Kish's effective number of prompts.
        method: "exact" or "sampling".
        is_weighted: whether the random weights scatter around chosen ones.
        rank: ``(n_models,)`` by the mean; ties share the mean of their ranks.
        under: results under random weights.
    """

    models: tuple[str, ...]
    n_prompts: int
    n_effective: float
    method: str
    is_weighted: bool
    rank: NDArray[np.float64]
    under: RandomWeights

    @property
    def n_changes(self) -> int:
        """Draws in which no model is first that is first by the mean."""
        leading = np.unique(self.under.twins[self.rank == self.rank.min()])
        return self.under.n_draws - int(self.under.best_places[leading, 0].sum())

    @property
    def reversed(self) -> NDArray[np.float64]:
        """``(n_pairs,)`` probability that the model behind by the mean is ahead, for every pair that differs."""
        i, j = np.triu_indices(len(self.models), 1)
        differs = ~self.under.is_identical[i, j]
        return np.asarray(self.under.beats[j, i][differs])

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then the first place, pairs and scores."""
        u, n_draws = self.under, self.under.n_draws
        alone: Metric = Undefined("there is only one model")
        share = (self.n_changes + 1) / (n_draws + 2)
        metrics: dict[str, Metric] = {
            "n_prompts": float(self.n_prompts),
            "n_effective": self.n_effective,
            "n_models": float(len(self.models)),
            "n_draws": float(n_draws),
            "n_identical_pairs": float(np.triu(u.is_identical, 1).sum()),
            "n_constant_models": float((u.least == u.most).sum()),
        }
        if len(self.models) == 1:
            metrics |= dict.fromkeys(("leader_changes", "leader_changes.stderr", "runner_up.beats_leader"), alone)
        else:
            metrics |= {
                "leader_changes": self.n_changes / n_draws,
                "leader_changes.stderr": float(np.sqrt(share * (1 - share) / n_draws)),
                "runner_up.beats_leader": float(u.beats[1, 0]),
            }
        metrics |= dict(
            zip(("leader_changes.at_least", "leader_changes.at_most"), self.leader_change_bounds(), strict=True)
        )
        upsets, none = self.reversed, Undefined("no two models differ")
        metrics |= {
            "reversed.mean": float(upsets.mean()) if upsets.size else none,
            "reversed.n_open": float((upsets > CENTRAL[0]).sum()),
            "sd.largest": float(u.sd.max()),
            "interval.widest": float((u.high - u.low).max()),
            "range.widest": float((u.range_high - u.range_low).max()),
            "normal.largest_difference": float(np.abs(u.beats - u.p_normal).max()),
            "draws.largest_difference": u.draws_differ_by
            if self.method == "exact"
            else Undefined("all numbers come from the draws"),
        }
        return metrics

    def leader_change_bounds(self) -> tuple[Metric, Metric]:
        """Bounds of the probability that the leader changes, from exact probabilities of pairs."""
        if self.method != "exact":
            drawn = Undefined("chances are drawn, not exact")
            return drawn, drawn
        behind = np.unique(self.under.twins[self.rank > self.rank.min()])
        if (~self.under.is_identical[0] & (self.rank == self.rank.min())).any():
            several = Undefined("models with different scores share the first place")
            return several, several
        if not behind.size:
            nobody = Undefined("no model differs from the leader")
            return nobody, nobody
        chances = self.under.beats[behind, 0]
        return float(chances.max()), float(min(1.0, chances.sum()))

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """All results, by name; rows and columns in the order of the table ``models``."""
        names = ("mean", "sd", "low", "high", "range_low", "range_high", "beats", "better", "places", "expected_rank")
        density = {"density.at": self.under.at, "density.height": self.under.height}
        return {name: getattr(self.under, name) for name in (*names, "rank_low", "rank_high")} | density


def weigh_at_random(voters: WeightedScores, *, n_draws: int, method: str, seed: int) -> WeightRobustness:
    """Weigh the prompts at random.

    Chosen weights w become the Dirichlet parameters w · n_effective / Σw: the random weights scatter around them as
    widely as for that many prompts of equal weight. Without chosen weights all parameters are exactly 1.

    Args:
        voters: without gaps.
        n_draws: at least 1.
        method: "exact" or "sampling".
        seed: of all draws.
    """
    scores = voters.scores
    alpha = voters.weights * (voters.n_effective / len(voters.weights))
    rank = mean_ranks(scores.Q.T @ (alpha / alpha.sum()), higher_is_better=scores.higher_is_better)
    order = np.argsort(rank, kind="stable")
    under = weigh_randomly(
        scores.Q[:, order],
        alpha,
        higher_is_better=scores.higher_is_better,
        n_draws=n_draws,
        exact=method == "exact",
        seed=seed,
    )
    return WeightRobustness(
        models=tuple(scores.models[column] for column in order),
        n_prompts=scores.n_prompts,
        n_effective=voters.n_effective,
        method=method,
        is_weighted=voters.is_weighted,
        rank=rank[order],
        under=under,
    )
