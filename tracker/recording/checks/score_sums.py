"""Compare scores with the checksums of their runs in one pass over each batch, by compiled code.

The hashes are those of `tracker.ingest.write.checksums.hash_score_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.hashing import SEEDS, mix_bits
from tracker.ingest.write.checksums import format_checksum
from tracker.ingest.write.score_columns import TRIAL_BITS
from tracker.statistics.jit import INT, jit

_SEEDS = np.array(SEEDS, dtype=np.uint64)
_mix_bits = jit(mix_bits)


def match_checksums(
    runs: Sequence[Mapping[str, Any]],
    parents: Mapping[str, NDArray[np.bool_]],
    scores: Iterable[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]],
) -> bool:
    """Whether every score refers to existing rows, and every run has the scores of its number and checksum.

    Args:
        runs: every run with its ``id``, ``n_scores`` and ``checksum``.
        parents: whether there is a row with each key, for ``run_id``, ``metric_id`` and ``prompt_id``.
        scores: batches of ``(n,)`` runs, metrics, prompts with trials in one number, and scores; another thread adds
            up a batch while the next one is read.
    """
    has_run, has_metric, has_prompt = (parents[name] for name in ("run_id", "metric_id", "prompt_id"))
    sums = np.zeros((len(has_run), 3), dtype=np.uint64)
    added: Future[bool] | None = None
    with ThreadPoolExecutor(1) as thread:
        for run_ids, metrics, keys, values in scores:
            if added and not added.result():
                return False
            bits = values.view(np.uint64)
            added = thread.submit(
                _add_hashes, run_ids, metrics, keys, bits, has_run, has_metric, has_prompt, _SEEDS, sums
            )
    if added and not added.result():
        return False
    return all(_matches(run, *sums[run["id"]].tolist()) for run in runs)


def _matches(run: Mapping[str, Any], high: int, low: int, n_scores: int) -> bool:
    return bool(n_scores == run["n_scores"] and format_checksum(high, low) == run["checksum"])


@jit
def _add_hashes(
    run_ids: Any, metrics: Any, keys: Any, bits: Any, runs: Any, known: Any, prompts: Any, seeds: Any, sums: Any
) -> Any:
    """Add the hashes of scores to the sums of their runs; False at a score that refers to a row that does not exist.

    Args:
        run_ids: ``(n,)`` runs.
        metrics: ``(n,)`` metrics.
        keys: ``(n,)`` prompts with trials.
        bits: ``(n,)`` scores as bits.
        runs: ``(n_runs,)`` whether there is a run with each key.
        known: ``(n_metrics,)`` the same of metrics.
        prompts: ``(n_prompts,)`` the same of prompts.
        seeds: ``(2,)`` of the two words of a checksum.
        sums: ``(n_runs, 3)`` the two words and the number of scores of each run, which are added to.
    """
    for i in range(len(keys)):
        run, metric, prompt = run_ids[i], metrics[i], keys[i] >> INT(TRIAL_BITS)
        if min(run, metric, prompt) < 0 or run >= len(runs) or metric >= len(known) or prompt >= len(prompts):
            return False
        if not (runs[run] and known[metric] and prompts[prompt]):
            return False
        for place in range(2):
            mixed = _mix_bits(np.uint64(keys[i]) ^ (np.uint64(metric) * seeds[place]))
            sums[run, place] += _mix_bits(mixed + bits[i] + seeds[place])
        sums[run, 2] += np.uint64(1)
    return True
