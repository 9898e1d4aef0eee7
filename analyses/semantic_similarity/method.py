"""Lines of performance similarity on semantic similarity, and their permutation tests.

Source: Ailem et al. 2024, sections 3.4 and 5.3, appendix B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.semantic.semantic_null import SemanticTest, semantic_test
from analyses.numerics.semantic.semantic_partners import Curve, bin_similarities
from analyses.numerics.semantic.semantic_regression import performance_rows, unit_rows
from analyses.presentation.one_per_family import FamilyTest
from analyses.presentation.validation import validate
from analyses.semantic_similarity.validation import NO_LINE
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined
from tracker.statistics.resampling import ALPHA

WITH_INTERCEPT = "defined for lines with intercept"
TAILS = {
    "slope.mean": ("pvalue", "pvalue_lower", "pvalue_two_sided"),
    "n_discoveries": ("pvalue",),
    "ks_slope": ("pvalue",),
    "ks_fdr": ("pvalue",),
    "max_t": ("pvalue",),
}
"""The p-values of each test: only the mean slope can be too small in a way that means something."""


@dataclass(frozen=True, kw_only=True)
class SemanticSimilarity(Finding):
    """Outcome of the regressions and of their permutation tests.

    Attributes:
        n_prompts, n_models: of the table.
        n_zero: prompts with score 0 from every model, which have no cosine and are left out.
        n_without_line: other prompts for which one of the similarities is the same to all partners.
        n_permutations: tables drawn under the null.
        similarity, null: as chosen.
        intercept: whether the lines have one.
        r_squared: mean over prompts of the share of the variance of performance similarity that the line explains.
        test: lines, statistics and their draws.
        curve: performance similarity by semantic similarity.
        one_per_family: the test of the mean slope with one model per family; None where it was not repeated.
    """

    n_prompts: int
    n_models: int
    n_zero: int
    n_without_line: int
    n_permutations: int
    similarity: str
    null: str
    intercept: bool
    r_squared: Metric
    test: SemanticTest
    curve: Curve
    one_per_family: FamilyTest | None = None

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then every statistic with its null and p-values."""
        metrics: dict[str, Metric] = {
            name: float(value) for name, value in self._fields().items() if type(value) is int
        }
        metrics["n_lines"] = float((~np.isnan(self.test.slope)).sum())
        metrics["n_significant"] = float((self.test.pvalue <= ALPHA).sum())
        reason = self.test.comparisons["max_t"].reason
        metrics["n_familywise"] = Undefined(reason) if reason else float((self.test.familywise <= ALPHA).sum())
        metrics["r_squared.mean"] = self.r_squared
        for name, comparison in self.test.comparisons.items():
            metrics[name] = comparison.observed
            metrics[f"{name}.null_mean"] = finite_or_undefined(comparison.null_mean, "no draw has a prompt with a line")
            metrics[f"{name}.null_sd"] = comparison.null_sd
            metrics[f"{name}.discrete"] = float(comparison.is_discrete)
            for tail in TAILS[name]:
                metrics[f"{name}.{tail}"] = (
                    Undefined(comparison.reason) if comparison.reason else float(getattr(comparison, tail))
                )
        return metrics if self.one_per_family is None else {**metrics, **self.one_per_family.metrics}

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Null distributions, what the pictures show, and each prompt's standard error."""
        arrays: dict[str, NDArray[Any]] = {f"{name}.null": c.null for name, c in self.test.comparisons.items()}
        for name, bars in (("slope", self.test.slope_bars), ("fdr", self.test.fdr_bars)):
            arrays |= {f"{name}.edges": bars.edges, f"{name}.observed": bars.observed, f"{name}.permuted": bars.drawn}
        curve = self.curve
        return arrays | {"curve.edges": curve.edges, "curve.share": curve.share, "curve.excess": curve.excess}

    @property
    def main_metrics(self) -> Sequence[str]:
        """Counts, and each statistic with its upper-tail p-value."""
        skipped = ("null_sd", "discrete", "pvalue_lower", "n_permutations")
        return [name for name in self.metrics if not name.endswith(skipped)]


def semantic_similarity(
    Q: NDArray[np.float64],
    E: NDArray[Any],
    weights: NDArray[np.float64],
    *,
    similarity: str,
    null: str,
    intercept: bool,
    lengths: NDArray[np.float64],
    untested_reason: str,
    n_permutations: int,
    seed: int,
) -> SemanticSimilarity:
    """Fit each prompt's line, and test the lines together.

    Args:
        Q: ``(n_prompts, n_models)`` scores without gaps.
        E: ``(n_prompts, d)`` vectors, none of them zero.
        weights: ``(n_prompts,)`` of the partners, positive.
        similarity: of performance vectors, "cosine" or "hamming".
        null: "strata", "rows" or "columns".
        intercept: whether the lines have one.
        lengths: ``(n_prompts,)`` of the texts.
        untested_reason: why weights forbid p-values under `columns`, empty if they do not; under the others such
            weights go with the scores.
        n_permutations: tables drawn under the null.
        seed: of all draws.

    Raises:
        SelectionError: no prompt has a line.
    """
    test = semantic_test(
        Q,
        E,
        weights,
        similarity=similarity,
        intercept=intercept,
        null=null,
        lengths=lengths,
        weights_follow_scores=bool(untested_reason),
        n_permutations=n_permutations,
        seed=seed,
    )
    if untested_reason and null == "columns":
        test = test.without_pvalues(untested_reason)
    validate({NO_LINE: bool(np.isnan(test.slope).all())})
    n_zero = int((~test.kept).sum())
    return SemanticSimilarity(
        n_prompts=len(Q),
        n_models=Q.shape[1],
        n_zero=n_zero,
        n_without_line=int(np.isnan(test.slope).sum()),
        n_permutations=n_permutations,
        similarity=similarity,
        null=null,
        intercept=intercept,
        r_squared=_r_squared(test.t, len(Q) - n_zero - 3) if intercept else Undefined(WITH_INTERCEPT),
        test=test,
        curve=bin_similarities(unit_rows(E[test.kept]), performance_rows(Q[test.kept], similarity), weights[test.kept]),
    )


def _r_squared(t: NDArray[np.float64], freedom: int) -> float:
    """Mean share of variance explained, over the prompts that have a line."""
    squared = t[~np.isnan(t)] ** 2
    return float((squared / (squared + freedom)).mean())
