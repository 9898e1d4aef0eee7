"""Compare a filter with random subsets and item-response filtering.

Takes the filter that `smart-filtering` recorded. Random subsets have the same size as the filtered benchmark.
Item-response filtering removes prompts with low difficulty or low discrimination in a logistic model with the floor
1/k of a prompt with k options.
For each method, reports how well the ranking is preserved, the correlation with another benchmark, and the agreement of
the models. A filter is useful if it does better than random subsets.

Source: Gupta et al. 2024, section 4.4, tables 4 and 5.
Definitions: docs/reference/statistics/filter-baselines.md.

Examples:
    suffrage analyze filter-baselines gpqa --metric accuracy --n-subsets 100
    suffrage analyze filter-baselines gpqa --metric accuracy --filter 2 --combine both
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
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.special_treatments import WholeScores
from tracker.recording.finding import Report, analysis

__all__ = ["FilterBaselines", "analyze"]


@analysis(missing="common", policies=("common", "worst", "impute", "fail"))
def analyze(
    scores: WholeScores,
    recorded: PromptFilter,
    answers: AnswerMatrix,
    against: BenchmarkScores | None,
    prompts: PromptTexts,
    *,
    n_subsets: Annotated[int, "Number of random subsets that each method is compared with."] = 1000,
    percentile: Annotated[
        float,
        "Percentile of difficulty and of discrimination at or below which item-response filtering removes prompts.",
    ] = 25.0,
    combine: Annotated[
        Literal["either", "both"],
        "Prompts that item-response filtering removes. either: low in one of the two; both: low in both.",
    ] = "either",
    seed: Annotated[int, "Seed of all random draws."] = 0,
) -> Report:
    """Compare a filter with random subsets of its size and with item-response filtering.

    Args:
        scores: of all models; those with missing scores are used for the fit alone.
        recorded: the filter; only prompts that it decided on are used.
        answers: answers of the models; without them, agreement is computed from right and wrong.
        against: scores of the same models on another benchmark.
        prompts: the number of options of each, for the floor of item response.
        n_subsets: random subsets of the size of each method's selection.
        percentile, combine: of item-response filtering.
        seed: the same seed gives the same numbers, whatever the number of workers.

    Raises:
        SelectionError: no prompt of the filter has scores, no model has a score for each of them, an option is invalid,
            or too few models have scores on the other benchmark.
    """
    validate(check_options(scores, n_subsets=n_subsets, percentile=percentile, seed=seed))
    _, is_decided = recorded.align(scores.prompt_ids)
    validate(check_rows(recorded, is_decided))
    decided_scores = scores.rows(is_decided)
    options = BaselineOptions(n_subsets=n_subsets, percentile=percentile, combine=combine, seed=seed)
    finding = compare_methods(
        decided_scores, recorded, answers, against, prompts.guessing_floors(decided_scores.prompt_ids), options
    )
    return Report(
        finding,
        summary=summarize(finding),
        prompt_values=list_prompt_values(finding, decided_scores.prompt_ids),
        rankings=list_rankings(finding, decided_scores.models),
        ranked_by="by item-response ability",
        tables=list_tables(finding, higher_is_better=scores.higher_is_better),
        figures=list_figures(finding),
        warnings=list_warnings(finding, recorded, decided_scores.models, n_undecided=int((~is_decided).sum())),
    )
