"""Do models fail alike on prompts that mean the same?

For each prompt a line is fitted, over all other prompts, of how alike the models perform on the two (performance
similarity) on how alike the two are in meaning (semantic similarity, the cosine of their vectors). The slopes, and
which of them stand out, are compared with tables in which meaning and performance have been torn apart.

Source: Ailem et al. 2024, sections 3.4 and 5.3, appendix B.
Definitions: docs/reference/statistics/semantic-similarity.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.weighted_scores import WeightedScores, select_complete_weighted
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import PromptValues, Report, analysis

DRAWN = {"rows": "vectors permuted", "columns": "shuffled columns"}


@analysis
def analyze(
    scores: PerformanceMatrix,
    embeddings: Embeddings,
    prompts: PromptTexts,
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

    Args:
        scores: at least 4 prompts that some model got right. Prompts that lack a score from some model are left out,
            with a warning; so are, for the cosine, prompts that no model got right.
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
    voters = select_complete_weighted(scores, weights)
    E = embeddings.align(voters.scores.prompt_ids)
    validate_table(voters.scores, E, similarity=similarity, null=null, n_permutations=n_permutations, seed=seed)
    finding = semantic_similarity(
        voters.scores.Q,
        E,
        voters.weights,
        similarity=similarity,
        null=null,
        intercept=intercept,
        untested_reason=explain_untested(weights, voters),
        n_permutations=n_permutations,
        seed=seed,
    )
    return Report(
        finding,
        summary=summarize(finding),
        prompt_values=_prompt_values(finding, voters.scores.prompt_ids),
        tables=_tables(finding, voters, E, prompts),
        figures=_figures(finding),
        warnings=_warnings(finding, voters, weights),
    )


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
    moves_weights = finding.null == "rows" and explain_untested(weights, voters)
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
