"""Few-shot examples: which solved prompts stand before a prompt."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence

from tracker.errors import NotFoundError, SelectionError
from tracker.evaluating.option_values import EXAMPLE_CHOICES
from tracker.evaluating.prompt_templates.prompt_content import content_key, draw_places
from tracker.queries.prompts import PromptTexts


class ExampleSelector:
    """Selects the few-shot examples of each prompt.

    ``fixed`` selects the first prompts of the split as stored. ``per-prompt`` draws them for each prompt by the seed
    and the prompt's content. Both select from the prompt's own task, or from the whole benchmark if its task has no
    prompts in that split. The prompt itself and prompts of equal content are excluded (see `content_key`).

    Args:
        prompts: all stored prompts.
        usable: rows that may be shown, ascending: prompts of the split that can be rendered and have a reference
            answer.
        split: name of the split.
        n: few-shot examples per prompt.
        choice: one of `EXAMPLE_CHOICES`.
        seed: seed of the draws.

    Raises:
        SelectionError: the choice is unknown.
    """

    def __init__(
        self,
        prompts: PromptTexts,
        usable: Sequence[int],
        *,
        split: str,
        n: int,
        choice: str,
        seed: int,
    ) -> None:
        if choice not in EXAMPLE_CHOICES:
            raise SelectionError(f"No choice of few-shot examples {choice!r}. Known: {', '.join(EXAMPLE_CHOICES)}.")
        self.prompts = prompts
        self.split, self.n, self.choice, self.seed = split, n, choice, seed
        keys = {row: self._content_key(row) for row in usable}
        self._everywhere = _ExamplePool(usable, keys)
        tasks: dict[str, list[int]] = {}
        for row in usable:
            tasks.setdefault(prompts.tasks[row], []).append(row)
        self._by_task = {task: _ExamplePool(rows, keys) for task, rows in tasks.items()}

    def select(self, row: int) -> list[int]:
        """Return the rows of a prompt's few-shot examples, in the order in which they are shown.

        Raises:
            SelectionError: fewer than ``n`` rows are usable.
        """
        task, key = self.prompts.tasks[row], self._content_key(row)
        pool = self._by_task.get(task, self._everywhere)
        if pool.count_without(key) < self.n:
            raise SelectionError(self._explain_too_few(task, pool.count_without(key), in_task=task in self._by_task))
        if self.choice == "fixed":
            return pool.first(self.n, key)
        places = draw_places(pool.count_without(key), self.n, "shots", str(self.seed), key)
        return [pool.at(place, key) for place in places]

    def _content_key(self, row: int) -> str:
        return content_key(self.prompts.texts[row], self.prompts.choices[row])

    def _explain_too_few(self, task: str, n_usable: int, *, in_task: bool) -> str:
        where = f"task {task!r} has" if in_task and task else "there are"
        hint = f"Use --few-shot {n_usable}, or" if n_usable else "Choose"
        return (
            f"{self.n} few-shot examples are requested, but in split {self.split!r} {where} only {n_usable} usable "
            "prompts. Usable prompts have a text, a reference answer and, if the template needs them, options, and "
            f"differ from the evaluated prompt. {hint} another --few-shot-split."
        )


class _ExamplePool:
    """Return the rows to select from, as stored and by content."""

    def __init__(self, rows: Sequence[int], keys: Mapping[int, str]) -> None:
        self._stored = list(rows)
        self._keys = keys
        self._by_content = sorted(rows, key=lambda row: (keys[row], row))
        self._sorted_keys = [keys[row] for row in self._by_content]

    def _same(self, key: str) -> tuple[int, int]:
        return bisect_left(self._sorted_keys, key), bisect_right(self._sorted_keys, key)

    def count_without(self, key: str) -> int:
        low, high = self._same(key)
        return len(self._stored) - (high - low)

    def first(self, n: int, key: str) -> list[int]:
        chosen: list[int] = []
        for row in self._stored:
            if len(chosen) == n:
                break
            if self._keys[row] != key:
                chosen.append(row)
        return chosen

    def at(self, place: int, key: str) -> int:
        """Return the row at a place among those of other content."""
        low, high = self._same(key)
        return self._by_content[place if place < low else place + high - low]


def list_split_rows(prompts: PromptTexts, split: str | None) -> list[int]:
    """Return the rows of a split.

    Raises:
        SelectionError: no split is specified, or the prompts have no splits.
        NotFoundError: the split does not exist.
    """
    known = list_splits(prompts.splits)
    if not known:
        raise SelectionError(
            "The prompts are stored without splits. Import them with splits: suffrage prompts import BENCHMARK "
            "SOURCE, or a table with a column split."
        )
    if split is None:
        raise SelectionError(f"Few-shot examples need a split: --few-shot-split NAME. Splits: {', '.join(known)}.")
    if split not in known:
        raise NotFoundError("split", split, known)
    return [row for row, row_split in enumerate(prompts.splits) if row_split == split]


def list_splits(splits: Iterable[str | None]) -> list[str]:
    """Return the names of the existing splits, sorted."""
    return sorted({split for split in splits if split is not None})
