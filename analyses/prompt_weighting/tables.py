"""Rankings under several weights of the prompts, and the clusters behind them, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from analyses.numerics.weighting.cluster_reweighting import ClusterSchemes
from analyses.numerics.weighting.reweighting import Reweighting
from tracker.queries.performance import PerformanceMatrix


def list_by_scheme(schemes: Mapping[str, Reweighting], equal: Reweighting, models: tuple[str, ...]) -> pa.Table:
    """List one row for each model under each scheme, the best of equal weights first."""
    order = np.argsort(equal.ranks, kind="stable")
    n = len(order)
    return pa.table(
        {
            "scheme": [name for name in schemes for _ in range(n)],
            "model": [models[j] for _ in schemes for j in order],
            "rank": np.concatenate([s.ranks[order] for s in schemes.values()]),
            "equal_rank": np.tile(equal.ranks[order], len(schemes)),
            "places_gained": np.concatenate([s.changes[order] for s in schemes.values()]),
            "mean": np.concatenate([s.means[order] for s in schemes.values()]),
            "shift": np.concatenate([s.shifts[order] for s in schemes.values()]),
        }
    )


def list_representatives(clusters: ClusterSchemes, table: PerformanceMatrix) -> pa.Table:
    """List one row for each cluster, then one for the prompts that are in none, number -1."""
    labels, medoids = clusters.clustering.labels, clusters.clustering.medoids
    rows = [*medoids.tolist(), *np.flatnonzero(labels < 0)[:1].tolist()]
    members = [labels == labels[row] for row in rows]
    return pa.table(
        {
            "cluster": pa.array([int(labels[row]) for row in rows], pa.int64()),
            "prompt_id": table.prompt_ids[rows],
            "task": table.tasks[rows].tolist(),
            "n_prompts": pa.array([int(inside.sum()) for inside in members], pa.int64()),
            "n_zero_distance": pa.array(
                [int(clusters.is_zero_distance[inside].sum()) for inside in members], pa.int64()
            ),
            "mean_distance": pa.array(
                [
                    None if labels[row] < 0 else float(clusters.distances[inside].mean())
                    for row, inside in zip(rows, members, strict=True)
                ],
                pa.float64(),
            ),
            "mean_score": [float(table.Q[row].mean()) for row in rows],
        }
    )


def list_by_seed(clusterings: Sequence[ClusterSchemes]) -> pa.Table:
    """List one row for each scheme under each seed of the clustering."""
    rows = [
        {
            "seed": clustering.seed,
            "n_clusters": clustering.clustering.n_clusters,
            "silhouette": None if np.isnan(clustering.clustering.silhouette) else clustering.clustering.silhouette,
            "scheme": name,
            "n_effective": scheme.n_effective,
            "kendall_tau": None if np.isnan(scheme.kendall_tau) else scheme.kendall_tau,
            "largest_rank_change": scheme.largest_rank_change,
            "largest_shift": scheme.largest_shift,
        }
        for clustering in clusterings
        for name, scheme in clustering.schemes.items()
    ]
    return pa.Table.from_pylist(rows)
