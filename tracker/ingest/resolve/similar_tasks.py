"""Tasks of a benchmark whose names differ only in what a harness adds: they are often one task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from unicodedata import normalize

from tracker.ingest.resolve.similar_models import show_name

HARNESSES = frozenset(
    ("leaderboard", "harness", "lighteval", "helm", "inspect", "evals", "opencompass", "hendryckstest")
)
"""Words that harnesses put into the names of tasks."""


def task_words(name: str, benchmark: str) -> tuple[str, ...]:
    """Return the words of a task's name without case, words of harnesses, and words of the benchmark before them.

    Args:
        name: the task, such as ``leaderboard_mmlu_pro_biology``.
        benchmark: its benchmark, such as ``mmlu_pro``.
    """
    words = [word for word in _split_words(name) if word not in HARNESSES]
    of_benchmark, start = set(_split_words(benchmark)), 0
    while start < len(words) and words[start] in of_benchmark:
        start += 1
    return tuple(words[start:] or words or _split_words(name))


def describe_similar_tasks(benchmark: str, new: Sequence[str], stored: Iterable[str]) -> list[str]:
    """Return a warning if new tasks have names similar to those of stored ones, with the command that maps them.

    Args:
        benchmark: name of the benchmark.
        new: names of the added tasks.
        stored: names of the earlier tasks.
    """
    known = {task_words(name, benchmark): name for name in stored if name}
    pairs = [(name, known[words]) for name in new if (words := task_words(name, benchmark)) and words in known]
    if not pairs:
        return []
    name, task = pairs[0]
    patterns = {name.removesuffix(task) + "*" if name.endswith(task) else name for name, task in pairs}
    names = (name, task) if len(patterns) > 1 or len(pairs) == 1 else (*patterns, "*")
    command = " ".join(["suffrage tasks alias", *map(show_name, (benchmark, *names))])
    more = f" {len(pairs) - 1:,} more are similar too." if len(pairs) > 1 else ""
    return [
        f"the new task {show_name(name)} has a name similar to the stored task {show_name(task)}.{more} If they are "
        f"equal, undo this import, run the following, and import the file again: {command}"
    ]


def _split_words(name: str) -> list[str]:
    return [word for word in re.split(r"[\W_]+", normalize("NFC", name).casefold()) if word]
