"""Checksums of runs' scores, which detect changes made outside Suffrage.

Each row is hashed to 128 bits from metric, prompt, trial and the bits of the value. The checksum is the sum of the
hashes, so it does not depend on the order, and rows can be added and removed without reading the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partition_of
from tracker.hashing import SEEDS, WORD, mix_bits
from tracker.ingest.write.bulk_rows import load_scores
from tracker.ingest.write.score_columns import ScoreColumn
from tracker.integrity.sealed_rows import list_moved
from tracker.schema import Run, Score

_OTHER_TYPES = """SELECT 1 FROM score WHERE run_id = :run_id AND (
    typeof(metric_id) <> 'integer' OR typeof(prompt_id) <> 'integer' OR typeof(trial) <> 'integer'
    OR typeof(value) NOT IN ('real', 'integer')) LIMIT 1"""
_EMPTY = "0" * 32
"""The checksum of no scores."""


def compute_checksum(columns: Sequence[ScoreColumn]) -> str:
    """Return the checksum of scores, 32 hexadecimal digits; all zeros without scores."""
    high, low = (
        sum(int(hashes[:, place].sum(dtype=np.uint64)) for hashes in map(hash_scores, columns)) for place in (0, 1)
    )
    return format_checksum(high % WORD, low % WORD)


def format_checksum(high: int, low: int) -> str:
    """Return the 32 hexadecimal digits of the two words of a checksum."""
    return f"{high:016x}{low:016x}"


def hash_scores(column: ScoreColumn) -> NDArray[np.uint64]:
    """Return the ``(n, 2)`` hashes of scores, whose sum is their checksum."""
    return hash_score_rows(np.uint64(column.metric_id % WORD), column.keys, column.values)


def hash_score_rows(
    metrics: NDArray[np.uint64] | np.uint64, keys: NDArray[np.int64], values: NDArray[np.float64]
) -> NDArray[np.uint64]:
    """Return the ``(n, 2)`` hashes of scores.

    Args:
        metrics: ``(n,)`` keys of the metrics, or one for all scores.
        keys: ``(n,)`` prompt and trial, packed.
        values: ``(n,)`` the scores.
    """
    hashes = np.empty((2, len(keys)), dtype=np.uint64)
    for place, seed in enumerate(map(np.uint64, SEEDS)):
        with np.errstate(over="ignore"):
            mixed = mix_bits(keys.astype(np.uint64) ^ (metrics * seed))
        hashes[place] = mix_bits(mixed + values.view(np.uint64) + seed)
    return hashes.T


def combine_checksums(first: str, second: str, sign: int = 1) -> str:
    """Return the checksum of the union of two sets of rows; with ``sign=-1``, of the first without the second."""
    parts = ((int(first[i : i + 16], 16) + sign * int(second[i : i + 16], 16)) % WORD for i in (0, 16))
    return "".join(f"{part:016x}" for part in parts)


def verify_checksums(session: Session, run_ids: Sequence[int] | None = None) -> list[int]:
    """Return the runs whose scores differ from their checksums; of sealed runs, those in the store are compared.

    Args:
        session: the store.
        run_ids: runs to check; None for all.
    """
    query = sa.select(Run.id, Run.n_scores, Run.checksum).order_by(Run.id)  # type: ignore[call-overload]
    if run_ids is not None:
        query = query.where(Run.id.in_(run_ids))  # type: ignore[union-attr]
    wrong, empty, moved = [], _find_empty_runs(session), list_moved(session.connection())
    for run_id, of_run, checksum in session.execute(query).all():
        n_scores, expected = (0, _EMPTY) if run_id in moved else (of_run, checksum)
        if run_id in empty and expected == _EMPTY:
            continue
        if _has_other_types(session, run_id):
            wrong.append(run_id)
            continue
        columns = list(load_scores(session, run_id).values())
        if sum(map(len, columns)) != n_scores or compute_checksum(columns) != expected:
            wrong.append(run_id)
    return wrong


def _find_empty_runs(session: Session) -> set[int]:
    """Return the runs without scores, by one query: a file of results of whole tasks may have thousands of them."""
    score = Score.__table__  # type: ignore[attr-defined]
    is_scored = sa.exists().where(score.c.run_id == Run.id, in_partition_of(score, Run.benchmark_id))
    return set(session.scalars(sa.select(Run.id).where(Run.n_scores == 0, ~is_scored)))  # type: ignore[call-overload]


def _has_other_types(session: Session, run_id: int) -> bool:
    """Return whether SQLite holds a score, or a part of its key, of another type, which would be read as a number."""
    if session.get_bind().dialect.name != "sqlite":
        return False
    return session.execute(sa.text(_OTHER_TYPES), {"run_id": run_id}).first() is not None
