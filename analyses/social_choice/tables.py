"""Witnesses of the largest changes, as tables from which anyone can check them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from analyses.numerics.elections.largest_change import CardinalSensitivity, OrdinalSensitivity
from analyses.numerics.elections.reranking import Reranking, preserved_shares


def by_task(tasks: Sequence[str], found: CardinalSensitivity) -> pa.Table:
    """One row for each task: its weights, and what share of its raw scores they preserve."""
    changes = {"tau": found.tau.witness, "mrc": found.mrc.witness}
    numbers = (
        {f"{name}_weight": weights for name, weights in changes.items()}
        | {"scale": found.scale}
        | {f"{name}_alpha": preserved_shares(weights, found.scale) for name, weights in changes.items()}
    )
    columns = {name: pa.array(values, pa.float64(), from_pandas=True) for name, values in numbers.items()}
    return pa.table({"task": pa.array(tasks, pa.string())} | columns)


def by_added(others: Sequence[str], found: OrdinalSensitivity) -> pa.Table:
    """One row for each model that may be added."""
    return pa.table(
        {
            "model": pa.array(others, pa.string()),
            "tau_added": pa.array(found.tau.witness, pa.bool_()),
            "mrc_added": pa.array(found.mrc.witness, pa.bool_()),
        }
    )


def by_model(r: Reranking, score: str) -> pa.Table:
    """One row for each model, the best before first.

    Args:
        r: before and after.
        score: name of what models are ranked by.
    """
    order = np.argsort(r.rank, kind="stable")
    return pa.table(
        {
            "model": pa.array([r.models[column] for column in order], pa.string()),
            score: r.score[order],
            "rank": r.rank[order],
            f"tau_{score}": r.tau.score[order],
            "tau_rank": r.tau.change.after[order],
            f"mrc_{score}": r.mrc.score[order],
            "mrc_rank": r.mrc.change.after[order],
        }
    )
