"""From a plan and stored prompts to what is asked; no model is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tracker
from tracker.api.store import Store
from tracker.errors import SelectionError
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import PreparedEvaluation, prepare

FIELDS = {"text": "q", "choices": "o", "answer": "a", "task": "t", "split": "s"}


def row(prompt: str, task: str, split: str) -> dict[str, Any]:
    return {"q": prompt, "o": ["yes", "no"], "a": "A", "t": task, "s": split}


ROWS = [
    row("Asked?", "asked", "test"),
    row("Shown?", "shown", "dev"),
    row("Other?", "other", "test"),
    row("Whole?", "whole", "train"),
]


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    Path("rows.jsonl").write_text("".join(json.dumps(prompt_row) + "\n" for prompt_row in ROWS))
    with tracker.open(sqlite_url) as opened:
        opened.prompts_from("quiz", "rows.jsonl", fields=FIELDS, answer_is="letter")
        yield opened


def prepared(store: Store, **options: Any) -> PreparedEvaluation:
    return prepare(store.engine, Plan.from_options("quiz", "model", **options))


class TestErrors:
    def test_where_the_answers_of_the_test_split_are_unpublished_other_splits_are_named(self, store: Store) -> None:
        rows = [row("Known?", "", "dev"), row("Unknown?", "", "test") | {"a": None}]
        Path("secret.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        store.prompts_from("secret", "secret.jsonl", fields=FIELDS, answer_is="letter")
        words = r"\(no reference answer: 1\)\. The .* unpublished.* --split NAME\. Splits: dev, test\."
        with pytest.raises(SelectionError, match=words):
            prepare(store.engine, Plan.from_options("secret", "model"))
        assert (
            len(prepare(store.engine, Plan.from_options("secret", "model", split="dev")).rendered["full"].prompts) == 1
        )


class TestTasks:
    def test_other_tasks_may_give_worked_examples(self, store: Store) -> None:
        few_shot_prompts = prepared(store, tasks="asked", few_shot=1, few_shot_split="dev").rendered["full"]
        assert [prompt.question.split("\n")[0] for prompt in few_shot_prompts.prompts] == ["Asked?"]
        assert few_shot_prompts.prompts[0].examples[0].question.startswith("Shown?")
        every = prepared(store, few_shot=1, few_shot_split="dev").rendered["full"]
        assert few_shot_prompts.prompts[0] in every.prompts

    def test_without_a_test_split_of_their_own_all_of_them_are_rendered(self, store: Store) -> None:
        rendered_prompts = prepared(store, tasks="whole").rendered["full"].prompts
        assert [prompt_row.question.split("\n")[0] for prompt_row in rendered_prompts] == ["Whole?"]
