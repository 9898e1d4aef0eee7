"""Numbers of a finding as they are printed for reading."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tracker.cli.output import print_numbers


@dataclass(frozen=True)
class Recorded:
    name: str
    value: float | None = 1.5
    reason: str | None = None
    is_main: bool = True


def printed(capsys: pytest.CaptureFixture[str], *numbers: Recorded) -> list[list[str]]:
    print_numbers(numbers)
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_a_name_with_a_dot_is_a_number_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, Recorded("diversity"), Recorded("diversity.tie_corrected", 0.25))
    assert lines[2:] == [["diversity", "1.5000"], ["diversity.tie_corrected", "0.2500"]]


def test_what_belongs_to_a_statistic_stands_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, Recorded("variance"), Recorded("variance.pvalue", 0.01), Recorded("variance.discrete", 0.0))
    assert lines[0] == ["statistic", "value", "pvalue"]
    assert lines[2:] == [["variance", "1.5000", "0.0100"]]


def test_the_reason_of_a_missing_number_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, Recorded("diversity"), Recorded("diversity.complete_tasks", None, "no task is complete"))
    assert lines[3] == ["diversity.complete_tasks", "–", "no", "task", "is", "complete"]
