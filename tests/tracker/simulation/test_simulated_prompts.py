"""The simulated prompts: right answers, clear options, no accidental duplicates."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
import solving

from tracker.simulation.item_response import Simulation, simulate
from tracker.simulation.texts import EDITS, KINDS, TASKS, make_questions


@pytest.fixture(scope="module", params=[0, 1, 2])
def simulation(request: pytest.FixtureRequest) -> Simulation:
    return simulate(seed=request.param)


def jaccard_matrix(texts: list[str]) -> np.ndarray:
    """Shared words over all words, of every pair; words are runs of letters and digits."""
    bags = [set(re.findall(r"[a-z0-9]+", text.lower())) for text in texts]
    column = {word: k for k, word in enumerate(sorted(set().union(*bags)))}
    table = np.zeros((len(bags), len(column)), dtype=np.float32)
    for row, bag in enumerate(bags):
        table[row, [column[word] for word in bag]] = 1
    common = table @ table.T
    size = table.sum(axis=1)
    return common / (size[:, None] + size - common)


def test_the_gold_answer_is_what_solving_the_text_gives(simulation: Simulation) -> None:
    for question in simulation.questions:
        assert question.choices[question.answer] == solving.solve(question.text, question.choices), question


def test_the_four_options_differ(simulation: Simulation) -> None:
    assert all(len(set(question.choices)) == 4 for question in simulation.questions)


def test_right_options_stand_at_every_letter_about_equally_often(simulation: Simulation) -> None:
    counts = Counter(question.letter for question in simulation.questions)
    assert set(counts) == set("ABCD")
    assert min(counts.values()) > 230  # 300 expected, standard deviation 15


def test_questions_outside_the_groups_share_less_than_nine_tenths_of_their_words(simulation: Simulation) -> None:
    similarity = jaccard_matrix([question.text for question in simulation.questions])
    group = simulation.truth.group
    same = (group[:, None] == group) & (group >= 0)[:, None] | np.eye(len(group), dtype=bool)
    assert similarity[~same].max() < 0.9


def test_near_duplicates_are_small_edits_with_the_same_right_option(simulation: Simulation) -> None:
    similarity = jaccard_matrix([question.text for question in simulation.questions])
    texts = [question.text for question in simulation.questions]
    for number in range(simulation.truth.group.max() + 1):
        members = np.flatnonzero(simulation.truth.group == number)
        assert 4 <= len(members) <= 6
        assert len({texts[i] for i in members}) == len(members)
        assert similarity[np.ix_(members, members)].min() > 0.5
        assert len(set(simulation.tasks[members])) == 1


def test_every_kind_of_question_occurs(simulation: Simulation) -> None:
    used = {
        next(k for k, (pattern, _) in enumerate(solving.SOLVERS) if pattern.fullmatch(question.text))
        for question in simulation.questions
        if not question.text.startswith("Work") and not question.text.endswith("one answer.")
    }
    assert len(used) == len(solving.SOLVERS)
    assert {task: len(kinds) for task, kinds in KINDS.items()} == dict.fromkeys(TASKS, 5)


class TestEdits:
    def test_no_two_of_the_largest_group_have_the_same_text(self) -> None:
        for task in TASKS:
            made_questions = make_questions(task, np.zeros(len(EDITS) + 1, dtype=np.int64), np.random.default_rng(0))
            assert len({question.text for question in made_questions}) == len(EDITS) + 1

    def test_a_group_with_more_prompts_than_edits_is_refused(self) -> None:
        with pytest.raises(ValueError, match="more than 8 prompts; only 7 edits are known"):
            make_questions("dates", np.zeros(len(EDITS) + 2, dtype=np.int64), np.random.default_rng(0))
