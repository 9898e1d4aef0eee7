"""Do a benchmark's prompts agree more than chance allows?

Benchmarks are averaged as if their prompts were independent draws. This asks whether they are: it
compares how similar prompts are, in which models get them right, with tables in which every model's
scores are shuffled (`columns`), or in which the difficulty of prompts is kept as well (`margins`).

Source: Ailem et al. 2024, section 3.2; every statistic is defined in
docs/statistics/prompt-correlation.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.binary import binary_similarities
from analyses.numerics.similarity.continuous import continuous_similarities
from analyses.numerics.similarity.pair_lattice import MAX_COSINE_COLUMNS
from analyses.numerics.similarity.similarity_test import SimilarityTest, SimilarityTests
from analyses.presentation.permutation_test_table import statistics_table
from analyses.presentation.permutation_warnings import untested_reason, weight_warnings
from analyses.presentation.validation import validate
from analyses.prompt_correlation import figures
from analyses.prompt_correlation import summary as wording
from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.weighted_scores import WeightedScores, effective_number, weighted_scores, with_mean_one
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Finding, Metric, PromptValues, Report, Undefined, analysis, finite_or_undefined
from tracker.statistics.resampling import PermutationTest

CHOICES = ("hamming", "cosine", "jaccard")
VARIANTS = {"hamming": ("hamming",), "cosine": ("cosine", "cosine_nonzero"), "jaccard": ("jaccard", "jaccard_empty0")}
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

    @property
    def comparisons(self) -> Mapping[str, PermutationTest]:
        """Every test by name: similarity, dot, statistic."""
        named = {
            f"{test.name}.{statistic}": test.comparisons[statistic]
            for test in self.similarities.tests
            for statistic in STATISTICS
        }
        if self.similarities.row_sums is not None:
            named["row_sum.variance"] = self.similarities.row_sums
        return named

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
            metrics |= _metrics_of(name, comparison)
        return metrics

    @property
    def headline(self) -> Sequence[str]:
        """The table's counts, and each statistic with its upper-tail p-value for one variant of each similarity."""
        counts = [name for name in self.metrics if "." not in name and name != "n_permutations"]
        names = [
            name
            for name in self.comparisons
            if name.split(".")[0] in CHOICES or name in ("cosine_nonzero.mean", "row_sum.variance")
        ]
        return [*counts, *(f"{name}{suffix}" for name in names for suffix in ("", ".pvalue"))]

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Null distributions, and how many pairs have each value of each similarity."""
        arrays: dict[str, NDArray[Any]] = {f"{name}.null": c.null for name, c in self.comparisons.items()}
        for test in self.similarities.tests:
            arrays[f"{test.name}.values"] = test.values
            arrays[f"{test.name}.observed_pairs"] = test.observed
            arrays[f"{test.name}.permuted_pairs"] = test.pooled
        return arrays

    def summary(self) -> str:
        """What was found, in plain words."""
        return wording.summary(self)


def _metrics_of(name: str, comparison: PermutationTest) -> dict[str, Metric]:
    absent = Undefined(comparison.reason)
    metrics: dict[str, Metric] = {
        name: finite_or_undefined(comparison.observed, comparison.reason),
        f"{name}.null_mean": finite_or_undefined(comparison.null_mean, comparison.reason),
        f"{name}.null_sd": comparison.null_sd,
        f"{name}.discrete": float(comparison.is_discrete),
    }
    for suffix in PVALUES:
        metrics[f"{name}.{suffix}"] = absent if comparison.reason else getattr(comparison, suffix)
    return metrics


def permutation_test(
    Q: NDArray[np.float64],
    *,
    n_permutations: int = 1000,
    null: Literal["columns", "margins"] = "columns",
    similarities: tuple[str, ...] = CHOICES,
    seed: int = 0,
    weights: NDArray[np.float64] | None = None,
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
        similarities: some of `CHOICES`; continuous tables have cosine only, binary ones of more than
            `MAX_COSINE_COLUMNS` models all but cosine.
        seed: of all draws.
        weights: ``(n_prompts,)`` positive weights in any unit; a pair counts the product of two, and they stay with
            their prompts in every draw. None, or all the same: every pair counts once.

    Raises:
        SelectionError: the table is too small, holds infinite values, does not vary, or the options do not
            fit it.
    """
    binary = _is_binary(Q)
    validate(
        wording.problems(
            Q, is_binary=binary, n_permutations=n_permutations, null=null, similarities=similarities, seed=seed
        )
    )
    if _constant(Q).all():
        raise SelectionError(wording.NOTHING_VARIES)
    w = None if weights is None or (weights == weights[0]).all() else with_mean_one(weights)
    missing = np.isnan(Q)
    if binary:
        choices = _countable(similarities, Q.shape[1])
        wanted = tuple(name for choice in choices for name in VARIANTS[choice])
        tests = binary_similarities(
            Q, n_permutations=n_permutations, null=null, similarities=wanted, seed=seed, weights=w
        )
    else:
        tests = continuous_similarities(Q, n_permutations=n_permutations, seed=seed, weights=w)
    return PromptCorrelation(
        n_prompts=Q.shape[0],
        n_models=Q.shape[1],
        n_missing=int(missing.sum()),
        n_permutations=n_permutations,
        null=null,
        n_all_wrong=int(((Q == 0) | missing).all(axis=1).sum()),
        n_all_right=int(((Q == 1) | missing).all(axis=1).sum()),
        n_distinct=int(np.unique(np.where(missing, np.inf, Q), axis=0).shape[0]),
        n_constant_models=int(_constant(Q).sum()),
        kr20=_kr20(Q, w) if binary else Undefined("defined for scores of 0 and 1"),
        similarities=tests,
        n_effective=None if w is None else effective_number(w),
    )


