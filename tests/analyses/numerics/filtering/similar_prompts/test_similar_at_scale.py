from __future__ import annotations

import subprocess
import sys

import pytest

STEP = """
import sys
from pathlib import Path
import numpy as np
from analyses.numerics.filtering.similar_prompts.neighbours import find_nearest_neighbours
from analyses.numerics.filtering.similar_prompts.similar_groups import find_components, find_stars

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

def step(E, k):
    neighbours = find_nearest_neighbours(E, k)
    found = find_components(E, neighbours, np.linspace(0.02, 0.5, 30).tolist())
    return (neighbours.distances[:, -1] < 0.5).any() and found.n_pairs[0] and find_stars(E, neighbours, 0.3).max() > 0

n_prompts, n_dimensions, k = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
odds = 1 / np.arange(10, n_prompts // 50 + 10)
topics = rng.standard_normal((n_prompts // 50, n_dimensions), np.float32)
E = rng.standard_normal((n_prompts, n_dimensions), np.float32)
E *= rng.uniform(0.1, 1.2, (n_prompts, 1)).astype(np.float32)
E += topics[rng.choice(len(topics), n_prompts, p=odds / odds.sum())]
step(E[:2000], k)
before = peak()
assert step(E, k), "some lists are cut short, some pairs linked"
print(peak() - before, peak())
"""


def megabytes(n_prompts: int, n_dimensions: int, k: int) -> tuple[float, float]:
    """What the search for similar prompts adds to the peak memory of a process of its own, and that peak."""
    sizes = [str(n_prompts), str(n_dimensions), str(k)]
    done = subprocess.run([sys.executable, "-c", STEP, *sizes], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    added, peak = done.stdout.split()
    return float(added), float(peak)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
class TestMemory:
    def test_no_table_of_all_pairs_is_held(self):
        added, _ = megabytes(16_000, 16, 20)
        assert added < 16_000**2 * 4 / 2**20 / 8

    @pytest.mark.soak
    def test_a_hundred_thousand_prompts_need_less_than_2_gigabytes(self):
        _, peak = megabytes(100_000, 384, 100)
        assert peak < 2000
