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
from tracker.recording.finding import Metric, finite_or_undefined
from tracker.statistics.resampling import PermutationTest

MIN_FAMILIES = 2
MIN_PRECISION = 10
"""Means of permuted tables that are at least as many standard deviations above 0 are the unit of an excess."""
NO_FAMILIES = "every model is a separate family, so the result is that with all models"


@dataclass(frozen=True, kw_only=True)
class FamilyTest:
    """A permutation test with one model per family.

    Attributes:
        n_models: models of the full test.
        n_families: models of this one.
        test: its main statistic; None if it was not repeated.
        reason: why it has no p-value; '' if it has one.
    """

    n_models: int
    n_families: int
    test: PermutationTest | None
    reason: str = ""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The number of models, the statistic with its null mean, and the p-values."""
        metrics: dict[str, Metric] = {"one_per_family.n_models": float(self.n_families)}
        for name in ("observed", "null_mean", "pvalue", "pvalue_two_sided"):
            is_defined = self.test is not None and not (name.startswith("pvalue") and self.reason)
            value = float(getattr(self.test, name)) if is_defined else np.nan
            metrics[f"one_per_family.{name}"] = finite_or_undefined(value, self.reason or "no draw has a value")
        return metrics

    def explains(self, full: PermutationTest) -> bool:
        """Return whether related models can explain the verdict of the full test: without them there is none."""
        return self.test is not None and not self.reason and bool(full.verdict) and self.test.verdict != full.verdict

    def describe(self, full: PermutationTest) -> str:
        """Return a sentence with the result beside that of the full test; '' where every model is a separate family."""
        models = f"One model per family ({self.n_families} of {self.n_models} models)"
        if self.test is None or self.reason or full.reason:
            return "" if self.reason == NO_FAMILIES or full.reason else f"{models}: no test ({self.reason})."
        if min(test.null_mean - MIN_PRECISION * test.null_sd for test in (self.test, full)) > 0:
            excess, full_excess = (test.observed / test.null_mean - 1 for test in (self.test, full))
            compared = f"{excess:+.1%} from the mean of permuted tables, {full_excess:+.1%} with all"
        else:
            compared = f"{self.test.observed:.3g}, {full.observed:.3g} with all"
        return f"{models}: {compared} (p = {self.test.pvalue_two_sided:.3g} and {full.pvalue_two_sided:.3g})."


def state_verdict(statement: str, evidence: str, full: PermutationTest, families: FamilyTest | None) -> str:
    """State the verdict of the full test; what related models can explain is not attributed to the prompts.

    Args:
        statement: the verdict, without a full stop.
        evidence: its p-value, and what goes with it.
        full: the test with all models, which rejects.
        families: the test with one model per family; None if it was not repeated.
    """
    if families is None or families.test is None or families.reason:
        return f"{statement} ({evidence})."
    if not families.explains(full):
        return f"{statement} ({evidence}), with one model per family too."
    reduced = "significant in the opposite direction" if families.test.verdict else "not significant"
    return (
        f"Related models can explain why {statement[0].lower()}{statement[1:]}: {evidence} with all models, {reduced} "
        f"with one model per family (p = {families.test.pvalue_two_sided:.3g})."
    )


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
    return FamilyTest(n_models=n_models, n_families=kept.size, test=test, reason=test.reason)
