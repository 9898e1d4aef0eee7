"""Scores of prompts as a long table, a row for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys
from tracker.errors import SelectionError
from tracker.exporting.exported_runs import ExportedRun, ExportedRuns
from tracker.exporting.formats.scores.answer_columns import NO_ANSWER, AnswerColumns, Cells, locate_keys, pack_keys
from tracker.exporting.formats.scores.filled_scores import FILLING, FilledScores, fill_scores
from tracker.exporting.prompt_labels import make_prompt_labels
from tracker.exporting.table_files import StreamedTable
from tracker.queries.filtering.prompt_filter import load_selected_filter
from tracker.queries.resolution import BenchmarkKey, select_tasks
from tracker.queries.scores import read_prompts
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.queries.sql.arrow import Reading, number_columns, snapshot
from tracker.queries.sql.run_terms import run_terms

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_TOGETHER = 65_536


@dataclass(frozen=True, kw_only=True, eq=False)
class _Dictionaries:
    """The repeated texts of rows, each once, and the index of each prompt among them.

    Attributes:
        prompt_ids: ``(n,)`` int64, ascending.
        names, tasks: ``n`` texts, of each prompt.
        metrics: name of each metric, in the order of ``metric_ids``.
        models: name of each model, each once.
    """

    benchmark: str
    prompt_ids: NDArray[np.int64]
    names: pa.Array
    tasks: pa.Array
    metric_ids: NDArray[np.int64]
    metrics: pa.Array
    models: pa.Array


def build_prompt_score_table(
    session: Session,
    benchmark: BenchmarkKey,
    selection: Selection,
    chosen: ExportedRuns,
    *,
    answers: bool = True,
    only: NDArray[np.int64] | None = None,
    every: bool = False,
) -> StreamedTable:
    """Return a row per score, run by run: model, prompt, task, metric, score and trial, run, and answer.

    Args:
        session: the store; only committed data are visible.
        benchmark: of the selection.
        selection: tasks, filter and policy for missing scores; runs and metrics are already selected. Under `FILLING`,
            the column ``filled_by`` marks scores that are not measured.
        chosen: runs and metrics.
        answers: whether to add the model's answers. Answers without a score then have separate rows, unless a metric is
            selected.
        only: keys of the prompts to export, ascending; None for all.
        every: whether every complete run is exported.
    """
    import pyarrow as pa

    kept = load_selected_filter(session, benchmark, selection)
    of_selection = select_tasks(session, benchmark, selection)
    prompt_ids, tasks = read_prompts(session, of_selection, kept, selection.split)
    order = np.argsort(prompt_ids)
    prompt_ids, tasks = prompt_ids[order], tasks[order]
    if only is not None:
        is_kept = np.isin(prompt_ids, only)
        prompt_ids, tasks = prompt_ids[is_kept], tasks[is_kept]
    if kept is not None and not len(prompt_ids):
        raise SelectionError(kept.empties(", ".join(chosen.metrics.values())))
    names = make_prompt_labels(session, dict(zip(prompt_ids.tolist(), tasks.tolist(), strict=True)))
    texts = _Dictionaries(
        benchmark=benchmark.label,
        prompt_ids=prompt_ids,
        names=pa.array([names[key] for key in prompt_ids.tolist()], pa.string()),
        tasks=pa.array(tasks.tolist(), pa.string()),
        metric_ids=np.array(sorted(chosen.metrics), dtype=np.int64),
        metrics=pa.array([chosen.metrics[key] for key in sorted(chosen.metrics)], pa.string()),
        models=pa.array(sorted({run.model for run in chosen.runs}), pa.string()),
    )
    with_answers = answers and _has_answers(session, chosen)
    filled = None
    if selection.missing in FILLING:
        filled = fill_scores(session, selection, chosen, prompt_ids, every=every)
    warnings = [] if filled is None else list(filled.warnings)
    schema = _schema(with_answers, filled is not None)
    batches = _batches(session, texts, chosen, schema, filled, selection.metric is None, warnings)
    return StreamedTable(schema=schema, batches=_merge_batches(batches), warnings=warnings)


def _schema(with_answers: bool, with_filled: bool) -> pa.Schema:
    import pyarrow as pa

    word = pa.dictionary(pa.int32(), pa.string())
    columns = [
        ("benchmark", word), ("model", word), ("prompt_id", word), ("task", word), ("metric", word),
        ("score", pa.float64()), ("trial", pa.int32()), ("condition", word), ("variant", word), ("run", word),
        ("few_shot", pa.int32()),
    ]  # fmt: skip
    if with_answers:
        columns += [("predicted", pa.string()), ("confidence", pa.float64())]
    return pa.schema([*columns, *([("filled_by", word)] if with_filled else [])])


def _has_answers(session: Session, chosen: ExportedRuns) -> bool:
    answer = tables.answer
    for part in split_keys([run.id for run in chosen.runs]):
        of_part = answer.c.run_id.in_(part), in_partitions_of_runs(session, answer, part)
        if session.execute(sa.select(sa.literal(1)).where(*of_part).limit(1)).first() is not None:
            return True
    return False


def _batches(
    session: Session,
    texts: _Dictionaries,
    chosen: ExportedRuns,
    schema: pa.Schema,
    filled: FilledScores | None,
    unscored: bool,
    warnings: list[str],
) -> Iterator[pa.RecordBatch]:
    n_errors, extractions, n_others = 0, set(), 0
    with snapshot(session) as reading:
        for run in chosen.runs:
            scored = _scores(reading, run, texts)
            if filled is not None and run.id in filled.cells:
                yield _batch(texts, run, schema, *filled.cells[run.id], filled_by=filled.policy)
            if "predicted" not in schema.names:
                yield _batch(texts, run, schema, *scored)
                continue
            run_answers = AnswerColumns.read(reading, run)
            n_errors += run_answers.n_errors
            extractions |= {run_answers.extraction} if run_answers.extraction else set()
            n_others += run_answers.n_others
            yield _batch(texts, run, schema, *scored, answers=run_answers)
            if unscored:
                yield _batch(texts, run, schema, *run_answers.unscored(scored, texts.prompt_ids), answers=run_answers)
    if extractions:
        warnings.append(
            f"Answers are those extracted by {', '.join(sorted(extractions))}, because a row can hold only one."
        )
    if n_others:
        warnings.append(f"{n_others:,} answers extracted by another method are left out.")
    if n_errors:
        warnings.append(f"{n_errors:,} answers that are errors of the model are written as {NO_ANSWER}.")


def _scores(reading: Reading, run: ExportedRun, texts: _Dictionaries) -> Cells:
    metric_ids = ",".join(map(str, run.metric_ids))
    table = reading.table(
        f"SELECT metric_id, prompt_id, trial, value FROM score WHERE {run_terms(reading, [run.id])} "
        f"AND metric_id IN ({metric_ids}) ORDER BY metric_id, prompt_id, trial",
        runs=[run.id],
    )
    metrics, prompts, trials, values = number_columns(table)
    places, is_known = locate_keys(texts.prompt_ids, prompts.astype(np.int64))
    return (
        np.searchsorted(texts.metric_ids, metrics[is_known]),
        places,
        trials[is_known].astype(np.int64),
        values[is_known].astype(np.float64),
    )


def _batch(
    texts: _Dictionaries,
    run: ExportedRun,
    schema: pa.Schema,
    metrics: NDArray[np.int64],
    places: NDArray[np.int64],
    trials: NDArray[np.int64],
    values: NDArray[np.float64],
    answers: AnswerColumns | None = None,
    filled_by: str | None = None,
) -> pa.RecordBatch:
    import pyarrow as pa

    n = len(places)

    def constant(text: str) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([text]))

    def word(codes: NDArray[np.int64], dictionary: pa.Array) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=codes < 0), dictionary)

    model = texts.models.index(run.model).as_py()
    columns: Mapping[str, pa.Array] = {
        "benchmark": constant(texts.benchmark),
        "model": word(np.full(n, model), texts.models),
        "prompt_id": word(places, texts.names),
        "task": word(places, texts.tasks),
        "metric": word(metrics, texts.metrics),
        "score": pa.array(values, mask=np.isnan(values)),
        "trial": pa.array(trials.astype(np.int32)),
        "condition": constant(run.condition),
        "variant": constant(run.variant),
        "run": constant(run.label),
        "few_shot": pa.nulls(n, pa.int32()) if run.few_shot is None else pa.array(np.full(n, run.few_shot, np.int32)),
    }
    if "predicted" in schema.names:
        predicted, confidence = pa.array([NO_ANSWER] * n), pa.nulls(n, pa.float64())
        if answers is not None:
            predicted, confidence = answers.beside(pack_keys(texts.prompt_ids[places], trials))
        columns = {**columns, "predicted": predicted, "confidence": confidence}
    if "filled_by" in schema.names:
        empty = pa.DictionaryArray.from_arrays(pa.nulls(n, pa.int32()), pa.array([""]))
        columns = {**columns, "filled_by": empty if filled_by is None else constant(filled_by)}
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)


def _merge_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge batches into fewer and larger ones: a run may have few rows."""
    import pyarrow as pa

    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if sum(pending_batch.num_rows for pending_batch in pending) >= ROWS_TOGETHER:
            yield from pa.Table.from_batches(pending).combine_chunks().to_batches()
            pending = []
    if pending:
        yield from pa.Table.from_batches(pending).combine_chunks().to_batches()
