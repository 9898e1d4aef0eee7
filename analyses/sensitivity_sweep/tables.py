"""The sweep over least weights as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from analyses.numerics.elections.cardinal.pair_limits import PairLimits
from analyses.numerics.elections.cardinal.sensitivity_path import SensitivityPath


def list_changes_by_epsilon(path: SensitivityPath) -> pa.Table:
    """One row for each epsilon; ``tau_paper`` and ``tau_b`` are those of the witness that maximises ``tau``."""
    return pa.table(
        {
            "epsilon": [float(sensitivity.epsilon) for sensitivity in path.sensitivities],
            "tau": [sensitivity.tau.value for sensitivity in path.sensitivities],
            "tau_upper": [sensitivity.tau.upper_bound for sensitivity in path.sensitivities],
            "tau_exact": [sensitivity.tau.is_exact for sensitivity in path.sensitivities],
            "mrc": [sensitivity.mrc.value for sensitivity in path.sensitivities],
            "mrc_upper": [sensitivity.mrc.upper_bound for sensitivity in path.sensitivities],
            "mrc_exact": [sensitivity.mrc.is_exact for sensitivity in path.sensitivities],
            "n_reversed": [sensitivity.tau.distance.n_reversed for sensitivity in path.sensitivities],
            "n_reversible": [path.limits.count_reversible(sensitivity.epsilon) for sensitivity in path.sensitivities],
            "tau_paper": [sensitivity.tau.distance.tau_paper for sensitivity in path.sensitivities],
            "tau_b": pa.array(
                [sensitivity.tau.distance.tau_b for sensitivity in path.sensitivities], pa.float64(), from_pandas=True
            ),
        }
    )


def list_witness_weights(path: SensitivityPath, tasks: Sequence[str]) -> pa.Table:
    """One row for each epsilon and task: the weights of both witnesses, null for a task that ties all models."""
    weights = {
        "tau_weight": [sensitivity.tau.witness for sensitivity in path.sensitivities],
        "mrc_weight": [sensitivity.mrc.witness for sensitivity in path.sensitivities],
    }
    return pa.table(
        {
            "epsilon": np.repeat([float(sensitivity.epsilon) for sensitivity in path.sensitivities], len(tasks)),
            "task": list(tasks) * len(path.sensitivities),
        }
        | {name: pa.array(np.concatenate(values), pa.float64(), from_pandas=True) for name, values in weights.items()}
    )


def list_pair_limits(limits: PairLimits, models: Sequence[str]) -> pa.Table:
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
