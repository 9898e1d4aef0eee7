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

BETWEEN = " | "
"""Between names in one cell."""
MOST_PAIRS = 10_000
"""Rows of the table of pairs that a rule does not put in the order of all tasks."""


def scheme(rule: VotingRule) -> str:
    """A rule's name in metrics, rankings and columns."""
    return rule.replace("-", "_")


def by_rule(
    outcomes: Mapping[VotingRule, RuleRanking],
    absent: Mapping[VotingRule, str],
    models: Sequence[str],
    dominates: NDArray[np.bool_],
) -> pa.Table:
    """One row for each rule."""
    rows = []
    for rule in VOTING_RULES:
        row: dict[str, object] = dict.fromkeys(("leaders", "n_leaders", "n_ranks", "n_reversed", "n_tied"))
        row |= {"rule": rule, "left_out": absent.get(rule)}
        if rule in outcomes:
            rank = outcomes[rule].ranks
            first = np.flatnonzero(rank == rank.min())
            row |= {
                "leaders": BETWEEN.join(models[model] for model in first.tolist()),
                "n_leaders": len(first),
                "n_ranks": len(np.unique(rank)),
                "n_reversed": int((dominates & (rank[:, None] > rank)).sum()),
                "n_tied": int((dominates & (rank[:, None] == rank)).sum()),
            }
        rows.append(row)
    fields = [("rule", pa.string()), ("leaders", pa.string())]
    fields += [(name, pa.int64()) for name in ("n_leaders", "n_ranks", "n_reversed", "n_tied")]
    return pa.Table.from_pylist(rows, schema=pa.schema([*fields, ("left_out", pa.string())]))


def by_model(models: Sequence[str], ranks: Mapping[VotingRule, NDArray[np.float64]]) -> pa.Table:
    """One row for each model: its rank by each rule, and by how many rules it is first."""
    first = np.sum([rank == rank.min() for rank in ranks.values()], axis=0)
    columns = {scheme(rule): rank for rule, rank in ranks.items()}
    return pa.table({"model": pa.array(models, pa.string())} | columns | {"n_first": first})


def by_pair_of_rules(agreements: Sequence[RuleAgreement]) -> pa.Table:
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


def duels(found: PairwiseDuels, models: Sequence[str], order: NDArray[np.int64]) -> pa.Table:
    """One row for each model, in an order of columns: its duels, and its worst one."""
    margins, n = found.margins, len(models)
    won, lost = (margins > 0).sum(axis=1), (margins < 0).sum(axis=1)
    shares = np.divide(margins, found.shared, out=np.zeros(margins.shape), where=found.shared > 0)
    np.fill_diagonal(shares, np.inf)
    worst = shares.argmin(axis=1)
    return pa.table(
        {
            "model": pa.array([models[model] for model in order], pa.string()),
            "tier": found.tiers[order] + 1,
            "n_won": won[order],
            "n_drawn": (n - 1 - won - lost)[order],
            "n_lost": lost[order],
            "worst_against": pa.array([models[worst[model]] for model in order], pa.string()),
            "worst_margin": shares[order, worst[order]],
        }
    )


def pareto(
    models: Sequence[str], not_ahead: Mapping[VotingRule, NDArray[np.bool_]], outcomes: Mapping[VotingRule, RuleRanking]
) -> pa.Table:
    """One row for each pair that a rule does not rank as all tasks do; the first `MOST_PAIRS`."""
    names = np.array(models, dtype=object)
    parts = []
    for rule, pairs in not_ahead.items():
        i, j = np.nonzero(pairs)
        i, j = i[:MOST_PAIRS], j[:MOST_PAIRS]
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
    return pa.concat_tables(parts).slice(0, MOST_PAIRS)


def removals(found: Mapping[str, PivotalSet | str]) -> pa.Table:
    """One row for each task or model of the sets without which somebody else leads."""
    rows = [
        {"set": what, "removed": name, "leaders_then": BETWEEN.join(known.new_leaders), "exact": known.is_exact}
        for what, known in found.items()
        if isinstance(known, PivotalSet)
        for name in known.removed or ()
    ]
    text = pa.string()
    fields = [("set", text), ("removed", text), ("leaders_then", text), ("exact", pa.bool_())]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))
