"""The same scores counted by several rules, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.elections.voting.condorcet import PairwiseDuels
from analyses.numerics.elections.voting.removals import PivotalSet
from analyses.numerics.elections.voting.rule_rankings import RuleAgreement, RuleRanking
from analyses.numerics.elections.voting.rules import VOTING_RULES, VotingRule
from analyses.voting_rules.method import VotingRules, scheme_name
from tracker.recording.finding import RankedModels

NAME_SEPARATOR = " | "
"""Between names in one cell."""
MAX_PAIRS = 10_000
"""Rows of the table of pairs that a rule does not put in the order of all tasks."""


def build_tables(finding: VotingRules) -> Mapping[str, pa.Table]:
    """All tables of the report."""
    order = finding.display_order
    violations = {rule: finding.pareto_violations(rule) for rule in finding.outcomes}
    return {
        "rules": _leaders_by_rule(finding),
        "ranks": _ranks_by_model(finding, order),
        "agreement": _agreement_of_rules(finding.agreements),
        "duels": _duels_by_model(finding.duels, finding.models, order),
        "pareto": _pareto_violations(finding.models, violations, finding.outcomes),
        "removals": _removed_items(finding.pivotal_sets),
    }


def list_rankings(finding: VotingRules, *, higher_is_better: bool) -> Mapping[str, RankedModels]:
    """The models by each rule; means and medians in the direction in which they were measured.

    Args:
        finding: the result.
        higher_is_better: the direction of the scores as they were loaded.
    """
    return {
        scheme_name(rule): RankedModels(
            models=finding.models,
            score=outcome.scores * (-1 if rule in ("mean", "median") and not higher_is_better else 1),
            rank=outcome.ranks,
        )
        for rule, outcome in finding.outcomes.items()
    }


def _leaders_by_rule(finding: VotingRules) -> pa.Table:
    """One row for each rule."""
    outcomes, dominates = finding.outcomes, finding.duels.pareto_dominates
    rows = []
    for rule in VOTING_RULES:
        row: dict[str, object] = dict.fromkeys(("leaders", "n_leaders", "n_ranks", "n_reversed", "n_tied"))
        row |= {"rule": rule, "left_out": finding.undefined.get(rule)}
        if rule in outcomes:
            rank = outcomes[rule].ranks
            leaders = finding.leaders(rule)
            row |= {
                "leaders": NAME_SEPARATOR.join(leaders),
                "n_leaders": len(leaders),
                "n_ranks": len(np.unique(rank)),
                "n_reversed": int((dominates & (rank[:, None] > rank)).sum()),
                "n_tied": int((dominates & (rank[:, None] == rank)).sum()),
            }
        rows.append(row)
    fields = [("rule", pa.string()), ("leaders", pa.string())]
    fields += [(name, pa.int64()) for name in ("n_leaders", "n_ranks", "n_reversed", "n_tied")]
    return pa.Table.from_pylist(rows, schema=pa.schema([*fields, ("left_out", pa.string())]))


def _ranks_by_model(finding: VotingRules, order: NDArray[np.int64]) -> pa.Table:
    """One row for each model: its rank by each rule, and by how many rules it is first."""
    ranks = {rule: outcome.ranks[order] for rule, outcome in finding.outcomes.items()}
    n_first = np.sum([rank == rank.min() for rank in ranks.values()], axis=0)
    columns = {scheme_name(rule): rank for rule, rank in ranks.items()}
    models = pa.array([finding.models[model] for model in order], pa.string())
    return pa.table({"model": models} | columns | {"n_first": n_first})


def _agreement_of_rules(agreements: Sequence[RuleAgreement]) -> pa.Table:
    """One row for every two rules."""
    measures = {
        name: [getattr(agreement.distance, name) for agreement in agreements] for name in ("tau", "tau_paper", "mrc")
    }
    tau_b = pa.array([agreement.distance.tau_b for agreement in agreements], pa.float64(), from_pandas=True)
    return pa.table(
        {
            "rule": [agreement.rule for agreement in agreements],
            "other": [agreement.other_rule for agreement in agreements],
            "agreement": [agreement.agreement for agreement in agreements],
        }
        | measures
        | {"tau_b": tau_b, "by_definition": [agreement.is_by_definition for agreement in agreements]}
    )


def _duels_by_model(duels: PairwiseDuels, models: Sequence[str], order: NDArray[np.int64]) -> pa.Table:
    """One row for each model, in an order of columns: its duels, and its worst one."""
    margins, n = duels.margins, len(models)
    won, lost = (margins > 0).sum(axis=1), (margins < 0).sum(axis=1)
    shares = np.divide(margins, duels.shared, out=np.zeros(margins.shape), where=duels.shared > 0)
    np.fill_diagonal(shares, np.inf)
    worst = shares.argmin(axis=1)
    return pa.table(
        {
            "model": pa.array([models[model] for model in order], pa.string()),
            "tier": duels.tiers[order] + 1,
            "n_won": won[order],
            "n_drawn": (n - 1 - won - lost)[order],
            "n_lost": lost[order],
            "worst_against": pa.array([models[worst[model]] for model in order], pa.string()),
            "worst_margin": shares[order, worst[order]],
        }
    )


def _pareto_violations(
    models: Sequence[str],
    violations: Mapping[VotingRule, NDArray[np.bool_]],
    outcomes: Mapping[VotingRule, RuleRanking],
) -> pa.Table:
    """One row for each pair that a rule does not rank as all tasks do; the first `MAX_PAIRS`."""
    names = np.array(models, dtype=object)
    parts = []
    for rule, pairs in violations.items():
        i, j = np.nonzero(pairs)
        i, j = i[:MAX_PAIRS], j[:MAX_PAIRS]
        rank = outcomes[rule].ranks
        parts.append(
            pa.table(
                {
                    "rule": pa.array([rule] * len(i), pa.string()),
                    "model": pa.array(names[i].tolist(), pa.string()),
                    "other": pa.array(names[j].tolist(), pa.string()),
                    "rank": rank[i],
                    "rank_of_other": rank[j],
                }
            )
        )
    return pa.concat_tables(parts).slice(0, MAX_PAIRS)


def _removed_items(pivotal_sets: Mapping[str, PivotalSet | str]) -> pa.Table:
    """One row for each task or model of the sets without which somebody else leads."""
    rows = [
        {
            "set": kind,
            "removed": name,
            "leaders_then": NAME_SEPARATOR.join(pivotal_set.new_leaders),
            "exact": pivotal_set.is_exact,
        }
        for kind, pivotal_set in pivotal_sets.items()
        if isinstance(pivotal_set, PivotalSet)
        for name in pivotal_set.removed or ()
    ]
    text = pa.string()
    fields = [("set", text), ("removed", text), ("leaders_then", text), ("exact", pa.bool_())]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))
