"""The summary of semantic similarity, and warnings about its lines."""

from __future__ import annotations

from collections.abc import Mapping

from analyses.presentation.permutation_warnings import list_few_permutations_warnings
from analyses.semantic_similarity.method import SemanticSimilarity
from analyses.semantic_similarity.validation import NULL_TEXTS
from tracker.queries.findings.summary import Summary
from tracker.statistics.resampling import ALPHA, PermutationTest

SIMILARITY_TITLES = {"cosine": "cosine similarity", "hamming": "Hamming similarity"}


def summarize(finding: SemanticSimilarity) -> Summary:
    """The result with its numbers."""
    test, tests = finding.test, finding.test.comparisons
    mean, discoveries = tests["slope.mean"], tests["n_discoveries"]
    table = f"{int(test.kept.sum()):,} prompts and {finding.n_models} models"
    if mean.reason:
        return Summary(f"On {table} there is nothing to test: {mean.reason}. The mean slope is {mean.observed:.3g}.")
    sentences = [
        f"On {table}, {_verdict(tests)}: the mean slope of {SIMILARITY_TITLES[finding.similarity]} in performance on "
        f"similarity in meaning is {mean.observed:z.3f}; {mean.n_permutations:,} {NULL_TEXTS[finding.null]} gave "
        f"{mean.null_mean:z.3f} (sd {mean.null_sd:.2g}), p = {mean.pvalue:.3g} "
        f"(two-sided {mean.pvalue_two_sided:.3g}).",
        f"{discoveries.observed:,.0f} prompts have an FDR value of at most {ALPHA}, against "
        f"{discoveries.null_mean:,.1f} on average in the "
        f"draws (p = {discoveries.pvalue:.3g}); {int((test.familywise <= ALPHA).sum()):,} have a "
        f"family-wise p of at most {ALPHA}.",
    ]
    distances = ", ".join(
        f"{words} {distance.observed:.3f} (null mean {distance.null_mean:.3f}, p = {distance.pvalue:.3g})"
        for distance, words in ((tests["ks_slope"], "slopes"), (tests["ks_fdr"], "FDR values"))
        if not distance.reason
    )
    if distances:
        sentences.append(f"KS distance from the pool of all tables: {distances}.")
    if isinstance(finding.r_squared, float):
        sentences.append(f"On average a prompt's line explains {finding.r_squared:.1%} of the variance.")
    sentences.append(
        "All these p come from the draws; a prompt's own p and FDR value take pairs as independent, which they are "
        "not, and are no tests."
    )
    return Summary.from_sentences(sentences)


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


def list_moving_weights_warnings(name: str) -> list[str]:
    """A warning where weights made of scores go with them."""
    return [f"In the draws each weight of {name} goes with the scores that it was made of."]


def list_line_warnings(finding: SemanticSimilarity, *, is_binary: bool) -> list[str]:
    """What the reader of the numbers should know of the lines behind them."""
    warnings = []
    if finding.n_zero:
        warnings.append(f"{finding.n_zero:,} prompts that no model got right have no cosine and are left out.")
    if is_binary and finding.similarity == "cosine":
        warnings.append(
            "On scores of 0 and 1 the cosine counts no failure in common, and is larger to prompts that more models "
            "got right. The Hamming similarity (--similarity hamming) counts common failures, and all prompts."
        )
    if finding.n_without_line:
        warnings.append(
            f"{finding.n_without_line:,} prompts are equally similar to all others, in meaning or in performance, and "
            "have no line."
        )
    if not finding.intercept:
        warnings.append(
            "Without an intercept the line runs through the origin, and as similarities are mostly positive nearly "
            "every prompt is called significant, related or not. Read nothing into the slopes' p-values or FDR values."
        )
    return [*warnings, *list_few_permutations_warnings(finding.n_permutations)]
