"""The summary of prompt correlation, and warnings about its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

import numpy as np

from analyses.numerics.similarity.similarities import BY_NAME, SIMILARITIES, Similarity
from analyses.presentation.one_per_family import state_verdict
from analyses.presentation.permutation_warnings import (
    NULL_TEXTS,
    list_constant_model_warnings,
    list_few_permutations_warnings,
)
from analyses.prompt_correlation.method import PromptCorrelation
from analyses.prompt_correlation.model_pairs import describe_model_pairs
from tracker.queries.findings.summary import MAX_EVIDENCE, Summary
from tracker.statistics.resampling import PermutationTest

MIN_EVIDENCE = 3
"""The statistic, its test, and the data."""
VERDICTS = {
    "variance": (
        "Some prompts agree more, others less, than chance allows",
        "Prompts agree more evenly than chance allows",
        "Chance can explain how evenly prompts agree",
    ),
    "mean": (
        "Prompts are more similar than chance allows",
        "Prompts are less similar than chance allows",
        "Chance can explain how similar prompts are",
    ),
}
"""The verdict of a statistic that is too large, too small, or neither."""


def summarize(finding: PromptCorrelation) -> Summary:
    """Summarize whether prompts agree more than chance allows."""
    names = finding.comparisons
    name = finding.main_test
    test = names[name]
    return Summary(
        _headline(name, finding),
        tuple(_list_evidence(finding, name, test)),
        tuple(_list_caveats(finding)),
    )


def _headline(name: str, finding: PromptCorrelation) -> str:
    test = finding.comparisons[name]
    if test.reason:
        is_testable = not all(comparison.reason for comparison in finding.comparisons.values())
        scope = "the main statistic has no test" if is_testable else "there is nothing to test"
        return f"Whether prompts agree more than chance allows is open: {scope} ({test.reason})."
    more, less, chance = VERDICTS[name.split(".")[1]]
    if test.verdict:
        verdict = more if test.verdict > 0 else less
        return state_verdict(verdict, f"p = {test.pvalue_two_sided:.3g}", test, finding.one_per_family)
    if not test.can_reject:
        return (
            f"{test.n_permutations:,} permutations are too few to test whether prompts agree more than chance allows."
        )
    return f"{chance} (p = {test.pvalue_two_sided:.3g})."


def _list_evidence(finding: PromptCorrelation, name: str, test: PermutationTest) -> Iterator[str]:
    if name == "hamming.variance":
        pairs = "pairs" if finding.n_effective is None else "weighted pairs"
        statistic = f"Variance over {pairs} of prompts of the share of models with equal scores (Hamming)"
    else:
        statistic = f"Mean {BY_NAME[name.split('.')[0]].title} similarity of two prompts"
    if test.reason:
        yield f"{statistic}: {test.observed:.5f}."
    else:
        yield (
            f"{statistic}: {_format(test.observed, test)}, against {_format(test.null_mean, test)} "
            f"(sd {test.null_sd:.2g}) in {finding.n_permutations:,} tables with {NULL_TEXTS[finding.null]}."
        )
        smallest = ""
        if min(test.pvalue, test.pvalue_lower) <= test.smallest_pvalue:
            smallest = f"; {2 * test.smallest_pvalue:.3g} is the smallest possible p-value"
        yield f"Permutation test: {_tails(test)}{smallest}."
    models = list(_describe_models(finding, test))
    yield from models
    if len(models) < MAX_EVIDENCE - MIN_EVIDENCE:
        disagreements = (
            text
            for first, second in combinations(SIMILARITIES, 2)
            if first.choice == second.choice
            for text in _describe_disagreement(finding, first, second)
        )
        yield from islice(disagreements, MAX_EVIDENCE - MIN_EVIDENCE - len(models))
    weighted = "" if finding.n_effective is None else f" (weighted, worth {finding.n_effective:,.0f})"
    yield f"Data: {finding.n_prompts:,} prompts{weighted} and {finding.n_models} models."


def _describe_models(finding: PromptCorrelation, test: PermutationTest) -> Iterator[str]:
    """Describe the pairs of models that carry an excess, and the test with one model per family."""
    if finding.null == "margins" and finding.related and not test.reason and test.verdict > 0:
        yield from filter(None, [describe_model_pairs(finding.related)])
    if finding.one_per_family:
        yield from filter(None, [finding.one_per_family.describe(test)])


def _list_caveats(finding: PromptCorrelation) -> Iterator[str]:
    names = finding.comparisons
    mean = names.get("hamming.mean")
    if finding.null == "columns" and not all(test.reason for test in names.values()):
        margins = " The null `margins` keeps the difficulties." if finding.is_binary else ""
        yield f"Shuffled columns have no hard or easy prompts: any spread of difficulty counts as agreement.{margins}"
        if finding.n_effective is not None:
            yield "The weights are not shuffled, so a difference in difficulty of heavy and light prompts counts too."
    if mean is not None and mean.reason and not names["hamming.variance"].reason:
        yield f"The mean Hamming similarity ({mean.observed:.6f}) has no test: no permutation can change it."


def _describe_disagreement(finding: PromptCorrelation, first: Similarity, second: Similarity) -> Iterator[str]:
    """Report two conventions of one similarity that lead to different verdicts."""
    a, b = finding.comparisons.get(f"{first.name}.mean"), finding.comparisons.get(f"{second.name}.mean")
    if a is None or b is None or a.reason or b.reason or a.verdict == b.verdict:
        return
    yield (
        f"The mean {first.title} depends on the convention for {first.concerns} ({finding.n_all_wrong:,} prompts): "
        f"`{first.name}` {_format(a.observed, a)} (p = {a.pvalue_two_sided:.3g}), "
        f"`{second.name}` {_format(b.observed, b)} (p = {b.pvalue_two_sided:.3g})."
    )


def _format(value: float, test: PermutationTest) -> str:
    """Format to five decimals, or to two digits of the standard deviation of the draws if that is finer."""
    finer = 1 - int(np.floor(np.log10(test.null_sd))) if test.null_sd > 0 else 0
    return f"{value:.{min(15, max(5, finer))}f}"


def _tails(test: PermutationTest) -> str:
    discrete = ", discrete" if test.is_discrete else ""
    tails = f"two-sided; upper tail {test.pvalue:.3g}, lower tail {test.pvalue_lower:.3g}"
    return f"p = {test.pvalue_two_sided:.3g} ({tails}{discrete})"


def list_table_warnings(finding: PromptCorrelation, constant_models: Sequence[str]) -> list[str]:
    """List warnings about missing cells, left out statistics and constant models.

    Args:
        finding: the result.
        constant_models: models with the same score on every prompt.
    """
    warnings = []
    mean = finding.comparisons.get("hamming.mean")
    if finding.n_missing:
        warnings.append(
            f"{finding.n_missing:,} cells have no score. They stay empty in every permuted table; two prompts are "
            "compared over the models with a score on both."
        )
        if mean is not None and not mean.reason and finding.n_effective is None:
            warnings.append(
                "The mean Hamming similarity changes between permutations only because of the missing cells. "
                "Read `hamming.variance` instead."
            )
        if finding.null == "margins":
            warnings.append(
                "With missing cells the draws may not reach every table with these margins. The p-values stay valid."
            )
    if mean is not None and not mean.reason and finding.n_effective is not None:
        warnings.append(
            "With weights, the mean Hamming similarity reflects which prompts are heavy, not whether prompts agree. "
            "Read `hamming.variance` instead."
        )
    if finding.similarities.n_disjoint:
        warnings.append(f"{finding.similarities.n_disjoint:,} pairs of prompts share no model and are excluded.")
    limits = {s.title: s.max_columns for s in SIMILARITIES if finding.is_binary and finding.n_models > s.max_columns}
    for title, limit in limits.items():
        warnings.append(f"The {title} is left out: it is computed exactly for at most {limit} models.")
    return [
        *warnings,
        *list_constant_model_warnings(constant_models),
        *list_few_permutations_warnings(finding.n_permutations),
    ]
