"""Tables and options that prompt correlation cannot use."""

from __future__ import annotations

from analyses.numerics.similarity.lattices import MAX_COLUMNS
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarities import BY_NAME, CHOICES, SIMILARITIES
from analyses.presentation.permutation_warnings import BINARY_ONLY, NULL_TEXTS
from analyses.presentation.validation import check_minimum, validate
from tracker.queries.score_validation import check_finite

NOTHING_VARIES = (
    "Every model has the same score on every prompt, so there is nothing to compare. Choose another metric or other "
    "models."
)


def validate_test(
    table: ScoreTable, *, n_permutations: int, null: str, similarities: tuple[str, ...], seed: int
) -> None:
    """Reject a table that cannot be tested, or not with these options.

    Raises:
        SelectionError: why, and what to do about it.
    """
    k = table.n_columns
    unknown = ", ".join(repr(name) for name in similarities if name not in CHOICES)
    limit = max((BY_NAME[name].max_columns for name in similarities if name in BY_NAME), default=0)
    continuous = {similarity.choice for similarity in SIMILARITIES if not similarity.is_binary_only}
    validate(
        {
            f"No similarity {unknown or 'chosen'}. Known: {', '.join(CHOICES)}.": bool(unknown) or not similarities,
            f"No null {null!r}. Known: columns, margins.": null not in NULL_TEXTS,
            **check_minimum(1, n_permutations=n_permutations),
            **check_minimum(0, seed=seed),
            **check_finite(table.Q),
            f"Prompts are compared by the models that get them right; models here: {k}. Choose at least 2.": k < 2,
            f"Pairs of prompts can be compared from 3 prompts on, here: {table.n_rows}. Choose more tasks or a larger "
            "benchmark.": table.n_rows < 3,
            f"{k} models are more than the {MAX_COLUMNS} that can be compared exactly at once. Choose fewer.": (
                table.is_binary and k > MAX_COLUMNS
            ),
            f"The cosine is counted exactly for up to {limit} models, here: {k}. Choose fewer, or another "
            "similarity.": table.is_binary and limit < k <= MAX_COLUMNS,
            BINARY_ONLY: not table.is_binary and null == "margins",
            "Continuous scores have the cosine only. Choose `cosine`, or a metric of 0 and 1.": not table.is_binary
            and not continuous.intersection(similarities),
        }
    )
    validate({NOTHING_VARIES: bool(table.constant_columns.all())})
