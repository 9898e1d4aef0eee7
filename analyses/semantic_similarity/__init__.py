"""Test whether prompts with similar meaning are solved by the same models.

For each prompt, fits a line over all other prompts: similarity of the models' scores on similarity of meaning, the
cosine of their embeddings. Compares the slopes with those of embeddings permuted among prompts of
similar difficulty and length. A small p-value means that meaning predicts
which models fail. Needs vectors from `suffrage embed`.

Source: Ailem et al. 2024, sections 3.4 and 5.3, appendix B.
Definitions: docs/reference/statistics/semantic-similarity.md.

Examples:
    suffrage analyze semantic-similarity mmlu_pro
    suffrage analyze semantic-similarity mmlu_pro --similarity hamming --n-permutations 200
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.presentation.one_per_family import repeat_per_family
from analyses.presentation.permutation_test_table import list_statistics
from analyses.presentation.permutation_warnings import explain_untested, list_weight_warnings
from analyses.semantic_similarity import figures
from analyses.semantic_similarity.method import TAILS, SemanticSimilarity, semantic_similarity
from analyses.semantic_similarity.summary import (
    SIMILARITY_TITLES,
    list_line_warnings,
    list_moving_weights_warnings,
    summarize,
)
from analyses.semantic_similarity.tables import list_strongest_lines
from analyses.semantic_similarity.validation import validate_table
from tracker.queries.embeddings import Embeddings
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.special_treatments import WholeScores
from tracker.queries.ranking.weighted_scores import WeightedScores, select_weighted
from tracker.queries.related_models.family_labels import FamilyLabels
from tracker.queries.related_models.related import relate_models
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import PromptValues, Report, analysis

DRAWN = {"strata": "vectors permuted within strata", "rows": "vectors permuted", "columns": "shuffled columns"}


@analysis(
    tests={
        "mean slope": ("slope.mean.pvalue_two_sided",),
        "one model per family": ("one_per_family.pvalue_two_sided",),
        "slopes of prompts": ("max_t.pvalue",),
    },
    n_tests={"slopes of prompts": "n_lines"},
    missing="common",
    policies=("common", "worst", "fail"),
)
def analyze(
    scores: WholeScores,
    embeddings: Embeddings,
    prompts: PromptTexts,
    weights: PromptWeights | None,
    families: FamilyLabels | None = None,
    *,
    similarity: Annotated[
        Literal["cosine", "hamming"], "Similarity of score vectors. hamming requires scores of 0 and 1."
    ] = "cosine",
    null: Annotated[
        Literal["strata", "rows", "columns"],
        "Null hypothesis. strata: permute the embeddings among prompts of similar difficulty and length; rows: among "
        "all; columns: permute each model's scores.",
    ] = "strata",
    intercept: Annotated[
        bool, "Fit lines with an intercept. The paper has none, which makes nearly all slopes significant."
    ] = True,
    n_permutations: Annotated[int, "Number of permuted tables."] = 1000,
    seed: Annotated[int, "Seed of all random draws."] = 0,
) -> Report:
    """Fit each prompt's line of performance similarity on semantic similarity, and test the lines together.

    Args:
        scores: at least 4 prompts that some model solves. Prompts without a score from every model are left out, with a
            warning; so are, for the cosine, prompts that no model solves.
        embeddings: a vector for each of them. prompts: their texts, for the table of the strongest relations. weights:
        of the partners: each line is fitted by weighted least squares, with the number of partners as degrees of
            freedom. Counts and distributions over the prompts are not weighted. In the permutations a weight stays with
            its vector; one computed from scores stays with the scores under `strata` and `rows`, and there is no
            p-value under `columns`.
        families: stored families of the models; the test is repeated with one model per family.
        similarity: of performance vectors.
        null: what the permutations keep.
        intercept: whether the lines have one.
        n_permutations: permuted tables.
        seed: the same seed gives the same numbers, whatever the number of workers.

    Raises:
        SelectionError: prompts without a vector, too few prompts, vectors of length 0, scores that the similarity does
        not
            allow, or constant similarities.
    """
    voters = select_weighted(scores, weights)
    E = embeddings.align(voters.scores.prompt_ids)
    validate_table(voters.scores, E, similarity=similarity, null=null, n_permutations=n_permutations, seed=seed)
    run = partial(
        semantic_similarity,
        E=E,
        weights=voters.weights,
        similarity=similarity,
        null=null,
        intercept=intercept,
        lengths=_measure_lengths(prompts, voters.scores.prompt_ids),
        untested_reason=explain_untested(weights, voters),
        n_permutations=n_permutations,
        seed=seed,
    )
    finding = run(voters.scores.Q)
    reduced = repeat_per_family(
        relate_models(voters.scores, families, representative="typical"),
        lambda columns: run(np.ascontiguousarray(voters.scores.Q[:, columns])).test.comparisons["slope.mean"],
    )
    finding = replace(finding, one_per_family=reduced)
    return Report(
        finding,
        summary=summarize(finding),
        prompt_values=_prompt_values(finding, voters.scores.prompt_ids),
        tables=_tables(finding, voters, E, prompts),
        figures=_figures(finding),
        warnings=_warnings(finding, voters, weights),
    )


def _measure_lengths(prompts: PromptTexts, prompt_ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the number of characters of each text; 0 for an unknown one."""
    return np.array([len(prompts.texts[row] or "") for row in prompts.find_rows(prompt_ids).tolist()], dtype=np.float64)


def _tables(
    finding: SemanticSimilarity, voters: WeightedScores, E: NDArray[Any], prompts: PromptTexts
) -> dict[str, pa.Table]:
    return {
        "statistics": list_statistics(finding.test.comparisons, ("statistic",), TAILS["slope.mean"], TAILS),
        "strongest": list_strongest_lines(voters, E, prompts, finding),
    }


def _prompt_values(finding: SemanticSimilarity, prompt_ids: NDArray[np.int64]) -> dict[str, PromptValues]:
    test = finding.test
    values = {"slope": test.slope, "slope_pvalue": test.pvalue, "slope_fdr": test.fdr}
    values["slope_familywise"] = test.familywise
    return {name: PromptValues(prompt_ids=prompt_ids[test.kept], values=value) for name, value in values.items()}


def _warnings(finding: SemanticSimilarity, voters: WeightedScores, weights: PromptWeights | None) -> list[str]:
    moves_weights = finding.null != "columns" and explain_untested(weights, voters)
    return [
        *voters.warnings,
        *(
            list_moving_weights_warnings(voters.weights_name)
            if moves_weights
            else list_weight_warnings(weights, voters)
        ),
        *list_line_warnings(finding, is_binary=voters.scores.is_binary),
    ]


def _figures(finding: SemanticSimilarity) -> Mapping[str, Callable[[], Any]]:
    test, drawn = finding.test, DRAWN[finding.null]
    return {
        "distributions": lambda: figures.draw_distributions(test.slope_bars, test.fdr_bars, drawn),
        "null_distributions": lambda: figures.draw_null_distributions(test.comparisons, drawn),
        "performance_by_meaning": lambda: figures.draw_performance_by_meaning(
            finding.curve, SIMILARITY_TITLES[finding.similarity]
        ),
    }
