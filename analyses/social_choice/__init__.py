"""Measure the diversity of tasks and the sensitivity of the ranking.

Tasks are voters, models are candidates. Diversity: how far tasks disagree on the order of models; 0 if all agree.
Sensitivity: how far irrelevant changes move the ranking, as tau (share of pairs reversed) and MRC (largest rank
change). Cardinal changes are task weights; ordinal changes are other models. Each value comes with a verifiable
example. Compare benchmarks with `suffrage tradeoff`.

Source: Zhang & Hardt 2024.
Definitions: docs/reference/statistics/social-choice.md.

Examples:
    suffrage analyze social-choice mmlu_pro --time-limit 2
    suffrage analyze social-choice mmlu_pro --system ordinal --top 3 --time-limit 2
"""

from __future__ import annotations

from typing import Annotated, Literal

from analyses.numerics.elections.exact_scores import exact_scores
from analyses.presentation.epsilon_option import parse_epsilon_option
from analyses.presentation.validation import check_pairs, validate
from analyses.social_choice import figures, tables
from analyses.social_choice.method import SensitivityOptions, measure_social_choice
from analyses.social_choice.summary import summarize
from analyses.social_choice.validation import check_choices, check_options
from analyses.social_choice.warnings import collect_warnings
from tracker.queries.ranking.task_rankings import select_rankable
from tracker.queries.task_matrix import TaskMatrix
from tracker.recording.finding import Report, analysis

Columns = Annotated[
    Literal["standardised", "raw"],
    "Scores that are weighted. standardised: each task with standard deviation 1; raw: as stored.",
]
Epsilon = Annotated[
    str, "Least weight of a task, a decimal number; auto: the smaller of 0.01 and smallest/largest deviation."
]
WinRate = Annotated[
    Literal["pairwise", "per-task"],
    "Win rate. pairwise: averaged over rivals, as in the paper; per-task: averaged over tasks, as in HELM.",
]
Method = Annotated[
    Literal["exact", "paper"], "exact: a search that proves its result; paper: Algorithms 1 and 2 of the paper."
]


@analysis(missing="common", policies=("common", "worst", "impute", "fail"))
def analyze(
    scores: TaskMatrix,
    *,
    system: Annotated[
        Literal["both", "cardinal", "ordinal"],
        "Sensitivity to compute: cardinal for mean scores, ordinal for win rates, or both.",
    ] = "both",
    columns: Columns = "standardised",
    epsilon: Epsilon = "0.01",
    top: Annotated[float, "Share of leading models by win rate, in (0, 1); from 2 on, their number."] = 0.2,
    top_models: Annotated[tuple[str, ...], "Names of the leading models, separated by commas, in place of --top."] = (),
    win_rate: WinRate = "pairwise",
    time_limit: Annotated[float, "Seconds for the exact search of each sensitivity; 0 skips it."] = 30.0,
    method: Method = "exact",
    seed: Annotated[int, "Seed of the random draws of --method paper."] = 0,
) -> Report:
    """Compute diversity and both sensitivities of a benchmark.

    Args:
        scores: 3 to 2,000 models; missing scores are allowed, see docs/reference/statistics/social-choice.md.
        system: one sensitivity, or both.
        columns: whether tasks are standardised before they are weighted.
        epsilon: in (0, 1].
        top: in (0, 1), or an integer of at least 2.
        top_models: at least two, and not all.
        win_rate: ranking of the models in the ordinal system.
        time_limit: results not proven by then are intervals; their width depends on the machine.
        method: search for the largest changes.
        seed: the same seed gives the same bytes.

    Raises:
        SelectionError: too few models, infinite scores, or an option out of range.
    """
    field = select_rankable(scores)
    table = field.scores
    validate(
        {
            **check_pairs(table.n_models),
            **check_choices(system=system, columns=columns, win_rate=win_rate, method=method),
            **check_options(table.models, top=top, top_models=top_models, time_limit=time_limit, seed=seed),
        }
    )
    options = SensitivityOptions(
        system=system,
        is_standardised=columns == "standardised",
        epsilon=parse_epsilon_option(epsilon),
        leading=top_models or top,
        win_rate_rule="pairwise" if win_rate == "pairwise" else "per_task",
        time_limit=time_limit,
        method=method,
        seed=seed,
    )
    exact = exact_scores(table.T, table.n_prompts, higher_is_better=table.higher_is_better)
    finding = measure_social_choice(table, exact, options)
    return Report(
        finding,
        summary=summarize(finding),
        task_values=tables.list_task_weights(finding),
        rankings=tables.list_rankings(finding, table.models),
        ranked_by="by win rate" if system == "ordinal" else "by mean over tasks",
        tables=tables.build_tables(finding),
        figures=figures.build_figures(finding, table),
        warnings=[*field.warnings, *collect_warnings(finding, table, exact, time_limit)],
    )
