"""Measure how many prompts suffice for a stable ranking.

Adds prompts one at a time, the most informative first: the prompt farthest from those already selected, by the models'
scores or by text embeddings. With `--criterion information` it is the prompt that most lowers the variance of the
models' abilities; their means are then predicted from the first prompts too. Item response takes 1/k as the chance of a
prompt with k options. Reports the number of prompts after which the ranking stays close to the final one. Compare it
with random orders and with permuted scores, which show the effect of the method alone. The order is selected on the
same scores, so it is not a recommendation for new models.

Source: Ailem et al. 2024, sections 3.3 and 5.2.2.
Definitions: docs/reference/statistics/benchmark-growth.md.

Examples:
    suffrage analyze benchmark-growth mmlu_pro
    suffrage analyze benchmark-growth mmlu_pro --criterion min --n-orders 50
    suffrage analyze benchmark-growth mmlu_pro --criterion information --n-permutations 5
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.benchmark_growth import figures, tables
from analyses.benchmark_growth.method import BenchmarkGrowth, measure_growth
from analyses.benchmark_growth.summary import list_order_warnings, summarize
from analyses.benchmark_growth.validation import ItemResponse
from tracker.errors import SelectionError
from tracker.queries.embeddings import Embeddings
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.weighted_scores import WeightedScores, select_weighted
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import PromptValues, RankedModels, Report, analysis
from tracker.statistics.ranking import mean_ranks


@analysis(missing="common", policies=("common", "worst", "impute", "fail"))
def analyze(
    scores: PerformanceMatrix,
    weights: PromptWeights | None,
    embeddings: Embeddings | None,
    prompts: PromptTexts,
    *,
    criterion: Annotated[
        Literal["mean", "min", "information"],
        (
            "What is largest for the next prompt. mean: average distance to the selected prompts; min: distance to the "
            "nearest one; information: information about abilities (item response)."
        ),
    ] = "mean",
    start: Annotated[
        int | None, "ID of the first prompt. By default it is drawn with the seed, or is the most informative one."
    ] = None,
    n_orders: Annotated[int, "Number of random orders."] = 100,
    n_permutations: Annotated[int, "Number of permuted tables, as a control."] = 20,
    within: Annotated[float, ("Kendall distance from the final ranking, in [0, 1), that counts as close.")] = 0.05,
    seed: Annotated[int, "Seed of all random draws."] = 0,
) -> Report:
    """Follow means and ranking as the benchmark grows.

    Args:
        scores: at least 2 prompts; prompts without a score from every model are left out, with a warning.
        weights: weight of each prompt in the running means and rankings; the order does not depend on them.
        embeddings: vectors that determine the order in place of the scores.
        prompts: the number of options of each, for the floor of item response.
        criterion: what is largest for the next prompt.
        start: primary key of the first prompt.
        n_orders: random orders, for the bands.
        n_permutations: permuted tables, for the control; not used with ``embeddings``.
        within: Kendall distance, in [0, 1).
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: no prompt is complete, the first prompt does not exist, some prompts have no vector,
            or see `measure_growth`.
    """
    voters = select_weighted(scores, weights)
    by_key = np.argsort(voters.scores.prompt_ids)
    Q, prompt_ids = voters.scores.Q[by_key], voters.scores.prompt_ids[by_key]
    finding = measure_growth(
        Q,
        weights=voters.weights[by_key],
        vectors=None if embeddings is None else embeddings.align(prompt_ids).astype(np.float64),
        item_response=ItemResponse(
            floors=prompts.guessing_floors(prompt_ids), higher_is_better=voters.scores.higher_is_better
        ),
        criterion=criterion,
        start=None if start is None else _find_row(start, prompt_ids),
        n_orders=n_orders,
        n_permutations=n_permutations,
        within=within,
        seed=seed,
    )
    return _build_report(finding, voters, prompt_ids, None if embeddings is None else embeddings.encoder)


def _build_report(
    finding: BenchmarkGrowth, voters: WeightedScores, prompt_ids: NDArray[np.int64], encoder: str | None
) -> Report:
    ranks = mean_ranks(finding.final, higher_is_better=voters.scores.higher_is_better)
    return Report(
        finding,
        summary=summarize(finding),
        prompt_values=_prompt_values(finding, prompt_ids),
        rankings={"final": RankedModels(models=voters.scores.models, score=finding.final, rank=ranks)},
        tables=tables.list_tables(finding, voters.scores.models),
        figures=_figures(finding, voters.scores, ranks),
        warnings=[*voters.warnings, *list_order_warnings(finding, encoder)],
    )


def _prompt_values(finding: BenchmarkGrowth, prompt_ids: NDArray[np.int64]) -> dict[str, PromptValues]:
    position, distance = np.empty(len(prompt_ids)), np.empty(len(prompt_ids))
    position[finding.order.rows] = np.arange(1, len(prompt_ids) + 1)
    distance[finding.order.rows] = finding.order.distances
    added = "distance_when_added" if finding.item_response is None else "variance_reduction_when_added"
    values = {"position": position, added: distance}
    return {name: PromptValues(prompt_ids=prompt_ids, values=value) for name, value in values.items()}


def _find_row(start: int, prompt_ids: NDArray[np.int64]) -> int:
    at = int(np.searchsorted(prompt_ids, start))
    if at == len(prompt_ids) or prompt_ids[at] != start:
        raise SelectionError(
            f"Prompt {start} is not among the {len(prompt_ids):,} selected prompts with a score from every model. "
            f"Use another key, such as `--start {prompt_ids[0]}`, or leave out --start."
        )
    return at


def _figures(
    finding: BenchmarkGrowth, scores: PerformanceMatrix, ranks: NDArray[np.float64]
) -> Mapping[str, Callable[[], Any]]:
    curves = figures.Curves(
        sizes=finding.sizes,
        final=finding.final,
        models=scores.models,
        ranks=ranks,
        score=f"mean {scores.metric or 'score'}",
    )
    distances = figures.DistanceCurves(
        informative=finding.informative.distances,
        sizes=finding.sizes,
        random=finding.random.band(finding.random.distances),
        permuted=finding.permuted.band(finding.permuted.distances) if finding.permuted else None,
        within=finding.within,
        stable_size=finding.size_within,
    )
    permuted = finding.permuted.band(finding.permuted.means) if finding.permuted else None
    drawn = {
        "informative": lambda: figures.draw_informative(curves, finding.informative.means, permuted),
        "random": lambda: figures.draw_random(curves, finding.random.band(finding.random.means)),
    }
    return drawn if finding.n_models == 1 else drawn | {"distance": lambda: figures.draw_distance(distances)}
