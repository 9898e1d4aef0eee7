"""The sweep over least weights as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from analyses.numerics.elections.cardinal.pair_limits import PairLimits
from analyses.numerics.elections.largest_change import CardinalSensitivity


def by_epsilon(path: Sequence[CardinalSensitivity], limits: PairLimits) -> pa.Table:
    """One row for each epsilon; ``tau_paper`` and ``tau_b`` are those of the witness that maximises ``tau``."""
    return pa.table(
        {
            "epsilon": [float(one.epsilon) for one in path],
            "tau": [one.tau.value for one in path],
            "tau_upper": [one.tau.upper_bound for one in path],
            "tau_exact": [one.tau.is_exact for one in path],
            "mrc": [one.mrc.value for one in path],
            "mrc_upper": [one.mrc.upper_bound for one in path],
            "mrc_exact": [one.mrc.is_exact for one in path],
            "n_reversed": [one.tau.distance.n_reversed for one in path],
            "n_reversible": [limits.n_reversible(one.epsilon) for one in path],
            "tau_paper": [one.tau.distance.tau_paper for one in path],
            "tau_b": pa.array([one.tau.distance.tau_b for one in path], pa.float64(), from_pandas=True),
        }
    )


def weights(path: Sequence[CardinalSensitivity], tasks: Sequence[str]) -> pa.Table:
    """One row for each epsilon and task: the weights of both witnesses, absent for a task that ties all models."""
    named = {"tau_weight": [one.tau.witness for one in path], "mrc_weight": [one.mrc.witness for one in path]}
    return pa.table(
        {"epsilon": np.repeat([float(one.epsilon) for one in path], len(tasks)), "task": list(tasks) * len(path)}
        | {name: pa.array(np.concatenate(values), pa.float64(), from_pandas=True) for name, values in named.items()}
    )


def pairs(limits: PairLimits, models: Sequence[str]) -> pa.Table:
    """One row for each two models that the mean orders, the one ahead first, the last to be safe on top.

    ``safe_from`` is the epsilon from which on no weights reverse the pair; above 1, equal weights reverse it.
    """
    names = np.array(models, dtype=object)
    order = np.argsort(-limits.limit, kind="stable")
    return pa.table(
        {
            "model": pa.array(names[limits.ahead[order]], pa.string()),
            "other": pa.array(names[limits.behind[order]], pa.string()),
            "safe_from": limits.limit[order],
        }
    )
