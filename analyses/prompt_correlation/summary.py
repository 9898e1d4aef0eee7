"""The summary of prompt correlation, and warnings about its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from analyses.numerics.similarity.similarities import BY_NAME, SIMILARITIES, Similarity
from analyses.presentation.permutation_warnings import (
    NULL_TEXTS,
    list_constant_model_warnings,
    list_few_permutations_warnings,
)
from analyses.prompt_correlation.method import PromptCorrelation
from tracker.queries.findings.summary import Summary
from tracker.statistics.resampling import ALPHA, PermutationTest

VERDICTS = {
    "variance": (
        "prompts agree more unevenly than chance allows",
        "prompts agree more evenly than chance allows",
        "chance can explain how prompts agree",
        "so few draws cannot say whether chance explains how prompts agree",
    ),
    "mean": (
        "prompts are more alike than chance allows",
        "prompts are less alike than chance allows",
        "chance can explain how alike prompts are",
        "so few draws cannot say whether chance explains how alike prompts are",
    ),
}
"""What a statistic says when it is too large, too small, neither, and when no p-value could be small enough."""


def summarize(finding: PromptCorrelation) -> Summary:
    """What was found, with its numbers."""
    return Summary.from_sentences([_verdict(finding), *_caveats(finding)])


def _verdict(finding: PromptCorrelation) -> str:
    names = finding.comparisons
    name = "hamming.variance" if "hamming.variance" in names else f"{finding.similarities.tests[0].name}.mean"
    test = names[name]
    counting = "" if finding.n_effective is None else f", weighted so that they count as {finding.n_effective:,.0f},"
    table = f"{finding.n_prompts:,} prompts{counting} and {finding.n_models} models"
    if all(test.reason for test in names.values()):
        return f"On {table} there is nothing to test: {test.reason}."
    pairs = "pairs of prompts" if finding.n_effective is None else "weighted pairs of prompts"
    if name == "hamming.variance":
        statistic = f"variance, over {pairs}, of the share of models with the same score on both (Hamming)"
    else:
        statistic = f"mean {BY_NAME[name.split('.')[0]].title} similarity of two prompts"
    if test.reason:
        return f"On {table}, the {statistic} is no test: {test.reason}. Other statistics are."
    more, less, chance, too_few = VERDICTS[name.split(".")[1]]
    if test.pvalue <= ALPHA:
        verdict = more
    elif test.pvalue_two_sided <= ALPHA:
        verdict = less
    else:
        verdict = chance if test.smallest_pvalue <= ALPHA else too_few
    return (
        f"On {table}, {verdict}: the {statistic} is {_format(test.observed, test)}; {finding.n_permutations:,} tables "
        f"with {NULL_TEXTS[finding.null]} gave {_format(test.null_mean, test)} (sd {test.null_sd:.2g}), {_tails(test)}"
        f"{_floor(test)}."
    )


def _floor(test: PermutationTest) -> str:
    least = min(test.pvalue, test.pvalue_lower)
    if least > test.smallest_pvalue:
        return ""
    return f"; {least:.3g} is the smallest p that {test.n_permutations:,} permutations can give"


def _caveats(finding: PromptCorrelation) -> Iterator[str]:
    names = finding.comparisons
    mean = names.get("hamming.mean")
    if mean is not None and mean.reason and not names["hamming.variance"].reason:
        yield f"The mean Hamming similarity, {mean.observed:.6f}, is no test: no draw can change it."
    for first, second in combinations(SIMILARITIES, 2):
        if first.choice == second.choice:
            yield from _disagreement(finding, first, second)
    if finding.null == "columns" and not all(test.reason for test in names.values()):
        yield "Shuffled columns also have no hard and easy prompts: any spread of difficulty shows here."
        if finding.n_effective is not None:
            yield "So does heavy prompts being easier or harder than light ones: the weights are not shuffled along."
        if finding.is_binary:
            yield "The null `margins` keeps the difficulties."


def _disagreement(finding: PromptCorrelation, first: Similarity, second: Similarity) -> Iterator[str]:
    a, b = finding.comparisons.get(f"{first.name}.mean"), finding.comparisons.get(f"{second.name}.mean")
    if a is None or b is None or a.reason or b.reason or (a.pvalue <= ALPHA) == (b.pvalue <= ALPHA):
        return
    yield (
        f"The conventions for {first.concerns} ({finding.n_all_wrong:,} prompts) disagree, and they alone decide the "
        f"mean {first.title}: `{first.name}` gives {_format(a.observed, a)} against {_format(a.null_mean, a)}, "
        f"{_tails(a)}; `{second.name}` gives {_format(b.observed, b)} against {_format(b.null_mean, b)}, {_tails(b)}."
    )


def _format(value: float, test: PermutationTest) -> str:
    """A statistic to five decimals, or to two digits of the spread of its draws where that is finer."""
    finer = 1 - int(np.floor(np.log10(test.null_sd))) if test.null_sd > 0 else 0
    return f"{value:.{min(15, max(5, finer))}f}"


def _tails(test: PermutationTest) -> str:
    discrete = ", discrete" if test.is_discrete else ""
    return f"p = {test.pvalue:.3g} (lower tail {test.pvalue_lower:.3g}{discrete})"


def list_table_warnings(finding: PromptCorrelation, constant_models: Sequence[str]) -> list[str]:
    """What the reader of the numbers should know of the table behind them.

    Args:
        finding: of the analysis.
        constant_models: models with the same score on every prompt.
    """
    warnings = []
    mean = finding.comparisons.get("hamming.mean")
    if finding.n_missing:
        warnings.append(
            f"{finding.n_missing:,} cells have no score. They stay where they are in every draw, and two prompts are "
            "compared over the models that have scores on both."
        )
        if mean is not None and not mean.reason and finding.n_effective is None:
            warnings.append(
                "The mean Hamming similarity moves only because some pairs share fewer models than others; "
                "without missing cells no draw could change it. Read `hamming.variance` instead."
            )
        if finding.null == "margins":
            warnings.append(
                "With missing cells the draws may not reach every table with these margins; the p-values are valid all "
                "the same."
            )
    if mean is not None and not mean.reason and finding.n_effective is not None:
        warnings.append(
            "The mean Hamming similarity looks at each model by itself: it moves as right answers fall on heavy or "
            "light prompts, and says nothing of whether prompts agree. Read `hamming.variance` instead."
        )
    if finding.similarities.n_disjoint:
        warnings.append(f"{finding.similarities.n_disjoint:,} pairs of prompts share no model and are in no statistic.")
    limits = {s.title: s.max_columns for s in SIMILARITIES if finding.is_binary and finding.n_models > s.max_columns}
    for title, limit in limits.items():
        warnings.append(f"The {title} is left out: it is counted exactly for up to {limit} models.")
    return [
        *warnings,
        *list_constant_model_warnings(constant_models),
        *list_few_permutations_warnings(finding.n_permutations),
    ]
