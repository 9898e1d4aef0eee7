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


def test_each_variant_is_the_diversity_of_its_part_of_the_table() -> None:
    scores = exact_scores(T)
    result = diversity_variants(scores)
    assert result.whole == diversity(impute_knn(scores))
    assert result.complete_tasks == diversity(exact_scores(T[:2]))
    assert result.complete_models == diversity(exact_scores(T[:, [0, 1, 3]]))
    assert (result.n_complete_tasks, result.n_complete_models) == (2, 3)


def test_without_gaps_all_are_the_same() -> None:
    result = diversity_variants(exact_scores(T[:1]))
    assert result.whole == result.complete_tasks == result.complete_models
    assert (result.n_complete_tasks, result.n_complete_models) == (1, 5)


@pytest.mark.parametrize(("part", "is_tasks"), [(T[1:], True), (T[:, 1:4], False)])
def test_too_few_complete_tasks_or_models_do_not_stand_for_the_whole(part: NDArray[np.float64], is_tasks: bool) -> None:
    result = diversity_variants(exact_scores(part))
    assert (result.complete_tasks is None) == is_tasks
    assert (result.complete_models is None) != is_tasks
