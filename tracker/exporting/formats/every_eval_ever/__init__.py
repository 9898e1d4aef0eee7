"""Export runs in the format of Every Eval Ever: an aggregate per run, and the instances beside it if prompts are
scored.

Content without a field in the schema is written as text to the additional details and metadata, so that `suffrage
ingest` restores what was exported. `tracker.ingest.formats.every_eval_ever.vocabulary` lists the names.

Source: eval.schema.json and instance_level_eval.schema.json of Every Eval Ever, version 0.3.0.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import split_keys
from tracker.errors import NotFoundError, OptionsError, SelectionError
from tracker.exporting.declaration import export
from tracker.exporting.exported_runs import select_exported_runs
from tracker.exporting.formats.every_eval_ever.aggregate import ExportedBenchmark, RunFile, build_results, describe_run
from tracker.exporting.formats.every_eval_ever.instances import (
    ExportedMetric,
    InstanceCounts,
    PromptFields,
    stream_rows,
)
from tracker.exporting.outputs import FileTree
from tracker.ingest.formats.every_eval_ever import vocabulary
from tracker.queries.catalogue.unverified_runs import list_unverified_warnings
from tracker.queries.filtering.prompt_filter import load_selected_filter
from tracker.queries.resolution import benchmark_label, find_benchmark, select_tasks
from tracker.queries.scores import read_prompts
from tracker.queries.selection import Selection, Unit, restricts_split
from tracker.queries.sql import tables
from tracker.run_fields import RUN_FIELDS


class EveryEvalEverFiles(FileTree):
    """Files by path, each created while it is read.

    The instances of a run precede its aggregate, which holds their checksum: read in this order, every row is built
    once. In another order the rows are built again for the aggregate; the bytes are the same.
    """

    def __init__(self, session: Session, runs: Sequence[RunFile]) -> None:
        self.session = session
        self._files: dict[str, tuple[RunFile, bool]] = {}
        self._known: dict[int, tuple[InstanceCounts, str]] = {}
        self._n_skipped: dict[int, int] = {}
        for run in runs:
            if run.rows.scored:
                self._files[run.samples_path] = (run, True)
            self._files[run.path] = (run, False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, path: str) -> Iterator[bytes]:
        run, of_instances = self._files[path]
        return self._instances(run) if of_instances else self._aggregate(run)

    @property
    def warnings(self) -> list[str]:
        """Warnings about unverified runs, and about content lost in the files read so far."""
        n = sum(self._n_skipped.values())
        lost = "answers to prompts without a score were left out: every row of Every Eval Ever has a score"
        run_ids = {run.rows.run_id for run, _ in self._files.values()}
        return [*list_unverified_warnings(self.session, run_ids), *([f"{n:,} {lost}"] if n else [])]

    def _instances(self, run: RunFile) -> Iterator[bytes]:
        counts, digest = InstanceCounts(), hashlib.sha256()
        for piece in stream_rows(self.session, run.rows, run.benchmark.prompts, counts):
            digest.update(piece)
            yield piece
        self._known[run.rows.run_id] = (counts, digest.hexdigest())
        self._n_skipped[run.rows.run_id] = counts.n_answers_left_out

    def _aggregate(self, run: RunFile) -> Iterator[bytes]:
        if run.rows.run_id not in self._known:
            for _ in self._instances(run):
                pass
        counts, checksum = self._known.pop(run.rows.run_id)
        aggregate = {**run.head, "evaluation_results": list(build_results(self.session, run, counts.means))}
        if run.rows.scored:
            aggregate["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": run.samples_path,
                "hash_algorithm": "sha256",
                "checksum": checksum,
                "total_rows": counts.n_rows,
            }
        yield orjson.dumps(aggregate, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def check_table_options(options: Mapping[str, Any]) -> None:
    """Reject options of a table.

    Raises:
        OptionsError: such an option is set.
    """
    if options["selection"].missing is not None:
        raise OptionsError("Every Eval Ever holds scores as stored. Leave --missing out.")
    if options["of"] or options["no_answers"] or options["for_spreadsheets"]:
        raise OptionsError(
            "Every Eval Ever always includes everything. Leave out --of, --no-answers and --for-spreadsheets."
        )


@export(format_of="scores", title="Every Eval Ever", check=check_table_options)
def export_every_eval_ever(session: Session, selection: Selection, *, all_runs: bool = False) -> FileTree:
    """Return the files of a selection's runs; see `build_every_eval_ever_files`."""
    return build_every_eval_ever_files(session, selection, every=all_runs)


