"""Tables and options that benchmark growth cannot use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.validation import check_minimum, validate
from tracker.queries.score_validation import check_finite

CRITERIA = ("mean", "min", "information")


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemResponse:
    """What item response needs to know beside the scores.

    Attributes:
        floors: ``(n_prompts,)`` chance to guess each answer: 1/k with k options, 0 for an open prompt.
        higher_is_better: whether the score 1 is right; else 0 is.
    """

    floors: NDArray[np.float64]
    higher_is_better: bool = True

    def right(self, Q: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores with 1 for right."""
        return Q if self.higher_is_better else 1 - Q


def validate_growth(
    Q: NDArray[np.float64],
    vectors: NDArray[np.float64] | None,
    item_response: ItemResponse | None,
    *,
    criterion: str,
    counts: Mapping[str, int],
    within: float,
    seed: int,
) -> None:
    """Reject benchmarks that cannot grow, or not with these options.

    Raises:
        SelectionError: the scores, vectors or an option cannot be used.
    """
    damaged = 0 if vectors is None else int((~np.isfinite(vectors)).any(axis=1).sum())
    validate(
        {
            **check_finite(Q),
            f"Benchmark growth needs at least 2 prompts, here: {len(Q)}. Select more tasks.": len(Q) < 2,
            f"{damaged:,} vectors have values that are not finite. Run `suffrage embed` again.": damaged > 0,
            f"No criterion {criterion!r}. Known: {', '.join(CRITERIA)}.": criterion not in CRITERIA,
            "The criterion `information` orders prompts by scores. Leave out the encoder, or choose `mean` or `min`.": (
                item_response is not None and vectors is not None
            ),
            "Item response needs scores of 0 and 1; these are continuous. Use `--criterion mean` or `min`.": (
                item_response is not None and not bool(((Q == 0) | (Q == 1)).all())
            ),
            **check_minimum(1, **counts),
            f"within is {within}; it must be at least 0 and less than 1.": not 0 <= within < 1,
            **check_minimum(0, seed=seed),
        }
    )
