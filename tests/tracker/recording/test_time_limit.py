"""Loops that would take too long end early, with the time that they would take."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pytest
from answer_tables import write_answers
from click.testing import CliRunner

import tracker
from analyses.numerics.clustering import spherical_kmeans
from analyses.numerics.clustering.spherical_kmeans import find_best_assignments
from analyses.numerics.growth import farthest_on_average
from analyses.numerics.growth.farthest_first import order_farthest_first
from analyses.numerics.growth.groups import group_rows
from analyses.numerics.mixed.design import build_design
from analyses.numerics.mixed.gaussian import fit_gaussian
from analyses.numerics.mixed.laplace import fit_logistic
from tracker.cli import suffrage
from tracker.errors import TimeLimitError
from tracker.recording.inputs.time_limit import limit_time
from tracker.statistics.parallel import time_limits
from tracker.statistics.parallel.blocks import expect_blocks, map_blocks
from tracker.statistics.rng_streams import stream_key


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are estimated from the first block on."""
    monkeypatch.setattr(time_limits, "PATIENCE", 0.0)


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
    with limit_time(1e-4):
        timer = time_limits.LoopTimer(500)
        assert map_blocks(wait, 3, timer=timer) == [0, 1, 2]
        monkeypatch.setattr(time_limits, "PATIENCE", 0.0)
        with pytest.raises(TimeLimitError, match=r"4 of 500 parts took \d+ seconds?\. "), limit_time(1e-4):
            map_blocks(wait, 3, timer=timer)


def wait_often(_: int) -> None:
    map_blocks(wait, 100)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("n_workers", "backend", "n_repeats"), [(1, "threading", 2000), (2, "threading", 1000), (2, "loky", 1000)]
)
def test_a_loop_in_a_block_is_refused_with_the_time_of_all_blocks(n_workers: int, backend: str, n_repeats: int) -> None:
    def wait_in_process(block: int) -> None:
        patience, time_limits.PATIENCE = time_limits.PATIENCE, 0.0
        try:
            wait_often(block)
        finally:
            time_limits.PATIENCE = patience

    task = wait_often if backend == "threading" else wait_in_process
    # 100 parts of 0.02 seconds, repeated 1,000 or 2,000 times: more than half an hour, and not more than a day
    with (
        joblib.parallel_config(n_jobs=n_workers, backend=backend),
        pytest.raises(
            TimeLimitError, match=f"of 100 parts took .*, and they are repeated {n_repeats:,} times"
        ) as error,
        limit_time(0.5),
    ):
        map_blocks(task, 2000)
    assert isinstance(error.value.__cause__, time_limits.LoopTimeError)
    assert error.value.__cause__.expected >= 0.02 * 100 * n_repeats


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("n_workers", [1, 2])
def test_only_first_blocks_estimate_the_time_of_all(n_workers: int) -> None:
    def wait_longer(block: int) -> None:
        map_blocks(lambda _: time.sleep(0.01 if block < n_workers else 1.0), 2)

    # Each of the first blocks takes 0.02 seconds, and a later one 2: the limit is 40 seconds.
    with joblib.parallel_config(n_jobs=n_workers, backend="threading"), limit_time(40 / 3_600):
        assert map_blocks(wait_longer, n_workers + 1) == [None] * (n_workers + 1)
        with pytest.raises(time_limits.LoopTimeError, match="1 of 2 blocks"):
            map_blocks(lambda _: map_blocks(lambda _: time.sleep(0.5), 2), 200)


@pytest.mark.usefixtures("impatient")
def test_repeats_are_counted_by_what_knows_of_them() -> None:
    with pytest.raises(TimeLimitError, match="repeated 6 times"), limit_time(1e-9), time_limits.count_repeats(3):
        map_blocks(lambda _: map_blocks(wait, 5), 2)


@pytest.mark.parametrize(("n_workers", "n_rounds"), [(1, 500), (2, 250)])
def test_a_loop_is_refused_by_a_block_that_was_computed_before(n_workers: int, n_rounds: int) -> None:
    with joblib.parallel_config(n_jobs=n_workers, backend="threading"):
        with limit_time(3.0):
            expect_blocks(59.0, 500)  # less than a minute proves nothing
            expect_blocks(61.0, 100)
        with pytest.raises(TimeLimitError, match=f"1 of {n_rounds} parts took 61 seconds. The limit"), limit_time(3.0):
            expect_blocks(61.0, 500)
        expect_blocks(61.0, 500)


LOOPS: dict[str, Callable[[], object]] = {
    "clusters": lambda: find_best_assignments(UNITS, np.ones(200), max_clusters=9, n_restarts=2, key=stream_key(0)),
    "order by mean distance": lambda: order_farthest_first(group_rows(UNITS), 0, "mean"),
    "fit to averages": lambda: fit_gaussian(build_design(UNITS, np.arange(200) % 3), restricted=True),
    "fit to answers": lambda: fit_logistic(build_design((UNITS > 0.4).astype(float), np.arange(200) % 3)),
}
RNG = np.random.default_rng(3)
UNITS = np.abs(RNG.normal(size=(200, 8)))
UNITS /= np.linalg.norm(UNITS, axis=1, keepdims=True)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("loop", LOOPS)
def test_loops_of_compiled_code_are_refused_too(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spherical_kmeans, "CALL_SIZE", 1)
    monkeypatch.setattr(farthest_on_average, "CALL_SIZE", 1)
    LOOPS[loop]()  # compiles
    with limit_time(1e6):
        LOOPS[loop]()
    with (
        pytest.raises(TimeLimitError, match=r"This would take about \S+ \w+: [1-9]\d* of \d+ parts"),
        limit_time(1e-12),
    ):
        LOOPS[loop]()


@pytest.mark.usefixtures("impatient")
def test_an_error_of_a_block_is_raised() -> None:
    def fail(block: int) -> int:
        raise KeyError(block)

    with joblib.parallel_config(n_jobs=2, backend="threading"), limit_time(1.0), pytest.raises(KeyError):
        map_blocks(fail, 20)


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
    assert re.search(r"This would take about \S+ \w+: 1 of \d+ parts took .* --limit-hours", str(refused.exception))
    assert CliRunner().invoke(suffrage, words).exit_code == 0
