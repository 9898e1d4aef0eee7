"""Do a benchmark's prompts agree more than chance allows?

Benchmarks are averaged as if their prompts were independent draws. This asks whether they are: it
compares how similar prompts are, in which models get them right, with tables in which every model's
scores are shuffled (`columns`), or in which the difficulty of prompts is kept as well (`margins`).

Source: Ailem et al. 2024, section 3.2; every statistic is defined in docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.figures import prompt_correlation as figures
from analyses.numerics.binary_similarity import binary_similarities
from analyses.numerics.continuous_similarity import continuous_similarities
from analyses.numerics.pair_lattice import MAX_COLUMNS, MAX_COSINE_COLUMNS
from analyses.numerics.resampling import Comparison
from analyses.numerics.similarity import SimilarityTest, SimilarityTests
from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Absent, Finding, Metric, PromptValues, Report, analysis

CHOICES = ("hamming", "cosine", "jaccard")
VARIANTS = {"hamming": ("hamming",), "cosine": ("cosine", "cosine_nonzero"), "jaccard": ("jaccard", "jaccard_empty0")}
STATISTICS = ("mean", "p75", "p95", "variance", "ks_d")
ALPHA = 0.05
"""Up to this upper-tail p, the summary says that chance does not explain what was seen; so it says of too small a
statistic up to this two-sided p, since nobody had asked in that direction."""
KEPT = {
    "columns": "every model's scores shuffled",
    "margins": "every model's and every prompt's number right kept",
}
MEANING = {
    "hamming.variance": "variance, over pairs of prompts, of the share of models with the same score on both (Hamming)"
}
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

    @property
    def comparisons(self) -> Mapping[str, Comparison]:
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
        return " ".join([*self._verdict(), *self._caveats()])

    def _verdict(self) -> list[str]:
        names = self.comparisons
        name = "hamming.variance" if "hamming.variance" in names else f"{self.similarities.tests[0].name}.mean"
        test = names[name]
        table = f"{self.n_prompts:,} prompts and {self.n_models} models"
        if all(other.reason for other in names.values()):
            return [f"On {table} there is nothing to test: {test.reason}."]
        what = MEANING.get(name, f"mean {WRITTEN[name.split('.')[0]]} similarity of two prompts")
        if test.reason:
            return [f"On {table}, the {what} is no test: {test.reason}. Other statistics are."]
        more, less, chance, too_few = VERDICTS[name.split(".")[1]]
        if test.pvalue <= ALPHA:
            verdict = more
        elif test.pvalue_two_sided <= ALPHA:
            verdict = less
        else:
            verdict = chance if test.smallest_pvalue <= ALPHA else too_few
        return [
            f"On {table}, {verdict}: the {what} is {_shown(test.observed, test)}; {self.n_permutations:,} tables with "
            f"{KEPT[self.null]} gave {_shown(test.null_mean, test)} (sd {test.null_sd:.2g}), {_tails(test)}"
            f"{self._floor(test)}."
        ]

    def _floor(self, test: Comparison) -> str:
        least = min(test.pvalue, test.pvalue_lower)
        if least > test.smallest_pvalue:
            return ""
        return f"; {least:.3g} is the smallest p that {self.n_permutations:,} permutations can give"

    def _caveats(self) -> list[str]:
        said = []
        names = self.comparisons
        mean = names.get("hamming.mean")
        if mean is not None and mean.reason and not names["hamming.variance"].reason:
            said.append(f"The mean Hamming similarity, {mean.observed:.6f}, is no test: no draw can change it.")
        for one, other, words in (
            ("cosine", "cosine_nonzero", "prompts that no model got right"),
            ("jaccard", "jaccard_empty0", "pairs of prompts that no model got right"),
        ):
            said += self._disagreement(one, other, words)
        if self.null == "columns" and not all(test.reason for test in names.values()):
            said.append("Shuffled columns also have no hard and easy prompts: any spread of difficulty shows here.")
            if self.similarities.tests[0].width == 0:
                said.append("The null `margins` keeps the difficulties.")
        return said

    def _disagreement(self, one: str, other: str, words: str) -> list[str]:
        a, b = self.comparisons.get(f"{one}.mean"), self.comparisons.get(f"{other}.mean")
        if a is None or b is None or a.reason or b.reason or (a.pvalue <= ALPHA) == (b.pvalue <= ALPHA):
            return []
        return [
            f"The conventions for {words} ({self.n_all_wrong:,} prompts) disagree, and they alone decide the mean "
            f"{WRITTEN[one]}: `{one}` gives {_shown(a.observed, a)} against {_shown(a.null_mean, a)}, {_tails(a)}; "
            f"`{other}` gives {_shown(b.observed, b)} against {_shown(b.null_mean, b)}, {_tails(b)}."
        ]

    def table(self) -> pa.Table:
        """One row for each statistic."""
        rows = [
            {
                "similarity": name.split(".")[0],
                "statistic": name.split(".")[1],
                "observed": c.observed,
                "null_mean": c.null_mean,
                "null_sd": c.null_sd,
                **{p: None if c.reason else getattr(c, p) for p in PVALUES},
                "discrete": c.is_discrete,
                "reason": c.reason or None,
            }
            for name, c in self.comparisons.items()
        ]
        numbers = ("observed", "null_mean", "null_sd", *PVALUES)
        fields = [("similarity", pa.string()), ("statistic", pa.string()), *((n, pa.float64()) for n in numbers)]
        return pa.Table.from_pylist(
            rows, schema=pa.schema([*fields, ("discrete", pa.bool_()), ("reason", pa.string())])
        )


def _shown(value: float, test: Comparison) -> str:
    """A statistic to five decimals, or to two digits of the spread of its draws where that is finer."""
    finer = 1 - int(np.floor(np.log10(test.null_sd))) if test.null_sd > 0 else 0
    return f"{value:.{min(15, max(5, finer))}f}"


def _tails(test: Comparison) -> str:
    discrete = ", discrete" if test.is_discrete else ""
    return f"p = {test.pvalue:.3g} (lower tail {test.pvalue_lower:.3g}{discrete})"


def _metrics_of(name: str, comparison: Comparison) -> dict[str, Metric]:
    absent = Absent(comparison.reason)
    metrics: dict[str, Metric] = {
        name: comparison.observed if np.isfinite(comparison.observed) else absent,
        f"{name}.null_mean": comparison.null_mean if np.isfinite(comparison.null_mean) else absent,
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

    Raises:
        SelectionError: the table is too small, holds infinite values, does not vary, or the options do not
            fit it.
    """
    _refuse(Q, n_permutations, null, similarities, seed)
    missing = np.isnan(Q)
    binary = _is_binary(Q)
    if binary:
        choices = _countable(similarities, Q.shape[1])
        wanted = tuple(name for choice in choices for name in VARIANTS[choice])
        tests = binary_similarities(Q, n_permutations=n_permutations, null=null, similarities=wanted, seed=seed)
    else:
        tests = continuous_similarities(Q, n_permutations=n_permutations, seed=seed)
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
        kr20=_kr20(Q) if binary else Absent("defined for scores of 0 and 1"),
        similarities=tests,
    )


