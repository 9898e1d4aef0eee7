"""Simulated tables to measure on."""

from __future__ import annotations

import numpy as np


def binary_table(n_prompts: int, n_models: int) -> np.ndarray:
    """SIMULATED scores: prompts of different difficulty, models of different ability."""
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 1.2, (n_prompts, 1)) + rng.normal(0.3, 0.8, (1, n_models))
    return (rng.random((n_prompts, n_models)) < 1 / (1 + np.exp(-odds))).astype(np.float64)


def continuous_table(n_prompts: int, n_models: int) -> np.ndarray:
    """SIMULATED scores in [0, 1]."""
    rng = np.random.default_rng(0)
    return 1 / (1 + np.exp(-rng.normal(0, 1, (n_prompts, 1)) - rng.normal(0, 1, (n_prompts, n_models))))
