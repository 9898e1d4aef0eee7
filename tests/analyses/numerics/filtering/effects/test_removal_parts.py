from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analyses.numerics.filtering.effects.removal_parts import SEVERAL, count_by_task, split_removed
from analyses.numerics.filtering.step_flags import find_kept, make_flags

FLAGS = arrays(np.bool_, (4, 9))


class TestAgainstReference:
    @given(FLAGS, arrays(np.int64, 9, elements=st.integers(0, 3)))
    def test_counts_are_those_of_plain_loops(self, flags, of_task) -> None:
        steps = {f"step {i}": make_flags(row) for i, row in enumerate(flags)}
        tasks = np.array([f"task {t}" for t in of_task])
        names, size, inside = count_by_task(tasks, split_removed(steps))
        assert names.tolist() == sorted(set(tasks.tolist()))
        for place, name in enumerate(names):
            task_prompts = [p for p in range(9) if tasks[p] == name]
            assert size[place] == len(task_prompts)
            for i in range(4):
                alone = [p for p in task_prompts if flags[i, p] and flags[:, p].sum() == 1]
                assert inside[f"step {i}"][place] == len(alone)
            assert inside[SEVERAL][place] == sum(flags[:, p].sum() > 1 for p in task_prompts)


class TestLaws:
    @given(FLAGS)
    def test_every_removed_prompt_is_in_one_part_and_every_kept_one_in_none(self, flags) -> None:
        steps = {f"step {i}": make_flags(row) for i, row in enumerate(flags)}
        parts = split_removed(steps)
        assert [*parts] == [*steps, SEVERAL]
        assert np.array_equal(np.sum([*parts.values()], axis=0), ~find_kept(steps.values(), 9))

    def test_what_is_flagged_but_not_removed_is_in_no_part(self) -> None:
        retained = make_flags(np.ones(3, bool), removed=np.array([True, False, False]))
        assert split_removed({"easy": retained})["easy"].tolist() == [True, False, False]


class TestDegenerate:
    def test_without_prompts_there_are_no_tasks(self) -> None:
        names, size, inside = count_by_task(np.empty(0, str), split_removed({"easy": make_flags(np.empty(0, bool))}))
        assert len(names) == len(size) == inside["easy"].size == 0