def _countable(similarities: tuple[str, ...], n_models: int) -> tuple[str, ...]:
    """Those of `CHOICES` that are wanted and can be counted exactly on scores of 0 and 1 of so many models."""
    return tuple(c for c in CHOICES if c in similarities and (c != "cosine" or n_models <= MAX_COSINE_COLUMNS))


def _is_binary(Q: NDArray[np.float64]) -> bool:
    return bool((np.isnan(Q) | (Q == 0) | (Q == 1)).all())


def _constant(Q: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(np.nanmax(Q, axis=0) == np.nanmin(Q, axis=0))


def _kr20(Q: NDArray[np.float64]) -> Metric:
    """Kuder-Richardson formula 20 with models as items and prompts as subjects, variances divided by ``n``."""
    if np.isnan(Q).any():
        return Absent("defined for tables without missing scores")
    k, p, variance = Q.shape[1], Q.mean(axis=0), Q.sum(axis=1).var()
    if variance == 0:
        return Absent("every prompt has the same number right")
    return float(k / (k - 1) * (1 - (p * (1 - p)).sum() / variance))


def _refuse(Q: NDArray[np.float64], n_permutations: int, null: str, similarities: tuple[str, ...], seed: int) -> None:
    n, k = Q.shape
    unknown = ", ".join(repr(name) for name in similarities if name not in CHOICES)
    binary = _is_binary(Q)
    problems = {
        f"No similarity {unknown or 'chosen'}. Known: {', '.join(CHOICES)}.": bool(unknown) or not similarities,
        f"No null {null!r}. Known: columns, margins.": null not in KEPT,
        f"n_permutations is {n_permutations}; it must be at least 1.": n_permutations < 1,
        f"seed is {seed}; it must be at least 0.": seed < 0,
        f"{int(np.isinf(Q).sum())} scores are infinite. Leave out their runs, or choose another metric.": bool(
            np.isinf(Q).any()
        ),
        f"Prompts are compared by the models that get them right; models here: {k}. Choose at least 2.": k < 2,
        f"Pairs of prompts can be compared from 3 prompts on, here: {n}. Choose more tasks or a larger benchmark.": n
        < 3,
        f"{k} models are more than the {MAX_COLUMNS} that can be compared exactly at once. Choose fewer.": binary
        and k > MAX_COLUMNS,
        f"The cosine is counted exactly for up to {MAX_COSINE_COLUMNS} models, here: {k}. Choose fewer, or another "
        "similarity.": binary and k > MAX_COSINE_COLUMNS and set(similarities) == {"cosine"},
        "The null `margins` exists for scores of 0 and 1 only; these are continuous. Use `columns`.": not binary
        and null == "margins",
        "Continuous scores have the cosine only. Choose `cosine`, or a metric of 0 and 1.": not binary
        and "cosine" not in similarities,
    }
    for problem, is_so in problems.items():
        if is_so:
            raise SelectionError(problem)
    if _constant(Q).all():
        raise SelectionError(
            "Every model has the same score on every prompt, so there is nothing to compare. "
            "Choose another metric or other models."
        )


def _measured(scores: PerformanceMatrix) -> tuple[PerformanceMatrix, NDArray[np.float64], tuple[str, ...], list[str]]:
    """The prompts that have a score, the table of them by the models that have one, and what was left out."""
    there = ~np.isnan(scores.Q)
    rows, columns = np.asarray(there.any(axis=1)), np.asarray(there.any(axis=0))
    kept = scores.rows(rows)
    models = tuple(np.array(scores.models, dtype=np.str_)[columns].tolist())
    notes = []
    if not columns.all():
        left_out = [model for model in scores.models if model not in models]
        notes.append(f"Left out {len(left_out)} models without any score: {', '.join(left_out[:5])}.")
    if not rows.all():
        notes.append(f"Left out {int((~rows).sum()):,} prompts without any score.")
    return kept, np.ascontiguousarray(kept.Q[:, columns]), models, notes


def _notes(found: PromptCorrelation, Q: NDArray[np.float64], models: tuple[str, ...]) -> list[str]:
    notes = []
    if found.n_missing:
        notes.append(
            f"{found.n_missing:,} cells have no score. They stay where they are in every draw, and two prompts are "
            "compared over the models that have scores on both."
        )
        if "hamming.mean" in found.comparisons and not found.comparisons["hamming.mean"].reason:
            notes.append(
                "The mean Hamming similarity moves only because some pairs share fewer models than others; "
                "without missing cells no draw could change it. Read `hamming.variance` instead."
            )
        if found.null == "margins":
            notes.append(
                "With missing cells the draws may not reach every table with these margins; the p-values are valid all "
                "the same."
            )
    if found.similarities.n_disjoint:
        notes.append(f"{found.similarities.n_disjoint:,} pairs of prompts share no model and are in no statistic.")
    if _is_binary(Q) and found.n_models > MAX_COSINE_COLUMNS:
        notes.append(f"The cosine is left out: it is counted exactly for up to {MAX_COSINE_COLUMNS} models.")
    if found.n_constant_models:
        names = [models[column] for column in np.flatnonzero(_constant(Q))]
        notes.append(f"The same score on every prompt: {', '.join(names[:5])}. Consider leaving such models out.")
    if found.n_permutations + 1 < 1 / ALPHA:
        notes.append(
            f"{found.n_permutations} permutations cannot give a p-value of {ALPHA} or less; 19 are the fewest."
        )
    return notes


@analysis
def analyze(
    scores: PerformanceMatrix,
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
        n_permutations: tables drawn under the null.
        null: what the draws keep.
        similarities: which to compute.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: see `permutation_test`.
    """
    kept, Q, models, notes = _measured(scores)
    if not Q.size:
        raise SelectionError("No prompt has a score from any model here. Ingest scores, or choose another metric.")
    found = permutation_test(Q, n_permutations=n_permutations, null=null, similarities=similarities, seed=seed)
    values = {f"{name}.mean_to_others": mean for name, mean in found.similarities.mean_to_others.items()}
    if _is_binary(Q):
        values["n_right"] = np.nansum(Q, axis=1)
    return Report(
        found,
        prompt_values={name: PromptValues(prompt_ids=kept.prompt_ids, values=v) for name, v in values.items()},
        tables={"statistics": found.table()},
        figures=_figures(found),
        notes=[*notes, *_notes(found, Q, models)],
    )


def _figures(found: PromptCorrelation) -> Mapping[str, Callable[[], Any]]:
    drawn = "shuffled columns" if found.null == "columns" else "same row and column sums"
    tests: tuple[SimilarityTest, ...] = found.similarities.tests
    return {
        "observed_and_permuted": lambda: figures.observed_and_permuted(tests, drawn),
        "null_distributions": lambda: figures.null_distributions(tests, drawn),
    }
