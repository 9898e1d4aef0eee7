"""The simulated vectors carry the planted groups and tasks."""

from __future__ import annotations

import numpy as np
import pytest

from tracker.simulation.embeddings import DIMENSIONS, GROUP_SHARE, TASK_SHARE, find_originals
from tracker.simulation.item_response import Design, simulate


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_edits_are_close_to_their_original_and_twice_as_far_from_each_other(seed: int) -> None:
    simulation = simulate(seed=seed)
    similarity = simulation.meaning @ simulation.meaning.T
    group = simulation.truth.group
    twins = (group[:, None] == group) & (group[:, None] >= 0) & ~np.eye(len(group), dtype=bool)
    first = np.array([group.tolist().index(number) for number in range(group.max() + 1)])
    is_first = np.isin(np.arange(len(group)), first)
    of_original = twins & (is_first[:, None] | is_first)
    of_edits = twins & ~of_original
    assert similarity[of_original].mean() == pytest.approx(np.sqrt(GROUP_SHARE), abs=0.005)
    assert similarity[of_edits].mean() == pytest.approx(GROUP_SHARE, abs=0.005)
    assert (1 - similarity[of_edits].mean()) / (1 - similarity[of_original].mean()) == pytest.approx(2, abs=0.15)
    assert similarity[twins].min() > similarity[~twins & ~np.eye(len(group), dtype=bool)].max()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_prompts_of_a_task_are_a_little_similar_and_those_of_others_are_not(seed: int) -> None:
    simulation = simulate(seed=seed)
    similarity = simulation.meaning @ simulation.meaning.T
    group, task = simulation.truth.group, simulation.tasks
    alone = group < 0
    together = (task[:, None] == task) & alone[:, None] & alone & ~np.eye(len(group), dtype=bool)
    assert similarity[together].mean() == pytest.approx(TASK_SHARE, abs=0.04)
    assert abs(similarity[task[:, None] != task].mean()) < 0.1


def test_the_original_of_a_prompt_is_the_first_of_its_group_or_itself() -> None:
    assert find_originals(np.array([-1, 2, 0, 2, -1, 0, 2])).tolist() == [0, 1, 2, 1, 4, 2, 1]
    assert find_originals(np.empty(0, dtype=np.int64)).tolist() == []


def test_vectors_have_length_one_but_for_rounding() -> None:
    lengths = np.linalg.norm(simulate(seed=5).meaning, axis=1)
    assert np.abs(lengths - 1).max() < 1e-4


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, again, different_seed = (simulate(seed=seed).meaning for seed in (7, 7, 8))
    assert first.tobytes() == again.tobytes()
    assert not np.array_equal(first, different_seed)


def test_a_benchmark_without_groups_has_vectors_too() -> None:
    simulation = simulate(Design(n_prompts=60, n_easy=0, n_leaked=0, n_groups=0))
    assert simulation.meaning.shape == (60, DIMENSIONS)
    assert simulation.meaning.any(axis=1).all()
