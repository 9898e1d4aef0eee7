"""Lists in a sentence name the first few, and count the rest."""

from __future__ import annotations

from tracker.name_lists import join_names


def test_short_lists_are_whole() -> None:
    assert join_names([], 3) == ""
    assert join_names(["a", "b", "c"], 3) == "a, b, c"


def test_long_lists_report_how_many_more_there_are() -> None:
    assert join_names(range(5), 3) == "0, 1, 2 and 2 more"
    assert (
        join_names((str(n) for n in range(2003)), 2, separator="; ", noun="more models") == "0; 1 and 2,001 more models"
    )
