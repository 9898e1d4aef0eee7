"""The kind of a heading does not depend on numbers without a meaning, so headings of one shape are examined once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.ingest.tables.names import column_headings
from tracker.ingest.tables.names.column_headings import ANY_NUMBER, MEANINGFUL_NUMBERS, VOCABULARY, heading_shape

FUNCTIONS = [function for function in vars(column_headings).values() if hasattr(function, "__wrapped__")]
BY_SHAPE = [function for function in FUNCTIONS if not hasattr(function, "cache_info")]
PARTS = st.sampled_from(sorted(VOCABULARY)) | st.from_regex(r"[a-zA-Z]{1,4}|[0-9]{1,6}|[0-9]\.[0-9]", fullmatch=True)
SEPARATORS = st.sampled_from(["", " ", "_", "-", ".", " (", ")", "/", ",", "%", "#", "$", "↑", "± ", "std_err"])
HEADINGS = st.lists(st.tuples(PARTS, SEPARATORS), min_size=1, max_size=5).map(
    lambda parts: "".join(word for part in parts for word in part)
)


def test_every_function_of_headings_is_covered() -> None:
    assert {function.__name__ for function in BY_SHAPE} >= {"is_side_heading", "is_summary_heading", "mentions_summary"}


def test_headings_that_count_have_one_shape() -> None:
    assert len({heading_shape(f"q{number}") for number in range(10_000)}) == 1 + len(
        {number for number in MEANINGFUL_NUMBERS if number == str(int(number)) and int(number) < 10_000}
    )
    assert heading_shape("CO2 of run 1234") == f"CO2 of run {ANY_NUMBER}"
    assert ANY_NUMBER not in MEANINGFUL_NUMBERS


@pytest.mark.parametrize("function", BY_SHAPE, ids=lambda function: function.__name__)
@given(name=HEADINGS)
def test_the_shape_determines_the_result(function: Callable[[str], Any], name: str) -> None:
    assert function(name) == function.__wrapped__(name)  # type: ignore[attr-defined]
