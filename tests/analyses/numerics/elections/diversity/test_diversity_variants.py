"""How far tasks disagree where scores are missing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.concordance import diversity
from analyses.numerics.elections.diversity.diversity_variants import diversity_variants
from analyses.numerics.elections.diversity.imputation import impute_knn
from analyses.numerics.elections.exact_scores import exact_scores

NAN = float("nan")
T = np.array([[1.0, 2, 3, 4, 5], [2, 1, 4, 3, 5], [5, 1, NAN, 2, 3], [1, 5, 4, 2, NAN]])


def test_each_way_to_do_without_missing_scores_is_that_part_of_the_table() -> None:
    scores = exact_scores(T)
    found = diversity_variants(scores)
    assert found.whole == diversity(impute_knn(scores))
    assert found.complete_tasks == diversity(exact_scores(T[:2]))
    assert found.complete_models == diversity(exact_scores(T[:, [0, 1, 3]]))
    assert (found.n_complete_tasks, found.n_complete_models) == (2, 3)


def test_without_gaps_all_are_the_same() -> None:
    found = diversity_variants(exact_scores(T[:1]))
    assert found.whole == found.complete_tasks == found.complete_models
    assert (found.n_complete_tasks, found.n_complete_models) == (1, 5)


@pytest.mark.parametrize(("part", "is_tasks"), [(T[1:], True), (T[:, 1:4], False)])
def test_too_few_complete_tasks_or_models_are_not_taken_for_the_whole(
    part: NDArray[np.float64], is_tasks: bool
) -> None:
    found = diversity_variants(exact_scores(part))
    assert (found.complete_tasks is None) == is_tasks
    assert (found.complete_models is None) != is_tasks
