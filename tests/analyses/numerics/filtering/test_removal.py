from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.filtering.removal import draw_retained, remove_all_but_one, remove_half
from tracker.statistics.rng_streams import DUPLICATES, RETAINED, generator

GROUPS = st.lists(st.integers(-1, 5), max_size=40).map(lambda numbers: np.array(numbers, np.int32))
SEEDS = st.integers(0, 2**40)


def one_group_after_another(groups: np.ndarray, draws: np.ndarray, n_removed) -> np.ndarray:
    """The prompts with the smallest draws of each group."""
    removed = np.zeros(len(groups), bool)
    for number in set(groups[groups >= 0]):
        members = sorted(np.flatnonzero(groups == number), key=lambda member: draws[member])
        removed[members[: n_removed(len(members))]] = True
    return removed


class TestAgainstReference:
    @settings(max_examples=40)
    @given(GROUPS, SEEDS)
    def test_those_with_the_smallest_draws_go(self, groups, seed):
        for result, purpose, n_removed in (
            (remove_all_but_one(groups, seed=seed), DUPLICATES, lambda size: size - 1),
            (remove_half(groups, seed=seed), DUPLICATES, lambda size: size // 2),
        ):
            draws = generator(seed, purpose).random(len(groups))
            assert result.dtype == np.bool_
            assert (result == one_group_after_another(groups, draws, n_removed)).all()

    @settings(max_examples=40)
    @given(st.lists(st.booleans(), max_size=60).map(np.array), st.floats(0, 1), SEEDS)
    def test_exactly_the_rounded_share_stays(self, flagged, share, seed):
        flagged = flagged.astype(bool)
        stays = draw_retained(flagged, share, seed=seed)
        draws = generator(seed, RETAINED).random(len(flagged))
        n = round(share * int(flagged.sum()))
        expected = np.zeros(len(flagged), bool)
        expected[sorted(np.flatnonzero(flagged), key=lambda place: draws[place])[:n]] = True
        assert (stays == expected).all()


class TestLaws:
    @settings(max_examples=40)
    @given(GROUPS, SEEDS, st.permutations(range(6)))
    def test_numbers_of_groups_are_names_only(self, groups, seed, names):
        renamed = np.where(groups < 0, -1, np.array([*names, 0])[groups]).astype(np.int32)
        for remove in (remove_all_but_one, remove_half):
            assert (remove(groups, seed=seed) == remove(renamed, seed=seed)).all()

    @settings(max_examples=40)
    @given(GROUPS, SEEDS, st.integers(0, 5))
    def test_no_group_depends_on_another(self, groups, seed, dissolved):
        fewer = np.where(groups == dissolved, -1, groups).astype(np.int32)
        for remove in (remove_all_but_one, remove_half):
            first, second = remove(groups, seed=seed), remove(fewer, seed=seed)
            assert (first[groups != dissolved] == second[groups != dissolved]).all()

    @settings(max_examples=30)
    @given(SEEDS, st.integers(2, 9), st.integers(2, 9))
    def test_every_group_keeps_one_or_half_and_one_more_of_an_odd_number(self, seed, first, second):
        groups = np.array([0] * first + [-1] + [1] * second, np.int32)
        gone, halved = remove_all_but_one(groups, seed=seed), remove_half(groups, seed=seed)
        for number, size in enumerate((first, second)):
            assert (~gone[groups == number]).sum() == 1
            assert halved[groups == number].sum() == size // 2
        assert not gone[first]
        assert not halved[first]

    def test_every_member_goes_and_stays_as_often_as_the_others(self):
        groups = np.array([0, 0, 0, 0, 0], np.int32)
        n = 2000
        gone = np.mean([remove_all_but_one(groups, seed=seed) for seed in range(n)], axis=0)
        halved = np.mean([remove_half(groups, seed=seed) for seed in range(n)], axis=0)
        stays = np.mean([draw_retained(groups == 0, 0.4, seed=seed) for seed in range(n)], axis=0)
        for share, expected in ((gone, 0.8), (halved, 0.4), (stays, 0.4)):
            assert np.abs(share - expected).max() < 4.5 * np.sqrt(expected * (1 - expected) / n)

    def test_the_draw_of_easy_prompts_is_independent_of_that_of_similar_ones(self):
        pairs, easy = np.repeat(np.arange(200, dtype=np.int32), 2), np.ones(400, bool)
        assert 150 < (remove_half(pairs, seed=7) == draw_retained(easy, 0.5, seed=7)).sum() < 250

    @settings(max_examples=60)
    @given(st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 2)), max_size=30), SEEDS)
    def test_of_similar_prompts_one_stays_whatever_duplicates_are_among_them(self, numbers, seed):
        is_similar = np.array([group for group, _ in numbers], np.int32)
        equal = np.array([3 * group + text if group >= 0 else -1 for group, text in numbers], np.int32)
        for groups in (is_similar, equal):  # a group of one is none
            groups[np.isin(groups, [g for g in set(groups.tolist()) if (groups == g).sum() < 2])] = -1
        stays = ~remove_all_but_one(equal, seed=seed) & ~remove_half(is_similar, seed=seed)
        for group in set(is_similar[is_similar >= 0].tolist()):
            assert stays[is_similar == group].any()

    def test_of_two_equal_prompts_both_steps_take_the_same_one(self):
        pairs = np.repeat(np.arange(200, dtype=np.int32), 2)
        assert (remove_all_but_one(pairs, seed=7) == remove_half(pairs, seed=7)).all()

    def test_the_same_seed_decides_the_same_and_another_seed_otherwise(self):
        groups = np.repeat(np.arange(100, dtype=np.int32), 2)
        assert (remove_half(groups, seed=1) == remove_half(groups, seed=1)).all()
        assert (remove_half(groups, seed=1) != remove_half(groups, seed=2)).any()

    def test_halves_are_rounded_to_the_even_neighbour(self):
        for n, kept in ((25, 2), (35, 4), (5, 0), (15, 2), (4, 0), (6, 1), (0, 0)):
            assert draw_retained(np.ones(n, bool), 0.1, seed=0).sum() == kept

    def test_a_larger_share_retains_all_that_a_smaller_one_does(self):
        flagged = np.random.default_rng(0).random(300) < 0.5
        few, many = draw_retained(flagged, 0.1, seed=3), draw_retained(flagged, 0.4, seed=3)
        assert (many | ~few).all()
        assert (draw_retained(flagged, 1.0, seed=3) == flagged).all()

    def test_no_prompts_and_no_groups_remove_nothing(self):
        for groups in (np.empty(0, np.int32), np.full(4, -1, np.int32)):
            assert not remove_all_but_one(groups, seed=0).any()
            assert not remove_half(groups, seed=0).any()
            assert not draw_retained(groups >= 0, 0.5, seed=0).any()


class TestErrors:
    @pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
    def test_a_share_lies_between_zero_and_one(self, share):
        with pytest.raises(ValueError, match="between 0 and 1"):
            draw_retained(np.ones(3, bool), share, seed=0)
