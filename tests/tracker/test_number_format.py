"""Numbers as people read them."""

from __future__ import annotations

import pytest

from tracker.number_format import format_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1 second"),
        (1.4, "1 second"),
        (30, "30 seconds"),
        (119, "119 seconds"),
        (150, "2.5 minutes"),
        (7201, "2 hours"),
        (9000, "2.5 hours"),
        (35_999, "10 hours"),
        (7200 * 6, "12 hours"),
        (2e6, "23 days"),
    ],
)
def test_durations_are_in_the_largest_unit_of_which_there_are_two(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
