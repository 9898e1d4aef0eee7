"""What does this benchmark trade between diversity and stability?

Tasks vote, models stand. Diversity: how far the tasks disagree on the order of the models. Sensitivity: how far the
final ranking can be moved by what should not matter, which is weighing tasks differently where scores are averaged, and
the presence of other models where win rates are counted. Both come with a witness that anyone can check.

Source: Zhang & Hardt 2024.
Definitions: docs/reference/statistics/social-choice.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from analyses.numerics.elections.exact_scores import exact_scores
from analyses.presentation.epsilon_option import parse_epsilon_option
from analyses.presentation.validation import validate
from analyses.social_choice import figures, tables
from analyses.social_choice.method import SensitivityOptions, measure_social_choice
from analyses.social_choice.summary import summarize
from analyses.social_choice.validation import check_choices, check_options
from analyses.social_choice.warnings import collect_warnings
from tracker.queries.ranking.task_rankings import select_rankable
from tracker.queries.task_matrix import TaskMatrix
from tracker.recording.finding import Report, analysis

Columns = Annotated[
    Literal["standardised", "raw"], "what is weighed: tasks of standard deviation 1, or scores as they are"
]
Epsilon = Annotated[
    str, "least weight of a task, a decimal number; auto: the least of 0.01 and smallest/largest deviation"
]
WinRate = Annotated[
    Literal["pairwise", "per-task"], "the paper's, averaged over rivals, or HELM's, averaged over tasks"
]
Method = Annotated[Literal["exact", "paper"], "search that can prove its result, or the paper's Algorithms 1 and 2"]


@analysis
def analyze(
    scores: TaskMatrix,
    *,
    system: Annotated[Literal["both", "cardinal", "ordinal"], "which sensitivity to find"] = "both",
    columns: Columns = "standardised",
    epsilon: Epsilon = "0.01",
    top: Annotated[float, "share of the models that lead, by win rate; from 2 on their number"] = 0.2,
    top_models: Annotated[tuple[str, ...], "leading models by name, in place of --top"] = (),
    win_rate: WinRate = "pairwise",
    time_limit: Annotated[float, "seconds for the exact search of each sensitivity; 0: no exact search"] = 30.0,
    method: Method = "exact",
    seed: Annotated[int, "of the random draws of --method paper; the other uses none"] = 0,
) -> Report:
    """Find diversity and both sensitivities of a benchmark.

    Args:
        scores: at least 3 models; missing scores are allowed, see docs/reference/statistics/social-choice.md.
        system: one sensitivity, or both.
        columns: whether tasks are standardised before they are weighed.
        epsilon: in (0, 1].
        top: in (0, 1), or an integer of at least 2.
        top_models: at least two, and not all.
        win_rate: how models are ranked in the ordinal system.
        time_limit: what is not proven by then is given as an interval; how narrow depends on the machine.
        method: how the largest changes are searched.
        seed: the same seed gives the same bytes.

    Raises:
        SelectionError: too few models, infinite scores, or an option out of range.
    """
    field = select_rankable(scores)
    table = field.scores
    validate(
        {
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
        tables=tables.build_tables(finding),
        figures=figures.build_figures(finding, table),
        warnings=[*field.warnings, *collect_warnings(finding, table, exact, time_limit)],
    )
