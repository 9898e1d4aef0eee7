"""The clusters of prompts, and their silhouettes beside those of drawn tables, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from analyses.numerics.clustering.best_clustering import Clustering
from analyses.numerics.clustering.cluster_profile import ClusterProfile
from analyses.numerics.clustering.directions import group_directions
from analyses.numerics.clustering.silhouette_test import SilhouetteTest
from analyses.prompt_clusters.method import PromptClusters
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.weighted_scores import WeightedScores
from tracker.statistics.resampling import PermutationTest

MAX_TEXT_LENGTH = 300
"""Characters of a representative's text that the table of clusters holds."""
CLUSTER, NOISE, ZERO = "cluster", "noise", "score 0 from every model"
"""Groups in the table of clusters."""


def list_tables(finding: PromptClusters, chosen: WeightedScores, prompts: PromptTexts) -> Mapping[str, pa.Table]:
    """All tables of the finding; those by number of clusters only where the method is run at each number."""
    result = {
        "clusters": list_clusters(finding.clustering, finding.profile, chosen, prompts),
        "models_by_cluster": list_models_by_cluster(finding.profile, chosen.scores.models),
    }
    if not finding.options.has_noise:
        result |= {"by_number": list_by_number(finding.test), "by_cap": list_by_cap(finding.test)}
    return result


def list_clusters(
    clustering: Clustering, profile: ClusterProfile, chosen: WeightedScores, prompts: PromptTexts
) -> pa.Table:
    """A row for each cluster, then one for noise and one for prompts with score 0 everywhere, if there are any."""
    table, labels = chosen.scores, clustering.labels
    means = table.Q.mean(axis=1)
    rows: list[dict[str, Any]] = []
    for cluster, medoid in enumerate(clustering.medoids):
        place = int(prompts.find_rows(table.prompt_ids[[medoid]])[0])
        text = prompts.texts[place]
        rows.append(
            {
                "group": CLUSTER,
                "cluster": cluster,
                "n_directions": int(profile.n_directions[cluster]),
                "n_at_medoid": int(profile.n_at_medoid[cluster]),
                "silhouette": float(profile.silhouettes[cluster]),
                "medoid_id": int(table.prompt_ids[medoid]),
                "medoid": prompts.names[place],
                "medoid_text": None if text is None else text[:MAX_TEXT_LENGTH],
            }
        )
    unclustered = {NOISE: clustering.is_noise, ZERO: np.isnan(clustering.samples) & (labels < 0)}
    for group, is_member in unclustered.items():
        if is_member.any():
            n_directions = group_directions(table.Q[is_member]).n_distinct
            rows.append({"group": group, "cluster": None, "n_directions": n_directions, "n_at_medoid": 0})
    for row in rows:
        members = unclustered[row["group"]] if row["cluster"] is None else labels == row["cluster"]
        names, counts = np.unique(table.tasks[members], return_counts=True)
        w = chosen.weights[members]
        row |= {
            "n_prompts": int(members.sum()),
            "weight_share": float(w.sum() / chosen.weights.sum()),
            "mean_score": float((w * means[members]).sum() / w.sum()),
            "most_frequent_task": str(names[counts.argmax()]),
            "share_of_that_task": float(counts.max() / counts.sum()),
        }
    fields = {
        "group": pa.string(),
        "cluster": pa.int64(),
        "n_prompts": pa.int64(),
        "weight_share": pa.float64(),
        "n_directions": pa.int64(),
        "n_at_medoid": pa.int64(),
        "silhouette": pa.float64(),
        "mean_score": pa.float64(),
        "most_frequent_task": pa.string(),
        "share_of_that_task": pa.float64(),
        "medoid_id": pa.int64(),
        "medoid": pa.string(),
        "medoid_text": pa.string(),
    }
    return pa.Table.from_pylist(rows, schema=pa.schema(fields.items()))


def list_models_by_cluster(profile: ClusterProfile, models: tuple[str, ...]) -> pa.Table:
    """A row for each cluster and model."""
    n_clusters = len(profile.means)
    return pa.table(
        {
            "cluster": np.repeat(np.arange(n_clusters), len(models)),
            "model": list(models) * n_clusters,
            "mean_score": profile.means.ravel(),
        }
    )


def _test_columns(test: PermutationTest) -> dict[str, Any]:
    """The columns that say how a silhouette compares with its draws."""
    is_defined = np.isfinite(test.observed)
    return {
        "silhouette": test.observed if is_defined else None,
        "permuted_mean": test.null_mean if np.isfinite(test.null_mean) else None,
        "permuted_sd": test.null_sd,
        "difference": test.observed - test.null_mean if is_defined and np.isfinite(test.null_mean) else None,
        "pvalue": None if test.reason else test.pvalue,
        "pvalue_two_sided": None if test.reason else test.pvalue_two_sided,
    }


def list_by_number(test: SilhouetteTest) -> pa.Table:
    """A row for each number of clusters; its p-value is for that number alone."""
    rows = [{"n_clusters": number} | _test_columns(test.at(number)) for number in range(2, test.max_clusters + 1)]
    return _numbers(rows, ("n_clusters",))


def list_by_cap(test: SilhouetteTest) -> pa.Table:
    """What a run with each cap gives."""
    rows = [
        {"max_clusters": cap, "n_clusters": test.number_up_to(cap)} | _test_columns(test.up_to(cap))
        for cap in test.caps
    ]
    return _numbers(rows, ("max_clusters", "n_clusters"))


def _numbers(rows: list[dict[str, Any]], whole: Sequence[str]) -> pa.Table:
    fields = [(name, pa.int64() if name in whole else pa.float64()) for name in rows[0]]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))
