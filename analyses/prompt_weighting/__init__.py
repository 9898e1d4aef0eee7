"""Does the ranking change when prompts do not all count the same?

Prompts are put into clusters of those that the same models solve, and weighted by how they lie in
them: representatives only, more for prompts far from the representative, or more for those close to
it. Models are ranked anew under each weighting, and with every task counting the same.

Source: Ailem et al. 2024, sections 3.3 and 5.2.1, figure 2; every choice is defined in
docs/statistics/prompt-weighting.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.weighting.cluster_reweighting import BY_CLUSTER, Clustered, clustered
from analyses.numerics.weighting.cluster_weights import ZeroDistance
from analyses.numerics.weighting.reweighting import Reweighting, reweighting
from analyses.presentation.validation import validate
from analyses.prompt_weighting import figures, tables
from analyses.prompt_weighting import summary as wording
from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.weighted_scores import complete_weighted_scores, with_mean_one
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import (
    Finding,
    Metric,
    PromptValues,
    RankedModels,
    Report,
    analysis,
    finite_or_undefined,
)
from tracker.statistics.resampling import map_blocks

EQUAL, TASK_EQUAL, GIVEN = "equal", "task-equal", "given"


@dataclass(frozen=True, kw_only=True)
class PromptWeighting(Finding):
    """How models are ranked under several weightings of the prompts.

    Attributes:
        n_prompts, n_models: of the table.
        zero_distance: what a distance of 0 counts as under inverse distances.
        by_seed: the clustering of each seed; the first is the one that is reported and stored.
        schemes: every weighting but the equal one, by name.
    """

    n_prompts: int
    n_models: int
    zero_distance: str
    by_seed: tuple[Clustered, ...]
    schemes: Mapping[str, Reweighting]

    @property
    def clustered(self) -> Clustered:
        """The clustering that is reported."""
        return self.by_seed[0]

    @property
    def n_zero(self) -> int:
        """Prompts on which every score is 0; they belong to no cluster."""
        return int((self.clustered.clustering.labels < 0).sum())

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then each scheme beside equal weights, then the range over seeds."""
        clustering = self.clustered.clustering
        metrics: dict[str, Metric] = {
            "n_prompts": float(self.n_prompts),
            "n_models": float(self.n_models),
            "n_zero": float(self.n_zero),
            "n_clusters": float(clustering.n_clusters),
            "silhouette": finite_or_undefined(clustering.silhouette, "fewer than two prompts differ in direction"),
            "n_zero_distance": float(self.clustered.is_zero_distance.sum()),
        }
        for name, scheme in self.schemes.items():
            metrics |= {
                f"{name}.n_effective": scheme.n_effective,
                f"{name}.n_weighted": float(scheme.n_weighted),
                f"{name}.kendall_tau": finite_or_undefined(scheme.kendall_tau, "a ranking ties all models"),
                f"{name}.kendall_distance": scheme.kendall_distance,
                f"{name}.largest_rank_change": scheme.largest_rank_change,
                f"{name}.largest_shift": scheme.largest_shift,
                f"{name}.leader_changes": float(scheme.leader_changes),
                f"{name}.n_leaders": float(scheme.n_leaders),
            }
        numbers = [one.clustering.n_clusters for one in self.by_seed]
        metrics |= {
            "seeds.n": float(len(self.by_seed)),
            "seeds.n_clusters_least": float(min(numbers)),
            "seeds.n_clusters_most": float(max(numbers)),
        }
        for name in BY_CLUSTER:
            changes = [one.schemes[name].largest_rank_change for one in self.by_seed]
            metrics |= {
                f"seeds.{name}.rank_change_least": min(changes),
                f"seeds.{name}.rank_change_most": max(changes),
            }
        return metrics

    @property
    def headline(self) -> Sequence[str]:
        """All but how many share the first place and how many prompts have any weight."""
        return [name for name in self.metrics if not name.endswith((".n_leaders", ".n_weighted"))]

    def summary(self) -> str:
        """What was found, in plain words."""
        return wording.summary(self.schemes, self.by_seed)


