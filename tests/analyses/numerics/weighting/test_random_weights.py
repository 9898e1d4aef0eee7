"""Random weights of scores of any finite size."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from analyses.numerics.weighting.random_weights import weigh_randomly

IN_THE_UNIT = {"mean", "sd", "low", "high", "range_low", "range_high", "least", "most", "at", "gap", "gap_error"}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("exponent", [1000, -1000])
@pytest.mark.parametrize("exact", [True, False])
def test_the_unit_of_the_scores_changes_only_numbers_in_that_unit(exact: bool, exponent: int) -> None:
    Q = np.random.default_rng(4).random((30, 3))
    options: dict[str, Any] = {"higher_is_better": True, "n_draws": 200, "exact": exact, "seed": 1}
    result = weigh_randomly(Q, np.ones(30), **options)
    scaled = weigh_randomly(np.ldexp(Q, exponent), np.ones(30), **options)
    for field in fields(result):
        before, after = getattr(result, field.name), getattr(scaled, field.name)
        if field.name in IN_THE_UNIT:
            after = np.ldexp(after, -exponent)
        elif field.name == "height":
            after = np.ldexp(after, exponent)
        assert after == pytest.approx(before, rel=1e-9), field.name
    assert (result.sd > 0).all()
