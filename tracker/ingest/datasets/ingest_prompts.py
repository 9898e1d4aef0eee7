"""Import of a published data set in one transaction."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import ensure_current, transaction
from tracker.errors import BadInputError, ConflictError, SelectionError
from tracker.ingest.datasets.field_map import check_fields, guess_answer_notation, make_field_map
from tracker.ingest.datasets.preset import Preset, find_preset, load_presets
from tracker.ingest.datasets.published import BY_CONTENT, BY_ID, PublishedPrompts
from tracker.ingest.datasets.row import DatasetRow, PublishedPrompt
from tracker.ingest.datasets.source import DatasetSource, find_source
from tracker.ingest.measurement import ParsedFile, Prompts, ReadOptions
from tracker.ingest.parsing.block_buffer import BlockBuffer
from tracker.ingest.resolve.prompt_texts import make_storable
from tracker.ingest.write.store_changes import StoreChanges
from tracker.ingest.write.writer import store_file
from tracker.name_lists import join_names
from tracker.notebook.result import NotebookResult, make_table
from tracker.schema import Benchmark, Prompt, PromptAlias, Task, TaskAlias

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

FORMAT = "published-prompts"
OnConflict = Literal["error", "skip", "update"]
MAX_NAMES = 6


@dataclass(frozen=True, kw_only=True)
class PromptIngestResult(NotebookResult):
    """Result of importing a published data set.

    Attributes:
        benchmark: name of the benchmark.
        source: file, folder or name on the hub.
        changes: changes of the store; with ``dry_run``, the changes that would be made.
        counts: number of prompts by split and task; '' if there is none.
        skipped: number of skipped rows by reason.
        warnings: messages for the user.
        dry_run: whether nothing was stored.
    """

    benchmark: str
    source: Path
    changes: StoreChanges
    counts: Mapping[tuple[str, str], int]
    skipped: Mapping[str, int]
    warnings: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def n_prompts(self) -> int:
        """Number of prompts, without skipped rows."""
        return sum(self.counts.values())

    def to_arrow(self) -> pa.Table:
        """Return a row for each split and task, with its number of prompts."""
        return make_table([{"split": split, "task": task, "prompts": n} for (split, task), n in self.counts.items()])

    def plot(self) -> Figure:
        """Draw the number of prompts of each split and task."""
        from tracker.figures.charts import draw_bars

        labels = [": ".join(filter(None, names)) or "no split" for names in self.counts]
        return draw_bars(labels, [*self.counts.values()], xlabel="prompts", title=self.describe())

    def describe(self) -> str:
        """Return the content and the changes in one line."""
        return self.summary()

    def list_details(self) -> Sequence[str]:
        """Return the warnings."""
        return self.warnings

    def summary(self) -> str:
        """Return the content and the changes in one line."""
        by_split: Counter[str] = Counter()
        for (split, _), n in self.counts.items():
            by_split[split or "no split"] += n
        splits = join_names((f"{split} {n:,}" for split, n in by_split.items()), MAX_NAMES)
        n_tasks = len({task for _, task in self.counts})
        tasks = f" in {n_tasks} tasks" if n_tasks > 1 else ""
        would = "would be " if self.dry_run and not self.changes.already_known else ""
        return f"{self.benchmark}: {self.n_prompts:,} prompts{tasks} ({splits}); {would}{self.changes.summary()}"


class PromptDryRunError(Exception):
    """Rolls back the transaction of a dry run."""


@dataclass(frozen=True, kw_only=True)
class PromptOptions:
    """Options for importing prompts.

    Attributes:
        preset: name of a known data set. Defaults to the benchmark's name if that is a preset and no fields are set.
        fields: without a preset, the fields of each part, such as ``text``; see `tracker.ingest.datasets.field_map`.
        answer_is: without a preset, the notation of answers; see `tracker.ingest.datasets.reference_parser`.
        task_names: new names of tasks, such as those of a harness; ``*`` matches any name and stands for it in the new
            name.
        splits: published splits to import; empty for all.
        test_fraction: fraction of the prompts that ``seed`` assigns to the split test; the others become train.
        seed: random seed of that assignment.
        configs: configurations of a data set on the hub; empty for those of the preset.
    """

    preset: str | None = None
    fields: Mapping[str, str] | None = None
    answer_is: str | None = None
    task_names: Mapping[str, str] | None = None
    splits: Sequence[str] = ()
    test_fraction: float | None = None
    seed: int = 0
    configs: Sequence[str] = ()

    def digest(self, benchmark: str, source: DatasetSource) -> str:
        """Return a hash of everything that decides which prompts are stored."""
        decisive = {
            "benchmark": benchmark, "names": source.names, "preset": self.preset, "fields": self.fields,
            "answer_is": self.answer_is, "task_names": self.task_names, "splits": list(self.splits),
            "test_fraction": self.test_fraction, "seed": None if self.test_fraction is None else self.seed,
        }  # fmt: skip
        return hashlib.sha256(json.dumps([FORMAT, source.digest, decisive], sort_keys=True).encode()).hexdigest()


def ingest_prompts(
    engine: sa.Engine,
    benchmark: str,
    source: str | Path,
    options: PromptOptions | None = None,
    *,
    on_conflict: OnConflict = "error",
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> PromptIngestResult:
    """Import a benchmark's prompts from published data. Importing the same data again changes nothing.

    Args:
        engine: the store.
        benchmark: name of the benchmark; ``name@revision`` is one version of it.
        source: a file, a folder of files, or a name on the hub.
        options: how to read the data.
        on_conflict: what to do if reference answers contradict the stored ones.
        dry_run: report the changes without storing them.
        progress: receives the amount done and the total.

    Raises:
        BadInputError: the source does not exist or is invalid; nothing is stored.
        NotFoundError: no such preset or split.
        SelectionError: the options contradict each other or are incomplete.
        ConflictError: prompts are stored in other splits than the drawn ones.
        MissingExtraError: the package for the hub is not installed.
    """
    options = options or PromptOptions()
    published, data, warnings = _open_source(benchmark, source, options, progress)
    buffer = BlockBuffer()
    try:
        for block in published.blocks():
            buffer.append(replace(block, benchmark=benchmark))
        reading = ParsedFile(
            path=data.path,
            files=data.files,
            format=FORMAT,
            digest=data.digest,
            identity=options.digest(benchmark, data),
            measurements=buffer,
        )
        ensure_current(engine)
        with suppress(PromptDryRunError), transaction(engine, exclusive=True) as session:
            stored = store_file(session, reading, ReadOptions(benchmark=benchmark), on_conflict=on_conflict)
            _check_splits(session, benchmark, data.path, buffer, warnings, drawn=options.test_fraction is not None)
            if dry_run:
                raise PromptDryRunError
    finally:
        buffer.close()
    warnings += _collect_warnings(options, published.tasks, introduces_dry_run=dry_run and bool(stored.warnings))
    return PromptIngestResult(
        benchmark=benchmark,
        source=data.path,
        changes=stored,
        counts=dict(published.counts),
        skipped=dict(published.skipped),
        warnings=(*warnings, *stored.warnings),
        dry_run=dry_run,
    )


def _collect_warnings(options: PromptOptions, tasks: set[str], *, introduces_dry_run: bool) -> list[str]:
    """Return warnings about unused task names and about a dry run."""
    warnings = []
    if unused := sorted(set(options.task_names or {}) - {"*"} - tasks):
        warnings.append(f"--task-name has no effect for {', '.join(map(repr, unused))}: no such task")
    if introduces_dry_run:
        warnings.append("dry run: nothing was stored")
    return warnings


def _open_source(
    benchmark: str, source: str | Path, options: PromptOptions, progress: Callable[[int, int], None] | None
) -> tuple[PublishedPrompts, DatasetSource, list[str]]:
    """Return the prompts of a source, the source, and warnings."""
    if not benchmark.partition("@")[0].strip():
        raise SelectionError("The name of the benchmark is empty.")
    known, warnings = _preset(benchmark, options.preset, options.fields, options.answer_is)
    data = find_source(source, known, options.configs, progress)
    read, more = (known.read, []) if known else _mapped(data, options.fields or {}, options.answer_is)
    published = PublishedPrompts(
        path=data.path, rows=data.rows, read=read, task_names=options.task_names or {}, splits=options.splits,
        test_fraction=options.test_fraction, seed=options.seed,
    )  # fmt: skip
    return published, data, [*warnings, *more]


def _preset(
    benchmark: str, preset: str | None, fields: Mapping[str, str] | None, answer_is: str | None
) -> tuple[Preset | None, list[str]]:
    if preset is not None:
        if fields or answer_is:
            raise SelectionError(
                "A preset defines its fields and answers. Omit --preset, or omit --map and --answer-is."
            )
        return find_preset(preset), []
    name = benchmark.partition("@")[0].lower().replace("-", "_")
    if name in load_presets() and not fields and not answer_is:
        return load_presets()[name], [f"used the preset {name}, which has the benchmark's name"]
    return None, []


def _mapped(
    data: DatasetSource, fields: Mapping[str, str], answer_is: str | None
) -> tuple[Callable[[DatasetRow], PublishedPrompt | str], list[str]]:
    first = next(data.rows(), None)
    if first is None:
        raise BadInputError(data.path, "holds no rows.")
    mapped = make_field_map(fields, answer_is, first)
    if fields:
        check_fields(mapped, data.rows())
    warnings = []
    if not fields:
        read_as = ", ".join(f"{part}={','.join(names)}" for part, names in mapped.parts.items())
        warnings.append(f"fields chosen by their names: {read_as}; change them with --map")
    if not answer_is and "choices" in mapped.parts and "answer" in mapped.parts:
        mapped = guess_answer_notation(mapped, data.rows())
        if mapped.answer_is:
            warnings.append(f"answers read as --answer-is {mapped.answer_is}, the only notation that fits all of them")
    return mapped.read, warnings


def _check_splits(
    session: Session, benchmark: str, path: Path, blocks: Sequence[object], warnings: list[str], *, drawn: bool
) -> None:
    """Warn about prompts that keep their stored split.

    Raises:
        ConflictError: the splits are drawn by a seed.
    """
    name, _, revision = make_storable(benchmark).partition("@")
    of, task, alias, prompt = (sa.inspect(table).columns for table in (Benchmark, Task, PromptAlias, Prompt))
    rows = session.execute(
        sa.select(alias.namespace, alias.key, task.name, prompt.split)
        .join_from(Prompt, PromptAlias, alias.prompt_id == prompt.id)
        .join(Task, task.id == alias.task_id)
        .join(Benchmark, of.id == task.benchmark_id)
        .where(of.name == name, of.revision == revision, alias.namespace.in_([BY_ID, BY_CONTENT]))
    )
    splits: dict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)
    for space, key, of_task, split in rows:
        splits[space, key][of_task] = split
    aliases = _task_aliases(session, name, revision)
    moved: Counter[tuple[str, str]] = Counter()
    for space, key, of_task, split in _named_splits(blocks):
        stored = splits.get((space, key), {})
        was = next(iter(stored.values()), None) if of_task is None else stored.get(aliases.get(of_task, of_task))
        if split is not None and was is not None and was != split:
            moved[was, split] += 1
    if not moved:
        return
    n = sum(moved.values())
    moves = join_names((f"{count:,} as {stored}, here {split}" for (stored, split), count in moved.items()), MAX_NAMES)
    if drawn:
        raise ConflictError(
            f"{path}: {n:,} of these prompts are stored in another split ({moves}). "
            f"Import them as a separate version, such as {name}@drawn."
        )
    warnings.append(f"{n:,} prompts keep the split that is stored ({moves})")


def _task_aliases(session: Session, benchmark: str, revision: str) -> dict[str, str]:
    """Return the name of the task of each alias."""
    of, task, alias = (sa.inspect(table).columns for table in (Benchmark, Task, TaskAlias))
    rows = session.execute(
        sa.select(alias.name, task.name)
        .join_from(TaskAlias, Task, task.id == alias.task_id)
        .join(Benchmark, of.id == alias.benchmark_id)
        .where(of.name == benchmark, of.revision == revision)
    )
    return {name: stored for name, stored in rows}  # noqa: C416


def _named_splits(blocks: Sequence[object]) -> Iterator[tuple[str, str, str | None, str | None]]:
    for block in blocks:
        if isinstance(block, Prompts):
            tasks: Sequence[str | None] = block.tasks or [None] * len(block)
            for task, key, split in zip(tasks, block.keys, block.split or (), strict=True):
                yield block.namespace, make_storable(key), None if task is None else make_storable(task), split
