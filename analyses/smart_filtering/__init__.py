"""Find prompts that a benchmark does not need.

Flags prompts that the best models all answer with confidence, that they answer without the question, or that duplicate
other prompts. Each prompt gets a decision and its reasons. Reports the effect of the filter on scores, ranks and
agreement of the models. Use the filter with --filter ID, and export it with `suffrage export filter ID`. The decisions
depend on the filter models: see filter-stability.

Source: Gupta et al. 2024 (SMART filtering).
Definitions: docs/reference/statistics/smart-filtering.md.

Examples:
    suffrage analyze smart-filtering gpqa --metric accuracy
    suffrage analyze smart-filtering gpqa --metric accuracy --without-similar --n-models 5
"""

from __future__ import annotations

import numpy as np

from analyses.numerics.filtering.effects.filter_effects import EffectDraws
from analyses.presentation.validation import check_minimum, validate
from analyses.smart_filtering.figures import list_figures
from analyses.smart_filtering.filter_data import FilterInputs, prepare_data
from analyses.smart_filtering.method import SmartFiltering, filter_prompts
from analyses.smart_filtering.step_registry import FilterOptions, check_options, needs_vectors
from analyses.smart_filtering.summary import list_warnings, summarize
from analyses.smart_filtering.tables import list_decisions, list_rankings, list_tables
from analyses.smart_filtering.validation import check_scores
from tracker.queries.answers import AnswerMatrix
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.embeddings import StoredEmbeddings
from tracker.queries.filtering.filter_models import FilterModels
from tracker.queries.filtering.reference_probabilities import AnswerOnlyRuns, ReferenceProbabilities
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.special_treatments import WholeScores
from tracker.recording.finding import Report, analysis

__all__ = ["SmartFiltering", "analyze"]


@analysis(missing="common", policies=("common", "worst", "impute", "fail"))
def analyze(
    scores: WholeScores,
    prompts: PromptTexts,
    filter_models: FilterModels,
    probabilities: ReferenceProbabilities,
    answer_only: AnswerOnlyRuns,
    answers: AnswerMatrix,
    vectors: StoredEmbeddings,
    against: BenchmarkScores | None,
    *,
    options: FilterOptions,
    draws: EffectDraws,
) -> Report:
    """Decide for every prompt by every filter step, and measure the effects of the filter.

    Args:
        scores: right (1) and wrong (0) of all models; missing scores are allowed.
        prompts: their texts and options.
        filter_models: the filter models, or the makers of the models.
        probabilities: of the reference answers in the same runs.
        answer_only: runs without the question.
        answers: answers of the models, with the probability of each.
        vectors: of the prompts.
        against: scores of the same models on another benchmark.
        options: of all steps; each step declares its options.
        draws: random draws for the effects.

    Raises:
        NotFoundError: a task or model does not exist.
        SelectionError: scores other than 0 and 1, missing probabilities or vectors, or too few models.
    """
    counts = {"n_subsets": draws.n_subsets, "n_splits": draws.n_splits, "n_draws": draws.n_draws}
    validate(check_scores(scores))
    validate({**check_options(options, scores), **check_minimum(1, **counts), **check_minimum(0, seed=draws.seed)})
    inputs = FilterInputs(
        prompts=prompts,
        filter_models=filter_models,
        probabilities=probabilities,
        answer_only=answer_only,
        answers=answers,
        vectors=vectors,
    )
    data = prepare_data(scores, inputs, options, needs_vectors=needs_vectors(options), seed=draws.seed)
    finding = filter_prompts(data, options, draws, against)
    is_filter_model = np.isin(data.complete_columns, data.columns)
    return Report(
        finding,
        summary=summarize(finding),
        filter=list_decisions(finding, scores.prompt_ids),
        rankings=list_rankings(finding, data),
        tables=list_tables(finding, data, is_filter_model),
        figures=list_figures(finding, scores.tasks, is_filter_model),
        warnings=list_warnings(finding, data),
    )
