"""Prompts on which all of some models are right, or wrong, and sure of it: with the question before them and without.

Source: Gupta et al. 2024, sections 3.2 and 3.3, appendix A.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.removal import draw_retained
from analyses.numerics.filtering.step_flags import StepFlags, confidently_right, confidently_wrong, make_flags

Flags = NDArray[np.bool_]
Probabilities = NDArray[np.float64] | None


@dataclass(frozen=True, kw_only=True)
class Unanimity:
    """What all models said of all prompts; every array is ``(n_prompts, n_models)``.

    Attributes:
        right, wrong: neither where the model was not asked.
        gold: probability of the gold answer, NaN where not known; None where being right is enough.
        own: probability of the model's own answer; None where being wrong is enough.
        blind_right: right without having seen the question.
        blind_gold: probability of the gold answer then; None where being right is enough.
        confidence: a model is sure if its probability is larger.
    """

    right: Flags
    wrong: Flags
    gold: Probabilities
    own: Probabilities
    blind_right: Flags
    blind_gold: Probabilities
    confidence: float

    def easy(self, models: NDArray[np.intp]) -> Flags:
        """``(n_prompts,)`` all of these models are right and sure."""
        return confidently_right(self.right[:, models], _of(self.gold, models), self.confidence)

    def contaminated(self, models: NDArray[np.intp]) -> Flags:
        """``(n_prompts,)`` all of these models are right and sure without having seen the question."""
        return confidently_right(self.blind_right[:, models], _of(self.blind_gold, models), self.confidence)

    def suspect(self, models: NDArray[np.intp]) -> Flags:
        """``(n_prompts,)`` all of these models are wrong and sure of their own answer."""
        return confidently_wrong(self.wrong[:, models], _of(self.own, models), self.confidence)


def unanimous_steps(
    said: Unanimity, models: NDArray[np.intp], *, retain: float, with_blind: bool, seed: int
) -> dict[str, StepFlags]:
    """The steps ``easy`` and ``contaminated`` as some models make them; without any model nothing is flagged.

    Args:
        said: what all models said.
        models: columns of those that filter.
        retain: share of the easy prompts that stay, at random; of the contaminated ones none does.
        with_blind: whether there are runs without the question of all of them; else nothing is contaminated.
        seed: of which easy prompts stay.
    """
    nothing = np.zeros(len(said.right), dtype=np.bool_)
    easy = said.easy(models) if len(models) else nothing
    contaminated = said.contaminated(models) if len(models) and with_blind else nothing
    return {
        "easy": make_flags(easy, easy & ~draw_retained(easy, retain, seed=seed)),
        "contaminated": make_flags(contaminated),
    }


def _of(probabilities: Probabilities, models: NDArray[np.intp]) -> Probabilities:
    return None if probabilities is None else probabilities[:, models]
