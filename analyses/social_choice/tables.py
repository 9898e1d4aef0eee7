"""Witnesses of the largest changes, as tables from which anyone can check them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.largest_change import CardinalSensitivity, OrdinalSensitivity
from analyses.numerics.elections.reranking import Reranking, preserved_shares
from analyses.numerics.elections.sensitivity_results import CardinalResult
from analyses.social_choice.method import SocialChoice
from tracker.recording.finding import RankedModels


def build_tables(finding: SocialChoice) -> Mapping[str, pa.Table]:
    """Witnesses and rankings of each sensitivity that was computed."""
    tables: dict[str, pa.Table] = {}
    if isinstance(finding.cardinal, CardinalResult):
        cardinal = finding.cardinal
        tables["cardinal"] = _weights_by_task(cardinal.tasks, cardinal.sensitivity)
        tables["cardinal_ranking"] = _ranking_changes(cardinal.reranking, "mean")
    if finding.ordinal:
        tables["ordinal_added"] = _added_models(finding.ordinal.addable, finding.ordinal.sensitivity)
        tables["ordinal_ranking"] = _ranking_changes(finding.ordinal.reranking, "win_rate")
    return tables


def list_task_weights(finding: SocialChoice) -> Mapping[str, Mapping[str, float]]:
    """Weights of both cardinal witnesses by task."""
    if not isinstance(finding.cardinal, CardinalResult):
        return {}
    tasks, sensitivity = finding.cardinal.tasks, finding.cardinal.sensitivity
    changes = {"tau": sensitivity.tau, "mrc": sensitivity.mrc}
    return {
        f"cardinal.{name}.weight": dict(zip(tasks, change.witness.tolist(), strict=True))
        for name, change in changes.items()
    }


def list_rankings(finding: SocialChoice, models: tuple[str, ...]) -> Mapping[str, RankedModels]:
    """Models before and after each largest change, and by win rate.

    Args:
        finding: the result.
        models: name of each column.
    """
    by_scheme: dict[str, RankedModels] = {}
    if isinstance(finding.cardinal, CardinalResult):
        by_scheme |= _rankings_before_and_after("mean", "cardinal", finding.cardinal.reranking)
    if finding.ordinal:
        rates: NDArray[Any] = np.array(finding.ordinal.rates, dtype=object)
        score, rank = rates.astype(np.float64), average_ranks(rates)
        by_scheme["win_rate"] = RankedModels(models=models, score=score, rank=rank)
        by_scheme |= _rankings_before_and_after("ordinal.before", "ordinal", finding.ordinal.reranking)
    return by_scheme


def _rankings_before_and_after(before: str, system: str, reranking: Reranking) -> Mapping[str, RankedModels]:
    models = reranking.models
    return {before: RankedModels(models=models, score=reranking.score, rank=reranking.rank)} | {
        f"{system}.{name}": RankedModels(models=models, score=changed.score, rank=changed.change.ranks_after)
        for name, changed in (("tau", reranking.tau), ("mrc", reranking.mrc))
    }


def _weights_by_task(tasks: Sequence[str], sensitivity: CardinalSensitivity) -> pa.Table:
    """One row for each task: its weights, and what share of its raw scores they preserve."""
    changes = {"tau": sensitivity.tau.witness, "mrc": sensitivity.mrc.witness}
    numbers = (
        {f"{name}_weight": weights for name, weights in changes.items()}
        | {"scale": sensitivity.scale}
        | {f"{name}_alpha": preserved_shares(weights, sensitivity.scale) for name, weights in changes.items()}
    )
    columns = {name: pa.array(values, pa.float64(), from_pandas=True) for name, values in numbers.items()}
    return pa.table({"task": pa.array(tasks, pa.string())} | columns)


def _added_models(addable: Sequence[str], sensitivity: OrdinalSensitivity) -> pa.Table:
    """One row for each model that may be added."""
    return pa.table(
        {
            "model": pa.array(addable, pa.string()),
            "tau_added": pa.array(sensitivity.tau.witness, pa.bool_()),
            "mrc_added": pa.array(sensitivity.mrc.witness, pa.bool_()),
        }
    )


def _ranking_changes(reranking: Reranking, score: str) -> pa.Table:
    """One row for each model, the best before first.

    Args:
        reranking: before and after.
        score: name of what models are ranked by.
    """
    order = np.argsort(reranking.rank, kind="stable")
    return pa.table(
        {
            "model": pa.array([reranking.models[column] for column in order], pa.string()),
            score: reranking.score[order],
            "rank": reranking.rank[order],
            f"tau_{score}": reranking.tau.score[order],
            "tau_rank": reranking.tau.change.ranks_after[order],
            f"mrc_{score}": reranking.mrc.score[order],
            "mrc_rank": reranking.mrc.change.ranks_after[order],
        }
    )
