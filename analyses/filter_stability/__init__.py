"""Test whether other models or encoders give the same filter.

Takes the filter that `smart-filtering` recorded and repeats it with every subset of its filter models of the given
sizes. Repeats its similarity step with every stored encoder. Reports how much the removed prompts overlap. A large
variation means that the filter depends on the choice of models or encoder.

Source: Gupta et al. 2024, section 5, tables 6 to 8.
Definitions: docs/reference/statistics/filter-stability.md.

Examples:
    suffrage analyze filter-stability gpqa --metric accuracy
    suffrage analyze filter-stability gpqa --metric accuracy --filter 2 --sizes 5,6
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from analyses.filter_stability import figures, tables
from analyses.filter_stability.method import MAX_FEWER_MODELS, SIMILAR_SETTINGS, FilterStability, compare_filters
from analyses.filter_stability.summary import list_warnings, summarize
from analyses.filter_stability.validation import check_filter, check_rows, check_sizes
from analyses.presentation.validation import validate
from tracker.queries.embeddings import AllEmbeddings
from tracker.queries.filtering.evidence import combine_evidence
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.filtering.reference_probabilities import AnswerOnlyRuns, ReferenceProbabilities
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.special_treatments import WholeScores
from tracker.recording.finding import Report, analysis

__all__ = ["FilterStability", "analyze"]


@analysis(missing="common", policies=("common", "worst", "impute", "fail"))
def analyze(
    scores: WholeScores,
    prompts: PromptTexts,
    recorded: PromptFilter,
    probabilities: ReferenceProbabilities,
    answer_only: AnswerOnlyRuns,
    encoders: AllEmbeddings,
    *,
    sizes: Annotated[
        tuple[int, ...],
        "Numbers of filter models in a subset, separated by commas. By default one, two and three fewer than all.",
    ] = (),
) -> Report:
    """Repeat a filter with every subset of its models, and its similarity step with every encoder.

    Args:
        scores: of the filter models at least, under the metric that the filter was computed with.
        prompts: their texts.
        recorded: a filter of `smart-filtering`; its options are reused.
        probabilities: of the reference answers in the same runs.
        answer_only: runs without the question.
        encoders: vectors of the prompts, by each encoder.
        sizes: each from 1 to the number of filter models.

    Raises:
        SelectionError: the filter was computed without models, they have no scores here, a size is out of range, or
        there
            are too many subsets.
    """
    validate(check_filter(recorded, scores, (*SIMILAR_SETTINGS, "seed", "confidence", "retain")))
    n_models = len(recorded.models)
    sizes = sizes or tuple(range(max(1, n_models - MAX_FEWER_MODELS), n_models))
    validate(check_sizes(sizes, recorded.models))
    is_decided = np.isin(scores.prompt_ids, recorded.prompt_ids)
    validate(check_rows(recorded, is_decided))
    decided_scores = scores.rows(is_decided)
    finding = compare_filters(
        decided_scores,
        recorded,
        combine_evidence(decided_scores, probabilities, answer_only),
        encoders.by_encoder,
        [prompts.texts[row] or "" for row in prompts.find_rows(decided_scores.prompt_ids)],
        sizes=sizes,
    )
    return Report(
        finding,
        summary=summarize(finding),
        tables={
            "sizes": tables.list_by_size(finding),
            "subsets": tables.list_by_subset(finding),
            "encoders": tables.list_by_encoder(finding),
            "overlaps": tables.list_by_pair(finding.encoders, finding.overlaps),
        },
        figures={"subsets": lambda: figures.draw_subsets(finding.decisions, float(finding.recorded.mean()))},
        warnings=list_warnings(finding, recorded, metric=scores.metric, n_new=int((~is_decided).sum())),
    )
