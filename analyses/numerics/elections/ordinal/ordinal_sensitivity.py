"""How far added models can move the ranking of the leading ones by win rate: exactly, or between two bounds.

Source: Zhang & Hardt 2024, equations 9 to 11. Their algorithm descends along a gradient and gives lower bounds; here
reversals are whole numbers and linear in who is added, so that integer programming proves the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.ranking_distance import average_ranks, max_half_rank_change, ranking_distance
from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.largest_change import LargestChange, Measure, OrdinalSensitivity
from analyses.numerics.elections.ordinal.added_models import LinearAdditions, addition_effects, build_additions
from analyses.numerics.elections.ordinal.local_search import PairGoal, maximize_met_pairs, prune_additions
from analyses.numerics.elections.ordinal.reversal_programs import solve_met_pairs
from analyses.numerics.elections.win_rates import WinRateRule, win_rates
from tracker.statistics.jit import working_time

MAX_SEARCH_CELLS = 6e7
"""Cells the local search looks at, for tau and for MRC each; it decides how long a search without time limit takes."""
MIN_LEADING = 2
_COUNT_TOLERANCE = 1e-9
"""So that 0.29 of 100 models are 29, although the product of the floats is a little less."""


def select_leading_models(
    scores: ExactScores, names: Sequence[str], *, top: float, rule: WinRateRule
) -> NDArray[np.int64]:
    """The best models by win rate over the whole field, best first; of equal ones the first by name.

    Args:
        scores: complete or not.
        names: of the models.
        top: below 1, a share of the field, rounded down; else how many. At least 2 models, at most all.
        rule: how win rates are counted.
    """
    n_requested = int(scores.n_models * top + _COUNT_TOLERANCE) if top < 1 else int(top)
    n_leading = min(max(n_requested, MIN_LEADING), scores.n_models)
    rates = win_rates(scores, rule=rule)
    order = sorted(range(scores.n_models), key=lambda model: (-rates[model], names[model]))
    return np.array(order[:n_leading], dtype=np.int64)


def ordinal_sensitivity(
    scores: ExactScores, *, leading: NDArray[np.int64], rule: WinRateRule = "pairwise", time_limit: float = 30.0
) -> OrdinalSensitivity:
    """The largest changes of the ranking of the leading models that adding any of the others can bring about.

    By ``pairwise``, and by ``per_task`` if every model has every task, the search ends with a proof if there is time.
    By ``per_task`` with missing scores a local search is set against the bound of a relaxation.

    Args:
        scores: complete or not.
        leading: ``(k,)`` columns, k at least 1.
        rule: how win rates are counted.
        time_limit: seconds for proofs; with 0 the result does not depend on the machine.
    """
    deadline = working_time() + time_limit
    addable = np.setdiff1d(np.arange(scores.n_models), leading)
    search = _OrdinalSearch(scores, leading, addable, rule)
    # Each gets half of the time, and the second what the first has left.
    tau = search.maximize_tau(deadline - time_limit / 2)
    return OrdinalSensitivity(
        tau=tau,
        mrc=search.maximize_mrc(deadline, extra_candidate=tau.witness),
        leading=leading,
        addable=addable,
        before=search.before,
    )


@dataclass(frozen=True, kw_only=True)
class _RankGoal:
    """One model moved up or down: met pairs of the goal, less what it has before, are half ranks."""

    goal: PairGoal
    before: int
    upper_bound: int


class _OrdinalSearch:
    """One field, its ranking before, and what is known of additions to it."""

    def __init__(
        self, scores: ExactScores, leading: NDArray[np.int64], addable: NDArray[np.int64], rule: WinRateRule
    ) -> None:
        self._scores, self._leading, self._addable, self._rule = scores, leading, addable, rule
        self._cache: dict[bytes, NDArray[np.float64]] = {}
        self._no_additions = np.zeros(len(addable), dtype=np.bool_)
        self._additions = build_additions(scores, leading, addable, rule)
        self._minimum_signs = self._additions.minimum_signs()
        self._effects = addition_effects(self._additions, len(addable))
        self.before = self._ranks_after(self._no_additions)

    def maximize_tau(self, deadline: float) -> LargestChange:
        """Most pairs reversed strictly."""
        better, worse = np.nonzero((self.before[:, None] < self.before) & (self._minimum_signs < 0))
        goal = PairGoal(behind=better, ahead=worse, allows_tie=np.zeros(len(better), dtype=np.bool_))
        best, upper_bound = self._no_additions, len(goal)
        if upper_bound and len(self._addable):
            candidate, _, _ = maximize_met_pairs(
                self._additions, goal, self._initial_additions(goal, with_pairs=True), budget=MAX_SEARCH_CELLS
            )
            best = self._better(self._n_reversed, best, candidate)
            if upper_bound > self._n_reversed(best) and isinstance(self._additions, LinearAdditions):
                candidate, upper_bound = solve_met_pairs(
                    self._additions, goal, incumbent=self._n_reversed(best), deadline=deadline
                )
                best = self._better(self._n_reversed, best, candidate)
            best = self._prune(self._n_reversed, goal, best)
        k = len(self._leading)
        n_pairs = k * (k - 1) // 2
        return self._change(best, "tau", upper_bound / n_pairs if n_pairs else 0.0)

    def maximize_mrc(self, deadline: float, *, extra_candidate: NDArray[np.bool_]) -> LargestChange:
        """Largest change of rank of one model.

        Args:
            deadline: by `working_time`.
            extra_candidate: additions worth a look.
        """
        best = self._better(self._half_ranks, self._no_additions, extra_candidate)
        moves, budget = [], MAX_SEARCH_CELLS
        for move in sorted(self._rank_goals(), key=lambda move: -move.upper_bound):
            if move.upper_bound > self._half_ranks(best):
                if budget > 0:
                    candidate, _, budget = maximize_met_pairs(
                        self._additions, move.goal, self._initial_additions(move.goal), budget=budget
                    )
                    best = self._better(self._half_ranks, best, candidate)
                moves.append(move)
        upper_bound = 0
        for move in moves:
            bound = move.upper_bound
            if bound > self._half_ranks(best) and isinstance(self._additions, LinearAdditions):
                candidate, n_met = solve_met_pairs(
                    self._additions, move.goal, incumbent=self._half_ranks(best) + move.before, deadline=deadline
                )
                bound = min(bound, n_met - move.before)
                best = self._better(self._half_ranks, best, candidate)
            upper_bound = max(upper_bound, bound)
        upper_bound = max(upper_bound, self._half_ranks(best))
        if best.any():
            moved = self._ranks_after(best) - self.before
            model = int(np.abs(moved).argmax())
            best = self._prune(self._half_ranks, list(self._rank_goals())[2 * model + int(moved[model] < 0)].goal, best)
        k = len(self._leading)
        return self._change(best, "mrc", upper_bound / 2 / (k - 1) if k > 1 else 0.0)

    def _rank_goals(self) -> Iterator[_RankGoal]:
        """Each model, down and up."""
        for model, rank in enumerate(self.before):
            rivals = np.flatnonzero(np.arange(len(self.before)) != model)
            ranks = self.before[rivals]
            models, all_rivals = np.full(2 * len(rivals), model), np.tile(rivals, 2)
            allows_tie = np.repeat([False, True], len(rivals))
            n_tied = int((ranks == rank).sum())
            for behind, ahead, signs, n_before in (
                (models, all_rivals, self._minimum_signs[model, rivals], int((ranks < rank).sum())),
                (all_rivals, models, self._minimum_signs[rivals, model], int((ranks > rank).sum())),
            ):
                n_possible = int((signs < 0).sum() + (signs <= 0).sum())
                n_standing = 2 * n_before + n_tied
                goal = PairGoal(behind=behind, ahead=ahead, allows_tie=allows_tie)
                yield _RankGoal(goal=goal, before=n_standing, upper_bound=n_possible - n_standing)

    def _initial_additions(self, goal: PairGoal, *, with_pairs: bool = False) -> Iterator[NDArray[np.bool_]]:
        """Additions to begin with: who helps on the whole; nobody; everybody; who helps each pair."""
        k = len(self._leading)
        direction = np.bincount(goal.behind, minlength=k) - np.bincount(goal.ahead, minlength=k)
        yield direction @ self._effects < 0
        yield self._no_additions
        yield ~self._no_additions
        if with_pairs:
            for behind, ahead in zip(goal.behind, goal.ahead, strict=True):
                yield self._effects[behind] < self._effects[ahead]

    def _better(
        self, measure: Callable[[NDArray[np.bool_]], int], best: NDArray[np.bool_], candidate: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        return best if candidate is None or measure(candidate) <= measure(best) else candidate

    def _prune(
        self, measure: Callable[[NDArray[np.bool_]], int], goal: PairGoal, added: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Fewer additions that do as much, for a witness that is read by people."""
        fewer = prune_additions(self._additions, goal, added)
        return fewer if measure(fewer) >= measure(added) else added

    def _ranks_after(self, added: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Ranks of the leading models by the definition of the win rate."""
        key = added.tobytes()
        if key not in self._cache:
            field = np.concatenate([self._leading, self._addable[added]])
            rates = win_rates(self._scores, field, rule=self._rule)
            self._cache[key] = average_ranks(np.array(rates[: len(self._leading)], dtype=object))
        return self._cache[key]

    def _n_reversed(self, added: NDArray[np.bool_]) -> int:
        return ranking_distance(self.before, self._ranks_after(added)).n_reversed

    def _half_ranks(self, added: NDArray[np.bool_]) -> int:
        return max_half_rank_change(self.before, self._ranks_after(added))

    def _change(self, added: NDArray[np.bool_], measure: Measure, upper_bound: float) -> LargestChange:
        return LargestChange.between(
            self.before, self._ranks_after(added), measure, witness=added, upper_bound=upper_bound
        )
