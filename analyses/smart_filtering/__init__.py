"""Which prompts could this benchmark do without?

Prompts that all of the best models answer with confidence, prompts they answer without seeing the question, and
prompts that repeat each other are singled out; every prompt gets a decision, with all reasons that applied. Beside the
filter stands what it does to scores, ranks and agreement of the models, and how well what stays foretells the whole.

Source: Gupta et al. 2024 (SMART filtering).
Definitions: docs/reference/statistics/smart-filtering.md.
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
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.recording.finding import Report, analysis

__all__ = ["SmartFiltering", "analyze"]


@analysis
def analyze(
    scores: PerformanceMatrix,
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
    """Judge every prompt by every step, and put together what the filter does.

    Args:
        scores: right (1) and wrong (0) of all models; gaps stay gaps.
        prompts: their texts and options.
        filter_models: who filters, or who made whom.
        probabilities: of the gold answers in the same runs.
        answer_only: runs that did not see the question.
        answers: what the models answered, with their own probability of it.
        vectors: of the prompts.
        against: scores of the same models on another benchmark.
        options: of all steps; each step declares its own.
        draws: of the evidence.

    Raises:
        NotFoundError: a task or model that was named is not there.
        SelectionError: scores other than 0 and 1; no probabilities, no vectors, or not of all; too few models.
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
