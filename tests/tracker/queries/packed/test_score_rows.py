"""Batches that two connections read at once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from tracker.queries.packed.gathered_scores import ScoreRows
from tracker.queries.packed.score_rows import BATCHES_AHEAD, _read_both

LENGTHS = (0, 1, BATCHES_AHEAD, 3 * BATCHES_AHEAD)


def make_batches(run: int, n: int) -> Iterator[ScoreRows]:
    for prompt in range(n):
        yield np.array([run]), np.array([prompt]), np.array([0.5])


@pytest.mark.parametrize(("n_first", "n_second"), itertools.product(LENGTHS, LENGTHS))
def test_every_batch_of_both_comes_once_and_in_its_order(n_first: int, n_second: int) -> None:
    keys = [
        (int(run[0]), int(prompt[0]))
        for run, prompt, _ in _read_both(make_batches(1, n_first), make_batches(2, n_second))
    ]
    assert [prompt for run, prompt in keys if run == 1] == list(range(n_first))
    assert [prompt for run, prompt in keys if run == 2] == list(range(n_second))


def test_the_second_is_read_no_further_ahead_than_allowed() -> None:
    read = []

    def count() -> Iterator[ScoreRows]:
        for rows in make_batches(2, 1000):
            read.append(rows)
            yield rows

    both = _read_both(make_batches(1, 1000), count())
    n_from_second = sum(int(next(both)[0][0]) == 2 for _ in range(100))
    both.close()
    assert len(read) <= n_from_second + BATCHES_AHEAD


def test_an_error_of_the_other_thread_is_raised() -> None:
    def fail() -> Iterator[ScoreRows]:
        yield from make_batches(2, 3)
        assert threading.current_thread() is not threading.main_thread()
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(_read_both(make_batches(1, 2), fail()))
