"""pass@k: the probability that at least one of k responses to a prompt is correct."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import comb

PASS_AT_K = re.compile(r"pass@([1-9]\d*)")
CORRECTNESS = ("exact_match", "math_verify")
"""Metrics that are 1 for a correct response and 0 for a wrong one."""


def parse_k(name: str) -> int | None:
    """Return k of a metric ``pass@k``; None for another metric."""
    match = PASS_AT_K.fullmatch(name)
    return int(match[1]) if match else None


def pass_at_k(n: int, n_correct: int, k: int) -> float:
    """Return the unbiased estimate of pass@k from n responses.

    Args:
        n: responses, at least k.
        n_correct: correct ones among them.
        k: at least 1.

    Source: Chen et al. 2021, "Evaluating large language models trained on code", equation 1.
    """
    return 1.0 - comb(n - n_correct, k) / comb(n, k)


def score_trials(scores: Sequence[float], names: Iterable[str]) -> dict[str, float]:
    """Return pass@k for each of the metrics, from the correctness of all responses to one prompt."""
    n_correct = sum(score == 1.0 for score in scores)
    return {name: pass_at_k(len(scores), n_correct, k) for name in names if (k := parse_k(name)) is not None}
