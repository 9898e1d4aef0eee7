"""Read scores from packs, and build those that are missing or whose runs have changed.

A column of a pack is used only if the checksum of its run is the one in the store: the checksum covers every row of
score of the run, by metric, prompt, trial and value. Nothing else of the store is in a pack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.packed.compact_scores import NO_SCORE, CompactScores, make_compact, widen, widest
from tracker.queries.packed.pack_files import Pack, PackKey, open_pack, save_pack
from tracker.queries.packed.pack_folder import PackFolder, find_pack_folder
from tracker.queries.packed.stored_scores import read_stored
from tracker.queries.sql.arrow import Reading, number_columns, read_arrow, snapshot
from tracker.queries.sql.run_terms import join_keys, run_terms

MIN_CELLS = 200_000
"""Size of a matrix from which it is packed; smaller ones are read as fast from the store."""
NO_ROWS = b"0" * 32
"""Checksum of a run without scores."""
CELLS_PER_READ = 8_000_000
"""Cells of a matrix of numbers that is built at once."""


@dataclass(frozen=True, kw_only=True)
class RunGroup:
    """All runs with scores of one benchmark and condition.

    Attributes:
        key: of their pack.
        run_ids: ``(n_runs,)`` ascending keys.
        checksums: ``(n_runs,)`` ``run.checksum``, as bytes.
    """

    key: PackKey
    run_ids: NDArray[np.int64]
    checksums: NDArray[np.bytes_]

    @property
    def has_checksums(self) -> bool:
        """Whether all runs have checksums, which those that another program stored may lack."""
        is_whole = (np.char.str_len(self.checksums) == len(NO_ROWS)) & (self.checksums != NO_ROWS)
        return bool(is_whole.all())

    def take(self, run_ids: NDArray[np.int64]) -> RunGroup:
        """Return those of some keys that are here."""
        chosen = np.isin(self.run_ids, run_ids)
        return RunGroup(key=self.key, run_ids=self.run_ids[chosen], checksums=self.checksums[chosen])


def read_packed(
    session: Session, metric_id: int, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]
) -> tuple[NDArray[np.float64], int] | None:
    """Return scores as `read_averages` does, from packs; None if they have to be read from the store.

    Args:
        session: the store; only committed data are visible.
        metric_id: key of the metric.
        run_ids: keys of ``n_runs`` runs, one per column.
        prompt_ids: ``(n_prompts,)`` keys of prompts, one per row.
    """
    if len(run_ids) * len(prompt_ids) < MIN_CELLS:
        return None
    engine = session.get_bind().engine
    folder = find_pack_folder(engine)
    if folder is None:
        return None
    chosen_ids = np.asarray(run_ids, dtype=np.int64)
    packs: list[CompactScores] = []
    groups = list(_read_groups(session, metric_id, run_ids))
    if _have_scores(session, chosen_ids[~np.isin(chosen_ids, [key for group in groups for key in group.run_ids])]):
        return None
    for group in groups:
        pack = _open_or_build(session, folder, group, chosen_ids) if group.take(chosen_ids).has_checksums else None
        if pack is None:
            return None
        packs.append(pack)
    return _fill(packs, chosen_ids, prompt_ids)


def _open_or_build(
    session: Session, folder: PackFolder, group: RunGroup, chosen_ids: NDArray[np.int64]
) -> CompactScores | None:
    """Return a pack that is valid for the chosen runs of a group; None if building it costs more than reading them."""
    pack, chosen = open_pack(folder, group.key), group.take(chosen_ids)
    if pack is not None and pack.select_valid(chosen.run_ids, chosen.checksums).all():
        return pack.scores
    n_valid = 0 if pack is None else int(pack.select_valid(group.run_ids, group.checksums).sum())
    if len(group.run_ids) - n_valid > 2 * len(chosen.run_ids):
        return None
    with snapshot(session, is_paired=True) as reading:
        built = _build(reading, group.key, pack)
    if built is None:
        return None
    with suppress(OSError):  # a folder that cannot be written, or a full disk
        save_pack(folder, group.key, built)
    return built.scores


def _fill(
    packs: Sequence[CompactScores], run_ids: NDArray[np.int64], prompt_ids: NDArray[np.int64]
) -> tuple[NDArray[np.float64], int]:
    """Return the scores of some runs and prompts; those without any are NaN."""
    n_trials, Q = 1, None
    for pack in packs:
        columns, rows = np.isin(run_ids, pack.run_ids), np.isin(prompt_ids, pack.prompt_ids)
        part, trials = pack.take(run_ids[columns].tolist(), prompt_ids[rows])
        n_trials = max(n_trials, trials)
        if columns.all() and rows.all():
            return part, n_trials
        if Q is None:
            Q = np.full((len(prompt_ids), len(run_ids)), np.nan)
        Q[np.ix_(rows, columns)] = part
    return np.full((len(prompt_ids), len(run_ids)), np.nan) if Q is None else Q, n_trials


def _read_groups(source: Session | Reading, metric_id: int, run_ids: Sequence[int]) -> Iterator[RunGroup]:
    """Yield the groups that some runs with scores belong to."""
    table = read_arrow(
        source,
        "SELECT id, benchmark_id, condition, checksum FROM run WHERE n_scores > 0 AND benchmark_id IN "
        f"(SELECT benchmark_id FROM run WHERE id IN ({join_keys(run_ids)})) ORDER BY id",
    )
    if table.num_rows == 0:
        return
    ids, benchmarks = (part.astype(np.int64) for part in number_columns(table.select([0, 1])))
    conditions, checksums = (np.array(table.column(i).to_pylist()) for i in (2, 3))
    is_chosen = np.isin(ids, run_ids)
    for benchmark, condition in sorted(
        set(zip(benchmarks[is_chosen].tolist(), conditions[is_chosen].tolist(), strict=True))
    ):
        chosen = (benchmarks == benchmark) & (conditions == condition)
        yield RunGroup(
            key=PackKey(benchmark_id=benchmark, metric_id=metric_id, condition=condition),
            run_ids=ids[chosen],
            checksums=checksums[chosen].astype(np.bytes_),
        )


def _have_scores(source: Session, run_ids: NDArray[np.int64]) -> bool:
    """Return whether some runs, which have no number of scores, have rows: another program stored them."""
    if not len(run_ids):
        return False
    sql = f"SELECT 1 FROM score WHERE {run_terms(source, run_ids.tolist())} LIMIT 1"
    return bool(read_arrow(source, sql, runs=run_ids.tolist()).num_rows > 0)


def _build(reading: Reading, key: PackKey, older: Pack | None) -> Pack | None:
    """Return a pack of all runs of a group; None if a run has scores of prompts of another benchmark.

    Args:
        reading: one state of the store.
        key: of the pack.
        older: a pack whose columns are used again as far as they are valid.
    """
    runs = f"SELECT id FROM run WHERE benchmark_id = {key.benchmark_id} AND condition = '{key.condition}'"
    group = next(_read_groups(reading, key.metric_id, _read_keys(reading, runs).tolist()), None)
    if group is None:
        return None
    prompts = f"SELECT prompt.id FROM prompt JOIN task ON task.id = task_id WHERE benchmark_id = {key.benchmark_id}"
    prompt_ids = np.sort(_read_keys(reading, prompts))
    parts: list[CompactScores] = []
    stale = group.run_ids
    if older is not None and np.isin(older.scores.prompt_ids, prompt_ids).all():
        is_valid = older.select_valid(group.run_ids, group.checksums)
        parts, stale = [older.scores], group.run_ids[~is_valid]
    step = max(1, CELLS_PER_READ // max(1, len(prompt_ids)))
    for first in range(0, len(stale), step):
        run_ids = stale[first : first + step]
        stored = read_stored(reading, key.metric_id, run_ids.tolist(), prompt_ids)
        if stored.n_left_out:
            return None
        values, counts = make_compact(stored.Q), stored.counts
        parts.append(CompactScores(run_ids=run_ids, prompt_ids=prompt_ids, values=values, counts=counts))
    return Pack(scores=_join(parts, group.run_ids, prompt_ids), checksums=group.checksums)


def _read_keys(reading: Reading, sql: str) -> NDArray[np.int64]:
    return number_columns(read_arrow(reading, sql))[0].astype(np.int64)


def _join(parts: Sequence[CompactScores], run_ids: NDArray[np.int64], prompt_ids: NDArray[np.int64]) -> CompactScores:
    """Return the scores of some runs and prompts from arrays that hold them; later ones override earlier ones."""
    if len(parts) == 1 and np.array_equal(parts[0].run_ids, run_ids):
        return parts[0]
    shape = len(prompt_ids), len(run_ids)
    dtype = widest([part.values.dtype for part in parts])
    values = widen(np.full(shape, NO_SCORE, dtype=np.int8), dtype)
    counts = np.zeros(shape, dtype=np.uint32) if any(part.counts is not None for part in parts) else None
    for part in parts:
        from_columns = np.flatnonzero(np.isin(part.run_ids, run_ids))
        cells = np.ix_(
            np.searchsorted(prompt_ids, part.prompt_ids), np.searchsorted(run_ids, part.run_ids[from_columns])
        )
        values[cells] = widen(part.values[:, from_columns], dtype)
        if counts is not None:
            counts[cells] = 1 if part.counts is None else part.counts[:, from_columns]
    return CompactScores(run_ids=run_ids, prompt_ids=prompt_ids, values=values, counts=counts)
