"""Do prompts fall into groups that the same models solve?

Prompts are put into clusters by which models solve them, and the number of clusters is the one whose
clusters are clearest. Tables drawn under a null are clustered in the same way: clusters can always be
found, so what counts is whether they are clearer than those of tables without groups.

Source: Ailem et al. 2024, sections 3.2 and 5.1, table 3; every choice is defined in
docs/statistics/prompt-clusters.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.figures import prompt_clusters as figures
from analyses.numerics.cluster_profile import ClusterProfile, cluster_profile
from analyses.numerics.clustering import Clustering
from analyses.numerics.directions import directions
from analyses.numerics.ranking import mean_ranks
from analyses.numerics.resampling import Comparison
from analyses.numerics.silhouette_test import SilhouetteTest, silhouette_test
from tracker.errors import SelectionError
from tracker.queries.electorate import Electorate, complete_electorate
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import Prompts
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Absent, Finding, Metric, PromptValues, Report, analysis

CAPS = (10, 25, 50)
"""Largest numbers of clusters that are compared, as far as they were tried."""
ALPHA = 0.05
KEPT = {
    "columns": "every model's scores shuffled",
    "margins": "every model's and every prompt's number right kept",
}
LONGEST_TEXT = 300
"""Characters of a representative's text that the table of clusters holds."""


