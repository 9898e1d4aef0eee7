from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tracker.statistics.rng_kernels import BATCH, fill_below, fill_words
from tracker.statistics.rng_streams import stream_key


def draws(n: int, bound: int, *, step: int = 0, seed: int = 0, purpose: int = 1, permutation: int = 0, column: int = 0):
    result = np.empty(n, np.int64)
    fill_below(result, bound, step, stream_key(seed), purpose, permutation, column)
    return result


class TestAgainstReference:
    @pytest.mark.parametrize(
        ("counter", "key", "words"),
        [
            ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
            (
                (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
                (0xA4093822, 0x299F31D0),
                (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
            ),
        ],
    )
    def test_words_are_the_published_ones_of_philox(self, counter, key, words):
        batch, place = divmod(counter[0], BATCH)
        result = np.empty((4, BATCH), np.uint64)
        fill_words(result, np.array(key, np.uint64), counter[3], counter[2], counter[1], batch)
        assert tuple(int(w) for w in result[:, place]) == words


class TestLaws:
    def test_integers_below_a_bound_are_uniform(self):
        counts = np.bincount(draws(70_000, 7), minlength=7)
        assert counts.size == 7
        assert stats.chisquare(counts).pvalue > 0.001

    def test_bounds_move_by_the_step(self):
        assert (draws(50, 50, step=-1) < np.arange(50, 0, -1)).all()
        assert draws(50, 50, step=-1)[-1] == 0

    def test_every_name_is_a_stream_of_its_own(self):
        item = draws(100, 1 << 30)
        for second in ({"seed": 1}, {"purpose": 2}, {"permutation": 1}, {"column": 1}):
            assert (draws(100, 1 << 30, **second) != item).mean() > 0.9
        assert (draws(100, 1 << 30) == item).all()
