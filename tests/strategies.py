"""Score tables for Hypothesis: rows are prompts, columns are models."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

Table = NDArray[np.float64]


def can_be_tested(table: Table) -> bool:
    """Every row and column has a score, and some column varies."""
    present = ~np.isnan(table)
    if not (present.any(axis=0).all() and present.any(axis=1).all()):
        return False
    return bool((np.nanmax(table, axis=0) > np.nanmin(table, axis=0)).any())


@st.composite
def tables(draw: st.DrawFn, scores: st.SearchStrategy[float], max_prompts: int, max_models: int) -> Table:
    """Tables of the given scores that can be tested."""
    shape = (draw(st.integers(3, max_prompts)), draw(st.integers(2, max_models)))
    return draw(arrays(np.float64, shape, elements=scores).filter(can_be_tested))


def binary_tables(max_prompts: int = 12, max_models: int = 6) -> st.SearchStrategy[Table]:
    """Complete tables of 0 and 1."""
    return tables(st.sampled_from([0.0, 1.0]), max_prompts, max_models)


def binary_tables_with_gaps(max_prompts: int = 12, max_models: int = 6) -> st.SearchStrategy[Table]:
    """Tables of 0 and 1 with missing cells."""
    return tables(st.sampled_from([0.0, 1.0, 0.0, 1.0, np.nan]), max_prompts, max_models)


def continuous_tables(max_prompts: int = 12, max_models: int = 6) -> st.SearchStrategy[Table]:
    """Complete tables of scores in [-2, 2], with zeros and ties among them."""
    some = st.one_of(
        st.sampled_from([0.0, 0.5, 1.0]), st.floats(-2, 2, allow_subnormal=False).map(lambda x: round(x, 3))
    )
    return tables(some, max_prompts, max_models)


def continuous_tables_with_gaps(max_prompts: int = 12, max_models: int = 6) -> st.SearchStrategy[Table]:
    """Tables of scores in [0, 1] with missing cells."""
    some = st.one_of(st.sampled_from([0.0, 0.25, np.nan]), st.floats(0, 1).map(lambda x: round(x, 3)))
    return tables(some, max_prompts, max_models)