@dataclass(frozen=True, kw_only=True)
class PromptClusters(Finding):
    """The clusters, and what tables drawn under the null gave.

    Attributes:
        n_prompts, n_models: of the table.
        n_effective: effective number of prompts under the weights.
        n_zero: prompts with score 0 from every model, which have no direction and belong to no cluster.
        n_distinct: different directions of the others.
        n_constant_models: models with the same score everywhere.
        null: "columns" or "margins".
        profile: what the clusters hold.
        test: the clusters, and the silhouettes of the draws.
    """

    n_prompts: int
    n_models: int
    n_effective: float
    n_zero: int
    n_distinct: int
    n_constant_models: int
    null: str
    profile: ClusterProfile
    test: SilhouetteTest

    @property
    def clustering(self) -> Clustering:
        """The observed table's clusters."""
        return self.test.observed

    @property
    def n_permutations(self) -> int:
        """Tables drawn under the null."""
        return self.test.best.n_permutations

    @property
    def caps(self) -> tuple[int, ...]:
        """The caps that are compared."""
        return tuple(sorted({cap for cap in CAPS if cap < self.test.max_clusters} | {self.test.max_clusters}))

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, the silhouette with its test, then what the cap does."""
        best, clustering, profile = self.test.best, self.clustering, self.profile
        absent = Absent(best.reason)
        metrics: dict[str, Metric] = {
            "silhouette": clustering.silhouette,
            "silhouette.permuted_mean": best.null_mean if np.isfinite(best.null_mean) else absent,
            "silhouette.permuted_sd": best.null_sd,
            "silhouette.pvalue": absent if best.reason else best.pvalue,
            "silhouette.pvalue_lower": absent if best.reason else best.pvalue_lower,
            "silhouette.pvalue_two_sided": absent if best.reason else best.pvalue_two_sided,
            "n_clusters": float(clustering.n_clusters),
            "n_clusters.permuted_mean": float(self.test.null_numbers.mean()),
            "n_prompts": float(self.n_prompts),
            "n_models": float(self.n_models),
            "n_effective": self.n_effective,
            "n_zero": float(self.n_zero),
            "n_distinct": float(self.n_distinct),
            "n_constant_models": float(self.n_constant_models),
            "n_singletons": float((profile.n_prompts == 1).sum()),
            "n_identical_clusters": float(profile.is_identical.sum()),
            "n_at_medoid": float(profile.n_at_medoid.sum()),
            "largest_cluster": float(profile.n_prompts.max()),
            "mean_cosine": clustering.objective / float(profile.weights.sum()),
            "at_cap": float(clustering.n_clusters == self.test.max_clusters),
        }
        at_cap = self.test.at(self.test.max_clusters)
        few = Absent("the prompts have fewer different directions than that")
        metrics["silhouette.at_cap"] = at_cap.observed if np.isfinite(at_cap.observed) else few
        for cap in self.caps:
            found = self.test.up_to(cap)
            metrics[f"cap_{cap}.n_clusters"] = float(self.test.number_up_to(cap))
            metrics[f"cap_{cap}.silhouette"] = found.observed
            there = np.isfinite(found.null_mean)
            metrics[f"cap_{cap}.silhouette.permuted_mean"] = found.null_mean if there else Absent(found.reason)
            metrics[f"cap_{cap}.silhouette.pvalue"] = Absent(found.reason) if found.reason else found.pvalue
        return metrics

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Silhouettes at 2, 3, ... clusters, observed, drawn and their difference; the draws' best ones."""
        by_number, drawn = self.clustering.by_number, self.test.null_by_number
        return {
            "silhouette.by_number": by_number,
            "silhouette.permuted_by_number": drawn,
            "silhouette.observed_minus_permuted": by_number - self._permuted("null_mean"),
            "silhouette.null": self.test.best.null,
            "n_clusters.null": self.test.null_numbers,
        }

    def _permuted(self, statistic: str) -> NDArray[np.float64]:
        return np.array([getattr(self.test.at(number), statistic) for number in range(2, self.test.max_clusters + 1)])

    def summary(self) -> str:
        """What was found, in plain words."""
        best = self.test.best
        there = self.n_prompts - self.n_zero
        said = [
            f"On {there:,} prompts and {self.n_models} models, {_verdict(best)}: {self.clustering.n_clusters} clusters "
            f"have a mean silhouette of {best.observed:.3f}; {best.n_permutations:,} tables with {KEPT[self.null]}, "
            f"each clustered in the same way, gave {best.null_mean:.3f} (sd {best.null_sd:.2g}, "
            f"{np.nanmin(best.null):.3f} to {np.nanmax(best.null):.3f}){_tail(best)}.",
            "One such table beside the observed one would be no test.",
        ]
        if self.null == "columns":
            margins = " The null `margins` keeps the difficulties." if self.profile.is_binary else ""
            said.append(
                "Shuffled columns also have no hard and easy prompts, and levels of difficulty alone can make clusters."
                + margins
            )
        elif not best.reason and best.pvalue > ALPHA:
            said.append("So abilities and difficulties alone can make clusters as clear as these.")
        said.append(self._cap())
        if self.n_distinct < there:
            said.append(self._identical())
        if self.n_zero:
            said.append(
                f"Beside these, {_counted(self.n_zero, 'prompt')} with score 0 from every model "
                f"{'is' if self.n_zero == 1 else 'are'} a group apart, outside the silhouette."
            )
        return " ".join(sentence for sentence in said if sentence)

    def _cap(self) -> str:
        numbers = {cap: self.test.number_up_to(cap) for cap in self.caps}
        largest = self.test.max_clusters
        if len(numbers) == 1:
            return "The best number is the largest tried; more might be better still." * (numbers[largest] == largest)
        if len(set(numbers.values())) == 1:
            tried = " or ".join(str(cap) for cap in numbers)
            return f"That number is the best whether at most {tried} are tried."
        best_of = ", ".join(f"{number} of at most {cap} ({_shown(self.test, cap)})" for cap, number in numbers.items())
        said = f"The best number depends on the largest that is tried: {best_of}"
        return f"{said}; more might be better still." if numbers[largest] == largest else f"{said}."

    def _identical(self) -> str:
        perfect = int(self.profile.is_identical.sum())
        return (
            f"Prompts with identical rows make small perfect clusters: {self.n_prompts - self.n_zero:,} prompts have "
            f"{self.n_distinct:,} different directions, {self.profile.n_at_medoid.sum():,} lie exactly on the "
            f"representative of their cluster, and {_counted(perfect, 'cluster')} "
            f"{'holds' if perfect == 1 else 'hold'} one direction only."
        )


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _verdict(best: Comparison) -> str:
    if best.reason:
        return f"there is nothing to test ({best.reason})"
    if best.pvalue <= ALPHA:
        return "prompts fall into clearer clusters than chance allows"
    if best.pvalue_two_sided <= ALPHA:
        return "prompts fall into less clear clusters than those of chance"
    if best.smallest_pvalue > ALPHA:
        return "so few draws cannot say whether chance explains the clusters"
    return "chance can explain the clusters"


def _tail(best: Comparison) -> str:
    if best.reason:
        return ""
    floor = f", the smallest that {best.n_permutations:,} draws can give" if not best.n_greater + best.n_equal else ""
    return f", p = {best.pvalue:.3g}{floor}"


def _shown(test: SilhouetteTest, cap: int) -> str:
    found = test.up_to(cap)
    return f"{found.observed:.3f}" if found.reason else f"{found.observed:.3f}, p = {found.pvalue:.3g}"


