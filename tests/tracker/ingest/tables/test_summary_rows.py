"""Rows that summarize the others are the same, whether each name is examined or only those with such a word."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tracker.ingest.tables.names.column_headings import find_summary_rows, is_summary_row
from tracker.ingest.tables.names.vocabulary import SUMMARIES, SUMMARY_WORDS

NAMES = [
    *SUMMARIES,
    *SUMMARY_WORDS,
    *("Std. dev.", "Number of questions", "n samples", "# Tasks", "Max", "Overall Acc (%)", "Average ⬆️", "Shots"),
]
decorated = st.builds(
    lambda before, name, is_title: before + (name.replace("_", " ").title() if is_title else name),
    st.sampled_from(["", "**", "<b>", " ", "↑ "]),
    st.sampled_from(NAMES),
    st.booleans(),
)


@given(st.lists(st.none() | decorated | st.text(max_size=12)))
def test_summary_rows_are_those_that_each_name_states(names: list[str | None]) -> None:
    stated = [row for row, name in enumerate(names) if name is not None and is_summary_row(name)]
    assert find_summary_rows(pa.array(names, pa.string())) == stated


def test_every_listed_name_is_a_summary() -> None:
    assert len(find_summary_rows(pa.array(NAMES))) == len(NAMES)
