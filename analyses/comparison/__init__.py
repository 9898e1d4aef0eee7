"""Test whether one model is better than another.

Compares two models on the prompts that both have scores for. Reports the difference with clustered errors, exact tests,
the smallest detectable difference, and the prompts where one model is better. If the metric has bounds, the test
keeps its level whatever the missing scores are. `pairing_gain` is the number of times as many prompts that different
prompts for the two models would need. The prompts are assumed to be a sample.

Source: Miller 2024, "Adding Error Bars to Evals".
Definitions: docs/reference/statistics/comparison.md.

Examples:
    suffrage analyze comparison mmlu_pro --model-a llama-3.1-70b --model-b qwen2.5-72b
    suffrage analyze comparison mmlu_pro --models llama-3.1-70b,qwen2.5-72b --margin 0.01
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from analyses.comparison import figures, tables
from analyses.comparison.method import ModelComparison, compare_pair, order_flips
from analyses.comparison.shared_scores import SharedScores, select_pair, select_shared
from analyses.comparison.summary import collect_warnings, summarize
from analyses.comparison.validation import find_problems, find_unshared
from analyses.presentation.validation import validate
from tracker.errors import NotFoundError
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.interval_warnings import list_clustering_warnings
from tracker.queries.ranking.special_treatments import ScoresOfPairs
from tracker.queries.score_validation import check_finite
from tracker.recording.finding import PromptValues, Report, analysis


@analysis(
    tests={"difference": ("pvalue",), "equivalence": ("equivalence.pvalue",), "tasks": ("tasks.holm",)},
    n_tests={"tasks": "tasks.n_tests"},
    missing="bounds",
    min_coverage=0.0,
)
def analyze(
    scores: ScoresOfPairs,
    prompts: PromptTexts,
    clusters: Clusters,
    *,
    model_a: Annotated[str, "Name of the first model; differences are positive if it is better."] = "",
    model_b: Annotated[str, "Name of the second model. Omit both if --models names two."] = "",
    n_resamples: Annotated[int, "Number of bootstrap resamples, and of sign flips if not all are enumerated."] = 9999,
    level: Annotated[float, "Confidence level of the intervals."] = 0.95,
    margin: Annotated[float | None, "Difference that does not matter: tests whether the models are equivalent."] = None,
    seed: Annotated[int, "Seed of all random draws."] = 0,
) -> Report:
    """Compare two models on the prompts that both have scores for.

    Args:
        scores: at least two models.
        prompts: their texts.
        clusters: which prompts depend on each other.
        model_a, model_b: names of columns.
        n_resamples: of the bootstrap.
        level: of the intervals.
        margin: largest difference that does not matter, in the unit of the scores; None for no test of equivalence.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        NotFoundError: no model has this name.
        SelectionError: the models are not named, share no prompt, or an option is out of range.
    """
    for name in (model_a, model_b):
        if name and name not in scores.models:
            raise NotFoundError(f"model with scores on {scores.benchmark or 'this benchmark'}", name, scores.models)
    options = {"n_resamples": n_resamples, "seed": seed}
    validate(find_problems(scores.models, (model_a, model_b), level=level, margin=margin, **options))
    shared = select_shared(scores, clusters, select_pair(scores.models, model_a, model_b))
    pair = scores.without_imputed().Q[:, [scores.models.index(name) for name in shared.models]]
    validate({**find_unshared(shared.models, len(shared.a), shared.n_only), **check_finite(pair)})
    finding = compare_pair(shared, n_resamples=n_resamples, level=level, seed=seed, margin=margin)
    advantage = finding.comparison.advantage
    return Report(
        finding,
        summary=summarize(finding),
        compared=shared.models,
        leaders=finding.leaders,
        prompt_values={"advantage_of_a": PromptValues(prompt_ids=shared.scores.prompt_ids, values=advantage)},
        task_values={"difference": {task.task: task.difference for task in finding.tasks}},
        tables={
            "tasks": tables.list_by_task(finding.tasks),
            "flips": tables.list_flips(shared, prompts, advantage, order_flips(advantage, seed)),
        },
        figures={
            "differences": partial(figures.draw_differences, finding, shared.scores.metric),
            "flips": partial(figures.draw_flips, finding),
        },
        warnings=_list_warnings(scores, shared, finding),
    )


def _list_warnings(scores: PerformanceMatrix, shared: SharedScores, finding: ModelComparison) -> list[str]:
    """Return what limits a comparison.

    Args:
        scores: of all models.
        shared: of the two.
        finding: the comparison.
    """
    return [
        *list_clustering_warnings(shared.groups, shared.cluster),
        *(scores.missing_warnings if scores.missing == "worst" else ()),
        *collect_warnings(finding, higher_is_better=shared.scores.higher_is_better, metric=shared.scores.metric),
    ]
