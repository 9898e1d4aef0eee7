"""What the lines of performance on meaning and their tests say, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.semantic.semantic_null import SemanticTest
from analyses.presentation.permutation_warnings import few_permutations_warnings
from analyses.presentation.validation import ValidationErrors, check_finite, check_minimum
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Metric
from tracker.statistics.resampling import ALPHA, PermutationTest

WRITTEN = {"cosine": "cosine similarity", "hamming": "Hamming similarity"}
TORN = {
    "rows": "pairings of vectors and scores at random",
    "columns": "tables with every model's scores shuffled",
}
NO_LINE = (
    "Every prompt is equally similar to all others, in meaning or in performance, so there is no line to fit. Choose "
    "other models, tasks or vectors."
)


def summary(test: SemanticTest, n_models: int, *, similarity: str, null: str, r_squared: Metric) -> str:
    """What was found, with its numbers; ``r_squared`` is said where it is one."""
    tests = test.comparisons
    mean, found = tests["slope.mean"], tests["n_discoveries"]
    table = f"{int(test.kept.sum()):,} prompts and {n_models} models"
    if mean.reason:
        return f"On {table} there is nothing to test: {mean.reason}. The mean slope is {mean.observed:.3g}."
    said = [
        f"On {table}, {_verdict(tests)}: the mean slope of {WRITTEN[similarity]} in performance on "
        f"similarity in meaning is {mean.observed:z.3f}; {mean.n_permutations:,} {TORN[null]} gave "
        f"{mean.null_mean:z.3f} (sd {mean.null_sd:.2g}), p = {mean.pvalue:.3g} "
        f"(two-sided {mean.pvalue_two_sided:.3g}).",
        f"{found.observed:,.0f} prompts have an FDR value of at most {ALPHA}, against {found.null_mean:,.1f} on "
        f"average in the draws (p = {found.pvalue:.3g}); {int((test.familywise <= ALPHA).sum()):,} have a "
        f"family-wise p of at most {ALPHA}.",
    ]
    distances = ", ".join(
        f"{words} {one.observed:.3f} (null mean {one.null_mean:.3f}, p = {one.pvalue:.3g})"
        for one, words in ((tests["ks_slope"], "slopes"), (tests["ks_fdr"], "FDR values"))
        if not one.reason
    )
    if distances:
        said.append(f"KS distance from the pool of all tables: {distances}.")
    if isinstance(r_squared, float):
        said.append(f"On average a prompt's line explains {r_squared:.1%} of the variance.")
    said.append(
        "All these p come from the draws; a prompt's own p and FDR value take pairs as independent, which they are "
        "not, and are no tests."
    )
    return " ".join(said)


def _verdict(tests: Mapping[str, PermutationTest]) -> str:
    mean, spread = tests["slope.mean"], tests["ks_slope"]
    if mean.pvalue <= ALPHA:
        return "models succeed and fail more alike on prompts closer in meaning"
    if mean.pvalue_two_sided <= ALPHA:
        return "models succeed and fail less alike on prompts closer in meaning"
    if not spread.reason and spread.pvalue <= ALPHA:
        return "chance can explain the slopes on average, but not how they are distributed"
    if mean.smallest_pvalue > ALPHA:
        return "so few draws cannot say whether meaning and performance are related"
    return "chance can explain how meaning and performance go together"


def problems(
    scores: PerformanceMatrix, E: NDArray[Any], *, similarity: str, null: str, n_permutations: int, seed: int
) -> ValidationErrors:
    """Why these prompts have no lines, or not with these options, and what to do about it."""
    Q = scores.Q
    there = int(Q.any(axis=1).sum()) if similarity == "cosine" else len(Q)
    zero, broken = int((~E.any(axis=1)).sum()), int((~np.isfinite(E).all(axis=1)).sum())
    return {
        f"No similarity {similarity!r}. Known: cosine, hamming.": similarity not in ("cosine", "hamming"),
        f"No null {null!r}. Known: rows, columns.": null not in TORN,
        **check_minimum(1, n_permutations=n_permutations),
        **check_minimum(0, seed=seed),
        **check_finite(Q),
        "Hamming similarity is for scores of 0 and 1; these are others. Use `cosine`.": similarity == "hamming"
        and not scores.is_binary,
        f"{broken:,} prompts have a vector that is not finite. Make the vectors again.": broken > 0,
        f"{zero:,} prompts have a vector of zeros, which has no direction and so no cosine. Make them again from "
        "text that is not empty, or choose tasks without them.": zero > 0,
        f"A line over the other prompts needs at least 4 prompts that some model got right; here: {there}. Choose more "
        "tasks or a larger benchmark.": there < 4,
    }


def weights_move(name: str) -> list[str]:
    """A note where weights made of scores go with them."""
    return [f"In the draws each weight of {name} goes with the scores that it was made of."]


def warnings(test: SemanticTest, *, is_binary: bool, similarity: str, intercept: bool) -> list[str]:
    """What the reader of the numbers should know of the lines behind them."""
    said = []
    n_zero, n_without_line = int((~test.kept).sum()), int(np.isnan(test.slope).sum())
    if n_zero:
        said.append(f"{n_zero:,} prompts that no model got right have no cosine and are left out.")
    if is_binary and similarity == "cosine":
        said.append(
            "On scores of 0 and 1 the cosine counts no failure in common, and is larger to prompts that more models "
            "got right. The Hamming similarity (--similarity hamming) counts common failures, and all prompts."
        )
    if n_without_line:
        said.append(
            f"{n_without_line:,} prompts are equally similar to all others, in meaning or in performance, and "
            "have no line."
        )
    if not intercept:
        said.append(
            "Without an intercept the line runs through the origin, and as similarities are mostly positive nearly "
            "every prompt is called significant, related or not. Read nothing into the slopes' p-values or FDR values."
        )
    return [*said, *few_permutations_warnings(test.comparisons["slope.mean"].n_permutations)]
