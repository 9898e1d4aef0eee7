"""Loops that would take too long end early, with the time that they would take."""

from __future__ import annotations

import re
import time
from pathlib import Path

import joblib
import pytest
from answer_tables import write_answers
from click.testing import CliRunner

import tracker
from tracker.cli import suffrage
from tracker.errors import TimeLimitError
from tracker.recording.inputs.time_limit import describe_time, limit_time
from tracker.statistics import resampling
from tracker.statistics.resampling import map_blocks


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are estimated from the first block on."""
    monkeypatch.setattr(resampling, "PATIENCE", 0.0)


def wait(block: int) -> int:
    time.sleep(0.02)
    return block


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_loop_that_would_take_longer_ends_early(n_workers: int) -> None:
    begun: list[int] = []

    def wait_and_record(block: int) -> int:
        begun.append(block)
        return wait(block)

    with (
        pytest.raises(TimeLimitError, match=r"of 500 parts .* The limit is 0\.0001 hours\. .* --limit-hours 0\.0"),
        joblib.parallel_config(n_jobs=n_workers, backend="threading"),
        limit_time(1e-4),
    ):
        map_blocks(wait_and_record, 500)
    assert 1 <= len(begun) < 500


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("hours", [None, 1.0])
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_loop_within_the_limit_returns_all_results_in_order(n_workers: int, hours: float | None) -> None:
    with joblib.parallel_config(n_jobs=n_workers, backend="threading"), limit_time(hours):
        assert map_blocks(wait, 20) == list(range(20))


def test_the_first_minute_is_never_too_long() -> None:
    with limit_time(1e-9):
        assert map_blocks(wait, 3) == [0, 1, 2]


def test_a_timer_counts_the_blocks_of_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    timer = resampling.LoopTimer(500)
    with limit_time(1e-4):
        assert map_blocks(wait, 3, timer=timer) == [0, 1, 2]
        monkeypatch.setattr(resampling, "PATIENCE", 0.0)
        with pytest.raises(resampling.LoopTimeError, match="4 of 500 blocks"):
            map_blocks(wait, 3, timer=timer)


@pytest.mark.usefixtures("impatient")
def test_an_error_of_a_block_is_raised() -> None:
    def fail(block: int) -> int:
        raise KeyError(block)

    with joblib.parallel_config(n_jobs=2, backend="threading"), limit_time(1.0), pytest.raises(KeyError):
        map_blocks(fail, 20)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(30, "30 seconds"), (119, "119 seconds"), (150, "2 minutes"), (9000, "2 hours"), (2e6, "23 days")],
)
def test_times_are_described_in_the_largest_unit_of_which_there_are_two(seconds: float, text: str) -> None:
    assert describe_time(seconds) == text


@pytest.mark.usefixtures("impatient")
def test_an_analysis_that_would_take_too_long_is_refused_with_numbers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with tracker.open(url) as store:
        store.ingest(write_answers(tmp_path / "answers.csv", 0), benchmark="b")
        with pytest.raises(TimeLimitError, match="This would take about"):
            store.analyze("prompt-correlation", "b", n_permutations=500, limit_hours=1e-9)
        assert store.analyze("prompt-correlation", "b", n_permutations=500, limit_hours=1).metrics
    words = ["analyze", "prompt-correlation", "b", "--n-permutations", "500", "--database", url, "--no-mlflow"]
    refused = CliRunner().invoke(suffrage, [*words, "--limit-hours", "1e-9"])
    assert isinstance(refused.exception, TimeLimitError)
    assert re.search(r"This would take about \d+ seconds: 1 of \d+ parts took .* --limit-hours", str(refused.exception))
    assert CliRunner().invoke(suffrage, words).exit_code == 0
