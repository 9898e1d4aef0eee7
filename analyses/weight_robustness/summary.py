"""What random weights of the prompts are refused for, and what is to be noted of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.weighting.random_weights import RandomWeights
from analyses.presentation.validation import ValidationErrors, check_finite, check_minimum

MAX_KEPT = 1 << 29
"""Bytes of weighted means that sampling may hold."""
FAR = 3.5
"""Over the root of the number of draws, a difference that no share of draws has by chance: seven standard errors."""


def problems(Q: NDArray[np.float64], *, n_draws: int, method: str, seed: int) -> ValidationErrors:
    """Why these prompts cannot be weighed at random, or not with these options, and what to do about it."""
    most = MAX_KEPT // (8 * Q.shape[1])
    return {
        **check_minimum(1, n_draws=n_draws),
        **check_minimum(0, seed=seed),
        f"No method {method!r}. Known: exact, sampling.": method not in ("exact", "sampling"),
        f"Sampling holds every weighted mean; for {Q.shape[1]} models at most {most:,} draws fit. Choose fewer draws, "
        "or the method exact.": method == "sampling" and n_draws > most,
        **check_finite(Q),
    }


def warnings(models: Sequence[str], u: RandomWeights) -> list[str]:
    """What the reader of the numbers should know of the models behind them."""
    said = []
    pairs = [f"{models[i]} = {models[j]}" for i, j in zip(*np.nonzero(np.triu(u.is_identical, 1)), strict=True)]
    if pairs:
        said.append(
            f"Identical on every prompt, so neither is ever ahead (0.5) and they share their places: "
            f"{', '.join(pairs[:5])}{' …' if len(pairs) > 5 else ''}."
        )
    constant = [name for name, is_so in zip(models, u.least == u.most, strict=True) if is_so]
    if constant:
        said.append(
            f"The same score on every prompt, which no weights can change: {', '.join(constant[:5])}"
            f"{' …' if len(constant) > 5 else ''}."
        )
    if u.draws_differ_by > FAR / np.sqrt(u.n_draws):
        said.append(
            f"Some weights are so small that the draws cannot tell models apart: a chance of being ahead and its share "
            f"in the draws differ by {u.draws_differ_by:.2g}. Read the exact chances (--method exact), and no places."
        )
    return said
