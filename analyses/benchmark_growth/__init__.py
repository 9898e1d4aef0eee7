"""How many prompts would have been enough?

Prompts are added one by one, the most informative first: always the one farthest from those already there,
by how models score on it or by what it says. Means and ranking are followed as the benchmark grows, beside random
orders, and beside the same method on shuffled tables, which shows what the method does by itself.

Source: Ailem et al. 2024, sections 3.3 and 5.2.2; everything is defined in docs/statistics/benchmark-growth.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.benchmark_growth import figures, tables
from analyses.benchmark_growth import summary as wording
from analyses.numerics.growth.farthest_first import Order, farthest_first, grouped
from analyses.numerics.growth.trajectories import (
    Trajectories,
    Trajectory,
    random_order,
    sizes_up_to,
    stacked,
    trajectory,
)
from analyses.numerics.null_tables import shuffled_table
from analyses.presentation.validation import validate
from tracker.errors import SelectionError
from tracker.queries.embeddings import Embeddings
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.weighted_scores import complete_weighted_scores, effective_number
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Finding, Metric, PromptValues, RankedModels, Report, Undefined, analysis
from tracker.statistics.ranking import mean_ranks
from tracker.statistics.resampling import map_blocks, split_blocks
from tracker.statistics.rng_streams import ORDERS, generator, stream_key

EARLY = 50
"""The size at which the beginning of the curves is given as a number."""
BLOCK = 5
"""Orders, or shuffled tables, in one piece of work."""
SHUFFLED_ROWS = Undefined("the order by vectors does not look at scores: shuffling rows of scores gives random orders")
ONE_MODEL = Undefined("one model has no ranking")


@dataclass(frozen=True, kw_only=True)
class BenchmarkGrowth(Finding):
    """What becomes of means and ranking while the benchmark grows.

    Attributes:
        n_prompts, n_models: of the table.
        n_zero: prompts whose vector is all zeros; with scores, those on which every model has 0.
        n_distinct: different directions of the others.
        n_effective: Kish's effective number of prompts; `n_prompts` without weights.
        criterion: "mean" or "min".
        within: the Kendall distance from the final ranking that is near enough.
        sizes: ``(n_sizes,)`` int64, at which means are kept.
        order: rows as they were added, and how far each was from those before.
        final: ``(n_models,)`` weighted mean of each model over all prompts.
        informative: the order's means and distances.
        random: those of random orders.
        permuted: those of shuffled tables in their own informative order; None where vectors decide on the order.
    """

    n_prompts: int
    n_models: int
    n_zero: int
    n_distinct: int
    n_effective: float
    criterion: str
    within: float
    sizes: NDArray[np.int64]
    order: Order
    final: NDArray[np.float64]
    informative: Trajectory
    random: Trajectories
    permuted: Trajectories | None

    @property
    def size_within(self) -> int:
        """The size from which on the informative order's ranking stays near enough."""
        return self.informative.settled_at(self.within)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, sizes from which the ranking stays near enough, and the beginning of the curves."""
        return {
            **{name: float(getattr(self, name)) for name in ("n_prompts", "n_models", "n_zero", "n_distinct")},
            "n_effective": self.n_effective,
            "within": self.within,
            **self._sizes_within(),
            "mean_final": float(self.final.mean()),
            **self._early(),
        }

    def _sizes_within(self) -> Mapping[str, Metric]:
        if self.n_models == 1:
            return {"size_within": ONE_MODEL}
        found: dict[str, Metric] = {"size_within": float(self.size_within)}
        for name, many in (("random", self.random), ("permuted", self.permuted)):
            for suffix, share in (("median", 0.5), ("p97_5", 0.975)):
                found[f"size_within.{name}_{suffix}"] = many.settled_by(share) if many else SHUFFLED_ROWS
        return found

    def _early(self) -> Mapping[str, Metric]:
        if self.n_prompts < EARLY:
            return {f"mean_at_{EARLY}": Undefined(f"fewer than {EARLY} prompts")}
        at = int(np.searchsorted(self.sizes, EARLY))
        found: dict[str, Metric] = {
            f"mean_at_{EARLY}": float(self.informative.means[at].mean()),
            f"mean_at_{EARLY}.random_mean": float(self.random.means[:, at].mean()),
            f"mean_at_{EARLY}.permuted_mean": (
                float(self.permuted.means[:, at].mean()) if self.permuted else SHUFFLED_ROWS
            ),
        }
        if self.n_models == 1:
            return found
        return found | {
            f"distance_at_{EARLY}": float(self.informative.distances[EARLY - 1]),
            f"distance_at_{EARLY}.random_median": float(np.median(self.random.distances[:, at])),
            f"distance_at_{EARLY}.permuted_median": (
                float(np.median(self.permuted.distances[:, at])) if self.permuted else SHUFFLED_ROWS
            ),
            f"random_share_within_at_{EARLY}": float(self.random.share_within(self.within)[at]),
        }

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Sizes, means and distances, and the size from which each order stays near enough."""
        arrays: dict[str, NDArray[Any]] = {
            "sizes": self.sizes,
            "order": self.order.rows,
            "informative.means": self.informative.means,
            "informative.distances": self.informative.distances,
            "random.settled": self.random.settled,
        }
        return arrays | ({"permuted.settled": self.permuted.settled} if self.permuted else {})

    def summary(self) -> str:
        """What was found, in plain words."""
        return " ".join(
            [
                *wording.settling(self.informative, self.random, self.permuted, self.within),
                *wording.beginning(self.metrics, EARLY, self.n_zero),
                "None of this is a test.",
            ]
        )


