"""Is one model better than another?

Two models are compared prompt by prompt, on the prompts both were asked: how large the difference is and how sure, with
errors that know of clusters; exact tests; what could have been found at all; which prompts flipped, and where. What a
test that forgets the pairing would have said stands beside it, because most tools report that.

Source: Miller 2024, "Adding Error Bars to Evals"; every number is defined in docs/statistics/comparison.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from analyses.comparison import figures, tables
from analyses.comparison import summary as wording
from analyses.numerics.comparing.by_task import TaskDifference, task_differences
from analyses.numerics.comparing.two_models import PairedComparison, compare_models
from analyses.presentation.validation import validate
from tracker.errors import NotFoundError
from tracker.queries.clusters import NONE, SPLIT, TASK, Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import Prompts
from tracker.queries.ranking.interval_warnings import clustering_warnings, unclustered_reason
from tracker.queries.score_validation import check_finite, check_squarable
from tracker.recording.finding import (
    Finding,
    Metric,
    PromptValues,
    Report,
    Undefined,
    analysis,
    finite_or_undefined,
)
from tracker.statistics.grouping import group_rows
from tracker.statistics.rng_streams import SHOWN_PROMPTS, generator


@dataclass(frozen=True, kw_only=True)
class Comparison(Finding):
    """The first model less the second; positive means that the first is better, whatever the metric's direction.

    Attributes:
        models: the two names.
        found: over all shared prompts.
        tasks: in each task.
        cluster: what makes a cluster.
        n_clusters: clusters of the shared prompts.
        unclustered: why errors are not clustered; '' where they are.
        n_only: prompts that only the first, or only the second, was measured on.
    """

    models: tuple[str, str]
    found: PairedComparison
    tasks: tuple[TaskDifference, ...]
    cluster: str
    n_clusters: int
    unclustered_reason: str
    n_only: tuple[int, int]

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, the difference, then errors, tests, power, and what the unpaired test would have said."""
        one = self.found
        few, flat = wording.NO_ERROR, wording.CONSTANT
        d, best = one.advantage, one.best
        clustered: dict[str, Metric] = {}
        names = ("stderr", "low", "high", "pvalue")
        for name in names:
            clustered[f"clustered.{name}"] = (
                float(getattr(one.clustered, name)) if one.clustered else Undefined(self.unclustered_reason)
            )
        for place, name in enumerate(("bca.low", "bca.high")):
            clustered[f"clustered.{name}"] = (
                finite_or_undefined(
                    one.bca_clustered[place], "clusters do not differ, or all resamples lie on one side"
                )
                if one.clustered
                else Undefined(self.unclustered_reason)
            )
        for name in ("stderr", "degrees", "low", "high", "pvalue"):
            clustered[f"cr2.{name}"] = (
                float(getattr(one.uneven, name)) if one.uneven else Undefined(self.unclustered_reason)
            )
        clustered["clustered.flips.pvalue"] = (
            one.flips_clustered.pvalue if one.flips_clustered else Undefined(self.unclustered_reason)
        )
        binary = not np.isnan(one.mcnemar)
        no_power = few if np.isnan(best.stderr) else flat
        return {
            "n_prompts": float(one.n),
            "n_left_out": float(sum(self.n_only)),
            "n_tasks": float(len(self.tasks)),
            "n_clusters": Undefined(self.unclustered_reason) if self.unclustered_reason else float(self.n_clusters),
            "mean_a": one.mean_a,
            "mean_b": one.mean_b,
            "difference": best.mean,
            **{f"naive.{name}": finite_or_undefined(float(getattr(one.naive, name)), few) for name in names},
            **clustered,
            "mcnemar.pvalue": one.mcnemar if binary else Undefined("scores are not all 0 and 1"),
            "flips.pvalue": one.flips.pvalue,
            "flips.n_drawn": float(one.flips.n_drawn),
            "bca.low": finite_or_undefined(one.bca[0], flat if one.n > 1 else few),
            "bca.high": finite_or_undefined(one.bca[1], flat if one.n > 1 else few),
            "detectable": finite_or_undefined(one.detectable, no_power),
            "n_needed": finite_or_undefined(one.n_needed, no_power if best.mean else "the means are equal"),
            "n_a_better": float((d > 0).sum()),
            "n_b_better": float((d < 0).sum()),
            "n_equal": float((d == 0).sum()),
            "correlation": finite_or_undefined(one.correlation, "one of the two has the same score on all prompts"),
            "unpaired.stderr": finite_or_undefined(one.unpaired.stderr, few),
            "unpaired.z": finite_or_undefined(one.unpaired.z, "both have the same score on all prompts"),
            "unpaired.pvalue": finite_or_undefined(one.unpaired.pvalue, "both have the same score on all prompts"),
        }

    def summary(self) -> str:
        """The verdict, in plain words."""
        return wording.summary(self.found, self.models, self.cluster, self.tasks)


