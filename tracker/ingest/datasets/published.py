"""Prompts of a published data set: selection, names, counts and blocks."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tracker.errors import BadInputError, NotFoundError
from tracker.ingest.datasets.prompt_sampling import find_last_hash, hash_prompt
from tracker.ingest.datasets.row import DatasetRow, PublishedPrompt, RowError, normalize_split
from tracker.ingest.measurement import PROMPTS_PER_BLOCK, Prompts

BY_ID, BY_CONTENT = "", "content"
"""Namespaces of prompts: names of the data set, which score tables use too, and content hashes."""
DIGITS = 16
TEST, TRAIN = "test", "train"
UNANSWERED = "without a published reference answer"
EQUAL = "listed twice under the same name"


@dataclass(kw_only=True)
class PublishedPrompts:
    """The prompts of a data set; they can be read repeatedly.

    Attributes:
        path: the data set, for messages.
        rows: returns an iterator over the rows, from the first, on each call.
        read: returns the prompt of a row, or the reason for skipping such rows.
        task_names: new names of tasks; ``*`` matches any name.
        splits: splits to read; empty for all.
        test_fraction: fraction of the prompts that ``seed`` assigns to the split test; the others become train. None
            keeps the published splits.
        counts: number of prompts by split and task, after `blocks` has ended.
        skipped: number of skipped rows by reason.
        tasks: names of tasks in the data set.
    """

    path: Path
    rows: Callable[[], Iterator[DatasetRow]]
    read: Callable[[DatasetRow], PublishedPrompt | str]
    task_names: Mapping[str, str] = field(default_factory=dict)
    splits: Sequence[str] = ()
    test_fraction: float | None = None
    seed: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    tasks: set[str] = field(default_factory=set)

    def blocks(self) -> Iterator[Prompts]:
        """Yield the prompts in blocks.

        Raises:
            BadInputError: rows are invalid, or no prompt is left.
            NotFoundError: no prompt has a selected split.
            SelectionError: the fraction is invalid.
        """
        last = None
        if self.test_fraction is not None:
            last = find_last_hash([self._lot(prompt) for prompt in self._prompts()], self.test_fraction)
        self.counts.clear()
        waiting: dict[str, list[_NumberedPrompt]] = {BY_ID: [], BY_CONTENT: []}
        for numbered in self._prompts():
            prompt, namespace = numbered.prompt, BY_ID if numbered.prompt.id else BY_CONTENT
            split = prompt.split if last is None else TEST if self._lot(numbered) <= last else TRAIN
            self.counts[split, prompt.task] += 1
            waiting[namespace].append(replace(numbered, split=split))
            if len(waiting[namespace]) == PROMPTS_PER_BLOCK:
                yield _block(namespace, waiting[namespace])
                waiting[namespace] = []
        for namespace, rest in waiting.items():
            if rest:
                yield _block(namespace, rest)

    def _lot(self, numbered: _NumberedPrompt) -> bytes:
        return hash_prompt(self.seed, numbered.prompt.id, numbered.content, numbered.n_before)

    def _prompts(self) -> Iterator[_NumberedPrompt]:
        """Yield the selected prompts; raise one error for all invalid rows at the end."""
        self.skipped.clear()
        problems: list[str] = []
        n_problems = n_prompts = 0
        chosen_splits = {normalize_split(split) for split in self.splits}
        seen: Counter[str] = Counter()
        equal: Counter[bytes] = Counter()
        contents_by_id: dict[tuple[str, str], tuple[bytes, str]] = {}
        for row in self.rows():
            try:
                prompt = self.read(row)
                if isinstance(prompt, str):
                    if not chosen_splits or row.split in ("", *chosen_splits):
                        self.skipped[prompt] += 1
                    continue
                prompt = replace(prompt, split=prompt.split or row.split, task=self._task(prompt.task))
                seen[prompt.split] += 1
                if chosen_splits and prompt.split not in chosen_splits:
                    continue
                content = _content(prompt)
                before, where = contents_by_id.setdefault((prompt.task, prompt.id), (content, row.place))
                if prompt.id and before != content:
                    raise RowError(f"the name {prompt.id!r} also belongs to another prompt, at {where}")
            except RowError as error:
                n_problems += 1
                problems += [f"{row.place}: {error}"] if len(problems) < BadInputError.MAX_LISTED else []
                continue
            reason = EQUAL if prompt.id and where != row.place else ""
            if self.test_fraction is not None and prompt.answer is None:
                reason = UNANSWERED
            if reason:
                self.skipped[reason] += 1
                continue
            n_prompts += 1
            digits = hashlib.sha256(content + json.dumps(prompt.split).encode()).hexdigest()[:DIGITS]
            equal[content] += 1
            equal[digits.encode()] += 1
            nth = equal[digits.encode()]
            key = prompt.id or (digits if nth == 1 else f"{digits}-{nth}")
            yield _NumberedPrompt(line=row.line, key=key, prompt=prompt, content=content, n_before=equal[content] - 1)
        if n_problems:
            raise BadInputError(self.path, problems, count=n_problems)
        if unknown := sorted(chosen_splits - set(seen)):
            raise NotFoundError("split", unknown[0], sorted(filter(None, seen)))
        if not n_prompts:
            reasons = "; ".join(f"{n:,} {reason}" for reason, n in self.skipped.items())
            raise BadInputError(self.path, f"holds no prompts{f': skipped were {reasons}' if reasons else ''}.")

    def _task(self, name: str) -> str:
        self.tasks.add(name)
        pattern = self.task_names.get(name)
        return self.task_names.get("*", name).replace("*", name) if pattern is None else pattern


@dataclass(frozen=True, kw_only=True)
class _NumberedPrompt:
    """Return a prompt with its name, content hash and the number of earlier prompts with the same content."""

    line: int
    key: str
    prompt: PublishedPrompt
    content: bytes
    n_before: int
    split: str = ""


def _content(prompt: PublishedPrompt) -> bytes:
    content = [prompt.task, prompt.text, prompt.choices, prompt.answer]
    written = json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(written).digest()


def _block(namespace: str, numbered: Sequence[_NumberedPrompt]) -> Prompts:
    """Return a block. If no prompt has a task, prompts are searched in all tasks of the benchmark."""
    prompts = [entry.prompt for entry in numbered]
    return Prompts(
        keys=[entry.key for entry in numbered],
        namespace=namespace,
        tasks=[prompt.task for prompt in prompts] if any(prompt.task for prompt in prompts) else None,
        text=[prompt.text for prompt in prompts],
        choices=[list(prompt.choices) or None for prompt in prompts],
        answer=[prompt.answer for prompt in prompts],
        split=[entry.split or None for entry in numbered],
        details=[dict(prompt.details) or None for prompt in prompts],
        lines=np.array([entry.line for entry in numbered], dtype=np.int64),
    )
