"""Ctrl-C ends every search, also one that compiled code runs; it would otherwise take minutes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

ENDS_WITHIN = 60
"""Seconds; each search takes longer. On a quiet machine it ends within 2."""

SEARCHES = {
    "integer program": """
from analyses.numerics.elections.integer_programs import maximize
rng = np.random.default_rng(0)
A = rng.integers(1, 100, (30, 200)) / 100
def search(seconds):
    maximize(rng.random(200), A, -np.inf, A.sum(axis=1) / 2, time_limit=seconds)
""",
    "compiled loop": """
import numba
@numba.njit(nogil=True)  # as all kernels are
def count(n):
    total = 0
    for i in range(n):
        total = total * 1664525 + i
    return total
def search(seconds):
    count(int(seconds * 10**9))
""",
    "cardinal sensitivity": """
from fractions import Fraction
from analyses.numerics.elections.cardinal.cardinal_sensitivity import cardinal_sensitivity
from analyses.numerics.elections.exact_scores import exact_scores
def search(seconds):
    shape = (4, 6) if seconds < 1 else (12, 60)
    scores = exact_scores(np.random.default_rng(1).random(shape).round(3))
    cardinal_sensitivity(scores, epsilon=Fraction(1, 100), standardised=False, time_limit=seconds)
""",
    "ordinal sensitivity": """
from analyses.numerics.elections.exact_scores import exact_scores
from analyses.numerics.elections.ordinal.ordinal_sensitivity import ordinal_sensitivity
def search(seconds):
    shape = (4, 6) if seconds < 1 else (30, 150)
    scores = exact_scores(np.random.default_rng(1).random(shape).round(3))
    ordinal_sensitivity(scores, leading=np.arange(shape[1] // 2), time_limit=seconds)
""",
    "Kemeny's order": """
import time
from analyses.numerics.elections.voting.kemeny import find_kemeny_order
def search(seconds):
    n = 5 if seconds < 1 else 70
    codes = np.random.default_rng(1).integers(0, 1000, (9, n)).astype(np.int32)
    find_kemeny_order(codes, deadline=time.monotonic() + seconds)
""",
    "permutations": """
from analyses.numerics.similarity.binary import compare_binary
from analyses.numerics.similarity.score_table import ScoreTable
def search(seconds):
    table = (np.random.default_rng(1).random((2000, 20)) < 0.5).astype(float)
    compare_binary(ScoreTable(table), n_permutations=1 + int(seconds * 1000), seed=1)
""",
    "farthest prompts": """
from analyses.numerics.growth.farthest_first import order_farthest_first
from analyses.numerics.growth.groups import group_rows
def search(seconds):
    rows = np.random.default_rng(1).normal(size=(20 if seconds < 1 else 100_000, 50))
    order_farthest_first(group_rows(rows), 0, "min")
""",
    "clusters": """
from analyses.numerics.clustering.best_clustering import find_best_clustering
from tracker.statistics.rng_streams import stream_key
def search(seconds):
    n = 30 if seconds < 1 else 40_000
    table = np.random.default_rng(1).random((n, 20))
    find_best_clustering(table, max_clusters=5 if n == 30 else 50, n_restarts=50, key=stream_key(0))
""",
}
QUICK = ("integer program", "compiled loop")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.soak) for name in SEARCHES]
)
def test_an_interrupt_ends_every_search(name: str) -> None:
    script = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
import numpy as np
from tracker.cli.process.interrupts import end_on_interrupt
from tracker.recording.inputs.workers import use_workers
{SEARCHES[name]}
search(0.01)  # compiles
with end_on_interrupt(), use_workers(1):
    print("begins", file=sys.stderr, flush=True)
    search(600.0)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == b"begins\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)  # it is still searching
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_WITHIN) in (130, -signal.SIGINT)
        last = process.stderr.read().splitlines()[-1]
        assert last in (b"Stopped.", b"KeyboardInterrupt")
    finally:
        process.kill()
        process.communicate()
