"""Pair counts and permuted tables of prompt correlation on a CUDA device, beside the kernels on one core of the CPU.

The kernels are timed on the first prompts and on half of them. Their seconds for all prompts are extrapolated: a part
that does not grow, and one that grows with the number of pairs. The device computes the same for the first prompts;
another result ends the benchmark. Peak memory is that of the device.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from analyses.numerics.null_tables import shuffle_columns
from analyses.numerics.similarity.binary import compare_binary
from analyses.numerics.similarity.engine import Engine
from analyses.numerics.similarity.pairs.pair_counter import PairCounter
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarities import SIMILARITIES, Similarity
from benchmarks import _costs
from benchmarks._device_costs import seconds, seconds_and_peak
from benchmarks._peers import DeviceMissingError
from benchmarks._tables import binary_table
from tracker.statistics.rng_streams import stream_key

PEER = "kernels on one core of the CPU"


@dataclass(frozen=True, kw_only=True)
class Size:
    """A table to measure on.

    Attributes:
        n_prompts, n_models: of the table.
        n_first: prompts that the kernels are timed on.
        n_permutations: of a whole test.
    """

    n_prompts: int
    n_models: int
    n_first: int
    n_permutations: int

    def extrapolate(self, half: float, first: float) -> float:
        """Seconds for all prompts, from those for half of the first prompts and for all of them."""
        n_half, n_first, n_pairs = (n * (n - 1) / 2 for n in (self.n_first // 2, self.n_first, self.n_prompts))
        return first + max(0.0, (first - half) / (n_first - n_half)) * (n_pairs - n_first)


SIZES = tuple(Size(n_prompts=100_000, n_models=k, n_first=10_000, n_permutations=64) for k in (1000, 100))


def measurements() -> Iterator[dict[str, Any]]:
    """One line per row of the table."""
    import torch

    if not torch.cuda.is_available():
        raise DeviceMissingError("CUDA")
    for size in SIZES:
        yield from measured("cuda:0", size, torch.cuda.get_device_name(0))


def measured(device: str, size: Size, label: str) -> Iterator[dict[str, Any]]:
    """The same for one table on any device."""
    from analyses.numerics.similarity.devices.device_engine import create_engine

    scores = binary_table(size.n_prompts, size.n_models)
    table, first = ScoreTable(scores), ScoreTable(scores[: size.n_first])
    similarities = tuple(s for s in SIMILARITIES if size.n_models <= s.max_columns)
    name = f"{label}, {size.n_prompts:,} × {size.n_models:,}"
    engine = create_engine(device)
    counter, counter_of_first = engine.create_counter(table, similarities), engine.create_counter(first, similarities)
    kernels = PairCounter.create(first, similarities)
    kernels_of_half = PairCounter.create(ScoreTable(scores[: size.n_first // 2]), similarities)
    runs = {
        "counts of all pairs": lambda tested: tested.count(tested.packed.bits),
        "mean similarity of each prompt to all others": lambda tested: tested.sum_each_row(),
    }
    for title, run in runs.items():
        for expected, actual in zip(run(kernels), run(counter_of_first), strict=True):
            if expected.tobytes() != actual.tobytes():
                raise RuntimeError(f"{title}: the device and the kernels differ")
        run(counter)
        spent, peak_mb = seconds_and_peak(device, lambda run=run: run(counter))
        halves = (_costs.seconds(lambda run=run, of=of: run(of), times=2) for of in (kernels_of_half, kernels))
        peer_s = size.extrapolate(*halves)
        yield {
            "name": f"{name}: {title}",
            "ours_s": spent,
            "peer": PEER,
            "peer_s": peer_s,
            "ratio": peer_s / spent,
            "pairs_per_s": size.n_prompts * (size.n_prompts - 1) / 2 / spent,
            "peak_mb": round(peak_mb),
            "note": f"the peer is extrapolated from {size.n_first:,} prompts, on which both are equal in every byte",
        }
    yield draw(engine, device, table, name)
    for n_workers in sorted({1, os.cpu_count() or 1}):
        yield whole_test(device, table, similarities, size.n_permutations, n_workers, name)


def draw(engine: Engine, device: str, table: ScoreTable, name: str) -> dict[str, Any]:
    """One permuted table with shuffled columns."""
    key = stream_key(0)
    if engine.shuffle_columns(table.packed, key, 0).tobytes() != shuffle_columns(table.packed, key, 0).tobytes():
        raise RuntimeError("the device and the kernels draw different tables")
    spent, peak_mb = seconds_and_peak(device, lambda: engine.shuffle_columns(table.packed, key, 1))
    peer_s = _costs.seconds(lambda: shuffle_columns(table.packed, key, 1))
    costs = {"ours_s": spent, "peer": PEER, "peer_s": peer_s, "ratio": peer_s / spent, "peak_mb": round(peak_mb)}
    return {"name": f"{name}: one permuted table", **costs, "note": "both are equal in every byte"}


def whole_test(
    device: str,
    table: ScoreTable,
    similarities: tuple[Similarity, ...],
    n_permutations: int,
    n_workers: int,
    name: str,
) -> dict[str, Any]:
    """A test, from the packed scores on, with some workers."""
    from analyses.numerics.similarity.devices.device_engine import create_engine

    def run() -> None:
        with joblib.parallel_config(n_jobs=n_workers, backend="threading"):
            tests = compare_binary(
                table,
                n_permutations=n_permutations,
                similarities=similarities,
                seed=0,
                engine=create_engine(device),
            )
        if not all(np.isfinite(test.comparisons["mean"].null).all() for test in tests.tests):
            raise RuntimeError("a draw has no mean")

    spent = seconds(device, run)
    return {
        "name": f"{name}: a test of {n_permutations} permutations, {n_workers} workers",
        "ours_s": spent,
        "s_per_permutation": spent / n_permutations,
    }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
