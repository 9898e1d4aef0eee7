"""What tests of a loaded model have in common: how far numbers may differ, and the errors of unsupported inputs."""

from __future__ import annotations

TOLERANCE = {"float32": 1e-3, "float64": 1e-3, "bfloat16": 0.08, "float16": 0.02}
"""Tolerance of a token's log-probability, by dtype. The order of summation alone stays below it.

Packed rows: of 30 kinds of small models with random weights, those that support them deviated by at most 0.009
(bfloat16) and 0.001 (float16), the others by at least 0.1. Batches, as the root mean square over the vocabulary: of
57 kinds, sound ones without experts deviated by at most 0.05 (bfloat16), 0.02 (float16) and 2e-5 (float32), the others
by at least 1.8.
"""
UNSUPPORTED = (
    TypeError,
    ValueError,
    RuntimeError,
    AttributeError,
    KeyError,
    IndexError,
    NotImplementedError,
)
"""Errors of models that do not support packed rows, a batch or a cache."""


def find_tolerance(dtype: str) -> float:
    """Return the tolerance of a dtype; for an unknown one that of bfloat16."""
    return TOLERANCE.get(dtype, TOLERANCE["bfloat16"])