def cluster_test(
    Q: NDArray[np.float64],
    *,
    weights: NDArray[np.float64] | None = None,
    n_effective: float | None = None,
    max_clusters: int = 50,
    n_restarts: int = 5,
    n_permutations: int = 200,
    null: Literal["columns", "margins"] = "columns",
    seed: int = 0,
) -> PromptClusters:
    """Cluster the rows of a table beside those of tables drawn under a null.

    Args:
        Q: ``(n_prompts, n_models)`` scores without gaps; at least 3 prompts and 2 models, and two rows of different
            direction.
        weights: ``(n_prompts,)`` positive, a prompt of weight ``w`` standing for ``w`` copies; they stay with the
            prompts in every draw. None weighs all the same.
        n_effective: effective number of prompts; None counts them.
        max_clusters: largest number of clusters tried, at least 2.
        n_restarts: starts at each number of clusters, of which the best by the objective is kept.
        n_permutations: tables drawn, at least 1.
        null: "columns" shuffles each model's scores; "margins" keeps each prompt's number right too.
        seed: of starts and draws.

    Raises:
        SelectionError: the table is too small, holds infinite values or a single direction, or the options do not
            fit it.
    """
    _refuse(Q, max_clusters, n_restarts, n_permutations, null, seed)
    test = silhouette_test(
        Q,
        weights=weights,
        max_clusters=max_clusters,
        n_restarts=n_restarts,
        n_permutations=n_permutations,
        null=null,
        seed=seed,
    )
    profile = cluster_profile(Q, test.observed, weights)
    return PromptClusters(
        n_prompts=Q.shape[0],
        n_models=Q.shape[1],
        n_effective=float(Q.shape[0]) if n_effective is None else n_effective,
        n_zero=int((test.observed.labels < 0).sum()),
        n_distinct=int(profile.n_directions.sum()),
        n_constant_models=int((Q[0] == Q).all(axis=0).sum()),
        null=null,
        profile=profile,
        test=test,
    )


def _refuse(
    Q: NDArray[np.float64], max_clusters: int, n_restarts: int, n_permutations: int, null: str, seed: int
) -> None:
    n, k = Q.shape
    binary = bool(((Q == 0) | (Q == 1)).all())
    problems = {
        f"No null {null!r}. Known: columns, margins.": null not in KEPT,
        f"max_clusters is {max_clusters}; it must be at least 2.": max_clusters < 2,
        f"n_restarts is {n_restarts}; it must be at least 1.": n_restarts < 1,
        f"n_permutations is {n_permutations}; it must be at least 1.": n_permutations < 1,
        f"seed is {seed}; it must be at least 0.": seed < 0,
        f"{int(np.isinf(Q).sum())} scores are infinite. Leave out their runs, or choose another metric.": bool(
            np.isinf(Q).any()
        ),
        f"Prompts are compared by the models that solve them; models here: {k}. Choose at least 2.": k < 2,
        f"Clusters can be told from 3 prompts on, here: {n}. Choose more tasks or a larger benchmark.": n < 3,
        "The null `margins` exists for scores of 0 and 1 only; these are continuous. Use `columns`.": null == "margins"
        and not binary,
    }
    for problem, is_so in problems.items():
        if is_so:
            raise SelectionError(problem)
    n_distinct = directions(Q).n_distinct
    if n_distinct == 0:
        raise SelectionError("Every score is 0, so no prompt has a direction. Choose another metric or other models.")
    if n_distinct == 1:
        raise SelectionError(
            "All prompts with a score other than 0 have one row, up to a factor, so there is nothing to cluster. "
            "Choose another metric or other models."
        )


