"""Test whether the winner depends on the voting rule.

Tasks are voters, models are candidates. Applies eleven voting rules to the same scores. Reports the winner of each
rule, the agreement of the rankings, Condorcet winners and cycles, and violations of Pareto dominance. Also reports the
fewest tasks or models whose removal changes the winner. Bradley-Terry needs the extra `voting`.

Source: Zhang & Hardt 2024, section 3.
Definitions: docs/reference/statistics/voting-rules.md.

Examples:
    suffrage analyze voting-rules mmlu_pro --time-limit 2
    suffrage analyze voting-rules mmlu_pro --rule borda --time-limit 2
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from analyses.numerics.elections.exact_scores import exact_scores
from analyses.numerics.elections.voting.rules import VotingRule
from analyses.presentation.validation import check_pairs, validate
from analyses.voting_rules import figures, tables
from analyses.voting_rules.method import apply_voting_rules
from analyses.voting_rules.summary import summarize
from analyses.voting_rules.validation import check_options
from analyses.voting_rules.verdict import describe_verdict
from analyses.voting_rules.warnings import collect_warnings
from tracker.queries.ranking.task_rankings import select_rankable
from tracker.queries.task_matrix import TaskMatrix
from tracker.recording.finding import Report, analysis


@analysis(in_verdict={"time_limit": 1.0}, missing="common", policies=("common", "worst", "impute", "fail"))
def analyze(
    scores: TaskMatrix,
    *,
    rule: Annotated[VotingRule, "Voting rule whose winner is tested by removing tasks and models."] = "mean",
    time_limit: Annotated[float, "Seconds for Kemeny's order, and for each search of what to remove."] = 30.0,
) -> Report:
    """Apply all voting rules to the scores of a benchmark.

    Args:
        scores: 3 to 2,000 models; models without a score are left out, with a warning.
        rule: see `apply_voting_rules`.
        time_limit: seconds, at least 0.

    Raises:
        SelectionError: fewer than 3 models or too many for pairs, infinite scores, or an option out of range.
    """
    validate(check_options(rule=rule, time_limit=time_limit))
    field = select_rankable(scores)
    kept = field.scores
    validate(check_pairs(kept.n_models))
    exact = exact_scores(kept.T, kept.n_prompts, higher_is_better=kept.higher_is_better)
    finding = apply_voting_rules(exact, models=kept.models, tasks=kept.tasks, rule=rule, time_limit=time_limit)
    built_tables = tables.build_tables(finding)
    return Report(
        finding,
        summary=summarize(finding),
        rankings=tables.list_rankings(finding, higher_is_better=kept.higher_is_better),
        ranked_by="by mean over tasks" if finding.display_rule == "mean" else f"by {finding.display_rule} over tasks",
        leaders=tuple(finding.leaders(finding.display_rule)),
        tables=built_tables,
        figures=figures.build_figures(finding),
        warnings=[
            *field.warnings,
            *collect_warnings(finding, is_truncated=len(built_tables["pareto"]) == tables.MAX_PAIRS),
        ],
        verdict=partial(describe_verdict, finding),
    )
