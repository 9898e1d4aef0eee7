"""Prompts in words: which, in which order, with what is known of them."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores

from tracker import schema
from tracker.database import transaction
from tracker.errors import NotFoundError
from tracker.queries.prompts import PromptTexts, load_prompts
from tracker.queries.selection import Selection


def load(engine: sa.Engine, **choice: object) -> PromptTexts:
    with transaction(engine, write=False) as session:
        return load_prompts(session, Selection(benchmark="b", **choice))


@pytest.fixture
def requested(store: sa.Engine) -> sa.Engine:
    """Six prompts in two tasks; the last is known by its name only, others have several names or none."""
    add_scores(store, np.ones((5, 1)), tasks=["y", "x", "y", "x", "y"], texts=["Who?", "When?", "Wö?", "Why?", "How?"])
    add_scores(store, np.ones((2, 1)), benchmark="other")
    with transaction(store) as session:
        session.add(schema.Prompt(task_id=2, details=None))
        session.flush()
        session.execute(sa.update(schema.Prompt).where(schema.Prompt.id == 2).values(details={"reason": "no ☂"}))
        session.execute(sa.update(schema.Prompt).where(schema.Prompt.id == 3).values(choices=None, answer=None))
        for prompt, task, space, key in ((1, 1, "", "q1"), (1, 1, "lm_eval", "0a"), (2, 2, "", "q2"), (8, 2, "", "q8")):
            session.add(schema.PromptAlias(task_id=task, namespace=space, key=key, prompt_id=prompt))
    return store


class TestLoaded:
    def test_everything_that_is_known_stands_in_the_order_of_the_keys(self, requested: sa.Engine) -> None:
        result = load(requested)
        assert result.prompt_ids.tolist() == [1, 2, 3, 4, 5, 8]
        assert result.tasks == ("y", "x", "y", "x", "y", "x")
        assert result.texts == ("Who?", "When?", "Wö?", "Why?", "How?", None)
        assert result.choices == (["a", "b"], ["a", "b"], None, ["a", "b"], ["a", "b"], None)
        assert result.answers == ("A", "A", None, "A", "A", None)
        assert result.details == ({}, {"reason": "no ☂"}, {}, {}, {}, {})
        assert result.splits == (None,) * 6

    def test_the_split_of_each_is_reported_and_changes_no_digest(self, requested: sa.Engine) -> None:
        before = load(requested).digest
        with transaction(requested) as session:
            session.execute(sa.update(schema.Prompt).where(schema.Prompt.id == 3).values(split="test"))
        assert load(requested).splits == (None, None, "test", None, None, None)
        assert load(requested).digest == before

    def test_a_prompt_is_named_as_tables_call_it_else_by_its_key(self, requested: sa.Engine) -> None:
        assert load(requested).names == ("q1", "q2", "3", "4", "5", "q8")

    def test_only_the_chosen_tasks(self, requested: sa.Engine) -> None:
        result = load(requested, tasks=("x",))
        assert result.prompt_ids.tolist() == [2, 4, 8]
        assert set(result.tasks) == {"x"}

    def test_rows_of_prompts(self, requested: sa.Engine) -> None:
        assert load(requested).find_rows(np.array([8, 1, 3])).tolist() == [5, 0, 2]


class TestDigest:
    def test_it_follows_what_is_known_of_the_prompts(self, requested: sa.Engine) -> None:
        before = load(requested).digest
        assert load(requested).digest == before
        seen = {before, load(requested, tasks=("x",)).digest}
        changes = ({"text": "What?"}, {"answer": "B"}, {"choices": ["a", "c"]}, {"details": {"reason": "yes"}})
        for change in changes:
            with transaction(requested) as session:
                session.execute(sa.update(schema.Prompt).where(schema.Prompt.id == 1).values(change))
            seen.add(load(requested).digest)
        assert len(seen) == 2 + len(changes)


class TestErrors:
    def test_an_unknown_task_is_answered_with_those_there_are(self, requested: sa.Engine) -> None:
        with pytest.raises(NotFoundError, match=r"No task 'z'\. Known: x, y\."):
            load(requested, tasks=("z",))

    def test_an_unknown_benchmark_too(self, requested: sa.Engine) -> None:
        with (
            transaction(requested, write=False) as session,
            pytest.raises(NotFoundError, match=r"No benchmark 'c'\. Known: b, other\."),
        ):
            load_prompts(session, Selection(benchmark="c"))


def test_without_contents_only_texts_options_answers_and_details_go(requested: sa.Engine) -> None:
    full = load(requested)
    outline = full.without_contents()
    assert outline.digest == full.digest
    assert (outline.names, outline.tasks, outline.splits) == (full.names, full.tasks, full.splits)
    assert {*outline.texts, *outline.choices, *outline.answers} == {None}
    assert outline.find_rows(full.prompt_ids).tolist() == list(range(len(full.prompt_ids)))
