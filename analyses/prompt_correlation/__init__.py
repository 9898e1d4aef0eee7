"""Test whether prompts agree more than chance allows.

Means and standard errors treat prompts as independent. This analysis measures how similar prompts are by the models
that solve them, and compares that with permuted tables. A small p-value means that prompts or models are dependent.
Related models share errors and look like dependent prompts, so that the test is repeated with one model per family.
`--null margins` names the pairs of models that carry the excess. For groups of prompts see prompt-clusters.

Source: Ailem et al. 2024, section 3.2.
Definitions: docs/reference/statistics/prompt-correlation.md.

Examples:
    suffrage analyze prompt-correlation mmlu_pro
    suffrage analyze prompt-correlation mmlu_pro --null margins --n-permutations 200 --seed 1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.null_tables import Null
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarities import BY_NAME, CHOICES
from analyses.presentation.one_per_family import repeat_per_family
from analyses.presentation.permutation_test_table import list_statistics
from analyses.presentation.permutation_warnings import explain_untested, list_weight_warnings
from analyses.prompt_correlation import figures
from analyses.prompt_correlation.method import PVALUES, PromptCorrelation, permutation_test
from analyses.prompt_correlation.model_pairs import list_model_pairs
from analyses.prompt_correlation.summary import list_table_warnings, summarize
from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.special_treatments import WholeScores
from tracker.queries.ranking.weighted_scores import WeightedScores, select_weighted
from tracker.queries.related_models.family_labels import FamilyLabels
from tracker.queries.related_models.related import relate_models
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import CPU, Device, PromptValues, Report, analysis
from tracker.statistics.resampling import PermutationTest


def _drop_unscored(scores: PerformanceMatrix, weights: PromptWeights | None) -> WeightedScores:
    """The prompts that have a weight and a score, with the models that have one; warnings name those left out."""
    rows = np.asarray((~np.isnan(scores.Q)).any(axis=1))
    if not rows.any():
        raise SelectionError("No prompt has a score from any model here. Ingest scores, or choose another metric.")
    chosen = select_weighted(scores.rows(rows), weights)
    columns = ~np.isnan(chosen.scores.Q).all(axis=0)
    models = tuple(np.array(scores.models, dtype=np.str_)[columns].tolist())
    warnings = list(chosen.warnings)
    warnings += list_weight_warnings(weights, chosen)
    if not columns.all():
        dropped = [model for model in scores.models if model not in models]
        warnings.append(f"Left out {len(dropped)} models without any score: {', '.join(dropped[:5])}.")
    if not rows.all():
        warnings.append(f"Left out {int((~rows).sum()):,} prompts without any score.")
    Q = np.ascontiguousarray(chosen.scores.Q[:, columns])
    kept = replace(chosen.scores, Q=Q, models=models, run_ids=chosen.scores.run_ids[columns])
    return replace(chosen, scores=kept, warnings=tuple(warnings))


@analysis(
    tests={
        "similarity": (
            "hamming.variance.pvalue_two_sided",
            "cosine.mean.pvalue_two_sided",
            "jaccard.mean.pvalue_two_sided",
        ),
        "one model per family": ("one_per_family.pvalue_two_sided",),
        "pairs of models": ("model_pairs.holm",),
    },
    n_tests={"pairs of models": "model_pairs.n_tests"},
    missing="common",
    policies=("common", "worst", "fail"),
)
def analyze(
    scores: WholeScores,
    weights: PromptWeights | None = None,
    families: FamilyLabels | None = None,
    *,
    n_permutations: Annotated[int, "Number of permuted tables."] = 1000,
    null: Annotated[
        Null,
        (
            "Null hypothesis. columns: permute each model's scores; margins: also keep the number of "
            "models that solve each prompt."
        ),
    ] = "columns",
    similarities: Annotated[
        tuple[str, ...],
        f"Similarity measures, separated by commas: {', '.join(CHOICES)}. Continuous scores allow cosine only.",
    ] = ("hamming", "cosine", "jaccard"),
    seed: Annotated[int, "Seed of all random draws."] = 0,
    device: Device = CPU,
) -> Report:
    """Test whether prompts agree more than chance allows.

    Args:
        scores: at least 3 prompts and 2 models; prompts and models without any score are left out, with a warning.
        weights: a pair of prompts has the product of their weights, which stay in place in every permutation; prompts
            without a weight, or of weight 0, are left out, with a warning. With weights computed from scores there is
            no p-value.
        families: stored families of the models; the test is repeated with one model per family.
        n_permutations: permuted tables.
        null: what the permutations keep.
        similarities: which to compute.
        seed: the same seed gives the same bytes, whatever the number of workers and the device.
        device: what counts pairs of prompts and draws tables.

    Raises:
        SelectionError, MissingExtraError: see `permutation_test`.
    """
    voters = _drop_unscored(scores, weights)
    Q, models = voters.scores.Q, voters.scores.models
    test = partial(permutation_test, n_permutations=n_permutations, null=null, seed=seed, device=device)
    finding = test(Q, similarities=similarities, weights=voters.weights)
    if reason := explain_untested(weights, voters):
        finding = replace(finding, similarities=finding.similarities.without_pvalues(reason))
    finding = _repeat_per_family(finding, voters, families, similarities, test)
    constant_models = [models[column] for column in np.flatnonzero(ScoreTable(Q).constant_columns)]
    values = {f"{name}.mean_to_others": mean for name, mean in finding.similarities.mean_to_others.items()}
    if finding.is_binary:
        values["n_right"] = np.nansum(Q, axis=1)
    prompt_ids = voters.scores.prompt_ids
    return Report(
        finding,
        summary=summarize(finding),
        prompt_values={name: PromptValues(prompt_ids=prompt_ids, values=v) for name, v in values.items()},
        tables=_tables(finding),
        figures=_figures(finding),
        warnings=[*voters.warnings, *list_table_warnings(finding, constant_models)],
    )


def _repeat_per_family(
    finding: PromptCorrelation,
    voters: WeightedScores,
    families: FamilyLabels | None,
    similarities: tuple[str, ...],
    test: Callable[..., PromptCorrelation],
) -> PromptCorrelation:
    """Add the families of the models, and the test of the main statistic with one model per family.

    Args:
        finding: of all models.
        voters: its scores.
        families: stored families of the models.
        similarities: those of the finding.
        test: `permutation_test` with the same options.
    """
    related = relate_models(voters.scores, families, representative="typical")
    name = finding.main_test
    choice = BY_NAME[name.split(".")[0]].choice

    def run(columns: NDArray[np.int64]) -> PermutationTest:
        Q = np.ascontiguousarray(voters.scores.Q[:, columns])
        rows = ~np.isnan(Q).all(axis=1)
        chosen = (choice,) if choice in similarities else similarities
        reduced = test(Q[rows], similarities=chosen, weights=voters.weights[rows])
        return replace(reduced.comparisons[name], reason=finding.comparisons[name].reason)

    return replace(finding, related=related, one_per_family=repeat_per_family(related, run))


def _tables(finding: PromptCorrelation) -> dict[str, pa.Table]:
    tables = {"statistics": list_statistics(finding.comparisons, ("similarity", "statistic"), PVALUES)}
    pairs = list_model_pairs(finding.related) if finding.related and finding.null == "margins" else None
    return tables if pairs is None else tables | {"model_pairs": pairs}


def _figures(finding: PromptCorrelation) -> Mapping[str, Callable[[], Any]]:
    drawn = "shuffled columns" if finding.null == "columns" else "same row and column sums"
    tests = finding.similarities.tests
    return {
        "observed_and_permuted": lambda: figures.draw_observed_and_permuted(tests, drawn),
        "null_distributions": lambda: figures.draw_null_distributions(tests, drawn),
    }
