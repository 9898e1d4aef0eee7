"""pass@k: the probability that at least one of k responses to a prompt is correct."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

PASS_AT_K = re.compile(r"pass@([1-9]\d*)")
CORRECTNESS = ("exact_match", "math_verify")
"""Metrics that are 1 for a correct response and 0 for a wrong one."""


def parse_k(name: str) -> int | None:
    """Return k of a metric ``pass@k``; None for another metric."""
    match = PASS_AT_K.fullmatch(name)
    return int(match[1]) if match else None


def score_trials(scores: Sequence[float], names: Iterable[str]) -> dict[str, float]:
    """Return pass@k for each of the metrics, from the correctness of all responses to one prompt."""
    import numpy as np

    from tracker.statistics.planning.trials import pass_at_k

    n_correct, n = np.array([sum(score == 1.0 for score in scores)]), np.array([len(scores)])
    return {name: float(pass_at_k(n_correct, n, k)[0]) for name in names if (k := parse_k(name)) is not None}
