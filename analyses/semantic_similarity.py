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
import pyarrow as pa
from numpy.typing import NDArray

from analyses.figures import semantic_similarity as figures
from analyses.numerics.semantic_null import ALPHA, SemanticTest, semantic_test
from analyses.numerics.semantic_partners import Curve, nearest_partners, similarity_curve
from analyses.numerics.semantic_regression import performance_rows, unit_rows
from tracker.errors import SelectionError
from tracker.queries.electorate import Electorate, complete_electorate
from tracker.queries.embeddings import Embeddings
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import Prompts
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Absent, Finding, Metric, PromptValues, Report, analysis

WRITTEN = {"cosine": "cosine similarity", "hamming": "Hamming similarity"}
N_STRONGEST, N_PARTNERS = 20, 5
"""Prompts that are listed with their texts, and partners of each."""
TORN = {
    "rows": "pairings of vectors and scores at random",
    "columns": "tables with every model's scores shuffled",
}
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
        metrics["n_familywise"] = float((self.test.familywise <= ALPHA).sum())
        metrics["r_squared.mean"] = self.r_squared
        for name, comparison in self.test.comparisons.items():
            metrics[name] = comparison.observed
            metrics[f"{name}.null_mean"] = _finite(comparison.null_mean, "no draw has a prompt with a line")
            metrics[f"{name}.null_sd"] = comparison.null_sd
            metrics[f"{name}.discrete"] = float(comparison.is_discrete)
            for tail in TAILS[name]:
                metrics[f"{name}.{tail}"] = (
                    Absent(comparison.reason) if comparison.reason else float(getattr(comparison, tail))
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
        tests = self.test.comparisons
        mean, found = tests["slope.mean"], tests["n_discoveries"]
        table = f"{self.n_prompts - self.n_zero:,} prompts and {self.n_models} models"
        if mean.reason:
            return f"On {table} there is nothing to test: {mean.reason}. The mean slope is {mean.observed:.3g}."
        said = [
            f"On {table}, {self._verdict()}: the mean slope of {WRITTEN[self.similarity]} in performance on "
            f"similarity in meaning is {mean.observed:z.3f}; {self.n_permutations:,} {TORN[self.null]} gave "
            f"{mean.null_mean:z.3f} (sd {mean.null_sd:.2g}), two-sided p = {mean.pvalue_two_sided:.3g}.",
            f"{found.observed:,.0f} prompts have an FDR value of at most {ALPHA}, against {found.null_mean:,.1f} on "
            f"average in the draws (p = {found.pvalue:.3g}); {int((self.test.familywise <= ALPHA).sum()):,} have a "
            f"family-wise p of at most {ALPHA}.",
        ]
        distances = ", ".join(
            f"{words} {test.observed:.3f} (null mean {test.null_mean:.3f}, p = {test.pvalue:.3g})"
            for test, words in ((tests["ks_slope"], "slopes"), (tests["ks_fdr"], "FDR values"))
            if not test.reason
        )
        if distances:
            said.append(f"KS distance from the pool of all tables: {distances}.")
        if isinstance(self.r_squared, float):
            said.append(f"On average a prompt's line explains {self.r_squared:.1%} of the variance.")
        said.append(
            "All these p come from the draws; a prompt's own p and FDR value take pairs as independent, which they are "
            "not, and are no tests."
        )
        return " ".join(said)

    def _verdict(self) -> str:
        tests = self.test.comparisons
        mean, spread = tests["slope.mean"], tests["ks_slope"]
        if mean.pvalue <= ALPHA:
            return "models succeed and fail more alike on prompts closer in meaning"
        if mean.pvalue_two_sided <= ALPHA:
            return "models succeed and fail less alike on prompts closer in meaning"
        if not spread.reason and spread.pvalue <= ALPHA:
            return "there is no relation on average, but the slopes are not distributed as chance would have it"
        if mean.smallest_pvalue > ALPHA:
            return "so few draws cannot say whether meaning and performance are related"
        return "chance can explain how meaning and performance go together"

    def table(self) -> pa.Table:
        """One row for each statistic."""
        rows = [
            {
                "statistic": name,
                "observed": c.observed,
                "null_mean": c.null_mean,
                "null_sd": c.null_sd,
                **{p: None if c.reason or p not in TAILS[name] else getattr(c, p) for p in TAILS["slope.mean"]},
                "discrete": c.is_discrete,
                "reason": c.reason or None,
            }
            for name, c in self.test.comparisons.items()
        ]
        numbers = [(name, pa.float64()) for name in ("observed", "null_mean", "null_sd", *TAILS["slope.mean"])]
        fields = [("statistic", pa.string()), *numbers, ("discrete", pa.bool_()), ("reason", pa.string())]
        return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _finite(value: float, reason: str) -> Metric:
    return value if np.isfinite(value) else Absent(reason)


def strongest_relations(voters: Electorate, E: NDArray[Any], prompts: Prompts, found: SemanticSimilarity) -> pa.Table:
    """The prompts whose line stands out most, each with its semantically most similar partners; a row for each partner.

    Prompts are ordered by family-wise p, then by t, the largest first.
    """
    test, kept = found.test, np.flatnonzero(found.test.kept)
    order = np.lexsort((-test.t, test.familywise))
    chosen = order[~np.isnan(test.t[order])][:N_STRONGEST]
    partners = nearest_partners(
        chosen,
        unit_rows(E[kept]),
        performance_rows(voters.scores.Q[kept], found.similarity),
        voters.weights[kept],
        min(N_PARTNERS, len(kept) - 1),
        intercept=found.intercept,
    )
    at = prompts.rows_of(voters.scores.prompt_ids[kept])
    rows = [
        {
            "place": place + 1,
            "prompt": prompts.names[at[i]],
            "task": prompts.tasks[at[i]],
            "text": prompts.texts[at[i]],
            "slope": test.slope[i],
            "stderr": test.stderr[i],
            "t": test.t[i],
            "pvalue": test.pvalue[i],
            "fdr": test.fdr[i],
            "familywise": test.familywise[i],
            "nearest": near + 1,
            "partner": prompts.names[at[j]],
            "partner_task": prompts.tasks[at[j]],
            "partner_text": prompts.texts[at[j]],
            "semantic_similarity": partners.semantic[place, near],
            "performance_similarity": partners.performance[place, near],
            "contribution": partners.contribution[place, near],
        }
        for place, i in enumerate(chosen.tolist())
        for near, j in enumerate(partners.places[place].tolist())
    ]
    words = {"prompt", "task", "text", "partner", "partner_task", "partner_text"}
    kinds = {"place": pa.int64(), "nearest": pa.int64()} | dict.fromkeys(words, pa.string())
    return pa.Table.from_pylist(rows, schema=pa.schema([(n, kinds.get(n, pa.float64())) for n in rows[0]]))


def _refuse(voters: Electorate, E: NDArray[Any], similarity: str, null: str, n_permutations: int, seed: int) -> None:
    Q = voters.scores.Q
    there = int(Q.any(axis=1).sum()) if similarity == "cosine" else len(Q)
    zero, broken = int((~E.any(axis=1)).sum()), int((~np.isfinite(E).all(axis=1)).sum())
    problems = {
        f"No similarity {similarity!r}. Known: cosine, hamming.": similarity not in ("cosine", "hamming"),
        f"No null {null!r}. Known: rows, columns.": null not in TORN,
        f"n_permutations is {n_permutations}; it must be at least 1.": n_permutations < 1,
        f"seed is {seed}; it must be at least 0.": seed < 0,
        f"{int(np.isinf(Q).sum())} scores are infinite. Leave out their runs, or choose another metric.": bool(
            np.isinf(Q).any()
        ),
        "Hamming similarity is for scores of 0 and 1; these are others. Use `cosine`.": similarity == "hamming"
        and not voters.scores.is_binary,
        f"{broken:,} prompts have a vector that is not finite. Make the vectors again.": broken > 0,
        f"{zero:,} prompts have a vector of zeros, which has no direction and so no cosine. Make them again from "
        "text that is not empty, or choose tasks without them.": zero > 0,
        f"A line over the other prompts needs at least 4 prompts that some model got right; here: {there}. Choose more "
        "tasks or a larger benchmark.": there < 4,
    }
    for problem, is_so in problems.items():
        if is_so:
            raise SelectionError(problem)


def _notes(found: SemanticSimilarity, *, binary: bool) -> list[str]:
    notes = []
    if found.n_zero:
        notes.append(f"{found.n_zero:,} prompts that no model got right have no cosine and are left out.")
    if binary and found.similarity == "cosine":
        notes.append(
            "On scores of 0 and 1 the cosine counts no failure in common, and is larger to prompts that more models "
            "got right. The Hamming similarity (--similarity hamming) counts common failures, and all prompts."
        )
    if found.n_without_line:
        notes.append(
            f"{found.n_without_line:,} prompts are equally similar to all others, in meaning or in performance, and "
            "have no line."
        )
    if not found.intercept:
        notes.append(
            "Without an intercept the line runs through the origin, and as similarities are mostly positive nearly "
            "every prompt is called significant, related or not. Read nothing into the slopes' p-values or FDR values."
        )
    if found.n_permutations + 1 < 1 / ALPHA:
        notes.append(
            f"{found.n_permutations} permutations cannot give a p-value of {ALPHA} or less; 19 are the fewest."
        )
    return notes


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
            there are partners. Counts and distributions over the prompts take every prompt once. Under the null
            `rows` a weight goes with the scores, under `columns` with the vector.
        similarity: of performance vectors.
        null: what the draws keep.
        intercept: whether the lines have one.
        n_permutations: tables drawn under the null.
        seed: the same seed gives the same numbers, whatever the number of workers.

    Raises:
        SelectionError: prompts without a vector; too few prompts; vectors without a direction; scores that the
            similarity is not for; similarities that are all the same.
    """
    voters = complete_electorate(scores, weights)
    E = embeddings.of(voters.scores.prompt_ids)
    _refuse(voters, E, similarity, null, n_permutations, seed)
    Q = voters.scores.Q
    test = semantic_test(
        Q,
        E,
        voters.weights,
        similarity=similarity,
        intercept=intercept,
        null=null,
        n_permutations=n_permutations,
        seed=seed,
    )
    if np.isnan(test.slope).all():
        raise SelectionError(
            "Every prompt is equally similar to all others, in meaning or in performance, so there is no line to fit. "
            "Choose other models, tasks or vectors."
        )
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
        r_squared=_r_squared(test.t, len(Q) - n_zero - 3) if intercept else Absent("defined for lines with intercept"),
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
    return Report(
        found,
        prompt_values={name: PromptValues(prompt_ids=ids, values=value) for name, value in values.items()},
        tables={"statistics": found.table(), "strongest": strongest_relations(voters, E, prompts, found)},
        figures={
            "distributions": lambda: figures.distributions(test.slope_bars, test.fdr_bars, DRAWN[null]),
            "null_distributions": lambda: figures.null_distributions(test.comparisons, DRAWN[null]),
            "performance_by_meaning": lambda: figures.performance_by_meaning(found.curve, WRITTEN[similarity]),
        },
        notes=[*voters.notes, *_notes(found, binary=voters.scores.is_binary)],
    )


def _r_squared(t: NDArray[np.float64], freedom: int) -> float:
    """Mean share of variance explained, over the prompts that have a line."""
    squared = t[~np.isnan(t)] ** 2
    return float((squared / (squared + freedom)).mean())
