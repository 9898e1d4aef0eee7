"""Comparison of a file's prompts with the stored ones: missing content is added, contradictions are reported."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tracker.ingest.resolve.prompt_changes import PromptChanges
from tracker.ingest.resolve.prompt_details import DetailsMerger
from tracker.ingest.resolve.prompt_texts import PromptContents, hash_content, list_accepted_answers
from tracker.ingest.resolve.questions.comparison import have_equal_references, is_same_text, make_comparable


class ContentConflicts:
    """The conflicts of one block of prompts with the store.

    Args:
        changes: receives missing content.
        contents: content of each row.
        on_conflict: what to do if a reference answer contradicts the stored one: ``update`` overwrites it, ``skip``
            keeps it, any other value is a problem.
        equal_rows: rows whose text is known to be equal apart from decoration.

    Attributes:
        problems: contradictions by row.
        n_answers_changed: number of reference answers that were overwritten or kept.
    """

    def __init__(
        self,
        changes: PromptChanges,
        contents: Sequence[PromptContents],
        on_conflict: str,
        equal_rows: Collection[int] = (),
    ) -> None:
        self.changes, self.contents, self.on_conflict = changes, contents, on_conflict
        self.equal_rows = equal_rows
        self.slice = changes.slice
        self.problems: dict[int, str] = {}
        self.n_answers_changed = 0
        self._texts: list[tuple[int, int]] = []
        self._answers: list[tuple[int, int]] = []
        self._detailed: list[tuple[int, int]] = []

    def check(self, row: int, key: int) -> None:
        """Add missing content to a prompt, and collect contradictions."""
        indexed, content, filled = self.slice.content(key), self.contents[row], self.changes.filled
        if content.hash is not None and indexed.hash is None:
            self.slice.put(key, indexed, indexed.task_id, content.hash)
            filled[key] |= {"text": content.text, "content_hash": content.hash, "occurrence": indexed.occurrence}
            if content.choices is not None:
                filled[key]["choices"] = content.choices
        elif content.hash is not None and content.hash != indexed.hash:
            self._texts.append((row, key))
        if content.answer is not None and indexed.answer is None:
            indexed.answer = filled[key]["answer"] = content.answer
        elif content.answer is not None and content.answer != indexed.answer:
            self._answers.append((row, key))
        if content.split is not None and indexed.split is None:
            indexed.split = filled[key]["split"] = content.split
        if content.details is not None:
            self._detailed.append((row, key))

    def resolve(self) -> None:
        """Resolve the contradictions.

        Decoration of harnesses does not contradict a text, nor a text without choices the text with them, nor a letter
        its option.
        """
        keys = dict.fromkeys(key for _, key in (*self._texts, *self._answers))
        stored = {key: (text, choices) for key, text, choices in self.slice.index.stored_texts(list(keys))}
        for row, key in self._texts:
            self._resolve_text(row, key, *self._waiting_text(key, *stored.get(key, (None, None))))
        for row, key in self._answers:
            self._resolve_answer(row, key, self._waiting_text(key, *stored.get(key, (None, None)))[1])

    def complete_details(self, details: DetailsMerger) -> None:
        """Add missing details to the prompts."""
        indexed = self.slice.prompts
        with_details = [key for _, key in self._detailed if indexed[key].has_details]
        stored = dict(self.slice.index.stored_details(with_details))
        for row, key in self._detailed:
            known = self.changes.waiting(key).get("details") or stored.get(key) or {}
            if merged := details.merge(known, self.contents[row].details):
                self.changes.filled[key]["details"], indexed[key].has_details = merged, True

    def _waiting_text(
        self, key: int, text: str | None, choices: list[str] | None
    ) -> tuple[str | None, list[str] | None]:
        waiting = self.changes.waiting(key)
        return waiting.get("text", text), waiting.get("choices", choices)

    def _resolve_text(self, row: int, key: int, stored_text: str | None, stored_choices: list[str] | None) -> None:
        content = self.contents[row]
        assert content.text is not None
        text = stored_text or ""
        if row not in self.equal_rows and not is_same_text(
            make_comparable(content.text, content.choices), make_comparable(text, stored_choices)
        ):
            self.problems[row] = "its text contradicts the stored one"
        elif content.choices is not None and stored_choices is None:
            hashed = hash_content(text, content.choices)
            indexed = self.slice.content(key)
            self.slice.put(key, indexed, indexed.task_id, hashed)
            self.changes.filled[key] |= {
                "choices": content.choices, "content_hash": hashed, "occurrence": indexed.occurrence,
            }  # fmt: skip

    def _resolve_answer(self, row: int, key: int, stored_choices: list[str] | None) -> None:
        indexed, answer = self.slice.content(key), self.contents[row].answer
        assert answer is not None
        choices = self.contents[row].choices or stored_choices
        gold = indexed.answer or ""
        is_accepted = answer.strip() in list_accepted_answers(gold, choices)
        if is_accepted or have_equal_references(answer, gold, choices):
            return
        if self.on_conflict == "update":
            indexed.answer = self.changes.filled[key]["answer"] = answer
            self.n_answers_changed += 1
        elif self.on_conflict == "skip":
            self.n_answers_changed += 1
        else:
            self.problems[row] = f"its reference answer {answer!r} contradicts the stored one, {gold!r}"