def grow(
    Q: NDArray[np.float64],
    *,
    weights: NDArray[np.float64] | None = None,
    vectors: NDArray[np.float64] | None = None,
    criterion: Literal["mean", "min"] = "mean",
    start: int | None = None,
    n_orders: int = 100,
    n_permutations: int = 20,
    within: float = 0.05,
    seed: int = 0,
) -> BenchmarkGrowth:
    """Add the rows of a table one by one.

    Args:
        Q: ``(n_prompts, n_models)`` finite scores, at least 2 prompts.
        weights: ``(n_prompts,)`` positive, in the means and rankings; None weighs all the same. The order does not
            depend on them.
        vectors: ``(n_prompts, d)`` finite, that decide on the order; None takes the rows of ``Q``.
        criterion: the farthest on average, or from the nearest already there.
        start: the first row; None draws one.
        n_orders: random orders.
        n_permutations: shuffled tables; none are drawn where there are ``vectors``.
        within: Kendall distance, in [0, 1).
        seed: of all draws.

    Raises:
        SelectionError: the table is too small or not finite, or an option makes no sense.
    """
    validate(wording.problems(Q, vectors, n_orders=n_orders, n_permutations=n_permutations, within=within, seed=seed))
    n, k = Q.shape
    weighing = np.ones(n) if weights is None else weights
    first = int(generator(seed, ORDERS, 0).integers(n)) if start is None else start
    key, sizes = stream_key(seed), sizes_up_to(n, (EARLY,))
    found = grouped(Q if vectors is None else vectors)
    order = farthest_first(found, first, criterion)

    def in_random_order(number: int) -> Trajectory:
        return trajectory(Q, weighing, random_order(n, key, number), sizes)

    def on_a_shuffled_table(number: int) -> Trajectory:
        table = shuffled_table(Q, key, number)
        return trajectory(table, weighing, farthest_first(grouped(table), first, criterion).rows, sizes)

    return BenchmarkGrowth(
        n_prompts=n,
        n_models=k,
        n_zero=found.n_zero,
        n_distinct=len(found.units) - bool(found.n_zero),
        n_effective=effective_number(weighing),
        criterion=criterion,
        within=within,
        sizes=sizes,
        order=order,
        final=np.asarray(weighing @ Q / weighing.sum()),
        informative=trajectory(Q, weighing, order.rows, sizes),
        random=_followed(in_random_order, n_orders, sizes, within),
        permuted=_followed(on_a_shuffled_table, n_permutations, sizes, within) if vectors is None else None,
    )


def _followed(draw: Callable[[int], Trajectory], n: int, sizes: NDArray[np.int64], within: float) -> Trajectories:
    blocks = split_blocks(n, BLOCK)
    done = map_blocks(lambda block: stacked([draw(i) for i in blocks[block]], sizes, within), len(blocks))
    return Trajectories.joined(done)


