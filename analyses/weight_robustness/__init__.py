"""How far can the ranking move under any weights of the prompts?

A benchmark's mean counts every prompt the same. Here the prompts are weighed at random, every weighting being equally
likely: how each model's weighted mean spreads, how often one model is ahead of another, who takes which place.
All of it but the places is computed exactly.

Source: Ailem et al. 2024, sections 3.3 and 5.2.3.
Definitions: docs/reference/statistics/weight-robustness.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from analyses.weight_robustness import figures, tables
from analyses.weight_robustness.method import weigh_at_random
from analyses.weight_robustness.summary import list_model_warnings, summarize
from analyses.weight_robustness.validation import validate_weighting
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.weighted_scores import select_complete_weighted
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import RankedModels, Report, analysis


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
    voters = select_complete_weighted(scores, weights)
    validate_weighting(voters.scores.Q, n_draws=n_draws, method=method, seed=seed)
    finding = weigh_at_random(voters, n_draws=n_draws, method=method, seed=seed)
    u, higher = finding.under, scores.higher_is_better
    ranked = RankedModels(
        models=finding.models,
        score=u.mean,
        rank=finding.rank,
        low=u.low,
        high=u.high,
        rank_low=u.rank_low,
        rank_high=u.rank_high,
    )
    drawings = {
        "beats": lambda: figures.draw_beats(finding.models, u),
        "weighted_performance": lambda: figures.draw_weighted_performance(
            finding.models, u, voters.scores.metric, higher
        ),
    }
    if len(finding.models) > 1:
        drawings["places"] = lambda: figures.draw_places(finding.models, u)
    else:
        del drawings["beats"]
    return Report(
        finding,
        summary=summarize(finding),
        rankings={"random_weights": ranked},
        tables={
            "models": tables.list_by_model(finding.models, finding.rank, u),
            "pairs": tables.list_by_pair(finding.models, u),
        },
        figures=drawings,
        warnings=[*voters.warnings, *list_model_warnings(finding)],
    )
