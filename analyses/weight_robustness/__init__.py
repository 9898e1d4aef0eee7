"""Measure how far prompt weights can move the ranking.

Draws weights of the prompts at random, all weightings equally likely. Reports the spread of each model's weighted mean,
the probability that one model is ahead of another, and the probability of each rank. Means and pairs are exact; ranks
are simulated. Weights chosen for a purpose are a different question: see `suffrage leaderboard --weights`.

Source: Ailem et al. 2024, sections 3.3 and 5.2.3.
Definitions: docs/reference/statistics/weight-robustness.md.

Examples:
    suffrage analyze weight-robustness mmlu_pro
    suffrage analyze weight-robustness mmlu_pro --n-draws 10000 --method sampling
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from analyses.weight_robustness import figures, tables
from analyses.weight_robustness.method import weigh_at_random
from analyses.weight_robustness.summary import describe_verdict, list_model_warnings, summarize
from analyses.weight_robustness.validation import validate_weighting
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.weighted_scores import select_weighted
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import RankedModels, Report, analysis


@analysis(in_verdict={"n_draws": 5_000}, missing="common", policies=("common", "worst", "impute", "fail"))
def analyze(
    scores: PerformanceMatrix,
    weights: PromptWeights | None,
    *,
    n_draws: Annotated[int, "Number of random weightings for the distribution of ranks."] = 100_000,
    method: Annotated[
        Literal["exact", "sampling"],
        "exact: closed forms where they exist; sampling: draw everything, as in the paper.",
    ] = "exact",
    seed: Annotated[int, "Seed of all random draws."] = 0,
) -> Report:
    """Draw prompt weights at random and measure the effect on the ranking.

    Args:
        scores: at least one prompt and one model; prompts without a score from every model are left out, with a
        warning. weights: the centre of the random weights; see `weigh_at_random`. n_draws: random weightings. method:
        of intervals and pairwise probabilities; ranks are always sampled. seed: the same seed gives the same bytes,
        whatever the number of workers.

    Raises:
        SelectionError: no prompt or model remains, scores are infinite, or an option is out of range.
    """
    voters = select_weighted(scores, weights)
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
        verdict=partial(describe_verdict, finding),
    )
