"""Permutation tests: parallel draws, and p-values."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds of a loop before its time is estimated."""

ALPHA = 0.05
"""Significance level of p-values, and false discovery rate for counting discoveries."""
ATOM_SHARE = 0.01
"""A statistic is discrete if one value makes up more than this share of its null distribution."""
SPREAD_TOLERANCE = 1e-13
"""Numbers whose spread is below this share of the largest are one value. It is smaller than `TIE_TOLERANCE`, because
the null distribution of a statistic may be that narrow and still have many values.
"""
CHANCE_TIE = 2
"""With few draws, this many may be equal by chance."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """How long a loop may take.

    Attributes:
        hours: the limit of all runs of the loop together.
        n_repeats: how many times the loop runs, one run after another.
    """

    hours: float
    n_repeats: int = 1


_LIMIT: ContextVar[TimeLimit | None] = ContextVar("time limit", default=None)


class LoopTimeError(Exception):
    """A loop is expected to take longer than the limit.

    Args:
        n_done: blocks that are done.
        n_blocks: all blocks.
        spent: seconds so far.
        limit: the limit.
    """

    def __init__(self, n_done: int, n_blocks: int, spent: float, limit: TimeLimit) -> None:
        super().__init__(f"{n_done} of {n_blocks} blocks took {spent:.0f} s; the limit is {limit.hours:g} hours")
        self.n_done, self.n_blocks, self.spent, self.limit = n_done, n_blocks, spent, limit

    def __reduce__(self) -> tuple[type[LoopTimeError], tuple[int, int, float, TimeLimit]]:
        return type(self), (self.n_done, self.n_blocks, self.spent, self.limit)

    @property
    def expected(self) -> float:
        """Seconds that all runs of the loop are expected to take."""
        return self.spent / self.n_done * self.n_blocks * self.limit.n_repeats


@contextmanager
def use_time_limit(limit: TimeLimit | None) -> Iterator[None]:
    """Limit the expected time of each loop of `map_blocks` and `LoopTimer` in the context; None for no limit."""
    token = _LIMIT.set(limit)
    try:
        yield
    finally:
        _LIMIT.reset(token)


@contextmanager
def count_repeats(n: int) -> Iterator[None]:
    """Count the loops in the context ``n`` times in estimates, because the caller repeats them as often."""
    limit = _LIMIT.get()
    with use_time_limit(limit and replace(limit, n_repeats=limit.n_repeats * max(n, 1))):
        yield


class LoopTimer:
    """Estimates the time of a loop from its first blocks.

    Args:
        n_blocks: number of blocks of the loop.
    """

    def __init__(self, n_blocks: int) -> None:
        self._n_blocks, self._n_done, self._begun = n_blocks, 0, time.monotonic()
        self._limit = _LIMIT.get()

    def count(self, n: int = 1) -> None:
        """Count blocks that are done.

        Raises:
            LoopTimeError: all blocks are expected to take longer than the limit.
        """
        self._n_done += n
        limit, spent = self._limit, time.monotonic() - self._begun
        if limit is not None and spent >= PATIENCE:
            error = LoopTimeError(self._n_done, max(self._n_blocks, self._n_done), spent, limit)
            if error.expected > limit.hours * 3_600:
                raise error


@dataclass(frozen=True, slots=True)
class _LimitedTask(Generic[T]):
    """A task whose own loops are limited, on whatever worker it runs."""

    task: Callable[[int], T]
    limit: TimeLimit

    def __call__(self, block: int) -> T:
        with use_time_limit(self.limit):
            return self.task(block)


def map_blocks(task: Callable[[int], T], n_blocks: int, *, timer: LoopTimer | None = None) -> list[T]:
    """Return ``[task(0), task(1), ...]``; the only place that distributes work over workers.

    ``joblib.parallel_config(n_jobs=..., backend=...)`` around the caller sets the number and kind of workers; without
    it the blocks run sequentially. With a `ClusterBackend` they run on other machines. A task must depend only on its
    block number, so that the results are the same bytes for any setting.

    Args:
        task: computes a block.
        n_blocks: their number.
        timer: of a loop of several calls; None if this call is the loop.

    Raises:
        LoopTimeError: the first blocks, or the first rounds of a loop in one of them, show that all would take longer
            than `use_time_limit` allows; not on a cluster.
    """
    timer = timer or LoopTimer(n_blocks)
    if n_blocks < 2 or "joblib" not in sys.modules:  # nothing to distribute, or joblib is not configured
        with count_repeats(n_blocks):
            return _collect((task(block) for block in range(n_blocks)), timer)
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    backend, n_workers = get_active_backend(prefer="threads")
    prepare, limit = getattr(backend, "prepare", None), _LIMIT.get()
    if limit is not None and prepare is None:
        n_rounds = -(-n_blocks // max(backend.effective_n_jobs(n_workers), 1))
        task = _LimitedTask(task, replace(limit, n_repeats=limit.n_repeats * n_rounds))
    # Processes get large arrays as files. Read-only ones would make every kernel compile again, for their type.
    form = "generator" if limit is not None and backend.supports_return_generator else "list"
    parallel = Parallel(prefer="threads", mmap_mode="c", return_as=form)
    call = delayed(task) if prepare is None else prepare(task, n_blocks)
    results = parallel(call(block) for block in range(n_blocks))
    return results if isinstance(results, list) else _collect(results, timer)


def _collect(results: Generator[T], timer: LoopTimer) -> list[T]:
    collected = []
    try:
        for result in results:
            collected.append(result)
            timer.count()
    except BaseException:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of joblib: some blocks are not used
            results.close()
        raise
    return collected


def split_blocks(n: int, size: int) -> list[range]:
    """Split ``0 .. n - 1`` into ranges of ``size``; the last may be shorter."""
    return [range(start, min(start + size, n)) for start in range(0, n, size)]


@dataclass(frozen=True, kw_only=True, slots=True)
class PermutationTest:
    """A statistic of the observed table, with its null distribution.

    All p-values include the observed table among the draws, so none is 0. Each is at most ``alpha`` in at most
    ``alpha`` of the tables under the null hypothesis (the mid-p only approximately).

    Attributes:
        observed: the statistic of the observed table.
        null: ``(n_permutations,)`` float64, the statistic of each drawn table.
        n_greater: number of greater draws.
        n_equal: number of equal draws, decided without rounding on binary tables; draws with an undefined statistic are
            counted here.
        reason: why there are no p-values; empty if there are.
    """

    observed: float
    null: NDArray[np.float64]
    n_greater: int
    n_equal: int
    reason: str = ""

    @property
    def n_permutations(self) -> int:
        """Number of draws."""
        return self.null.size

    @property
    def smallest_pvalue(self) -> float:
        """Smallest possible p-value of a tail: the observed table is one of ``B + 1``."""
        return 1 / (self.n_permutations + 1)

    @property
    def pvalue(self) -> float:
        """Upper tail, ``(1 + #{null >= observed}) / (B + 1)``."""
        return (1 + self.n_greater + self.n_equal) / (self.n_permutations + 1)

    @property
    def pvalue_lower(self) -> float:
        """Lower tail, ``(1 + #{null <= observed}) / (B + 1)``."""
        return (1 + self.n_permutations - self.n_greater) / (self.n_permutations + 1)

    @property
    def pvalue_mid(self) -> float:
        """Upper tail, ties weighing half: ``(#{null > observed} + (1 + #{null = observed}) / 2) / (B + 1)``."""
        return (self.n_greater + (1 + self.n_equal) / 2) / (self.n_permutations + 1)

    @property
    def pvalue_two_sided(self) -> float:
        """Twice the smaller tail, at most 1."""
        return min(1.0, 2 * min(self.pvalue, self.pvalue_lower))

    @property
    def can_reject(self) -> bool:
        """Whether there are enough draws for a two-sided p-value of at most `ALPHA`."""
        return 2 * self.smallest_pvalue <= ALPHA

    @property
    def verdict(self) -> Literal[-1, 0, 1]:
        """Verdict of the two-sided test at `ALPHA`: 1 if the statistic is too large, -1 if too small, else 0."""
        if self.reason or self.pvalue_two_sided > ALPHA:
            return 0
        return 1 if self.pvalue <= self.pvalue_lower else -1

    @property
    def null_mean(self) -> float:
        """Mean over the draws; NaN if the statistic is undefined in all of them."""
        values = self.null[np.isfinite(self.null)]
        if values.size and (values == values[0]).all():
            return float(values[0])  # without the rounding of a sum
        return float(values.mean()) if values.size else float("nan")

    @property
    def null_sd(self) -> float:
        """Standard deviation over the draws, with ``B - 1``; 0 for a single draw."""
        values = self.null[np.isfinite(self.null)]
        return float(values.std(ddof=1)) if values.size > 1 and (values != values[0]).any() else 0.0

    @property
    def is_discrete(self) -> bool:
        """Whether one value makes up more than `ATOM_SHARE` of the draws, so that p-values move in steps."""
        values = self.null[np.isfinite(self.null)]
        if not values.size:
            return True
        spread, largest = float(np.ptp(values)), float(np.abs(values).max())
        values = values - values.min()
        values = np.round(values / spread, 9) if spread > SPREAD_TOLERANCE * largest else values * 0.0
        atom = int(np.unique(values, return_counts=True)[1].max())
        return atom > max(CHANCE_TIE, ATOM_SHARE * self.n_permutations) or atom == values.size > 1


def build_permutation_test(
    observed: float, null: NDArray[np.float64], signs: NDArray[np.int8], reason: str = "", *, on_an_atom: bool = False
) -> PermutationTest:
    """Return a `PermutationTest` from the sign of ``null - observed`` for each draw.

    Args:
        observed: the statistic of the observed table; NaN if undefined, which has its own reason.
        null: ``(n_permutations,)`` float64.
        signs: ``(n_permutations,)`` int8, -1, 0 or 1.
        reason: why the statistic cannot be tested, if known.
        on_an_atom: whether the statistic is discrete by nature, as percentiles are. Draws that all equal the observed
            one are then a result, not a sign that permutations cannot change it.
    """
    if not reason and not np.isfinite(observed):
        reason = "the observed table has no pair of prompts with a defined value"
    if not reason and not np.isfinite(null).any():
        reason = "no drawn table has a pair of prompts with a defined value"
    if not reason and not on_an_atom and not signs.any():
        reason = "no draw changed it"
    return PermutationTest(
        observed=float(observed),
        null=null,
        n_greater=int((signs > 0).sum()),
        n_equal=int((signs == 0).sum()),
        reason=reason,
    )
