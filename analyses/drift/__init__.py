"""Test whether the scores of a model changed between runs.

Compares each run of a model with its previous run on the prompts that both have scores for. The test is McNemar's exact
one for scores of 0 and 1, else the paired t-test, with Holm's correction. If the metric has bounds, a change is
significant only if it is with missing scores at both bounds. The result holds for these prompts. With
`--task-effects random` it holds for other tasks like these, with errors clustered by task. A significant step means
that model, harness or settings changed; it does not show which of them. The table `changed` lists the prompts whose
scores differ.

Source: Miller 2024, "Adding Error Bars to Evals".
Definitions: docs/reference/statistics/drift.md.

Examples:
    suffrage analyze drift mmlu_pro
    suffrage analyze drift mmlu_pro --models llama-3.1-70b --level 0.99
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from analyses.drift import figures, tables
from analyses.drift.method import find_drift, find_series
from analyses.drift.summary import collect_warnings, summarize
from analyses.drift.validation import find_problems
from analyses.presentation.validation import validate
from tracker.queries.clusters import Clusters
from tracker.queries.comparing.run_means import estimate_run_means
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.history import RunHistory
from tracker.queries.ranking.interval_warnings import list_clustering_warnings
from tracker.queries.score_validation import check_finite
from tracker.recording.finding import Report, analysis
from tracker.statistics.grouping import group_rows


@analysis(
    tests={"changes": ("smallest.holm",)},
    n_tests={"changes": "n_tests"},
    missing="bounds",
    min_coverage=0.0,
)
def analyze(
    history: RunHistory,
    prompts: PromptTexts,
    clusters: Clusters,
    *,
    level: Annotated[float, "Confidence level of intervals and tests."] = 0.95,
) -> Report:
    """Compare each run of a model with its previous run.

    Args:
        history: the runs; at least one model must have two.
        prompts: their texts.
        clusters: which prompts depend on each other; strata do not matter, since the prompts are fixed.
        level: of intervals and tests.

    Raises:
        SelectionError: no model has two runs, scores are infinite, or the level is out of range.
    """
    scores = history.scores
    series = find_series(history)
    validate(
        {
            **find_problems(len(series), scores.benchmark, level),
            **check_finite(scores.Q),
        }
    )
    groups = group_rows(clusters.align(scores.prompt_ids))
    means = estimate_run_means(history, clusters)
    finding = find_drift(history, series, groups, cluster=clusters.field, level=level)
    return Report(
        finding,
        summary=summarize(finding),
        tables={
            "runs": tables.list_by_run(history, finding.steps, means),
            "changed": tables.list_changed_prompts(history, finding.steps, prompts),
        },
        figures={"history": partial(figures.draw_history, history, finding, means)},
        warnings=[*list_clustering_warnings(groups, clusters.field), *collect_warnings(history, finding.steps)],
    )
