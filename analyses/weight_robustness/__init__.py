"""How far can the ranking move under any weights of the prompts?

A benchmark's mean counts every prompt the same. Here the prompts are weighed at random, every weighting being equally
likely: how each model's weighted mean spreads, how often one model is ahead of another, who takes which place.
All of it but the places is computed exactly.

Source: Ailem et al. 2024, sections 3.3 and 5.2.3; every number is defined in docs/statistics/weight-robustness.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.weighting.random_weights import CENTRAL, RandomWeights, random_weights
from analyses.presentation.validation import validate
from analyses.weight_robustness import figures, tables
from analyses.weight_robustness import summary as wording
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.weighted_scores import WeightedScores, complete_weighted_scores
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Finding, Metric, RankedModels, Report, Undefined, analysis
from tracker.statistics.ranking import mean_ranks


@dataclass(frozen=True, kw_only=True)
class WeightRobustness(Finding):
    """Outcome under random weights; arrays are in the order of ``models``.

    Attributes:
        models: best mean first.
        n_prompts: weighed.
        n_effective: of them, as Kish counts them.
        method: "exact" or "sampling".
        is_weighted: whether the random weights scatter around chosen ones.
        rank: ``(n_models,)`` by the mean; ties share the mean of their ranks.
        under: everything found under random weights.
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
        """Draws in which the first place is held by none of those that have it by the mean."""
        leading = np.unique(self.under.twins[self.rank == self.rank.min()])
        return self.under.n_draws - int(self.under.best_places[leading, 0].sum())

    @property
    def reversed(self) -> NDArray[np.float64]:
        """``(n_pairs,)`` chance that the one behind by the mean is ahead, for every two models that differ."""
        i, j = np.triu_indices(len(self.models), 1)
        contested = ~self.under.is_identical[i, j]
        return np.asarray(self.under.beats[j, i][contested])

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then what may happen to the first place, to pairs and to scores."""
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
        metrics |= dict(zip(("leader_changes.at_least", "leader_changes.at_most"), self._bounds(), strict=True))
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
            else Undefined("everything is from the draws"),
        }
        return metrics

    def _bounds(self) -> tuple[Metric, Metric]:
        """What the exact chances of pairs say of the chance that the leader changes."""
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
        """Everything found, by name; rows and columns in the order of the table ``models``."""
        named = ("mean", "sd", "low", "high", "range_low", "range_high", "beats", "better", "places", "expected_rank")
        others = {"density.at": self.under.at, "density.height": self.under.height}
        return {name: getattr(self.under, name) for name in (*named, "rank_low", "rank_high")} | others

    def summary(self) -> str:
        """What was found, in plain words."""
        u = self.under
        words = [self._leader(), self._pairs()] if len(self.models) > 1 else []
        widest, ranging = int(np.argmax(u.high - u.low)), int(np.argmax(u.range_high - u.range_low))
        tail, known = "n", "the weights know nothing of the prompts"
        if self.is_weighted:
            tail = "the effective number of prompts"
            known = "the weights scatter around the chosen ones and know nothing else of the prompts"
        words += [
            f"Weighted means spread most for {self.models[widest]}: {u.mean[widest]:.4f}, 95 % interval "
            f"{u.low[widest]:.4f} to {u.high[widest]:.4f}. From the quantile 1/(B + 1) to B/(B + 1), where about the "
            f"smallest and the largest of B = {u.n_draws:,} draws lie, {self.models[ranging]} ranges over "
            f"{u.range_high[ranging] - u.range_low[ranging]:.4f}; more draws would make that wider.",
            f"This is the Bayesian bootstrap: {known}, and the standard deviation of a weighted mean is that of the "
            f"scores over √({tail} + 1), for accuracies √(p(1 − p)/({tail} + 1)), here with {self.n_effective:,.0f}. "
            "Intervals are functions of that number and of the scores' spread, ranges of B too, and neither of how "
            "well the benchmark is built. Nothing here is a test.",
        ]
        return " ".join(words)

    def _leader(self) -> str:
        u, error = self.under, self.metrics["leader_changes.stderr"]
        tied = int((self.rank == self.rank.min()).sum()) - 1
        leading = f"{self.models[0]} and {tied} tied with it hold" if tied else f"{self.models[0]} holds"
        held = f"all but {self.n_changes:,} of {u.n_draws:,}" if self.n_changes else f"all {u.n_draws:,}"
        said = (
            f"With {self.n_prompts:,} prompts weighed at random{' around the chosen weights' * self.is_weighted}, "
            f"{leading} the first place in {held} draws: another model leads with chance "
            f"{self.n_changes / u.n_draws:.3g} (± {error:.1g})"
        )
        least, most = self._bounds()
        if not isinstance(least, Undefined) and not isinstance(most, Undefined):
            about = f"{least:.3g}" if f"{least:.3g}" == f"{most:.3g}" else f"between {least:.3g} and {most:.3g}"
            said += f", by the exact chances {about}"
        if u.is_identical[1, 0]:
            return f"{said}. {self.models[1]} has the same scores as {self.models[0]}: the two are identical."
        return f"{said}. {self.models[1]} is ahead of {self.models[0]} with chance {u.beats[1, 0]:.3g}."

    def _pairs(self) -> str:
        upsets = self.reversed
        if not upsets.size:
            return "All models have the same scores (identical), so no order can change."
        if upsets.size == 1:
            return f"The two are in the opposite order under a share of {upsets[0]:.3g} of the weightings."
        return (
            f"Of {upsets.size:,} pairs of models that differ, {int((upsets > CENTRAL[0]).sum()):,} are in the opposite "
            f"order under more than {CENTRAL[0]:.1%} of the weightings; the average pair under {upsets.mean():.2%}."
        )


def weigh_at_random(voters: WeightedScores, *, n_draws: int, method: str, seed: int) -> WeightRobustness:
    """Weigh the prompts of an electorate at random.

    Chosen weights w become the Dirichlet parameters w · n_effective / Σw: the random weights scatter around them as
    widely as if that many prompts had been weighed alike. Without chosen weights all parameters are exactly 1.

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
    under = random_weights(
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


@analysis
def analyze(
    scores: PerformanceMatrix,
    weights: PromptWeights | None,
    *,
    n_draws: Annotated[int, "random weightings from which places are counted"] = 100_000,
    method: Annotated[
        Literal["exact", "sampling"], "compute what has a closed form, or draw everything as the paper does"
    ] = "exact",
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Weigh the prompts at random and see what the ranking does.

    Args:
        scores: at least one prompt and one model; prompts that some model lacks are left out, with a note.
        weights: where chosen, what the random weights scatter around; see `weigh_at_random`.
        n_draws: random weightings.
        method: how intervals and chances of pairs are found; places are always drawn.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: nothing is left to weigh, scores are infinite, or an option is out of range.
    """
    voters = complete_weighted_scores(scores, weights)
    validate(wording.problems(voters.scores.Q, n_draws=n_draws, method=method, seed=seed))
    found = weigh_at_random(voters, n_draws=n_draws, method=method, seed=seed)
    u, higher = found.under, scores.higher_is_better
    ranked = RankedModels(
        models=found.models,
        score=u.mean,
        rank=found.rank,
        low=u.low,
        high=u.high,
        rank_low=u.rank_low,
        rank_high=u.rank_high,
    )
    drawings = {
        "beats": lambda: figures.beats(found.models, u),
        "weighted_performance": lambda: figures.weighted_performance(found.models, u, voters.scores.metric, higher),
    }
    if len(found.models) > 1:
        drawings["places"] = lambda: figures.places(found.models, u)
    else:
        del drawings["beats"]
    return Report(
        found,
        rankings={"random_weights": ranked},
        tables={"models": tables.by_model(found.models, found.rank, u), "pairs": tables.by_pair(found.models, u)},
        figures=drawings,
        warnings=[*voters.warnings, *wording.warnings(found.models, u)],
    )
