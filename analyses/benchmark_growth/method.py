"""Means and rankings of a growing benchmark.

Source: Ailem et al. 2024, sections 3.3 and 5.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.benchmark_growth.validation import ItemResponse, validate_growth
from analyses.numerics.filtering.item_response import fit_two_parameter
from analyses.numerics.growth.farthest_first import Order, order_farthest_first
from analyses.numerics.growth.groups import Groups, group_rows
from analyses.numerics.growth.information_first import order_by_information, prompt_information
from analyses.numerics.growth.predicted_means import MIN_MODELS
from analyses.numerics.growth.prediction_errors import PredictionErrors, measure_prediction_errors
from analyses.numerics.growth.trajectories import (
    Trajectories,
    Trajectory,
    choose_sizes,
    draw_order,
    follow_order,
    stack_trajectories,
)
from analyses.numerics.null_tables import shuffle_table
from tracker.recording.finding import Finding, Metric, Undefined
from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.parallel.time_limits import count_repeats
from tracker.statistics.rng_streams import ORDERS, generator, stream_key
from tracker.statistics.standard_errors import effective_sample_size

EARLY = 50
"""The size at which the beginning of the curves is a metric."""


BLOCK_SIZE = 5
"""Orders, or shuffled tables, in one piece of work."""


SHUFFLED_ROWS = Undefined("the order by vectors does not look at scores: shuffling rows of scores gives random orders")


ONE_MODEL = Undefined("one model has no ranking")


@dataclass(frozen=True, kw_only=True)
class BenchmarkGrowth(Finding):
    """Means and rankings of a growing benchmark.

    Attributes:
        n_prompts, n_models: of the table.
        n_zero: prompts whose vector is all zeros; with scores, those on which every model has 0.
        n_distinct: different directions of the others.
        n_effective: Kish's effective number of prompts; `n_prompts` without weights.
        criterion: "mean", "min" or "information".
        within: the Kendall distance from the final ranking that counts as near.
        sizes: ``(n_sizes,)`` int64, at which means are kept.
        order: rows as they were added, and how far each was from those before.
        final: ``(n_models,)`` weighted mean of each model over all prompts.
        informative: the order's means and distances.
        random: those of random orders.
        permuted: those of shuffled tables in their own informative order; None where vectors decide on the order.
        item_response: the floors of the criterion "information"; None for the others.
        converged: whether the fit of item response did.
        predictions: errors of means predicted by item response; None for other criteria, and with few models.
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
    item_response: ItemResponse | None = None
    converged: bool = True
    predictions: PredictionErrors | None = None

    @property
    def size_within(self) -> int:
        """The size from which on the informative order's ranking stays near."""
        return self.informative.stable_size(self.within)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, sizes from which the ranking stays near, and the beginning of the curves."""
        return {
            **{name: float(getattr(self, name)) for name in ("n_prompts", "n_models", "n_zero", "n_distinct")},
            "n_effective": self.n_effective,
            "within": self.within,
            **self._sizes_within(),
            "mean_final": float(self.final.mean()),
            **self._early(),
            **self._predicted(),
        }

    def _predicted(self) -> Mapping[str, Metric]:
        """Errors of means that are predicted from the first prompts."""
        if self.item_response is None:
            return {}
        metrics: dict[str, Metric] = {
            "item_response.n_open": float((self.item_response.floors == 0).sum()),
            "item_response.converged": float(self.converged),
        }
        errors = self.predictions
        at = np.empty(0, np.int64) if errors is None else np.flatnonzero(errors.sizes == EARLY)
        for name in ("informative", "informative_plain", "random", "random_plain"):
            metrics[f"prediction_error_at_{EARLY}.{name}"] = (
                float(getattr(errors, name)[at[0]])
                if at.size
                else Undefined(f"needs {MIN_MODELS} models and more than {EARLY} prompts")
            )
        return metrics

    def _sizes_within(self) -> Mapping[str, Metric]:
        if self.n_models == 1:
            return {"size_within": ONE_MODEL}
        metrics: dict[str, Metric] = {"size_within": float(self.size_within)}
        for name, many in (("random", self.random), ("permuted", self.permuted)):
            for suffix, share in (("median", 0.5), ("p97_5", 0.975)):
                metrics[f"size_within.{name}_{suffix}"] = many.stable_size_quantile(share) if many else SHUFFLED_ROWS
        return metrics

    def _early(self) -> Mapping[str, Metric]:
        if self.n_prompts < EARLY:
            return {f"mean_at_{EARLY}": Undefined(f"fewer than {EARLY} prompts")}
        at = int(np.searchsorted(self.sizes, EARLY))
        metrics: dict[str, Metric] = {
            f"mean_at_{EARLY}": float(self.informative.means[at].mean()),
            f"mean_at_{EARLY}.random_mean": float(self.random.means[:, at].mean()),
            f"mean_at_{EARLY}.permuted_mean": (
                float(self.permuted.means[:, at].mean()) if self.permuted else SHUFFLED_ROWS
            ),
        }
        if self.n_models == 1:
            return metrics
        return metrics | {
            f"distance_at_{EARLY}": float(self.informative.distances[EARLY - 1]),
            f"distance_at_{EARLY}.random_median": float(np.median(self.random.distances[:, at])),
            f"distance_at_{EARLY}.permuted_median": (
                float(np.median(self.permuted.distances[:, at])) if self.permuted else SHUFFLED_ROWS
            ),
            f"random_share_within_at_{EARLY}": float(self.random.share_within(self.within)[at]),
        }

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Sizes, means and distances, and the size from which each order stays near."""
        arrays: dict[str, NDArray[Any]] = {
            "sizes": self.sizes,
            "order": self.order.rows,
            "informative.means": self.informative.means,
            "informative.distances": self.informative.distances,
            "random.settled": self.random.stable_sizes,
        }
        return arrays | ({"permuted.settled": self.permuted.stable_sizes} if self.permuted else {})