@analysis
def analyze(
    scores: PerformanceMatrix,
    weights: PromptWeights | None,
    embeddings: Embeddings | None,
    *,
    criterion: Annotated[
        Literal["mean", "min"], "next is the farthest on average, or from the nearest already there"
    ] = "mean",
    start: Annotated[int | None, "key of the prompt to start with; drawn with the seed if not given"] = None,
    n_orders: Annotated[int, "random orders"] = 100,
    n_permutations: Annotated[int, "tables with shuffled columns, as the control"] = 20,
    within: Annotated[float, "Kendall distance from the final ranking that is near enough"] = 0.05,
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Follow means and ranking as the benchmark grows.

    Args:
        scores: at least 2 prompts; those that lack a score from some model are left out, with a note.
        weights: how much each prompt counts in the running means and rankings; the order in which prompts come
            does not depend on them.
        embeddings: vectors that decide on the order in place of the scores.
        criterion: what is farthest.
        start: primary key of the first prompt.
        n_orders: random orders, for the bands.
        n_permutations: shuffled tables, for the control; not used with ``embeddings``.
        within: Kendall distance, in [0, 1).
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: no prompt is complete, the prompt to start with is not there, some prompts have no vector,
            or see `grow`.
    """
    voters = complete_weighted_scores(scores, weights)
    by_key = np.argsort(voters.scores.prompt_ids)
    Q, prompt_ids = voters.scores.Q[by_key], voters.scores.prompt_ids[by_key]
    found = grow(
        Q,
        weights=voters.weights[by_key],
        vectors=None if embeddings is None else embeddings.align(prompt_ids).astype(np.float64),
        criterion=criterion,
        start=None if start is None else _row_of(start, prompt_ids),
        n_orders=n_orders,
        n_permutations=n_permutations,
        within=within,
        seed=seed,
    )
    position, distance = np.empty(len(Q)), np.empty(len(Q))
    position[found.order.rows], distance[found.order.rows] = np.arange(1, len(Q) + 1), found.order.distances
    models = voters.scores.models
    ranks = mean_ranks(found.final, higher_is_better=voters.scores.higher_is_better)
    first, encoder = int(prompt_ids[found.order.rows[0]]), None if embeddings is None else embeddings.encoder
    warnings = wording.warnings(first, found.n_zero, found.n_distinct, encoder)
    return Report(
        found,
        prompt_values={
            "position": PromptValues(prompt_ids=prompt_ids, values=position),
            "distance_when_added": PromptValues(prompt_ids=prompt_ids, values=distance),
        },
        rankings={"final": RankedModels(models=models, score=found.final, rank=ranks)},
        tables={
            "growth": tables.growth(found.sizes, found.informative, found.random, found.permuted, models),
            "distance": tables.distance(found.sizes, found.informative, found.random, found.permuted, within),
        },
        figures=_figures(found, models, ranks, f"mean {voters.scores.metric or 'score'}"),
        warnings=[*voters.warnings, *warnings],
    )


def _row_of(start: int, prompt_ids: NDArray[np.int64]) -> int:
    at = int(np.searchsorted(prompt_ids, start))
    if at == len(prompt_ids) or prompt_ids[at] != start:
        raise SelectionError(
            f"Prompt {start} is not among the {len(prompt_ids):,} prompts here. Start with the key of one that every "
            f"model has a score for, such as {prompt_ids[0]}, or leave --start out."
        )
    return at


def _figures(
    found: BenchmarkGrowth, models: Sequence[str], ranks: NDArray[np.float64], score: str
) -> Mapping[str, Callable[[], Any]]:
    curves = figures.Curves(sizes=found.sizes, final=found.final, models=tuple(models), ranks=ranks, score=score)
    distances = figures.Distances(
        informative=found.informative.distances,
        sizes=found.sizes,
        random=found.random.band(found.random.distances),
        permuted=found.permuted.band(found.permuted.distances) if found.permuted else None,
        within=found.within,
        settled=found.size_within,
    )
    permuted = found.permuted.band(found.permuted.means) if found.permuted else None
    drawn = {
        "informative": lambda: figures.informative(curves, found.informative.means, permuted),
        "random": lambda: figures.random(curves, found.random.band(found.random.means)),
    }
    return drawn if found.n_models == 1 else drawn | {"distance": lambda: figures.distance(distances)}
