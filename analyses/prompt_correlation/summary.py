"""What the permutation tests of prompt correlation found, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.pair_lattice import MAX_COLUMNS, MAX_COSINE_COLUMNS
from analyses.numerics.similarity.similarity_test import SimilarityTests
from analyses.presentation.permutation_warnings import (
    BINARY_ONLY,
    NULL_TEXTS,
    constant_model_warnings,
    few_permutations_warnings,
)
from analyses.presentation.validation import ValidationErrors, check_finite, check_minimum
from tracker.statistics.resampling import ALPHA, PermutationTest

NOTHING_VARIES = (
    "Every model has the same score on every prompt, so there is nothing to compare. Choose another metric or other "
    "models."
)
WRITTEN = {"hamming": "Hamming", "cosine": "cosine", "jaccard": "Jaccard"}
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


class Tested(Protocol):
    """What is said something about; see `PromptCorrelation`."""

    @property
    def n_prompts(self) -> int:
        """Prompts of the table."""

    @property
    def n_models(self) -> int:
        """Models of the table."""

    @property
    def n_missing(self) -> int:
        """Cells without a score."""

    @property
    def n_permutations(self) -> int:
        """Tables drawn."""

    @property
    def null(self) -> str:
        """Under which null."""

    @property
    def n_all_wrong(self) -> int:
        """Prompts that no model got right."""

    @property
    def n_effective(self) -> float | None:
        """Effective number of prompts; None where all count the same."""

    @property
    def similarities(self) -> SimilarityTests:
        """The tests."""

    @property
    def comparisons(self) -> Mapping[str, PermutationTest]:
        """Every test by name: similarity, dot, statistic."""


def summary(found: Tested) -> str:
    """What was found, with its numbers."""
    return " ".join([_verdict(found), *_caveats(found)])


def _verdict(found: Tested) -> str:
    names = found.comparisons
    name = "hamming.variance" if "hamming.variance" in names else f"{found.similarities.tests[0].name}.mean"
    test = names[name]
    counting = "" if found.n_effective is None else f", weighted so that they count as {found.n_effective:,.0f},"
    table = f"{found.n_prompts:,} prompts{counting} and {found.n_models} models"
    if all(other.reason for other in names.values()):
        return f"On {table} there is nothing to test: {test.reason}."
    pairs = "pairs of prompts" if found.n_effective is None else "weighted pairs of prompts"
    if name == "hamming.variance":
        what = f"variance, over {pairs}, of the share of models with the same score on both (Hamming)"
    else:
        what = f"mean {WRITTEN[name.split('.')[0]]} similarity of two prompts"
    if test.reason:
        return f"On {table}, the {what} is no test: {test.reason}. Other statistics are."
    more, less, chance, too_few = VERDICTS[name.split(".")[1]]
    if test.pvalue <= ALPHA:
        verdict = more
    elif test.pvalue_two_sided <= ALPHA:
        verdict = less
    else:
        verdict = chance if test.smallest_pvalue <= ALPHA else too_few
    return (
        f"On {table}, {verdict}: the {what} is {_shown(test.observed, test)}; {found.n_permutations:,} tables with "
        f"{NULL_TEXTS[found.null]} gave {_shown(test.null_mean, test)} (sd {test.null_sd:.2g}), {_tails(test)}"
        f"{_floor(test)}."
    )


def _floor(test: PermutationTest) -> str:
    least = min(test.pvalue, test.pvalue_lower)
    if least > test.smallest_pvalue:
        return ""
    return f"; {least:.3g} is the smallest p that {test.n_permutations:,} permutations can give"


def _caveats(found: Tested) -> Iterator[str]:
    names = found.comparisons
    mean = names.get("hamming.mean")
    if mean is not None and mean.reason and not names["hamming.variance"].reason:
        yield f"The mean Hamming similarity, {mean.observed:.6f}, is no test: no draw can change it."
    for one, other, words in (
        ("cosine", "cosine_nonzero", "prompts that no model got right"),
        ("jaccard", "jaccard_empty0", "pairs of prompts that no model got right"),
    ):
        yield from _disagreement(found, one, other, words)
    if found.null == "columns" and not all(test.reason for test in names.values()):
        yield "Shuffled columns also have no hard and easy prompts: any spread of difficulty shows here."
        if found.n_effective is not None:
            yield "So does heavy prompts being easier or harder than light ones: the weights are not shuffled along."
        if found.similarities.tests[0].width == 0:
            yield "The null `margins` keeps the difficulties."


def _disagreement(found: Tested, one: str, other: str, words: str) -> Iterator[str]:
    a, b = found.comparisons.get(f"{one}.mean"), found.comparisons.get(f"{other}.mean")
    if a is None or b is None or a.reason or b.reason or (a.pvalue <= ALPHA) == (b.pvalue <= ALPHA):
        return
    yield (
        f"The conventions for {words} ({found.n_all_wrong:,} prompts) disagree, and they alone decide the mean "
        f"{WRITTEN[one]}: `{one}` gives {_shown(a.observed, a)} against {_shown(a.null_mean, a)}, {_tails(a)}; "
        f"`{other}` gives {_shown(b.observed, b)} against {_shown(b.null_mean, b)}, {_tails(b)}."
    )


def _shown(value: float, test: PermutationTest) -> str:
    """A statistic to five decimals, or to two digits of the spread of its draws where that is finer."""
    finer = 1 - int(np.floor(np.log10(test.null_sd))) if test.null_sd > 0 else 0
    return f"{value:.{min(15, max(5, finer))}f}"


def _tails(test: PermutationTest) -> str:
    discrete = ", discrete" if test.is_discrete else ""
    return f"p = {test.pvalue:.3g} (lower tail {test.pvalue_lower:.3g}{discrete})"


def warnings(found: Tested, *, is_binary: bool, constant_models: Sequence[str]) -> list[str]:
    """What the reader of the numbers should know of the table behind them.

    Args:
        found: the finding.
        is_binary: whether every score is 0 or 1.
        constant_models: models with the same score on every prompt.
    """
    said = []
    mean = found.comparisons.get("hamming.mean")
    if found.n_missing:
        said.append(
            f"{found.n_missing:,} cells have no score. They stay where they are in every draw, and two prompts are "
            "compared over the models that have scores on both."
        )
        if mean is not None and not mean.reason and found.n_effective is None:
            said.append(
                "The mean Hamming similarity moves only because some pairs share fewer models than others; "
                "without missing cells no draw could change it. Read `hamming.variance` instead."
            )
        if found.null == "margins":
            said.append(
                "With missing cells the draws may not reach every table with these margins; the p-values are valid all "
                "the same."
            )
    if mean is not None and not mean.reason and found.n_effective is not None:
        said.append(
            "The mean Hamming similarity looks at each model by itself: it moves as right answers fall on heavy or "
            "light prompts, and says nothing of whether prompts agree. Read `hamming.variance` instead."
        )
    if found.similarities.n_disjoint:
        said.append(f"{found.similarities.n_disjoint:,} pairs of prompts share no model and are in no statistic.")
    if is_binary and found.n_models > MAX_COSINE_COLUMNS:
        said.append(f"The cosine is left out: it is counted exactly for up to {MAX_COSINE_COLUMNS} models.")
    return [*said, *constant_model_warnings(constant_models), *few_permutations_warnings(found.n_permutations)]


def problems(
    Q: NDArray[np.float64], *, is_binary: bool, n_permutations: int, null: str, similarities: tuple[str, ...], seed: int
) -> ValidationErrors:
    """Why a table cannot be tested, or not with these options, and what to do about it."""
    n, k = Q.shape
    unknown = ", ".join(repr(name) for name in similarities if name not in WRITTEN)
    return {
        f"No similarity {unknown or 'chosen'}. Known: {', '.join(WRITTEN)}.": bool(unknown) or not similarities,
        f"No null {null!r}. Known: columns, margins.": null not in NULL_TEXTS,
        **check_minimum(1, n_permutations=n_permutations),
        **check_minimum(0, seed=seed),
        **check_finite(Q),
        f"Prompts are compared by the models that get them right; models here: {k}. Choose at least 2.": k < 2,
        f"Pairs of prompts can be compared from 3 prompts on, here: {n}. Choose more tasks or a larger benchmark.": n
        < 3,
        f"{k} models are more than the {MAX_COLUMNS} that can be compared exactly at once. Choose fewer.": is_binary
        and k > MAX_COLUMNS,
        f"The cosine is counted exactly for up to {MAX_COSINE_COLUMNS} models, here: {k}. Choose fewer, or another "
        "similarity.": is_binary and k > MAX_COSINE_COLUMNS and set(similarities) == {"cosine"},
        BINARY_ONLY: not is_binary and null == "margins",
        "Continuous scores have the cosine only. Choose `cosine`, or a metric of 0 and 1.": not is_binary
        and "cosine" not in similarities,
    }
