"""The prompts with the most significant lines, with their texts, as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.semantic.semantic_partners import find_nearest_partners
from analyses.numerics.semantic.semantic_regression import performance_rows, unit_rows
from analyses.semantic_similarity.method import SemanticSimilarity
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.weighted_scores import WeightedScores

N_STRONGEST, N_PARTNERS = 20, 5
"""Number of prompts listed with their texts, and of partners of each."""


def list_strongest_lines(
    voters: WeightedScores, E: NDArray[Any], prompts: PromptTexts, finding: SemanticSimilarity
) -> pa.Table:
    """List the prompts with the most significant lines, with a row for each of their nearest partners in meaning.

    Prompts are ordered by family-wise p, then by t, the largest first.
    """
    test = finding.test
    kept = np.flatnonzero(test.kept)
    order = np.lexsort((-test.t, test.familywise))
    strongest = order[~np.isnan(test.t[order])][:N_STRONGEST]
    partners = find_nearest_partners(
        strongest,
        unit_rows(E[kept]),
        performance_rows(voters.scores.Q[kept], finding.similarity),
        voters.weights[kept],
        min(N_PARTNERS, len(kept) - 1),
        intercept=finding.intercept,
    )
    at = prompts.find_rows(voters.scores.prompt_ids[kept])
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
            "familywise": _or_none(test.familywise[i]),
            "nearest": near + 1,
            "partner": prompts.names[at[j]],
            "partner_task": prompts.tasks[at[j]],
            "partner_text": prompts.texts[at[j]],
            "semantic_similarity": partners.semantic[place, near],
            "performance_similarity": partners.performance[place, near],
            "contribution": _or_none(partners.contribution[place, near]),
        }
        for place, i in enumerate(strongest.tolist())
        for near, j in enumerate(partners.places[place].tolist())
    ]
    words = {"prompt", "task", "text", "partner", "partner_task", "partner_text"}
    kinds = {"place": pa.int64(), "nearest": pa.int64()} | dict.fromkeys(words, pa.string())
    return pa.Table.from_pylist(rows, schema=pa.schema([(n, kinds.get(n, pa.float64())) for n in rows[0]]))


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