@analysis
def analyze(
    scores: PerformanceMatrix,
    prompts: Prompts,
    clusters: Clusters,
    *,
    model_a: Annotated[str, "the first model; differences are positive where it is better"] = "",
    model_b: Annotated[str, "the second model; both may be left out where only two are chosen"] = "",
    n_resamples: Annotated[int, "resamples of the bootstrap, and draws of signs where they are not all counted"] = 9999,
    n_flips: Annotated[int, "prompts to show that each of the two does better on"] = 5,
    level: Annotated[float, "of the intervals"] = 0.95,
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Compare two models on the prompts that both were measured on.

    Args:
        scores: at least two models.
        prompts: their texts.
        clusters: which prompts depend on each other.
        model_a, model_b: names of columns.
        n_resamples: of the bootstrap.
        n_flips: shown each way; the table has all.
        level: of the intervals.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        NotFoundError: no model is called so.
        SelectionError: the models are not named, share no prompt, or an option is out of range.
    """
    for name in (model_a, model_b):
        if name and name not in scores.models:
            raise NotFoundError(f"model with scores on {scores.benchmark or 'this benchmark'}", name, scores.models)
    asked = {"n_resamples": n_resamples, "n_flips": n_flips, "seed": seed}
    validate(wording.problems(scores.models, (model_a, model_b), level=level, **asked))
    names = _chosen(scores.models, model_a, model_b)
    columns = [scores.models.index(name) for name in names]
    pair = scores.Q[:, columns]
    there = ~np.isnan(pair)
    shared = np.asarray(there.all(axis=1))
    n_only = int((there[:, 0] & ~shared).sum()), int((there[:, 1] & ~shared).sum())
    validate({**wording.unshared(names, int(shared.sum()), n_only), **check_finite(pair), **check_squarable(pair)})
    kept = scores.rows(shared)
    a, b = np.ascontiguousarray(pair[shared].T)
    groups = group_rows(clusters.align(kept.prompt_ids))
    found = compare_models(
        a,
        b,
        groups,
        higher_is_better=kept.higher_is_better,
        level=level,
        n_resamples=n_resamples,
        seed=seed,
    )
    is_finer = clusters.field not in (TASK, SPLIT, NONE)
    by_task = task_differences(
        a,
        b,
        found.advantage,
        kept.tasks,
        groups if is_finer else None,
        is_binary=not np.isnan(found.mcnemar),
        level=level,
    )
    places = prompts.find_rows(kept.prompt_ids).tolist()
    rows = _flipped(found.advantage, seed)
    flips = tables.flips(
        rows,
        names=names,
        prompts=[prompts.names[place] for place in places],
        tasks=kept.tasks.tolist(),
        texts=[prompts.texts[place] for place in places],
        a=a,
        b=b,
        advantage=found.advantage,
    )
    shown = [
        wording.flip_in_words(name, one["prompt"], one["task"], one["text"])
        for name in names
        for one in [row for row in flips.to_pylist() if row["better"] == name][:n_flips]
    ]
    return Report(
        Comparison(
            models=names,
            found=found,
            tasks=by_task,
            cluster=clusters.field,
            n_clusters=groups.n_groups,
            unclustered_reason=unclustered_reason(groups, clusters.field),
            n_only=n_only,
        ),
        prompt_values={"advantage_of_a": PromptValues(prompt_ids=kept.prompt_ids, values=found.advantage)},
        task_values={"difference": {one.task: one.difference for one in by_task}},
        tables={"tasks": tables.by_task(by_task), "flips": flips},
        figures={
            "differences": partial(figures.differences, found, by_task, names, kept.metric),
            "flips": partial(figures.flips, by_task, names),
        },
        warnings=[
            *clustering_warnings(groups, clusters.field),
            *wording.warnings(
                found,
                names,
                n_only=n_only,
                higher_is_better=kept.higher_is_better,
                metric=kept.metric,
                shown=shown,
            ),
        ],
    )


def _chosen(models: tuple[str, ...], a: str, b: str) -> tuple[str, str]:
    """Where one is not named, it is the other one of two."""
    if a and b:
        return a, b
    rest = [name for name in models if name not in (a, b)]
    return (a or rest.pop(0)), (b or rest.pop(0))


def _flipped(advantage: NDArray[np.float64], seed: int) -> NDArray[Any]:
    """Prompts on which the two differ, the largest difference first, those of equal size in random order."""
    order = generator(seed, SHOWN_PROMPTS).permutation(len(advantage))
    order = order[np.argsort(-np.abs(advantage[order]), kind="stable")]
    return np.asarray(order[advantage[order] != 0])