@analysis
def analyze(
    scores: PerformanceMatrix,
    prompts: Prompts,
    weights: PromptWeights | None = None,
    *,
    max_clusters: Annotated[int, "largest number of clusters tried"] = 50,
    n_restarts: Annotated[int, "starts at each number of clusters; the best by the objective is kept"] = 5,
    n_permutations: Annotated[int, "tables drawn under the null, each clustered in the same way"] = 200,
    null: Annotated[
        Literal["columns", "margins"], "shuffle each model's scores, or keep each prompt's number right as well"
    ] = "columns",
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Cluster prompts by which models solve them, and test whether the clusters are clearer than those of chance.

    Args:
        scores: at least 3 prompts and 2 models; prompts that lack a score from some model are left out, with a note.
        prompts: their names and texts, for the representatives.
        weights: a prompt of weight ``w`` stands for ``w`` copies of it, in the centres, the silhouettes and all means;
            they stay with the prompts in every draw. Counts of prompts are not weighted.
        max_clusters: largest number of clusters tried.
        n_restarts: starts at each number of clusters.
        n_permutations: tables drawn under the null.
        null: what the draws keep.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: see `cluster_test`.
    """
    chosen = complete_electorate(scores, weights)
    table = chosen.scores
    found = cluster_test(
        table.Q,
        weights=chosen.weights if chosen.is_weighted else None,
        n_effective=chosen.n_effective,
        max_clusters=max_clusters,
        n_restarts=n_restarts,
        n_permutations=n_permutations,
        null=null,
        seed=seed,
    )
    overall = chosen.weights @ table.Q
    order = np.argsort(mean_ranks(overall, higher_is_better=table.higher_is_better), kind="stable")
    models = [table.models[model] for model in order]
    labels = np.where(found.clustering.labels < 0, np.nan, found.clustering.labels)
    best, profile = found.test.best, found.profile
    return Report(
        found,
        prompt_values={
            "cluster": PromptValues(prompt_ids=table.prompt_ids, values=labels),
            "silhouette": PromptValues(prompt_ids=table.prompt_ids, values=found.clustering.samples),
        },
        tables={
            "clusters": _clusters(found, chosen, prompts),
            "models_by_cluster": _models_by_cluster(found, table.models),
            "by_number": _by_number(found.test),
            "by_cap": _by_cap(found),
        },
        figures={
            "silhouette_by_number": partial(
                figures.by_number,
                found.clustering.by_number,
                found.test.null_by_number,
                found.clustering.n_clusters,
                best,
                KEPT[null],
            ),
            "null_distribution": partial(figures.null_distribution, best, KEPT[null]),
            "models_by_cluster": partial(
                figures.means,
                profile.means[:, order],
                profile.n_prompts,
                models,
                f"mean {table.metric or 'score'}",
                is_binary=profile.is_binary,
            ),
        },
        notes=[*chosen.notes, *_notes(found, table)],
    )


def _notes(found: PromptClusters, table: PerformanceMatrix) -> list[str]:
    notes = []
    if found.n_constant_models:
        constant = np.flatnonzero((table.Q[0] == table.Q).all(axis=0))
        names = ", ".join(table.models[model] for model in constant[:5])
        notes.append(f"The same score on every prompt: {names}. Consider leaving such models out.")
    if (table.Q < 0).any():
        notes.append(
            "Some scores are below 0. Prompts are compared by their direction from 0, so two prompts with opposite "
            "signs are opposites, and another zero point would give other clusters."
        )
    if found.n_permutations + 1 < 1 / ALPHA:
        notes.append(
            f"{found.n_permutations} permutations cannot give a p-value of {ALPHA} or less; 19 are the fewest."
        )
    return notes


def _clusters(found: PromptClusters, chosen: Electorate, prompts: Prompts) -> pa.Table:
    """A row for each cluster, then one for the prompts that belong to none, if there are any."""
    table, profile, labels = chosen.scores, found.profile, found.clustering.labels
    means = table.Q.mean(axis=1)
    rows: list[dict[str, Any]] = []
    for cluster, medoid in enumerate(found.clustering.medoids):
        place = int(prompts.rows_of(table.prompt_ids[[medoid]])[0])
        text = prompts.texts[place]
        rows.append(
            {
                "cluster": cluster,
                "n_directions": int(profile.n_directions[cluster]),
                "n_at_medoid": int(profile.n_at_medoid[cluster]),
                "silhouette": float(profile.silhouettes[cluster]),
                "medoid_id": int(table.prompt_ids[medoid]),
                "medoid": prompts.names[place],
                "medoid_text": None if text is None else text[:LONGEST_TEXT],
            }
        )
    if found.n_zero:
        rows.append({"cluster": None, "n_directions": 0, "n_at_medoid": 0})
    for row in rows:
        members = labels == (-1 if row["cluster"] is None else row["cluster"])
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


def _models_by_cluster(found: PromptClusters, models: tuple[str, ...]) -> pa.Table:
    n_clusters = found.clustering.n_clusters
    return pa.table(
        {
            "cluster": np.repeat(np.arange(n_clusters), len(models)),
            "model": list(models) * n_clusters,
            "mean_score": found.profile.means.ravel(),
        }
    )


def _tested(found: Comparison) -> dict[str, Any]:
    """The columns that say how a silhouette compares with its draws."""
    is_there = np.isfinite(found.observed)
    return {
        "silhouette": found.observed if is_there else None,
        "permuted_mean": found.null_mean if np.isfinite(found.null_mean) else None,
        "permuted_sd": found.null_sd,
        "difference": found.observed - found.null_mean if is_there and np.isfinite(found.null_mean) else None,
        "pvalue": None if found.reason else found.pvalue,
    }


def _by_number(test: SilhouetteTest) -> pa.Table:
    """A row for each number of clusters; its p-value is for that number alone."""
    rows = [{"n_clusters": number} | _tested(test.at(number)) for number in range(2, test.max_clusters + 1)]
    return _numbers(rows, ("n_clusters",))


def _by_cap(found: PromptClusters) -> pa.Table:
    """What a run with each cap gives."""
    rows = [
        {"max_clusters": cap, "n_clusters": found.test.number_up_to(cap)} | _tested(found.test.up_to(cap))
        for cap in found.caps
    ]
    return _numbers(rows, ("max_clusters", "n_clusters"))


def _numbers(rows: list[dict[str, Any]], whole: Sequence[str]) -> pa.Table:
    fields = [(name, pa.int64() if name in whole else pa.float64()) for name in rows[0]]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))
