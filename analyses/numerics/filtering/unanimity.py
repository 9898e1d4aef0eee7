"""Prompts on which all of some models are right, or wrong, and sure of it: with the question before them and without.

Source: Gupta et al. 2024, sections 3.2 and 3.3, appendix A.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.step_flags import find_confidently_right, find_confidently_wrong

Flags = NDArray[np.bool_]
Probabilities = NDArray[np.float64] | None


@dataclass(frozen=True, kw_only=True)
class Unanimity:
    """The outcomes and the confidence of all models on all prompts; every array is ``(n_prompts, n_models)``.

    Attributes:
        right, wrong: neither where the model has no response.
        reference_probability: of the reference answer, NaN where not known; None where being right is enough.
        answer_probability: of the model's own answer; None where being wrong is enough.
        blind_right: right without having seen the question.
        blind_reference_probability: of the reference answer then; None where being right is enough.
        confidence: a model is sure if its probability is larger.
    """

    right: Flags
    wrong: Flags
    reference_probability: Probabilities
    answer_probability: Probabilities
    blind_right: Flags
    blind_reference_probability: Probabilities
    confidence: float

    def find_easy(self, models: NDArray[np.intp]) -> Flags:
        """``(n_prompts,)`` all of these models, at least one, are right and sure."""
        return find_confidently_right(
            self.right[:, models], _select(self.reference_probability, models), self.confidence
        )

    def find_contaminated(self, models: NDArray[np.intp]) -> Flags:
        """``(n_prompts,)`` all of these models are right and sure without having seen the question."""
        probabilities = _select(self.blind_reference_probability, models)
        return find_confidently_right(self.blind_right[:, models], probabilities, self.confidence)

    def find_suspect(self, models: NDArray[np.intp]) -> Flags:
        """``(n_prompts,)`` all of these models are wrong and confident in their answer."""
        return find_confidently_wrong(self.wrong[:, models], _select(self.answer_probability, models), self.confidence)


def _select(probabilities: Probabilities, models: NDArray[np.intp]) -> Probabilities:
    return None if probabilities is None else probabilities[:, models]
