"""The summary of semantic similarity, and warnings about its lines."""

from __future__ import annotations

from collections.abc import Iterator

from analyses.presentation.one_per_family import state_verdict
from analyses.presentation.permutation_warnings import list_few_permutations_warnings
from analyses.semantic_similarity.method import SemanticSimilarity
from analyses.semantic_similarity.validation import NULL_TEXTS
from tracker.queries.findings.summary import MAX_EVIDENCE, Summary
from tracker.statistics.resampling import ALPHA

SMALL_SHARE = 0.01
"""Share of the variance below which an effect is smaller than what Cohen 1988 calls small."""
SIMILARITY_TITLES = {"cosine": "cosine similarity", "hamming": "Hamming similarity"}


def summarize(finding: SemanticSimilarity) -> Summary:
    """Summarize whether models perform more similarly on prompts closer in meaning."""
    caveat = (
        "Only p-values from permutations are tests. The p and FDR values of single prompts treat dependent pairs as "
        "independent."
    )
    mean, models = finding.test.comparisons["slope.mean"], finding.one_per_family
    family = models.describe(mean) if models else ""
    is_tested = not finding.test.comparisons["slope.mean"].reason
    return Summary(
        _headline(finding),
        (*_insert_family(list(_list_evidence(finding)), family), _describe_data(finding)),
        (caveat, *_list_null_caveats(finding)) if is_tested else (),
    )


def _list_null_caveats(finding: SemanticSimilarity) -> Iterator[str]:
    if finding.null != "strata":
        yield (
            f"The null `{finding.null}` does not keep the difficulty and the length of prompts: texts of similar "
            "length or difficulty alone can give this result. The null `strata` keeps both."
        )


def _insert_family(evidence: list[str], family: str) -> list[str]:
    """Return the evidence with the result with one model per family after the main statistic, at most as many items."""
    return [*evidence[:1], *filter(None, [family]), *evidence[1:]][: MAX_EVIDENCE - 1]


def _headline(finding: SemanticSimilarity) -> str:
    mean = finding.test.comparisons["slope.mean"]
    if mean.reason:
        return f"Whether performance is related to meaning is open: there is nothing to test ({mean.reason})."
    slope = f"mean slope {_format_slope(mean.observed)}"
    if mean.verdict:
        direction = "more" if mean.verdict > 0 else "less"
        explained = finding.r_squared if isinstance(finding.r_squared, float) else 1.0
        small = f"Meaning hardly matters: it explains {explained:.1%} of performance similarity. "
        statement = f"Models perform {direction} similarly on prompts closer in meaning"
        evidence = f"{slope}, p = {mean.pvalue_two_sided:.3g}"
        verdict = state_verdict(statement, evidence, mean, finding.one_per_family)
        return f"{small * (explained < SMALL_SHARE)}{verdict}"
    if not mean.can_reject:
        return f"{finding.n_permutations:,} permutations are too few to test whether performance is related to meaning."
    return f"Chance can explain how performance is related to meaning ({slope}, p = {mean.pvalue_two_sided:.3g})."


def _format_slope(slope: float) -> str:
    """Format with three decimals; a slope that is 0.000 with them is written with a power of ten."""
    rounded = f"{slope:z.3f}"
    return rounded if slope == 0 or float(rounded) else f"{slope:.1e}"


def _list_evidence(finding: SemanticSimilarity) -> Iterator[str]:
    test, tests = finding.test, finding.test.comparisons
    mean, discoveries = tests["slope.mean"], tests["n_discoveries"]
    statistic = f"Mean slope of {SIMILARITY_TITLES[finding.similarity]} of scores on similarity in meaning"
    if mean.reason:
        yield f"{statistic}: {mean.observed:.3g}."
        return
    yield (
        f"{statistic}: {_format_slope(mean.observed)}, against {_format_slope(mean.null_mean)} "
        f"(sd {mean.null_sd:.2g}) in {mean.n_permutations:,} {NULL_TEXTS[finding.null]}; "
        f"two-sided p = {mean.pvalue_two_sided:.3g}."
    )
    yield (
        f"Prompts with an FDR value of at most {ALPHA}: {discoveries.observed:,.0f}, against "
        f"{discoveries.null_mean:,.1f} on average by chance (p = {discoveries.pvalue:.3g}). "
        f"Family-wise: {int((test.familywise <= ALPHA).sum()):,}."
    )
    distances = ", ".join(
        f"{noun} {distance.observed:.3f} (by chance {distance.null_mean:.3f}, p = {distance.pvalue:.3g})"
        for distance, noun in ((tests["ks_slope"], "slopes"), (tests["ks_fdr"], "FDR values"))
        if not distance.reason
    )
    if distances:
        yield f"KS distance from the distribution by chance: {distances}."
    if isinstance(finding.r_squared, float):
        yield f"Meaning explains {finding.r_squared:.1%} of the variance of a prompt's performance similarity (mean)."


def _describe_data(finding: SemanticSimilarity) -> str:
    """Describe the prompts and the models."""
    return f"Data: {int(finding.test.kept.sum()):,} prompts and {finding.n_models} models."


def list_moving_weights_warnings(name: str) -> list[str]:
    """Warn that weights computed from scores are permuted with them."""
    return [f"The weights {name} are computed from scores, so each is permuted together with its scores."]


def list_line_warnings(finding: SemanticSimilarity, *, is_binary: bool) -> list[str]:
    """List warnings about lines without intercept, and about prompts without a line."""
    warnings = []
    if not finding.intercept:
        warnings.append(
            "Without an intercept, nearly every prompt has a significant slope, related or not. Ignore the p-values "
            "and FDR values of the slopes."
        )
    if finding.n_zero:
        warnings.append(f"{finding.n_zero:,} prompts that no model got right have no cosine and are left out.")
    if finding.n_without_line:
        warnings.append(
            f"{finding.n_without_line:,} prompts have no line: they are equally similar to all others, in meaning or "
            "in performance."
        )
    if is_binary and finding.similarity == "cosine":
        warnings.append(
            "On scores of 0 and 1 the cosine ignores common failures. `--similarity hamming` counts them, and uses "
            "all prompts."
        )
    return [*warnings, *list_few_permutations_warnings(finding.n_permutations)]
