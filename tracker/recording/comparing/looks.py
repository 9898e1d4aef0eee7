"""The recorded tests of all benchmarks on which two models are compared."""

from __future__ import annotations

import numpy as np
from sqlalchemy.orm import Session

from tracker.queries.findings.looks import list_looks
from tracker.queries.resolution import find_benchmark
from tracker.recording.comparing.shared_benchmarks import SharedBenchmarks
from tracker.recording.registry import discover_tests
from tracker.statistics.multiple_testing import holm_values


def describe_shared_looks(session: Session, shared: SharedBenchmarks) -> str:
    """Return how many tests of the benchmarks are recorded, and what Holm over all leaves of the smallest p-value.

    Args:
        session: the store.
        shared: the comparison, whose tests are not recorded.

    Returns:
        One line; '' without a test.
    """
    declared = discover_tests()
    looks = [
        look for row in shared.rows for look in list_looks(session, find_benchmark(session, row.benchmark).id, declared)
    ]
    overall = [pooled.pvalue for pooled in shared.pooled.values()]
    tests = [*overall, *(row.pvalue for row in shared.rows if row.pvalue is not None)]
    if not tests:
        return ""
    families = np.array([look.n_tests != 1 for look in looks] + [False] * len(tests), dtype=np.bool_)
    adjusted = holm_values(np.array([*(look.pvalue for look in looks), *tests]), families)[len(looks) :]
    left, source = (adjusted[: len(overall)], "overall") if overall else (adjusted, "smallest")
    before = f"{len(looks)} recorded test{'s' * (len(looks) != 1)} of these benchmarks came before"
    return (
        f"Looks: {before}. Holm over them and these {len(tests)} leaves p = {left.min():.2g} ({source}). "
        "Other tests that were not recorded are not counted, nor will these be later."
    )
