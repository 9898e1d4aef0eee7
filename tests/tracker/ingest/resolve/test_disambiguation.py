"""Prompts that a harness calls alike, told apart by their numbers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.ingest.resolve.duplicates import Name, disambiguate


def counted(numbers: list[int | None], task: int = 1, key: str = "k") -> dict[Name, int | None]:
    """The names that a file gives alike prompts with these numbers."""
    return {(task, f"{key}#{place}" if place else key): number for place, number in enumerate(numbers)}


NUMBERS = st.lists(st.integers(0, 8), unique=True, max_size=6)


class TestLaws:
    @settings(max_examples=100)
    @given(file=NUMBERS, stored=NUMBERS)
    def test_a_stored_number_finds_its_prompt_and_different_prompts_stay_different(
        self, file: list[int], stored: list[int]
    ) -> None:
        in_file, in_store = counted(list(file)), counted(list(stored))
        renamed = disambiguate(in_file, in_store)
        assert renamed.keys() == in_file.keys()
        assert len(set(renamed.values())) == len(in_file)
        for name, number in in_file.items():
            if number in stored:
                assert in_store[renamed[name]] == number
            elif set(file) & set(stored):
                assert renamed[name] not in in_store
            else:
                assert renamed[name] == name

    @settings(max_examples=100)
    @given(numbers=NUMBERS, parts=st.lists(st.sets(st.integers(0, 8)), max_size=4))
    def test_parts_in_any_order_give_each_prompt_one_name_where_each_part_meets_what_is_stored(
        self, numbers: list[int], parts: list[set[int]]
    ) -> None:
        store: dict[Name, int | None] = {}
        for part in parts:
            in_file = counted([number for number in numbers if number in part])
            if store and not set(store.values()) & set(in_file.values()):
                continue
            renamed = disambiguate(in_file, store)
            for name, number in in_file.items():
                assert store.setdefault(renamed[name], number) == number
        assert len(set(store.values())) == len(store)


class TestCases:
    def test_a_file_with_the_second_alone_means_the_second(self) -> None:
        assert disambiguate({(1, "k"): 7}, counted([2, 7])) == {(1, "k"): (1, "k#1")}

    def test_a_file_with_both_after_one_with_the_second_alone_makes_the_first_anew(self) -> None:
        renamed = disambiguate(counted([2, 7]), {(1, "k"): 7})
        assert renamed == {(1, "k"): (1, "k#1"), (1, "k#1"): (1, "k")}

    def test_without_numbers_the_order_decides(self) -> None:
        for stored in (counted([None, None]), counted([4, 5])):
            assert disambiguate(counted([None, None]), stored) == {(1, "k"): (1, "k"), (1, "k#1"): (1, "k#1")}

    def test_tasks_and_keys_are_separate(self) -> None:
        in_file = counted([7], 1) | counted([7], 2) | counted([7], 1, "other")
        renamed = disambiguate(in_file, counted([2, 7], 2))
        assert renamed == {(1, "k"): (1, "k"), (2, "k"): (2, "k#1"), (1, "other"): (1, "other")}