def measure_growth(
    Q: NDArray[np.float64],
    *,
    weights: NDArray[np.float64] | None = None,
    vectors: NDArray[np.float64] | None = None,
    item_response: ItemResponse | None = None,
    criterion: Literal["mean", "min", "information"] = "mean",
    start: int | None = None,
    n_orders: int = 100,
    n_permutations: int = 20,
    within: float = 0.05,
    seed: int = 0,
) -> BenchmarkGrowth:
    """Add the rows of a table one by one.

    Args:
        Q: ``(n_prompts, n_models)`` finite scores, at least 2 prompts.
        weights: ``(n_prompts,)`` positive, in means and rankings, not in the order; None for equal weights.
        vectors: ``(n_prompts, d)`` finite, that decide on the order; None takes the rows of ``Q``.
        item_response: what "information" needs; not used by the others.
        criterion: the farthest on average, or from the nearest already there, or the most informative about abilities.
        start: the first row; None draws one, and for "information" takes the most informative one.
        n_orders, n_permutations: random orders; shuffled tables, none of which are drawn where there are ``vectors``.
        within: Kendall distance, in [0, 1).
        seed: of all draws.

    Raises:
        SelectionError: the table is too small or not finite, or an option is out of range.
    """
    by_information = item_response if criterion == "information" else None
    counts = {"n_orders": n_orders, "n_permutations": n_permutations}
    validate_growth(Q, vectors, by_information, criterion=criterion, counts=counts, within=within, seed=seed)
    n, weighing = len(Q), np.ones(len(Q)) if weights is None else weights
    key, sizes = stream_key(seed), choose_sizes(n, (EARLY,))
    directions = group_rows(Q if vectors is None else vectors)
    first = int(generator(seed, ORDERS, 0).integers(n)) if start is None else start

    find_order = partial(_find_order, by_information, criterion, start, first)
    order, converged = find_order(Q, directions)

    follow = partial(_follow_rows, weighing, sizes)
    on_shuffled = partial(_follow_shuffled, Q, key, find_order, follow)
    return BenchmarkGrowth(
        n_prompts=n,
        n_models=Q.shape[1],
        n_zero=directions.n_zero,
        n_distinct=len(directions.units) - bool(directions.n_zero),
        n_effective=effective_sample_size(weighing),
        criterion=criterion,
        within=within,
        sizes=sizes,
        order=order,
        final=np.asarray(weighing @ Q / weighing.sum()),
        informative=follow(Q, order.rows),
        random=_follow(lambda i: follow(Q, draw_order(n, key, i)), n_orders, sizes, within),
        permuted=None if vectors is not None else _follow(on_shuffled, n_permutations, sizes, within),
        item_response=by_information,
        converged=converged,
        predictions=None if by_information is None else _predict(by_information, Q, weighing, n_orders, key),
    )


def _follow_rows(
    weights: NDArray[np.float64], sizes: NDArray[np.int64], table: NDArray[np.float64], rows: NDArray[np.int64]
) -> Trajectory:
    return follow_order(table, weights, rows, sizes)


def _follow_shuffled(
    Q: NDArray[np.float64],
    key: Any,
    find_order: Callable[[NDArray[np.float64]], tuple[Order, bool]],
    follow: Callable[[NDArray[np.float64], NDArray[np.int64]], Trajectory],
    number: int,
) -> Trajectory:
    table = shuffle_table(Q, key, number)
    return follow(table, find_order(table)[0].rows)


def _predict(
    item_response: ItemResponse, Q: NDArray[np.float64], weights: NDArray[np.float64], n_orders: int, key: Any
) -> PredictionErrors | None:
    if Q.shape[1] < MIN_MODELS:
        return None
    right = item_response.right(Q)
    return measure_prediction_errors(right, item_response.floors, weights, n_orders=n_orders, key=key)


def _find_order(
    item_response: ItemResponse | None,
    criterion: Literal["mean", "min", "information"],
    start: int | None,
    first: int,
    table: NDArray[np.float64],
    groups: Groups | None = None,
) -> tuple[Order, bool]:
    """The order of a table's rows, and whether the fit behind it converged.

    Args:
        item_response: of the criterion "information"; None for the others.
        criterion: what is largest for the next row.
        start: the first row by information; None takes the most informative one.
        first: the first row by distance.
        table: ``(n_prompts, n_models)`` scores.
        groups: the rows that distances compare; None groups those of the table.
    """
    if item_response is None:
        distance: Literal["mean", "min"] = "min" if criterion == "min" else "mean"
        return order_farthest_first(groups or group_rows(table), first, distance), True
    fit = fit_two_parameter(item_response.right(table), item_response.floors)
    information = prompt_information(fit, item_response.floors, fit.ability)
    return order_by_information(information, start), fit.converged


def _follow(draw: Callable[[int], Trajectory], n: int, sizes: NDArray[np.int64], within: float) -> Trajectories:
    blocks = split_blocks(n, BLOCK_SIZE)

    def follow_block(block: int) -> Trajectories:
        with count_repeats(len(blocks[block])):
            return stack_trajectories([draw(i) for i in blocks[block]], sizes, within)

    parts = map_blocks(follow_block, len(blocks))
    return Trajectories.joined(parts)
