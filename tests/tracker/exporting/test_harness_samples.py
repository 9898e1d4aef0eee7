"""The file of documents for lm-evaluation-harness: what it would then ask, and when the file is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_filters import filtered

from tracker.errors import SelectionError
from tracker.exporting.formats.lm_eval import select_harness_samples


def evaluated_by_harness(samples: bytes, tasks: dict[str, list[str]]) -> set[tuple[str, str]]:
    """What lm-evaluation-harness 0.4.13 asks of the tasks that the file lists: documents whose place is in the list,
    all where there is no list or an empty one."""
    values = json.loads(samples)
    return {
        (task, document)
        for task in values
        for place, document in enumerate(tasks[task])
        if not values.get(task) or place in values[task]
    }


@st.composite
def benchmarks(draw: st.DrawFn) -> tuple[dict[str, list[str]], list[tuple[str, str, int, bool]]]:
    """The harness's documents by task, and prompts taken in in any order: task, document, number, whether it stays."""
    tasks = {f"task {t}": [f"{t}.{d}" for d in range(draw(st.integers(1, 5)))] for t in range(draw(st.integers(1, 3)))}
    every = [(task, name, place) for task, names in tasks.items() for place, name in enumerate(names)]
    order = draw(st.permutations(every))
    stays = draw(st.lists(st.booleans(), min_size=len(every), max_size=len(every)).filter(any))
    return tasks, [(*item, kept) for item, kept in zip(order, stays, strict=True)]


class TestAgainstReference:
    @settings(max_examples=60)
    @given(built=benchmarks())
    def test_the_harness_evaluates_exactly_the_kept_documents(
        self, built: tuple[dict[str, list[str]], list[tuple[str, str, int, bool]]]
    ) -> None:
        tasks, prompts = built
        result = select_harness_samples(
            filtered([p[3] for p in prompts], tasks=[p[0] for p in prompts], doc_ids=[p[2] for p in prompts])
        )
        expected = {(task, name) for task, name, _, kept in prompts if kept}
        assert evaluated_by_harness(result.as_json(), tasks) == expected
        assert all(numbers == sorted(set(numbers)) for numbers in result.documents.values())
        assert {*result.omitted_tasks, *result.documents} == set(tasks)
        assert result.counted == ()

    @settings(max_examples=40)
    @given(stays=st.lists(st.booleans(), min_size=1, max_size=12).filter(any), known=st.sets(st.integers(0, 11)))
    def test_prompts_ingested_in_order_are_numbered_as_the_harness_numbers_them(
        self, stays: list[bool], known: set[int]
    ) -> None:
        places = range(len(stays))
        expected = {"t": [place for place in places if stays[place]]}
        numbers = [place if place in known else None for place in places]
        result = select_harness_samples(filtered(stays, doc_ids=numbers), number_by_order=True)
        assert result.documents == expected
        assert result.counted == (() if known >= set(expected["t"]) else ("t",))


class TestWords:
    def test_a_task_in_each_line(self) -> None:
        built = filtered([True, True, False, True], tasks=["b", "a", "c", "b"], doc_ids=[9, 3, 0, 2])
        result = select_harness_samples(built)
        assert result.as_json() == b'{\n  "a": [3],\n  "b": [2, 9]\n}\n'
        assert list(result.warnings) == [
            "The file lists 2 tasks. Name only these in --tasks: the harness evaluates every document of a task that "
            "--samples does not list.",
            "No documents are kept of 1 task: c.",
        ]

    def test_counting_warns_of_its_assumption(self) -> None:
        built = filtered([None, True, True], tasks=["a", "a", "b"], doc_ids=[None, None, 7])
        result = select_harness_samples(built, number_by_order=True)
        assert result.documents == {"a": [1], "b": [7]}
        assert next(iter(result.warnings)).startswith(
            "1 task (a): documents are numbered from 0 in the order of ingestion. Check that this is"
        )


class TestErrors:
    def test_tasks_without_numbers_are_named_with_what_to_do(self) -> None:
        built = filtered([True, True, True, False], tasks=["a", "a", "b", "c"], doc_ids=[0, None, 2, None])
        with pytest.raises(SelectionError) as caught:
            select_harness_samples(built)
        assert str(caught.value) == (
            "Document numbers are unknown in 1 task: a (1 of 2 kept prompts). The numbers are in the harness's logs "
            "(--log_samples). Ingest these, again if needed, with `suffrage ingest FOLDER --benchmark b --on-conflict "
            "update`. If the prompts were ingested completely and in the harness's order, --number-by-order counts "
            "them instead."
        )

    def test_of_many_tasks_five_are_named(self) -> None:
        with pytest.raises(SelectionError, match=r"in 7 tasks: t0 .*, t4 \(1 of 1 kept prompts\) and 2 more\."):
            select_harness_samples(filtered([True] * 7, tasks=[f"t{n}" for n in range(7)]))

    def test_prompts_without_a_task_cannot_be_found_by_the_harness(self) -> None:
        for by_order in (False, True):
            with pytest.raises(SelectionError, match=r"2 kept prompts of b have no task.*Choose --format csv"):
                select_harness_samples(filtered([True, True], tasks=["", ""], doc_ids=[0, 1]), number_by_order=by_order)

    @pytest.mark.parametrize("second", [True, False, None])
    def test_a_number_of_two_prompts_is_ambiguous(self, second: bool | None) -> None:
        with pytest.raises(SelectionError, match=r"In t two prompts have the same document number.*separate benchmark"):
            select_harness_samples(filtered([True, second, True], doc_ids=[4, 4, 5]))

    def test_a_number_of_two_prompts_that_go_is_no_matter(self) -> None:
        assert select_harness_samples(filtered([False, False, True], doc_ids=[4, 4, 5])).documents == {"t": [5]}

    def test_an_order_that_known_numbers_contradict_is_refused(self) -> None:
        with pytest.raises(SelectionError, match="The prompts of t were not ingested in the harness's order"):
            select_harness_samples(filtered([True, True, False], doc_ids=[None, 0, 1]), number_by_order=True)
