"""Do models fail alike on prompts that mean the same?

For each prompt a line is fitted, over all other prompts, of how alike the models perform on the two (performance
similarity) on how alike the two are in meaning (semantic similarity, the cosine of their vectors). The slopes, and
which of them stand out, are compared with tables in which meaning and performance have been torn apart.

Source: Ailem et al. 2024, sections 3.4 and 5.3, appendix B; every statistic is defined in
docs/statistics/semantic-similarity.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.semantic.semantic_null import SemanticTest, semantic_test
from analyses.numerics.semantic.semantic_partners import Curve, similarity_curve
from analyses.numerics.semantic.semantic_regression import performance_rows, unit_rows
from analyses.presentation.permutation_test_table import statistics_table
from analyses.presentation.permutation_warnings import untested_reason, weight_warnings
from analyses.presentation.validation import validate
from analyses.semantic_similarity import figures
from analyses.semantic_similarity import summary as wording
from analyses.semantic_similarity.tables import strongest
from tracker.queries.embeddings import Embeddings
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import Prompts
from tracker.queries.ranking.weighted_scores import complete_weighted_scores
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Finding, Metric, PromptValues, Report, Undefined, analysis, finite_or_undefined
from tracker.statistics.resampling import ALPHA

DRAWN = {"rows": "vectors permuted", "columns": "shuffled columns"}
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

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then every statistic with its null and p-values."""
        metrics: dict[str, Metric] = {
            name: float(value) for name, value in self._fields().items() if type(value) is int
        }
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
        return metrics

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Null distributions, what the pictures show, and each prompt's standard error."""
        arrays: dict[str, NDArray[Any]] = {f"{name}.null": c.null for name, c in self.test.comparisons.items()}
        for name, bars in (("slope", self.test.slope_bars), ("fdr", self.test.fdr_bars)):
            arrays |= {f"{name}.edges": bars.edges, f"{name}.observed": bars.observed, f"{name}.permuted": bars.drawn}
        curve = self.curve
        return arrays | {"curve.edges": curve.edges, "curve.share": curve.share, "curve.excess": curve.excess}

    @property
    def headline(self) -> Sequence[str]:
        """Counts, and each statistic with its upper-tail p-value."""
        skipped = ("null_sd", "discrete", "pvalue_lower", "n_permutations")
        return [name for name in self.metrics if not name.endswith(skipped)]

    def summary(self) -> str:
        """What was found, in plain words."""
        return wording.summary(
            self.test, self.n_models, similarity=self.similarity, null=self.null, r_squared=self.r_squared
        )


@analysis
def analyze(
    scores: PerformanceMatrix,
    embeddings: Embeddings,
    prompts: Prompts,
    weights: PromptWeights | None,
    *,
    similarity: Annotated[
        Literal["cosine", "hamming"], "of performance vectors; hamming is for scores of 0 and 1"
    ] = "cosine",
    null: Annotated[
        Literal["rows", "columns"], "permute vectors against scores, or shuffle each model's scores"
    ] = "rows",
    intercept: Annotated[bool, "of the lines; the paper's have none, which makes nearly all significant"] = True,
    n_permutations: Annotated[int, "tables drawn under the null"] = 1000,
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Fit each prompt's line of performance similarity on semantic similarity, and test the lines together.

    Prompts that lack a score from some model are left out, with a note; so are, for the cosine, prompts that no model
    got right.

    Args:
        scores: at least 4 prompts that some model got right.
        embeddings: a vector for each of them.
        prompts: their texts, for the table of the strongest relations.
        weights: of the partners: each line is fitted by weighted least squares, with as many degrees of freedom as
            there are partners. Counts and distributions over the prompts take every prompt once. In the draws a weight
            goes with the vector; one made of scores goes with the scores under `rows`, and no p-value is given under
            `columns`.
        similarity: of performance vectors.
        null: what the draws keep.
        intercept: whether the lines have one.
        n_permutations: tables drawn under the null.
        seed: the same seed gives the same numbers, whatever the number of workers.

    Raises:
        SelectionError: prompts without a vector; too few prompts; vectors without a direction; scores that the
            similarity is not for; similarities that are all the same.
    """
    voters = complete_weighted_scores(scores, weights)
    E = embeddings.align(voters.scores.prompt_ids)
    validate(
        wording.problems(voters.scores, E, similarity=similarity, null=null, n_permutations=n_permutations, seed=seed)
    )
    Q, reason = voters.scores.Q, untested_reason(weights, voters)
    test = semantic_test(
        Q,
        E,
        voters.weights,
        similarity=similarity,
        intercept=intercept,
        null=null,
        with_scores=bool(reason),
        n_permutations=n_permutations,
        seed=seed,
    )
    said = weight_warnings(weights, voters)
    if reason and null == "columns":
        test = test.untested(reason)
    elif reason:
        said = wording.weights_move(voters.weights_name)
    validate({wording.NO_LINE: bool(np.isnan(test.slope).all())})
    rows = unit_rows(E[test.kept])
    n_zero = int((~test.kept).sum())
    found = SemanticSimilarity(
        n_prompts=len(Q),
        n_models=Q.shape[1],
        n_zero=n_zero,
        n_without_line=int(np.isnan(test.slope).sum()),
        n_permutations=n_permutations,
        similarity=similarity,
        null=null,
        intercept=intercept,
        r_squared=_r_squared(test.t, len(Q) - n_zero - 3)
        if intercept
        else Undefined("defined for lines with intercept"),
        test=test,
        curve=similarity_curve(rows, performance_rows(Q[test.kept], similarity), voters.weights[test.kept]),
    )
    ids = voters.scores.prompt_ids[test.kept]
    values = {
        "slope": test.slope,
        "slope_pvalue": test.pvalue,
        "slope_fdr": test.fdr,
        "slope_familywise": test.familywise,
    }
    warnings = wording.warnings(test, is_binary=voters.scores.is_binary, similarity=similarity, intercept=intercept)
    return Report(
        found,
        prompt_values={name: PromptValues(prompt_ids=ids, values=value) for name, value in values.items()},
        tables={
            "statistics": statistics_table(test.comparisons, ("statistic",), TAILS["slope.mean"], TAILS),
            "strongest": strongest(voters, E, prompts, test, similarity=similarity, intercept=intercept),
        },
        figures={
            "distributions": lambda: figures.distributions(test.slope_bars, test.fdr_bars, DRAWN[null]),
            "null_distributions": lambda: figures.null_distributions(test.comparisons, DRAWN[null]),
            "performance_by_meaning": lambda: figures.performance_by_meaning(found.curve, wording.WRITTEN[similarity]),
        },
        warnings=[*voters.warnings, *said, *warnings],
    )


def _r_squared(t: NDArray[np.float64], freedom: int) -> float:
    """Mean share of variance explained, over the prompts that have a line."""
    squared = t[~np.isnan(t)] ** 2
    return float((squared / (squared + freedom)).mean())
