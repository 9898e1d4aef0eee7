"""Split the variance of scores between prompts and trials; estimate pass@k.

Shows how far several trials of each prompt lower the standard error of a mean, beside what as many new prompts would
do. For scores that pass (1) or fail, estimates pass@k (at least one of k trials passes) and pass^k (all k pass). Other
analyses average the trials. The prompts are assumed to be a sample of those that matter.

Source: Miller 2024, section 3.1; Chen et al. 2021; Yao et al. 2024.
Definitions: docs/reference/statistics/trials.md.

Examples:
    suffrage analyze trials mmlu_pro
    suffrage analyze trials mmlu_pro --k 1,5,10 --cluster none
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from analyses.presentation.validation import validate
from analyses.trials import figures, tables
from analyses.trials.method import analyze_trials
from analyses.trials.summary import collect_warnings, summarize
from analyses.trials.validation import find_problems
from tracker.queries.clusters import Clusters
from tracker.queries.comparing.trial_scores import TrialScores
from tracker.queries.ranking.interval_warnings import list_clustering_warnings
from tracker.queries.score_validation import check_finite
from tracker.recording.finding import Report, analysis


@analysis(missing="bounds")
def analyze(
    trials: TrialScores,
    clusters: Clusters,
    *,
    k: Annotated[tuple[int, ...], "Numbers of trials of pass@k. By default powers of two up to the most trials."] = (),
    tolerance: Annotated[
        float, "Share by which a standard error may exceed that of infinitely many trials where trials suffice."
    ] = 0.05,
    level: Annotated[float, "Confidence level of the intervals."] = 0.95,
) -> Report:
    """Split the variance of each model's scores, and estimate pass@k and pass^k.

    Args:
        trials: scores with their trials; with one trial of each prompt, the parts are undefined.
        clusters: which prompts depend on each other.
        k: numbers of trials of pass@k.
        tolerance: of the number of trials that suffices.
        level: of the intervals.

    Raises:
        SelectionError: scores are infinite, or an option is out of range.
    """
    scores = trials.scores
    validate(
        {
            **find_problems(k=k, tolerance=tolerance, level=level),
            **check_finite(scores.Q),
        }
    )
    finding = analyze_trials(trials, clusters, k=k, tolerance=tolerance, level=level)
    drawings = {"stderr": partial(figures.draw_errors, finding)} if finding.repeated else {}
    if finding.rates:
        drawings["pass"] = partial(figures.draw_rates, finding)
    return Report(
        finding,
        summary=summarize(finding),
        rankings=tables.list_rankings(finding),
        tables={
            "models": tables.list_by_model(finding),
            "stderr": tables.list_errors(finding),
            "pass": tables.list_rates(finding),
        },
        figures=drawings,
        warnings=[
            *list_clustering_warnings(clusters.group(scores.prompt_ids), clusters.field),
            *collect_warnings(finding, trials),
        ],
        leaders=scores.leaders,
    )
