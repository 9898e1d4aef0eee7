"""Import tasks of lm-evaluation-harness as prompts, in one transaction per benchmark."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import ensure_current, transaction
from tracker.errors import ConflictError, SelectionError
from tracker.ingest.datasets.ingest_prompts import OnConflict, PromptDryRunError, PromptIngestResult
from tracker.ingest.datasets.lm_eval.documents import TaskDocuments
from tracker.ingest.datasets.lm_eval.few_shot_examples import HARNESS_SEED
from tracker.ingest.datasets.lm_eval.prompt_builder import PromptBuilder
from tracker.ingest.datasets.lm_eval.prompt_rows import LM_EVAL, PromptRow, list_example_rows, list_prompt_rows
from tracker.ingest.datasets.lm_eval.stored_prompt import PROMPT
from tracker.ingest.datasets.lm_eval.task import GENERATE, LmEvalTask, make_task
from tracker.ingest.datasets.lm_eval.task_search import FoundTask, TaskFolder, find_installed_tasks
from tracker.ingest.formats.lm_eval.documents import DOC_ID
from tracker.ingest.measurement import PROMPTS_PER_BLOCK, ParsedFile, Prompts, ReadOptions
from tracker.ingest.parsing.block_buffer import BlockBuffer
from tracker.ingest.resolve.prompt_texts import make_storable, make_storable_json
from tracker.ingest.write.writer import store_file
from tracker.name_lists import join_names
from tracker.schema import Benchmark, Prompt, PromptAlias, Task

FORMAT = "lm-eval-task"
MAX_NAMES = 5


@dataclass(frozen=True, kw_only=True)
class LmEvalOptions:
    """Options for importing tasks.

    Attributes:
        folder: folder of task files; None for that of the installed harness.
        source: folder or file with the documents; None for the data set that each task names.
        few_shot: few-shot examples per prompt; None for those of each task.
        few_shot_seed: seed of the draws of examples.
        trust_code: whether Python functions of the tasks may run.
    """

    folder: Path | None = None
    source: Path | None = None
    few_shot: int | None = None
    few_shot_seed: int = HARNESS_SEED
    trust_code: bool = False


@dataclass(frozen=True, kw_only=True)
class LmEvalImport:
    """The imported tasks of a benchmark.

    Attributes:
        result: what was stored.
        next_options: options of `suffrage evaluate` that the task needs.
    """

    result: PromptIngestResult
    next_options: tuple[str, ...] = ()


def ingest_lm_eval_tasks(
    engine: sa.Engine,
    names: Sequence[str],
    options: LmEvalOptions | None = None,
    *,
    benchmark: str | None = None,
    on_conflict: OnConflict = "error",
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[LmEvalImport]:
    """Import tasks with the texts that lm-evaluation-harness sends. Importing the same again changes nothing.

    Args:
        engine: the store.
        names: names or YAML files of tasks or groups.
        options: how to read them.
        benchmark: benchmark of all tasks; None for a separate benchmark for each name.
        on_conflict: what to do if reference answers contradict the stored ones.
        dry_run: report the changes without storing them.
        progress: receives the amount done and the total.

    Raises:
        BadInputError: a task is invalid or not supported, or its documents are; nothing of its benchmark is stored.
        NotFoundError: no such task.
        SelectionError: tasks of one benchmark need different settings.
        ConflictError: the prompts are stored with other texts.
        MissingExtraError: the package `datasets` is needed.
    """
    options = options or LmEvalOptions()
    folder = TaskFolder(options.folder or find_installed_tasks())
    tasks_by_name = {name: folder.find(name) for name in names}
    if benchmark is not None:
        groups = {benchmark: [task for tasks in tasks_by_name.values() for task in tasks]}
    else:
        groups = {tasks[0].name if len(tasks) == 1 else Path(name).stem: tasks for name, tasks in tasks_by_name.items()}
    return [
        _TaskImport(name, tasks, options, progress).store(engine, on_conflict=on_conflict, dry_run=dry_run)
        for name, tasks in groups.items()
    ]


@dataclass
class _TaskImport:
    """Import of the tasks of one benchmark."""

    benchmark: str
    sources: Sequence[FoundTask]
    options: LmEvalOptions
    progress: Callable[[int, int], None] | None
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    fields: dict[tuple[str, str], Any] = field(default_factory=dict)

    def store(self, engine: sa.Engine, *, on_conflict: OnConflict, dry_run: bool) -> LmEvalImport:
        tasks = [
            make_task(source, trust_code=self.options.trust_code, n_few_shot=self.options.few_shot)
            for source in {source.name: source for source in self.sources}.values()
        ]
        _check_same_settings(self.benchmark, tasks)
        path = self.options.source or tasks[0].path
        files = {task.path: None for task in tasks}
        buffer, digest = BlockBuffer(), hashlib.sha256()
        try:
            for done, task in enumerate(tasks):
                documents = TaskDocuments(task=task, source=self.options.source)
                for block in self._blocks(task, documents):
                    digest.update(orjson.dumps([block.keys, block.text, block.choices, block.answer, block.details]))
                    buffer.append(block)
                files |= dict.fromkeys(documents.files)
                if self.progress:
                    self.progress(done + 1, len(tasks))
            identity = hashlib.sha256(orjson.dumps([FORMAT, self.benchmark, digest.hexdigest()])).hexdigest()
            parsed = ParsedFile(
                path=path, files=tuple(files), format=FORMAT, digest=digest.hexdigest(), identity=identity,
                measurements=buffer,
            )  # fmt: skip
            ensure_current(engine)
            with suppress(PromptDryRunError), transaction(engine, exclusive=True) as session:
                changes = store_file(session, parsed, ReadOptions(benchmark=self.benchmark), on_conflict=on_conflict)
                self._check_stored(session)
                if dry_run:
                    raise PromptDryRunError
        finally:
            buffer.close()
        result = PromptIngestResult(
            benchmark=self.benchmark, source=path, changes=changes, counts=dict(self.counts), skipped={},
            warnings=(*_list_warnings(tasks), *changes.warnings), dry_run=dry_run,
        )  # fmt: skip
        return LmEvalImport(result=result, next_options=_list_next_options(tasks[0]))

    def _blocks(self, task: LmEvalTask, documents: TaskDocuments) -> Iterator[Prompts]:
        """Yield the prompts of a task, then its few-shot examples."""
        builder = PromptBuilder(task, documents, self.options.few_shot_seed)
        prompts = list_prompt_rows(builder)
        rows = [*prompts, *list_example_rows(builder, prompts)]
        for row in rows:
            self.counts[row.split, task.name] += 1
            if PROMPT in row.details:
                self.fields[make_storable(task.name), row.key] = row.details[PROMPT]
        for first in range(0, len(rows), PROMPTS_PER_BLOCK):
            yield self._block(task.name, first, rows[first : first + PROMPTS_PER_BLOCK])

    def _block(self, task: str, first: int, rows: Sequence[PromptRow]) -> Prompts:
        return Prompts(
            keys=[row.key for row in rows],
            tasks=[task] * len(rows),
            namespace=LM_EVAL,
            text=[row.text for row in rows],
            choices=[row.choices for row in rows],
            answer=[row.answer for row in rows],
            split=[row.split for row in rows],
            details=[row.details for row in rows],
            disambiguated_by=DOC_ID,
            benchmark=self.benchmark,
            lines=np.arange(first + 1, first + len(rows) + 1, dtype=np.int64),
        )

    def _check_stored(self, session: Session) -> None:
        """Compare the texts with the stored ones, which an import does not replace.

        Raises:
            ConflictError: prompts are stored with other texts, such as another number of few-shot examples.
        """
        name, _, revision = make_storable(self.benchmark).partition("@")
        of, task, alias, prompt = (sa.inspect(table).columns for table in (Benchmark, Task, PromptAlias, Prompt))
        rows = session.execute(
            sa.select(task.name, alias.key, prompt.details)
            .join_from(Prompt, PromptAlias, alias.prompt_id == prompt.id)
            .join(Task, task.id == alias.task_id)
            .join(Benchmark, of.id == task.benchmark_id)
            .where(of.name == name, of.revision == revision, alias.namespace == LM_EVAL, prompt.details.is_not(None))
        )
        differing = [
            key
            for task_name, key, details in rows
            if (task_name, key) in self.fields
            and details.get(PROMPT) != make_storable_json(self.fields[task_name, key])
        ]
        if differing:
            raise ConflictError(
                f"{len(differing):,} prompts of {self.benchmark} are stored with other texts, such as another number "
                "of few-shot examples. Import these as a separate version: suffrage prompts import "
                f"{name}@VERSION --lm-eval TASK."
            )


def _check_same_settings(benchmark: str, tasks: Sequence[LmEvalTask]) -> None:
    """Check that one run can evaluate all tasks.

    Raises:
        SelectionError: they need different settings.
    """

    def settings(task: LmEvalTask) -> Mapping[str, Any]:
        return {"output_type": task.output_type, **task.generation}

    for task in tasks[1:]:
        differing = [name for name, value in settings(task).items() if settings(tasks[0]).get(name) != value]
        if differing:
            raise SelectionError(
                f"The tasks {tasks[0].name} and {task.name} differ in {differing[0]}, so that no run of {benchmark} "
                "can evaluate both. Import them separately."
            )


def _list_warnings(tasks: Sequence[LmEvalTask]) -> Iterator[str]:
    ignored = Counter(name for task in tasks for name in task.ignored)
    if ignored:
        yield f"metrics that are not computed: {join_names(ignored, MAX_NAMES)}"


def _list_next_options(task: LmEvalTask) -> tuple[str, ...]:
    if task.output_type != GENERATE or not task.generation["temperature"]:
        return ()
    options = ("--temperature", f"{task.generation['temperature']:g}")
    return (*options, "--top-p", f"{task.generation['top_p']:g}") if "top_p" in task.generation else options
