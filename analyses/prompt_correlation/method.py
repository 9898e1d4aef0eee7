"""Permutation tests of the similarities of prompts.

Source: Ailem et al. 2024, section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.null_tables import Null
from analyses.numerics.similarity.binary import compare_binary
from analyses.numerics.similarity.continuous import compare_continuous
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarities import CHOICES, DEFAULT_CHOICES, select_similarities
from analyses.numerics.similarity.similarity_test import SimilarityTests
from analyses.presentation.one_per_family import FamilyTest
from analyses.prompt_correlation.devices import choose_engine, explain_lack_of_memory
from analyses.prompt_correlation.validation import validate_test
from tracker.queries.related_models.related import RelatedModels
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined
from tracker.statistics.resampling import PermutationTest
from tracker.statistics.standard_errors import effective_sample_size

STATISTICS = ("mean", "p75", "p95", "variance", "ks_d")
PVALUES = ("pvalue", "pvalue_lower", "pvalue_mid", "pvalue_two_sided")


@dataclass(frozen=True, kw_only=True)
class PromptCorrelation(Finding):
    """Outcome of the permutation tests.

    Attributes:
        n_prompts, n_models: of the table that was tested.
        n_missing: its cells without a score.
        n_permutations: tables drawn under the null.
        null: "columns" or "margins".
        n_all_wrong, n_all_right: prompts whose every measured score is 0, or 1.
        n_distinct: different rows.
        n_constant_models: models with the same score everywhere.
        kr20: reliability of the number right (Kuder-Richardson 20), at most 1; absent unless the table is
            binary and complete.
        similarities: the tests, by similarity.
        n_effective: (Σw)² / Σw² of the prompts' weights w; None where all count the same.
        related: families of the models, and how far their pairs agree; None where they are not compared.
        one_per_family: the test of the main statistic with one model per family; None where it was not repeated.
    """

    n_prompts: int
    n_models: int
    n_missing: int
    n_permutations: int
    null: str
    n_all_wrong: int
    n_all_right: int
    n_distinct: int
    n_constant_models: int
    kr20: Metric
    similarities: SimilarityTests
    n_effective: float | None = None
    related: RelatedModels | None = None
    one_per_family: FamilyTest | None = None

    @property
    def main_test(self) -> str:
        """Name of the statistic that decides the verdict."""
        name = "hamming.variance"
        return name if name in self.comparisons else f"{self.similarities.tests[0].name}.mean"

    @property
    def is_binary(self) -> bool:
        """Whether every score is 0 or 1."""
        return self.similarities.tests[0].width == 0

    @property
    def comparisons(self) -> Mapping[str, PermutationTest]:
        """Every test by name: similarity, dot, statistic."""
        tests = {
            f"{test.name}.{statistic}": test.comparisons[statistic]
            for test in self.similarities.tests
            for statistic in STATISTICS
        }
        if self.similarities.row_sums is not None:
            tests["row_sum.variance"] = self.similarities.row_sums
        return tests

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts of the table, then every statistic with its suffixes."""
        metrics: dict[str, Metric] = {
            name: float(value) for name, value in self._fields().items() if isinstance(value, int)
        }
        metrics["n_pairs"] = float(self.similarities.n_pairs)
        metrics["n_disjoint_pairs"] = float(self.similarities.n_disjoint)
        metrics["kr20"] = self.kr20
        if self.n_effective is not None:
            metrics["n_effective"] = self.n_effective
        for name, comparison in self.comparisons.items():
            metrics |= _test_metrics(name, comparison)
        if self.one_per_family is not None:
            metrics |= self.one_per_family.metrics
        return metrics | self._model_pair_metrics()

    def _model_pair_metrics(self) -> dict[str, Metric]:
        """The tests of the pairs of models that the null `margins` names; empty where none is named."""
        if self.null != "margins" or self.related is None or self.related.errors is None:
            return {}
        holm = self.related.errors.holm[np.triu_indices(self.n_models, 1)]
        tested = holm[~np.isnan(holm)]
        return {
            "model_pairs.n_tests": float(tested.size),
            "model_pairs.holm": finite_or_undefined(float(tested.min(initial=np.inf)), "no pair has a test"),
        }

    @property
    def main_metrics(self) -> Sequence[str]:
        """The table's counts, and each statistic with its two-sided p-value for one variant of each similarity."""
        counts = [name for name in self.metrics if "." not in name and name != "n_permutations"]
        names = [
            name
            for name in self.comparisons
            if name.split(".")[0] in CHOICES or name in ("cosine_nonzero.mean", "row_sum.variance")
        ]
        suffixes = {name: "pvalue" if name.endswith("ks_d") else "pvalue_two_sided" for name in names}
        if self.one_per_family is not None:
            counts.append("one_per_family.pvalue_two_sided")
        return [*counts, *(key for name in names for key in (name, f"{name}.{suffixes[name]}"))]

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Null distributions, and how many pairs have each value of each similarity."""
        arrays: dict[str, NDArray[Any]] = {f"{name}.null": c.null for name, c in self.comparisons.items()}
        for test in self.similarities.tests:
            arrays[f"{test.name}.values"] = test.values
            arrays[f"{test.name}.observed_pairs"] = test.observed
            arrays[f"{test.name}.permuted_pairs"] = test.pooled
        return arrays


def _test_metrics(name: str, comparison: PermutationTest) -> dict[str, Metric]:
    metrics: dict[str, Metric] = {
        name: finite_or_undefined(comparison.observed, comparison.reason),
        f"{name}.null_mean": finite_or_undefined(comparison.null_mean, comparison.reason),
        f"{name}.null_sd": comparison.null_sd,
        f"{name}.discrete": float(comparison.is_discrete),
    }
    for suffix in PVALUES:
        metrics[f"{name}.{suffix}"] = Undefined(comparison.reason) if comparison.reason else getattr(comparison, suffix)
    return metrics


def permutation_test(
    Q: NDArray[np.float64],
    *,
    n_permutations: int = 1000,
    null: Null = "columns",
    similarities: tuple[str, ...] = DEFAULT_CHOICES,
    seed: int = 0,
    weights: NDArray[np.float64] | None = None,
    device: str = "cpu",
) -> PromptCorrelation:
    """Compare the similarities of a table's rows with those of tables drawn under a null.

    Degenerate tables are defined: a model with the same score everywhere stays and moves nothing; rows of
    zeros have cosine 0 (`cosine`) or are left out (`cosine_nonzero`); a statistic that no draw can change
    has its value and no p-value.

    Args:
        Q: ``(n_prompts, n_models)`` scores, NaN = not measured; at least 3 prompts and 2 models, each with a
            score. Binary if every score is 0 or 1.
        n_permutations: tables drawn, at least 1.
        null: "columns" shuffles each model's scores; "margins" keeps each prompt's number right too.
        similarities: some of `CHOICES`; continuous tables have those that are not for binary tables only, binary ones
            those that can be counted exactly for so many models.
        seed: of all draws.
        weights: ``(n_prompts,)`` positive weights in any unit; a pair counts the product of two, and they stay with
            their prompts in every draw. None or equal weights: every pair counts once.
        device: what counts pairs and draws tables, such as "cpu" or "cuda"; without effect on the result.

    Raises:
        SelectionError: the table is too small, holds infinite values, does not vary, or the options do not
            fit it; or the device is not available, lacks memory, or cannot be used for this table.
        MissingExtraError: the device needs PyTorch, which is not installed.
    """
    table = ScoreTable.create(Q, weights)
    validate_test(table, n_permutations=n_permutations, null=null, similarities=similarities, seed=seed)
    engine = choose_engine(device, table)
    if table.is_binary:
        selected = select_similarities(similarities)
        with explain_lack_of_memory(device):
            tests = compare_binary(
                table, n_permutations=n_permutations, null=null, similarities=selected, seed=seed, engine=engine
            )
    else:
        tests = compare_continuous(table, n_permutations=n_permutations, seed=seed)
    return PromptCorrelation(
        n_prompts=table.n_rows,
        n_models=table.n_columns,
        n_missing=int(table.missing.sum()),
        n_permutations=n_permutations,
        null=null,
        n_all_wrong=table.count_constant_rows(0),
        n_all_right=table.count_constant_rows(1),
        n_distinct=table.count_distinct_rows(),
        n_constant_models=int(table.constant_columns.sum()),
        kr20=_kr20(table),
        similarities=tests,
        n_effective=None if table.weights is None else effective_sample_size(table.weights),
    )


def _kr20(table: ScoreTable) -> Metric:
    """Kuder-Richardson formula 20 with models as items and prompts as subjects, variances divided by ``n``."""
    if not table.is_binary:
        return Undefined("defined for scores of 0 and 1")
    if table.missing.any():
        return Undefined("defined for tables without missing scores")
    Q, weights = table.Q, table.weights
    k, sums = table.n_columns, Q.sum(axis=1)
    if weights is None:
        p, variance = Q.mean(axis=0), sums.var()
    else:
        p = np.average(Q, axis=0, weights=weights)
        variance = np.average((sums - np.average(sums, weights=weights)) ** 2, weights=weights)
    if (sums == sums[0]).all():
        return Undefined("every prompt has the same number right")
    return float(k / (k - 1) * (1 - (p * (1 - p)).sum() / variance))
