"""Results with one model per family, beside those with all models.

Models of one family share errors. A test that treats models as independent mistakes that for structure of the prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.queries.related_models.related import RelatedModels
from tracker.recording.finding import Metric, Undefined
from tracker.statistics.resampling import ALPHA, PermutationTest

MIN_FAMILIES = 2
NO_FAMILIES = "every model is a separate family, so the result is that with all models"


@dataclass(frozen=True, kw_only=True)
class FamilyTest:
    """A permutation test with one model per family.

    Attributes:
        n_models: models of the full test.
        n_families: models of this one.
        test: its main statistic; None if there is no test.
        reason: why there is none; '' if there is.
    """

    n_models: int
    n_families: int
    test: PermutationTest | None
    reason: str = ""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The number of models, the statistic with its null mean, and the p-values."""
        names = ("observed", "null_mean", "pvalue", "pvalue_two_sided")
        test = self.test
        return {"one_per_family.n_models": float(self.n_families)} | {
            f"one_per_family.{name}": Undefined(self.reason) if test is None else float(getattr(test, name))
            for name in names
        }

    def keeps(self, test: PermutationTest) -> bool | None:
        """Whether this test agrees that a statistic is too large; None if there is nothing to compare."""
        if self.test is None or test.reason or test.pvalue > ALPHA:
            return None
        return self.test.pvalue <= ALPHA

    def qualify(self, test: PermutationTest) -> str:
        """Return what to add to the verdict that a statistic is too large; '' if there is nothing to compare."""
        is_kept = self.keeps(test)
        if is_kept is None or self.test is None:
            return ""
        if is_kept:
            return ", with one model per family too"
        return f", but not with one model per family (p = {self.test.pvalue:.3g})"

    def describe(self, statistic: str) -> str:
        """Return a sentence with the result; '' where every model is a separate family.

        Args:
            statistic: its name within a sentence.
        """
        models = f"One model per family ({self.n_families} of {self.n_models} models)"
        if self.test is None:
            return "" if self.reason == NO_FAMILIES else f"{models}: no test ({self.reason})."
        drawn = f"{self.test.observed:.4g}, against {self.test.null_mean:.4g} in permuted tables"
        return f"{models}: {statistic} {drawn} (p = {self.test.pvalue:.3g})."


def repeat_per_family(related: RelatedModels, run: Callable[[NDArray[np.int64]], PermutationTest]) -> FamilyTest:
    """Repeat a permutation test with one model per family.

    Args:
        related: the families of the models of the full test.
        run: the test of some of the columns.
    """
    kept = related.families.kept
    n_models = len(related.models)

    def untested(reason: str) -> FamilyTest:
        return FamilyTest(n_models=n_models, n_families=kept.size, test=None, reason=reason)

    if related.are_unrelated:
        return untested(NO_FAMILIES)
    if kept.size < MIN_FAMILIES:
        return untested("all models are one family")
    try:
        test = run(kept)
    except SelectionError as error:
        return untested(str(error).partition(". ")[0].removesuffix("."))
    return untested(test.reason) if test.reason else FamilyTest(n_models=n_models, n_families=kept.size, test=test)
