"""Stored prompts by their questions without decoration, for prompts whose content is not stored as it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import split_keys
from tracker.ingest.resolve.prompt_index import ALIAS, PROMPT
from tracker.ingest.resolve.prompt_texts import PromptContents
from tracker.ingest.resolve.questions.comparison import (
    ComparableQuestion,
    have_equal_references,
    is_same_prompt,
    make_comparable,
)


@dataclass(frozen=True, slots=True)
class QuestionMatch:
    """The stored prompts with the question of a prompt.

    Attributes:
        keys: prompts that are the same one, those with the same reference answer first.
        is_similar: whether another one differs only in its reference answer or in the order of its options, or has
            options where this one has none.
    """

    keys: Sequence[int]
    is_similar: bool


class QuestionIndex:
    """The prompts of some tasks that have a text, but no name in a namespace.

    Prompts that a file adds get a name, so a task is loaded once for a file. Only hashes are kept in memory.

    Args:
        session: the store.
        namespace: namespace of the names.
    """

    def __init__(self, session: Session, namespace: str) -> None:
        self.session, self.namespace = session, namespace
        self._prompts: dict[int, dict[int, list[int]]] = {}
        """By task and hash of the question: keys of prompts."""
        self._used: set[int] = set()

    def load(self, task_ids: Collection[int]) -> bool:
        """Load the prompts of some tasks, unless they were loaded before; return whether there are any."""
        fresh = [task for task in task_ids if task not in self._prompts]
        self._prompts |= {task: {} for task in fresh}
        for part in split_keys(fresh):
            has_name = sa.exists().where(ALIAS.c.prompt_id == PROMPT.c.id, ALIAS.c.namespace == self.namespace)
            query = sa.select(PROMPT.c.id, PROMPT.c.task_id, PROMPT.c.text, PROMPT.c.choices).where(
                PROMPT.c.task_id.in_(part), PROMPT.c.content_hash.is_not(None), sa.not_(has_name)
            )
            for key, task, text, choices in self.session.execute(query.order_by(PROMPT.c.id)):
                hashed = _hash(make_comparable(text, choices))
                self._prompts[task].setdefault(hashed, []).append(key)
        return any(self._prompts[task] for task in task_ids)

    def match(
        self, contents: Mapping[int, PromptContents], places: Mapping[int, Sequence[int]], hashes: Collection[str]
    ) -> dict[int, QuestionMatch]:
        """Return the stored prompts with the question of each prompt.

        Args:
            contents: prompts with a text by row.
            places: loaded tasks of each row, in the order of preference.
            hashes: contents that other rows of the file have; prompts with them are left out.
        """
        comparable = {row: make_comparable(content.text or "", content.choices) for row, content in contents.items()}
        candidates = {row: self._find(places[row], _hash(question)) for row, question in comparable.items()}
        stored = self._load_contents({key for keys in candidates.values() for key in keys})
        matches = {}
        for row, keys in candidates.items():
            pairs = [(key, stored[key]) for key in keys if stored[key].hash not in hashes]
            if pairs:
                matches[row] = _compare(comparable[row], contents[row].answer, pairs)
        return matches

    def discard(self, prompt_id: int) -> None:
        """Forget a prompt, which has a name now."""
        if any(self._prompts.values()):
            self._used.add(prompt_id)

    def _find(self, task_ids: Sequence[int], hashed: int) -> list[int]:
        return [key for task in task_ids for key in self._prompts[task].get(hashed, ()) if key not in self._used]

    def _load_contents(self, keys: Collection[int]) -> dict[int, PromptContents]:
        stored = {}
        columns = (PROMPT.c.id, PROMPT.c.text, PROMPT.c.choices, PROMPT.c.answer, PROMPT.c.content_hash)
        for part in split_keys(keys):
            for key, text, choices, answer, hashed in self.session.execute(
                sa.select(*columns).where(PROMPT.c.id.in_(part))
            ):
                stored[key] = PromptContents(text=text, choices=choices, answer=answer, hash=hashed)
        return stored


def _compare(
    comparable: ComparableQuestion, reference: str | None, pairs: Sequence[tuple[int, PromptContents]]
) -> QuestionMatch:
    """Compare a prompt with stored prompts whose questions have the same hash."""
    equal: list[tuple[bool, int, str | None]] = []
    is_similar = is_unclear = False
    for place, (_, content) in enumerate(pairs):
        question = make_comparable(content.text or "", content.choices)
        if question.question != comparable.question:
            continue
        options = comparable.options or question.options
        if is_same_prompt(comparable, reference, question, content.answer):
            differs = have_equal_references(reference, content.answer, options) is False
            equal.append((differs, place, content.hash))
            is_unclear |= (comparable.options is None) != (question.options is None)
        elif (
            comparable.options is None
            or question.options is None
            or sorted(comparable.options) == sorted(question.options)
        ):
            is_similar = True
    if is_unclear and len({hashed for _, _, hashed in equal}) > 1:
        return QuestionMatch((), is_similar=True)
    return QuestionMatch([pairs[place][0] for _, place, _ in sorted(equal)], is_similar=is_similar)


def _hash(question: ComparableQuestion) -> int:
    """Return 63 bits of a hash of the question without its options."""
    return int.from_bytes(blake2b(question.question.encode(), digest_size=8).digest(), "big") >> 1
