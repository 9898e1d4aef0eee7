"""Tables of filter models, of accuracies without the question, and of settings of the step `similar`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from analyses.numerics.filtering.similar_prompts.similar_step import SimilarPath
from tracker.queries.filtering.evidence import Evidence
from tracker.queries.filtering.filter_models import FilterModels
from tracker.queries.performance import PerformanceMatrix


def list_filter_models(names: Sequence[str], known: FilterModels, kind: str) -> pa.Table:
    """List the filter models, the best first."""
    makers = known.find_origins(names)
    return pa.table(
        {
            "model": pa.array(names, pa.string()),
            "organization": pa.array([maker.organization for maker in makers], pa.string()),
            "open_weights": pa.array([maker.open_weights for maker in makers], pa.bool_()),
            "probability_of": pa.array([kind or None] * len(names), pa.string()),
        }
    )


def list_answer_only_scores(
    scores: PerformanceMatrix, known: Evidence, choices: Sequence[Sequence[str] | None], filtering: Sequence[str]
) -> pa.Table:
    """List the models that were run without the question: their accuracy, against guessing.

    Guessing is right with probability 1 / number of options; prompts with unknown options are left out. The
    standard error is that of guessing, sqrt(sum p (1 - p)) / n.
    """
    chance = np.array([1 / len(offered) if offered else np.nan for offered in choices])
    rows = []
    for column, model in enumerate(scores.models):
        is_known = known.blind_measured[:, column] & ~np.isnan(chance)
        n = int(is_known.sum())
        if not n:
            continue
        p, right = chance[is_known], known.blind_right[is_known, column]
        rows.append(
            {
                "model": model,
                "filters": model in filtering,
                "n_prompts": n,
                "accuracy": float(right.mean()),
                "chance": float(p.mean()),
                "above_chance": float(right.mean() - p.mean()),
                "stderr_of_chance": float(np.sqrt((p * (1 - p)).sum()) / n),
            }
        )
    fields = [("model", pa.string()), ("filters", pa.bool_()), ("n_prompts", pa.int64())]
    numbers = ("accuracy", "chance", "above_chance", "stderr_of_chance")
    schema = pa.schema([*fields, *((name, pa.float64()) for name in numbers)])
    return pa.Table.from_pylist(sorted(rows, key=lambda row: (-float(str(row["accuracy"])), str(row["model"]))), schema)


def list_path(path: SimilarPath) -> pa.Table:
    """List thresholds and shares by bandwidth and number of neighbours."""
    b, k = path.thresholds.shape
    columns = {"threshold": path.thresholds, "share_removed": path.shares, "largest_group_share": path.largest}
    chosen = np.zeros((b, k), dtype=np.bool_)
    if path.chosen is not None:
        chosen[path.chosen] = True
    return pa.table(
        {
            "bandwidth": np.repeat(path.bandwidths, k),
            "n_neighbours": np.tile(path.n_neighbours, b),
            **{name: pa.array(values.ravel(), pa.float64(), from_pandas=True) for name, values in columns.items()},
            "refused": path.is_too_large.ravel(),
            "chosen": chosen.ravel(),
        }
    )
