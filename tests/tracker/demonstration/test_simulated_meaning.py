"""The simulated vectors carry the planted groups and tasks."""

from __future__ import annotations

import numpy as np
import pytest

from tracker.demonstration.meaning import DIMENSIONS, GROUP_SHARE, TASK_SHARE
from tracker.demonstration.simulation import Design, simulate


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_near_duplicates_are_close_and_prompts_of_a_task_a_little(seed: int) -> None:
    simulation = simulate(seed=seed)
    alike = simulation.meaning @ simulation.meaning.T
    group, task = simulation.truth.group, simulation.tasks
    twins = (group[:, None] == group) & (group[:, None] >= 0) & ~np.eye(len(group), dtype=bool)
    together = (task[:, None] == task) & ~twins & ~np.eye(len(group), dtype=bool)
    apart = task[:, None] != task
    assert alike[twins].mean() == pytest.approx(GROUP_SHARE, abs=0.02)
    assert alike[together].mean() == pytest.approx(TASK_SHARE * GROUP_SHARE, abs=0.04)
    assert abs(alike[apart].mean()) < 0.1
    assert alike[twins].min() > alike[~twins & ~np.eye(len(group), dtype=bool)].max()


def test_vectors_have_length_one_but_for_rounding() -> None:
    lengths = np.linalg.norm(simulate(seed=5).meaning, axis=1)
    assert np.abs(lengths - 1).max() < 1e-4


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, again, other = (simulate(seed=seed).meaning for seed in (7, 7, 8))
    assert first.tobytes() == again.tobytes()
    assert not np.array_equal(first, other)


def test_a_benchmark_without_groups_has_vectors_too() -> None:
    simulation = simulate(Design(n_prompts=60, n_easy=0, n_leaked=0, n_groups=0))
    assert simulation.meaning.shape == (60, DIMENSIONS)
    assert simulation.meaning.any(axis=1).all()