@analysis
def analyze(
    scores: PerformanceMatrix,
    weights: PromptWeights | None,
    *,
    zero_distance: Annotated[
        ZeroDistance,
        "what prompts at distance 0 from the representative get under inverse distances: the weight of the nearest "
        "other prompt, all of the cluster's weight, or none",
    ] = "floor",
    max_clusters: Annotated[int, "largest number of clusters tried"] = 50,
    n_restarts: Annotated[int, "starts of k-means for each number of clusters"] = 5,
    n_seeds: Annotated[int, "clusterings, by seed, seed + 1, ...; the first is reported"] = 5,
    seed: Annotated[int, "of the clustering's random starts"] = 0,
) -> Report:
    """Rank the models under several weightings of the prompts.

    Args:
        scores: at least 2 models; prompts that lack a score from some model are left out, with a note.
        weights: one more scheme, ``given``; a prompt without a weight has weight 0 in it. The clusters, and every
            other scheme, are the same with and without.
        zero_distance: see `inverse_distance_weights`.
        max_clusters: largest number tried.
        n_restarts: at least 1.
        n_seeds: at least 1.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: there is no ranking to change, nothing to cluster by, or an option is out of range.
    """
    chosen = complete_weighted_scores(scores)
    table = chosen.scores
    validate(wording.problems(table.Q, max_clusters=max_clusters, n_restarts=n_restarts, n_seeds=n_seeds, seed=seed))
    warnings = list(chosen.warnings)
    better = table.higher_is_better
    made, said = _chosen_weights(table, weights)
    warnings += said

    def one(place: int) -> Clustered:
        return clustered(
            table.Q,
            max_clusters=max_clusters,
            n_restarts=n_restarts,
            zero_distance=zero_distance,
            higher_is_better=better,
            seed=seed + place,
        )

    by_seed = tuple(map_blocks(one, n_seeds))
    schemes = dict(by_seed[0].schemes)
    schemes |= {name: reweighting(table.Q, w, higher_is_better=better) for name, w in made.items()}
    if any(found.clustering.n_clusters == max_clusters for found in by_seed):
        warnings.append(
            f"The number of clusters reaches max_clusters, {max_clusters}: a larger one may find more and smaller "
            "clusters."
        )
    found = PromptWeighting(
        n_prompts=table.n_prompts,
        n_models=table.n_models,
        zero_distance=zero_distance,
        by_seed=by_seed,
        schemes=schemes,
    )
    every = {EQUAL: reweighting(table.Q, np.ones(table.n_prompts), higher_is_better=better)} | schemes
    values = {f"weight.{name}": scheme.weights for name, scheme in schemes.items()}
    values |= {"cluster": found.clustered.clustering.labels.astype(np.float64), "distance": found.clustered.distances}
    return Report(
        found,
        prompt_values={name: PromptValues(prompt_ids=table.prompt_ids, values=v) for name, v in values.items()},
        rankings={
            name: RankedModels(models=table.models, score=scheme.means, rank=scheme.ranks)
            for name, scheme in every.items()
        },
        tables={
            "schemes": tables.by_scheme(every, every[EQUAL], table.models),
            "representatives": tables.representatives(found.clustered, table),
            "seeds": tables.by_seed(by_seed),
        },
        figures=_figures(every, table),
        warnings=warnings,
    )


def _chosen_weights(
    table: PerformanceMatrix, weights: PromptWeights | None
) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    """The weights that are not made of clusters, by scheme, and what is to be said of them."""
    by_task = PromptWeights.task_equal().align(table.prompt_ids, table.tasks)
    made, warnings = {}, []
    if (by_task != by_task[0]).any():
        made[TASK_EQUAL] = by_task
    else:
        warnings.append(f"{TASK_EQUAL} is left out: tasks are of equal size here, or there is only one.")
    if weights is None:
        return made, warnings
    if weights.finding_id is None:
        return made, [*warnings, f"{weights.name} is among the schemes anyway."]
    given = weights.align(table.prompt_ids, table.tasks)
    unknown = int(np.isnan(given).sum())
    given = np.nan_to_num(given, nan=0.0)
    if not given.any():
        raise SelectionError(
            f"The weights {weights.name} give no weight to any prompt chosen here. Choose the tasks they were made of."
        )
    warnings.append(f"The scheme {GIVEN} is {weights.name}.")
    if unknown:
        warnings.append(
            f"{unknown:,} of {table.n_prompts:,} prompts have no weight in {weights.name}; they count 0 in that scheme."
        )
    return made | {GIVEN: with_mean_one(given)}, warnings


def _figures(every: Mapping[str, Reweighting], table: PerformanceMatrix) -> Mapping[str, Callable[[], Any]]:
    order = np.argsort(every[EQUAL].ranks, kind="stable")
    models = [table.models[j] for j in order]
    shown = {name: scheme for name, scheme in every.items() if name != EQUAL}
    labels = [f"{name}\n(effective n {scheme.n_effective:,.0f})" for name, scheme in shown.items()]
    changes = np.array([scheme.changes[order] for scheme in shown.values()])
    shifts = np.array([scheme.shifts[order] for scheme in shown.values()])
    return {
        "rank_changes": partial(figures.rank_changes, changes, labels, models),
        "shifts": partial(figures.shifts, shifts, labels, models, table.metric),
    }
