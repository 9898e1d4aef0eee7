"""Arrays that a server keeps between requests, so that no selection reads the same rows of the store again.

Keeping is switched on for an engine. Commands do not switch it on: each reads what it needs once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

T = TypeVar("T")

OPTION = "suffrage_kept_reads"
"""Execution option of an engine: keeps what its sessions read."""
MAX_CELLS = 4_000_000
"""Maximum size of a kept matrix; larger ones are read for each selection."""
NO_SCORE = -128
"""Placeholder of a missing score among small integers."""


class KeptReads(Protocol):
    """Keeps values of one state of the store."""

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value of a key, computed once."""


def keep_reads(engine: sa.Engine, kept: KeptReads) -> sa.Engine:
    """Return the engine whose sessions keep what they read.

    Args:
        engine: the store.
        kept: keeps the values; it drops them when the store changes.
    """
    return engine.execution_options(**{OPTION: kept})


def find_kept(session: Session) -> KeptReads | None:
    """Return what keeps the reads of a session; None if each read goes to the store."""
    kept: KeptReads | None = session.get_bind().get_execution_options().get(OPTION)
    return kept


def read_once(session: Session, key: Hashable, read: Callable[[], T]) -> T:
    """Return what a function reads: as it was kept, or from the store."""
    kept = find_kept(session)
    return read() if kept is None else kept.get(key, read)


@dataclass(frozen=True, kw_only=True)
class CompactScores:
    """The scores of all runs of a benchmark under one metric, averaged over trials, in as few bytes as they need.

    Attributes:
        run_ids: ``(n_runs,)`` int64 keys, ascending.
        prompt_ids: ``(n_prompts,)`` int64 keys, ascending.
        values: ``(n_prompts, n_runs)``: int8 with `NO_SCORE` for a missing score, else float32 or float64 with NaN. The
            smallest type that holds every score exactly.
        counts: ``(n_prompts, n_runs)`` trials of each; None if no prompt has several.
    """

    run_ids: NDArray[np.int64]
    prompt_ids: NDArray[np.int64]
    values: NDArray[np.generic]
    counts: NDArray[np.int64] | None

    def take(self, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]:
        """Return the scores of some runs and prompts as `read_averages` does.

        Args:
            run_ids: keys, all among ``self.run_ids``.
            prompt_ids: ``(m,)`` keys, all among ``self.prompt_ids``.
        """
        cells = np.ix_(np.searchsorted(self.prompt_ids, prompt_ids), np.searchsorted(self.run_ids, run_ids))
        values = self.values[cells]
        Q = values.astype(np.float64)
        if values.dtype == np.int8:
            Q[values == NO_SCORE] = np.nan
        return Q, 1 if self.counts is None else int(self.counts[cells].max(initial=1))


def make_compact(Q: NDArray[np.float64]) -> NDArray[np.generic]:
    """Return scores in the smallest type that holds each exactly; see `CompactScores`.

    Args:
        Q: ``(n_prompts, n_runs)`` scores, NaN = missing.
    """
    known = ~np.isnan(Q)
    scores = Q[known]
    is_small = np.abs(scores) < -NO_SCORE
    if is_small.all() and (scores == np.trunc(scores)).all() and not np.signbit(scores[scores == 0]).any():
        return np.where(known, Q, NO_SCORE).astype(np.int8)
    with np.errstate(over="ignore"):
        single = Q.astype(np.float32)
    return single if (single[known].astype(np.float64) == scores).all() else Q
