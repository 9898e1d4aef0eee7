"""The prompts that a filter keeps, as lm-evaluation-harness is told to ask them alone.

Its option ``--samples`` takes a JSON object: for each task the numbers of its documents, counted from 0. A task that is
not in it, or whose list is empty, is asked whole.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from sqlalchemy.orm import Session

from tracker.errors import OptionsError, SelectionError
from tracker.exporting.declaration import export
from tracker.exporting.formats.filter.filtered_prompts import FilteredPrompts, load_filtered_prompts
from tracker.exporting.outputs import TextFile
from tracker.ingest.formats.lm_eval.documents import DOC_ID
from tracker.name_lists import join_names
from tracker.plugins.parameters import ValueHint

MAX_NAMES = 5
AGAIN = (
    "They come with what the harness logs (--log_samples): take that in, again if it was taken in before, with "
    "`suffrage ingest FOLDER --benchmark {benchmark} --on-conflict update`."
)
BY_ORDER = "Where the prompts were taken in whole and in the harness's order, --number-by-order counts them instead."


@dataclass(frozen=True, kw_only=True)
class HarnessSamples:
    """Which documents of which tasks stay.

    Attributes:
        documents: numbers of the documents that stay, ascending, by task, in the order of the tasks' names.
        omitted_tasks: tasks of which nothing stays.
        counted: tasks whose documents were numbered in the order in which they were taken in.
    """

    documents: Mapping[str, list[int]]
    omitted_tasks: tuple[str, ...]
    counted: tuple[str, ...]

    def as_json(self) -> bytes:
        """The object, a task in each line."""
        lines = (f"  {json.dumps(task, ensure_ascii=False)}: {numbers}" for task, numbers in self.documents.items())
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    @property
    def warnings(self) -> Iterator[str]:
        """What a reader should know before using it."""
        if self.counted:
            yield (
                f"{_count(len(self.counted), 'task')} ({join_names(self.counted, MAX_NAMES)}): documents were numbered "
                "from 0 in the order in which they were taken in. That this is the harness's order, and that the tasks "
                "are called as there, is for you to know."
            )
        yield (
            f"{_count(len(self.documents), 'task')} in all. Name in --tasks only those of the file: the harness asks "
            "every document of a task that --samples does not list."
        )
        if self.omitted_tasks:
            names = join_names(self.omitted_tasks, MAX_NAMES)
            yield f"Nothing stays of {_count(len(self.omitted_tasks), 'task')}: {names}."


def check_review(options: Mapping[str, Any]) -> None:
    """Raise where a sample for review is wanted in the format of the harness.

    Raises:
        OptionsError: it is.
    """
    if options["review"] is not None:
        raise OptionsError("--review is for people: choose --format csv, jsonl or parquet.")


@export(format_of="filter", suffix=".json", check=check_review)
def export_harness_samples(
    session: Session,
    key: Annotated[int, ValueHint(metavar="ID")],
    *,
    number_by_order: Annotated[
        bool,
        (
            "lm-eval: number the prompts of each task from 0 in the order of import, if their "
            "document numbers are unknown. Check that this is the order of the harness."
        ),
    ] = False,
) -> TextFile:
    """The prompts that a filter keeps, as the file for ``--samples``; see `select_harness_samples`."""
    filtered = load_filtered_prompts(session, key)
    samples = select_harness_samples(filtered, number_by_order=number_by_order)
    return TextFile(content=samples.as_json(), warnings=[*filtered.warnings, *samples.warnings])


def select_harness_samples(filtered: FilteredPrompts, *, number_by_order: bool = False) -> HarnessSamples:
    """The documents that stay.

    Args:
        filtered: a filter and its prompts.
        number_by_order: whether the documents of a task, where the number of one that stays is not known, are numbered
            from 0 in the order in which all prompts of the task were taken in.

    Raises:
        SelectionError: a document's number is not known, or not to be trusted: two prompts of a task have the same, or
            those that are known contradict the order.
    """
    prompts = filtered.prompts
    by_task: dict[str, list[int]] = defaultdict(list)
    for row, task in enumerate(prompts.tasks):
        by_task[task].append(row)
    stays = set(filtered.kept.tolist())
    documents: dict[str, list[int]] = {}
    lacking: dict[str, tuple[int, int]] = {}
    counted, doubtful, disordered = [], [], []
    for task in sorted({prompts.tasks[row] for row in stays}):
        rows = by_task[task]
        known = {row: number for row in rows if isinstance(number := prompts.details[row].get(DOC_ID), int)}
        chosen = [row for row in rows if row in stays]
        missing = [row for row in chosen if row not in known]
        if not task or (missing and not number_by_order):
            lacking[task] = (len(missing) or len(chosen), len(chosen))
            continue
        if missing:
            counted.append(task)
            order = {row: place for place, row in enumerate(rows)}
            disordered += [task] if any(order[row] != number for row, number in known.items()) else []
            known = order
        owners: dict[int, list[int]] = defaultdict(list)
        for row, number in known.items():
            owners[number].append(row)
        doubtful += [task] if any(len(owners[known[row]]) > 1 for row in chosen) else []
        documents[task] = sorted({known[row] for row in chosen})
    _check_numbers(filtered.filter.benchmark, lacking, doubtful, disordered)
    omitted_tasks = tuple(sorted(task for task in by_task if task not in documents))
    return HarnessSamples(documents=documents, omitted_tasks=omitted_tasks, counted=tuple(counted))


def _check_numbers(
    benchmark: str, lacking: Mapping[str, tuple[int, int]], doubtful: list[str], disordered: list[str]
) -> None:
    if "" in lacking:
        raise SelectionError(
            f"{lacking[''][0]:,} kept prompts of {benchmark} belong to no task, and lm-evaluation-harness finds "
            "documents by their task. Choose --format csv, jsonl or parquet."
        )
    if lacking:
        tasks = [f"{task} ({n:,} of {of:,} kept prompts)" for task, (n, of) in lacking.items()]
        raise SelectionError(
            f"Numbers of documents are not known in {_count(len(lacking), 'task')}: {join_names(tasks, MAX_NAMES)}. "
            f"{AGAIN.format(benchmark=shlex.quote(benchmark))} {BY_ORDER}"
        )
    if disordered:
        raise SelectionError(
            f"The prompts of {join_names(disordered, MAX_NAMES)} were not taken in in the harness's order: the numbers "
            f"that are known contradict it. {AGAIN.format(benchmark=shlex.quote(benchmark))}"
        )
    if doubtful:
        raise SelectionError(
            f"In {join_names(doubtful, MAX_NAMES)} two prompts have the same number, so that it does not say which "
            "document stays: the task's documents have changed between the files. Take in output of one version of it, "
            "under a benchmark of its own, and filter that."
        )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