def _countable(similarities: tuple[str, ...], n_models: int) -> tuple[str, ...]:
    """Those of `CHOICES` that are wanted and can be counted exactly on scores of 0 and 1 of so many models."""
    return tuple(c for c in CHOICES if c in similarities and (c != "cosine" or n_models <= MAX_COSINE_COLUMNS))


def _is_binary(Q: NDArray[np.float64]) -> bool:
    return bool((np.isnan(Q) | (Q == 0) | (Q == 1)).all())


def _constant(Q: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(np.nanmax(Q, axis=0) == np.nanmin(Q, axis=0))


def _kr20(Q: NDArray[np.float64], weights: NDArray[np.float64] | None) -> Metric:
    """Kuder-Richardson formula 20 with models as items and prompts as subjects, variances divided by ``n``."""
    if np.isnan(Q).any():
        return Undefined("defined for tables without missing scores")
    k, sums = Q.shape[1], Q.sum(axis=1)
    if weights is None:
        p, variance = Q.mean(axis=0), sums.var()
    else:
        p = np.average(Q, axis=0, weights=weights)
        variance = np.average((sums - np.average(sums, weights=weights)) ** 2, weights=weights)
    if (sums == sums[0]).all():
        return Undefined("every prompt has the same number right")
    return float(k / (k - 1) * (1 - (p * (1 - p)).sum() / variance))


def _measured(scores: PerformanceMatrix, weights: PromptWeights | None) -> WeightedScores:
    """The prompts that have a weight and a score, with the models that have one; the notes say who was left out."""
    there = ~np.isnan(scores.Q)
    rows = np.asarray(there.any(axis=1))
    if not rows.any():
        raise SelectionError("No prompt has a score from any model here. Ingest scores, or choose another metric.")
    chosen = weighted_scores(scores.rows(rows), weights)
    columns = ~np.isnan(chosen.scores.Q).all(axis=0)
    models = tuple(np.array(scores.models, dtype=np.str_)[columns].tolist())
    warnings = list(chosen.warnings)
    warnings += weight_warnings(weights, chosen)
    if not columns.all():
        left_out = [model for model in scores.models if model not in models]
        warnings.append(f"Left out {len(left_out)} models without any score: {', '.join(left_out[:5])}.")
    if not rows.all():
        warnings.append(f"Left out {int((~rows).sum()):,} prompts without any score.")
    Q = np.ascontiguousarray(chosen.scores.Q[:, columns])
    kept = replace(chosen.scores, Q=Q, models=models, run_ids=chosen.scores.run_ids[columns])
    return replace(chosen, scores=kept, warnings=tuple(warnings))


@analysis
def analyze(
    scores: PerformanceMatrix,
    weights: PromptWeights | None = None,
    *,
    n_permutations: Annotated[int, "tables drawn under the null"] = 1000,
    null: Annotated[
        Literal["columns", "margins"], "shuffle each model's scores, or keep each prompt's number right as well"
    ] = "columns",
    similarities: Annotated[tuple[str, ...], "hamming, cosine, jaccard; continuous scores have cosine only"] = CHOICES,
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Test whether prompts agree more than chance allows.

    Args:
        scores: at least 3 prompts and 2 models; prompts and models without any score are left out, with a note.
        weights: two prompts count as a pair with the product of their weights, which stay where they are in every
            draw; prompts without a weight, or of weight 0, are left out, with a note. With weights made of scores no
            p-value is given.
        n_permutations: tables drawn under the null.
        null: what the draws keep.
        similarities: which to compute.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: see `permutation_test`.
    """
    measured = _measured(scores, weights)
    Q, prompt_ids, models = measured.scores.Q, measured.scores.prompt_ids, measured.scores.models
    found = permutation_test(
        Q,
        n_permutations=n_permutations,
        null=null,
        similarities=similarities,
        seed=seed,
        weights=measured.weights,
    )
    if reason := untested_reason(weights, measured):
        found = replace(found, similarities=found.similarities.untested(reason))
    constant = [models[column] for column in np.flatnonzero(_constant(Q))]
    values = {f"{name}.mean_to_others": mean for name, mean in found.similarities.mean_to_others.items()}
    if _is_binary(Q):
        values["n_right"] = np.nansum(Q, axis=1)
    return Report(
        found,
        prompt_values={name: PromptValues(prompt_ids=prompt_ids, values=v) for name, v in values.items()},
        tables={"statistics": statistics_table(found.comparisons, ("similarity", "statistic"), PVALUES)},
        figures=_figures(found),
        warnings=[
            *measured.warnings,
            *wording.warnings(found, is_binary=_is_binary(Q), constant_models=constant),
        ],
    )


def _figures(found: PromptCorrelation) -> Mapping[str, Callable[[], Any]]:
    drawn = "shuffled columns" if found.null == "columns" else "same row and column sums"
    tests: tuple[SimilarityTest, ...] = found.similarities.tests
    return {
        "observed_and_permuted": lambda: figures.observed_and_permuted(tests, drawn),
        "null_distributions": lambda: figures.null_distributions(tests, drawn),
    }