def build_every_eval_ever_files(
    session: Session, chosen: Selection | Sequence[int], *, every: bool = True
) -> EveryEvalEverFiles:
    """Return the files of some runs, by their path ``data/<benchmark>/<developer>/<model>/<uuid>.json``.

    The same store gives the same bytes, and the same run the same path.

    Args:
        session: the store; it must stay open until the last file is read.
        chosen: keys of runs, or a selection. For a selection: every complete run of the benchmark, of its models, under
            its metric or all metrics, its tasks and its filter; condition and variant apply only if ``every`` is false.
        every: whether a selection means every complete run, instead of the most complete one of each model.

    Raises:
        NotFoundError: a benchmark, model, metric, task or run does not exist.
        SelectionError: nothing is left.
    """
    if isinstance(chosen, Selection):
        return EveryEvalEverFiles(session, _load_runs(session, chosen, every))
    keys = list(dict.fromkeys(chosen))
    run, benchmark = tables.run.c, tables.benchmark.c
    query = sa.select(run.id, benchmark.name, benchmark.revision).join(
        tables.benchmark, benchmark.id == run.benchmark_id
    )
    of = {row.id: benchmark_label(row.name, row.revision) for row in session.execute(query.order_by(run.id))}
    if lacking := [key for key in keys if key not in of]:
        raise NotFoundError("run", lacking[0], of)
    by_benchmark: dict[str, list[int]] = defaultdict(list)
    for key in keys:
        by_benchmark[of[key]].append(key)
    files: list[RunFile] = []
    for name, run_ids in by_benchmark.items():
        files += _load_runs(session, Selection(benchmark=name, runs=tuple(run_ids)), every=False)
    return EveryEvalEverFiles(session, files)


def _load_runs(session: Session, selection: Selection, every: bool) -> list[RunFile]:
    benchmark = find_benchmark(session, selection.benchmark)
    tasks = select_tasks(session, benchmark, selection)
    units: tuple[Unit, ...] = (
        ("prompt", "task") if selection.filter is None and not restricts_split(selection.split) else ("prompt",)
    )
    metric_ids: dict[Unit, dict[int, tuple[int, ...]]] = {unit: {} for unit in units}
    # One at a time: an explicitly selected run may have scores of one kind and not of the other.
    for part in [replace(selection, runs=(key,)) for key in selection.runs] or [selection]:
        problems: list[NotFoundError | SelectionError] = []
        for unit in units:
            try:
                exported_runs = select_exported_runs(session, benchmark, part, unit, every=every and not selection.runs)
                metric_ids[unit].update({run.id: run.metric_ids for run in exported_runs.runs})
            except (NotFoundError, SelectionError) as problem:
                problems.append(problem)
        if len(problems) == len(units):
            raise problems[0]
    kept = load_selected_filter(session, benchmark, selection)
    prompt_ids, _ = read_prompts(session, tasks, kept, selection.split)
    metrics = {
        row.id: ExportedMetric(**row._asdict())
        for row in session.execute(
            sa.select(*(tables.metric.c[name] for name in ("id", "name", "higher_is_better", "lower", "upper")))
        )
    }
    exported = ExportedBenchmark(
        name=benchmark.label,
        store=str(session.scalar(sa.select(tables.database.c.id))),
        tasks=tasks,
        prompts=PromptFields(session, np.sort(prompt_ids)),
        metrics=metrics,
    )
    run_ids = sorted({key for runs in metric_ids.values() for key in runs})
    return [
        describe_run(
            row,
            exported,
            scored=metric_ids.get("prompt", {}).get(row.id, ()),
            published=metric_ids.get("task", {}).get(row.id, ()),
            library=_library(session, row.id),
        )
        for row in _run_rows(session, run_ids)
    ]


def _run_rows(session: Session, keys: Sequence[int]) -> list[Any]:
    run, model = tables.run.c, tables.model.c
    query = sa.select(
        run.id, *(run[name] for name in RUN_FIELDS), run.ingested, model.name, model.organization, model.family,
        model.parameters, model.released, model.open_weights,
    ).join(tables.model, model.id == run.model_id)  # fmt: skip
    rows: list[Any] = []
    for part in split_keys(keys):
        rows += session.execute(query.where(run.id.in_(part)))
    return sorted(rows, key=lambda row: (row.name, row.id))


def _library(session: Session, run_id: int) -> dict[str, str]:
    """Return the evaluating program, as the first file of the run names it."""
    source, link = tables.source.c, tables.run_source.c
    query = sa.select(source.harness).join(tables.run_source, link.source_id == source.id)
    harness = session.scalar(
        query.where(link.run_id == run_id, source.harness.is_not(None)).order_by(source.id).limit(1)
    )
    name, _, version = (harness or "").rpartition(" ")
    if not name:
        name, version = version, ""
    return {"name": name or vocabulary.UNKNOWN, "version": version or vocabulary.UNKNOWN}
