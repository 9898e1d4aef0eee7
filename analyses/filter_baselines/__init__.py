"""Does a filter do better than chance, or than a filter by difficulty?

A recorded filter is set beside random subsets of its size, and beside item-response filtering: leaving out the prompts
that are easiest, or that tell good models least from bad ones, by the two-parameter logistic model. For each, how well
the ranking of the models stays, how the scores go with those of another benchmark, and how far models agree.

Source: Gupta et al. 2024, section 4.4, tables 4 and 5.
Definitions: docs/reference/statistics/filter-baselines.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from analyses.filter_baselines.figures import list_figures
from analyses.filter_baselines.method import BaselineOptions, FilterBaselines, compare_methods
from analyses.filter_baselines.summary import list_warnings, summarize
from analyses.filter_baselines.tables import list_prompt_values, list_rankings, list_tables
from analyses.filter_baselines.validation import check_options, check_rows
from analyses.presentation.validation import validate
from tracker.queries.answers import AnswerMatrix
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Report, analysis

__all__ = ["FilterBaselines", "analyze"]


@analysis
def analyze(
    scores: PerformanceMatrix,
    recorded: PromptFilter,
    answers: AnswerMatrix,
    against: BenchmarkScores | None,
    *,
    n_subsets: Annotated[int, "random subsets that each method is compared with"] = 1000,
    percentile: Annotated[float, "of difficulty and of discrimination, at or below which item response removes"] = 25.0,
    combine: Annotated[
        Literal["either", "both"], "item response removes what is low in one of the two, or in both"
    ] = "either",
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Compare a filter with random subsets of its size and with item-response filtering.

    Args:
        scores: of all models; those with gaps take part in the fit alone.
        recorded: the filter; only prompts that it judged are looked at.
        answers: what the models answered; where some model's are not stored, agreement is that of right and wrong.
        against: scores of the same models on another benchmark.
        n_subsets: random subsets of the size of each method's selection.
        percentile, combine: of item-response filtering.
        seed: the same seed gives the same numbers, whatever the number of workers.

    Raises:
        SelectionError: no prompt that the filter judged; no model with a score for each of them; an option that means
            nothing; too few models that the other benchmark has too.
    """
    validate(check_options(scores, n_subsets=n_subsets, percentile=percentile, seed=seed))
    _, is_decided = recorded.align(scores.prompt_ids)
    validate(check_rows(recorded, is_decided))
    decided_scores = scores.rows(is_decided)
    options = BaselineOptions(n_subsets=n_subsets, percentile=percentile, combine=combine, seed=seed)
    finding = compare_methods(decided_scores, recorded, answers, against, options)
    return Report(
        finding,
        summary=summarize(finding),
        prompt_values=list_prompt_values(finding, decided_scores.prompt_ids),
        rankings=list_rankings(finding, decided_scores.models),
        tables=list_tables(finding, higher_is_better=scores.higher_is_better),
        figures=list_figures(finding),
        warnings=list_warnings(finding, recorded, decided_scores.models, n_undecided=int((~is_decided).sum())),
    )
