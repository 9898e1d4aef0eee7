"""Export the prompts that a filter keeps as a sample list of lm-evaluation-harness.

Its option ``--samples`` takes a JSON object: the document numbers of each task, counted from 0. A task that is missing
from the object, or has an empty list, is evaluated completely.
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
    "The numbers are in the harness's logs (--log_samples). Ingest these, again if needed, with `suffrage ingest "
    "FOLDER --benchmark {benchmark} --on-conflict update`."
)
BY_ORDER = "If the prompts were ingested completely and in the harness's order, --number-by-order counts them instead."


@dataclass(frozen=True, kw_only=True)
class HarnessSamples:
    """The documents to keep, by task.

    Attributes:
        documents: numbers of the kept documents, ascending, by task, in the order of the tasks' names.
        omitted_tasks: tasks without kept documents.
        counted: tasks whose documents were numbered in the order of ingestion.
    """

    documents: Mapping[str, list[int]]
    omitted_tasks: tuple[str, ...]
    counted: tuple[str, ...]

    def as_json(self) -> bytes:
        """Format the object, one task per line."""
        lines = (f"  {json.dumps(task, ensure_ascii=False)}: {numbers}" for task, numbers in self.documents.items())
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    @property
    def warnings(self) -> Iterator[str]:
        """Return warnings about the file."""
        if self.counted:
            yield (
                f"{_count(len(self.counted), 'task')} ({join_names(self.counted, MAX_NAMES)}): documents are "
                "numbered from 0 in the order of ingestion. Check that this is the harness's order, and that the "
                "tasks have the same names there."
            )
        yield (
            f"The file lists {_count(len(self.documents), 'task')}. Name only these in --tasks: the harness "
            "evaluates every document of a task that --samples does not list."
        )
        if self.omitted_tasks:
            names = join_names(self.omitted_tasks, MAX_NAMES)
            yield f"No documents are kept of {_count(len(self.omitted_tasks), 'task')}: {names}."


def check_review(options: Mapping[str, Any]) -> None:
    """Reject a review sample in the format of the harness.

    Raises:
        OptionsError: --review is set.
    """
    if options["review"] is not None:
        raise OptionsError("--review is not available for lm-eval. Choose --format csv, jsonl or parquet.")


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
    """Return the prompts that a filter keeps, as the file for ``--samples``; see `select_harness_samples`."""
    filtered = load_filtered_prompts(session, key)
    samples = select_harness_samples(filtered, number_by_order=number_by_order)
    return TextFile(content=samples.as_json(), warnings=[*filtered.warnings, *samples.warnings])


def select_harness_samples(filtered: FilteredPrompts, *, number_by_order: bool = False) -> HarnessSamples:
    """Select the documents to keep.

    Args:
        filtered: a filter and its prompts.
        number_by_order: whether the documents of a task with unknown numbers are numbered from 0 in the order of
            ingestion.

    Raises:
        SelectionError: a document's number is unknown, duplicated within its task, or contradicts the order.
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
            f"{lacking[''][0]:,} kept prompts of {benchmark} have no task, but lm-evaluation-harness finds documents "
            "by their task. Choose --format csv, jsonl or parquet."
        )
    if lacking:
        tasks = [f"{task} ({n:,} of {of:,} kept prompts)" for task, (n, of) in lacking.items()]
        raise SelectionError(
            f"Document numbers are unknown in {_count(len(lacking), 'task')}: {join_names(tasks, MAX_NAMES)}. "
            f"{AGAIN.format(benchmark=shlex.quote(benchmark))} {BY_ORDER}"
        )
    if disordered:
        raise SelectionError(
            f"The prompts of {join_names(disordered, MAX_NAMES)} were not ingested in the harness's order: known "
            f"document numbers contradict it. {AGAIN.format(benchmark=shlex.quote(benchmark))}"
        )
    if doubtful:
        raise SelectionError(
            f"In {join_names(doubtful, MAX_NAMES)} two prompts have the same document number, because the task's "
            "documents changed between the ingested files. Ingest the output of one version under a separate "
            "benchmark name, and filter that."
        )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
