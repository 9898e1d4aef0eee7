"""Storage of measurements in one transaction per file.

`store_file` resolves the names in a parsed file, compares it with the store, and writes the changes. It never commits;
the caller that opened the transaction does.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session
from sqlmodel import select

from tracker.connections.partitions import built_partitions, in_partition
from tracker.ingest.measurement import ParsedFile, Prompts, ReadOptions
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.resolve.prompt_resolver import PromptResolver
from tracker.ingest.resolve.prompt_texts import make_storable
from tracker.ingest.tables.names.vocabulary import BASELINES
from tracker.ingest.write.answer_columns import ReferenceScorer
from tracker.ingest.write.answer_texts import write_answers
from tracker.ingest.write.bulk_rows import insert_scores, load_scores
from tracker.ingest.write.checksums import combine_checksums, compute_checksum
from tracker.ingest.write.parsed_run import join_differences
from tracker.ingest.write.run_parser import RunParser
from tracker.ingest.write.score_columns import unpack
from tracker.ingest.write.source_metrics import check_metrics, remember_metrics
from tracker.ingest.write.store_changes import StoreChanges, StoredRun
from tracker.ingest.write.stored_runs import OnConflict, RunUpdate, StoredRuns, limit_warnings
from tracker.ingest.write.undo_log import recorded_import, undo_log
from tracker.name_lists import MAX_NAMES, join_names
from tracker.run_fields import merge_run_values
from tracker.run_settings import evaluation_identity, remove_evaluation
from tracker.schema import Run, RunSource, Score, Source, TaskScore, metadata


def store_file(
    session: Session,
    parsed: ParsedFile,
    options: ReadOptions,
    *,
    on_conflict: OnConflict = "rerun",
    partial: bool = False,
    new_metric: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> StoreChanges:
    """Store the measurements of a file, and record the changes for `suffrage undo`.

    Args:
        session: an open write transaction; exclusive on PostgreSQL.
        parsed: the file.
        options: how the file was read.
        on_conflict: what to do if scores contradict stored ones. ``rerun`` adds a new run of the model (runs with a
            label in the file raise), ``skip`` keeps the stored scores, ``update`` overwrites them.
        partial: skip invalid values instead of rejecting the file. New runs of a damaged file, or with skipped values,
            are ``partial`` until a valid file covers all their stored values.
        new_metric: store content again that the benchmark has under another metric.
        progress: receives the number of blocks done, and the total.

    Raises:
        BadInputError: the file contradicts itself, a stored prompt or the bounds of a metric.
        AmbiguousError: a prompt cannot be identified.
        ConflictError: the file contradicts stored scores, or the benchmark has its content under another metric.
    """
    source = session.scalar(select(Source).where(Source.identity == parsed.identity))
    if source is not None and on_conflict != "update" and not _lost_runs(session, source, parsed, options):
        assert source.id is not None
        return StoreChanges(source_id=source.id, already_known=True, warnings=tuple(parsed.warnings))
    with recorded_import(session, parsed.path) as log, built_partitions(session.connection()):
        changes = _store_new(
            session, parsed, options, source, on_conflict=on_conflict, partial=partial, new_metric=new_metric,
            progress=progress,
        )  # fmt: skip
        log.source_id = changes.source_id
    return changes


def _store_new(
    session: Session,
    parsed: ParsedFile,
    options: ReadOptions,
    source: Source | None,
    *,
    on_conflict: OnConflict,
    partial: bool,
    new_metric: bool,
    progress: Callable[[int, int], None] | None,
) -> StoreChanges:
    """Store a file that was not ingested before, or changes of one that was."""
    catalogue = CatalogueResolver(session, parsed.path)
    prompts = PromptResolver(session, catalogue, parsed.path, on_conflict, partial=partial)
    scorer = ReferenceScorer(session, parsed.path)
    parser = RunParser(parsed, options, catalogue, prompts, scorer, partial=partial, progress=progress)
    runs = parser.parse_runs()
    stored_runs = StoredRuns(session, runs, parsed.path, parser.prompt_names, source.id if source else None)
    updates = [stored_runs.plan_update(run, on_conflict) for run in runs]
    if not new_metric:
        check_metrics(session, parsed, updates, catalogue.benchmark_names)
    damage = "\n".join(filter(None, (parsed.damage, *_describe_omissions(prompts, parser))))
    if (log := undo_log(session)) is not None:
        log.benchmarks.update(catalogue.benchmark_names)
    source = source or _add_source(session, parsed)
    _write(session, updates, whole=not damage)
    chunks = [(update, run.answer_chunks) for run, update in zip(runs, updates, strict=True)]
    write_answers(session, parsed.measurements, chunks)
    session.flush()
    assert source.id is not None
    _link(session, source.id, updates)
    remember_metrics(session, source.id, updates)
    session.flush()
    problems = _describe_problems(prompts, catalogue)
    warnings = (*parsed.warnings, *prompts.warnings, *prompts.details.warnings, *prompts.describe_matches(), *problems)
    warnings += tuple(_describe_baselines(updates))
    warnings += (*catalogue.describe_similar_models(), *catalogue.describe_similar_tasks())
    return replace(
        _count_changes(updates, catalogue),
        source_id=source.id,
        n_prompts_new=prompts.n_new,
        n_models_new=catalogue.n_models_new,
        newly_bounded=tuple(catalogue.newly_bounded),
        damage=damage,
        warnings=(*warnings, *limit_warnings([update.warning for update in updates if update.warning])),
    )


def _add_source(session: Session, parsed: ParsedFile) -> Source:
    source = Source(
        identity=parsed.identity,
        digest=parsed.digest,
        path=make_storable(str(parsed.path)),
        format=parsed.format,
        harness=parsed.harness,
    )
    session.add(source)
    return source


def _count_changes(updates: Sequence[RunUpdate], catalogue: CatalogueResolver) -> StoreChanges:
    """Return the runs of a file, and the number of values written, kept and skipped."""

    def describe(chosen: Iterable[RunUpdate]) -> tuple[StoredRun, ...]:
        return tuple(
            StoredRun.describe(update.run, update.parsed.model, catalogue.benchmark_names) for update in chosen
        )

    return StoreChanges(
        source_id=None,
        benchmarks=tuple(catalogue.benchmark_names.values()),
        runs_new=describe(update for update in updates if update.is_new),
        runs_extended=describe(update for update in updates if not update.is_new and update.changes_something),
        runs_unchanged=describe(update for update in updates if not update.is_new and not update.changes_something),
        n_scores=sum(sum(map(len, update.columns)) for update in updates),
        n_task_scores=sum(len(update.task_scores) for update in updates),
        n_scores_unchanged=sum(update.n_unchanged for update in updates),
        n_scores_skipped=sum(update.n_skipped for update in updates),
        n_scores_updated=sum(sum(map(len, u.changed_columns)) + len(u.changed_task_scores) for u in updates),
        n_answers=sum(sum(map(len, update.answers.values())) for update in updates),
        n_runs_partial=sum(update.run.status == "partial" for update in updates),
    )


def _describe_omissions(prompts: PromptResolver, parser: RunParser) -> Iterator[str]:
    """Return the warning about skipped values."""
    for n, first, problem in (
        (prompts.n_omitted, prompts.omitted, "prompts were skipped"),
        (parser.n_omitted, parser.omitted, "values were skipped"),
    ):
        if n:
            more = [f"and {n - len(first):,} more"] if n > len(first) else []
            yield f"{n:,} {problem}:\n  " + "\n  ".join([*first, *more])


def _describe_problems(prompts: PromptResolver, catalogue: CatalogueResolver) -> Iterator[str]:
    """Return the warnings about the content of new prompts."""
    commands = [f"suffrage prompts check {shlex.quote(name)}" for name in catalogue.benchmark_names.values()]
    for problem, names in prompts.checks.found_by_problem.items():
        if names:
            yield (
                f"{len(names):,} new prompt{'s' * (len(names) != 1)}: {problem}: {join_names(names, MAX_NAMES)}. "
                f"List them: {commands[0]}"
            )


def _describe_baselines(updates: Sequence[RunUpdate]) -> Iterator[str]:
    """Return the warning about new runs that are not of models, such as of ``Human expert``."""
    baselines = [update for update in updates if update.is_new and BASELINES.match(update.parsed.model)]
    if baselines:
        names = join_names(dict.fromkeys(repr(update.parsed.model) for update in baselines), MAX_NAMES)
        keys = " ".join(str(_key(update.run)) for update in baselines)
        yield f"ranked like models: {names}. To leave baselines out: suffrage runs hide {keys}"


def _lost_runs(session: Session, source: Source, parsed: ParsedFile, options: ReadOptions) -> bool:
    """Return whether some of a file's runs were deleted, so that it can be stored again."""
    described = {
        (options.benchmark or run.benchmark, run.model, run.condition, run.variant, run.label)
        for run in (block.run for block in parsed.measurements if not isinstance(block, Prompts))
    }
    linked = sa.select(sa.func.count()).select_from(RunSource).where(RunSource.source_id == source.id)  # type: ignore[arg-type]
    return (session.scalar(linked) or 0) < len(described)


def _write(session: Session, updates: Sequence[RunUpdate], *, whole: bool) -> None:
    for update in updates:
        run, fields = update.run, update.parsed.fields
        if evaluation_identity(run.settings) is not None:
            continue  # the file adds nothing new, and the settings of the run are known
        if update.is_trusted is None:
            run.n_scores += sum(map(len, update.columns))
            run.checksum = combine_checksums(run.checksum, compute_checksum(update.columns))
        if update.is_new and not whole:
            run.status = "partial"
        elif whole and run.status == "partial" and update.covers_stored:
            run.status = "complete"
        known = None if whole and update.covers_stored else run.unverified
        run.unverified = join_differences(list(filter(None, [known, update.parsed.unverified]))) or None
        if not update.is_new:
            values = replace(fields, settings=remove_evaluation(fields.settings))
            for name, value in merge_run_values(run, values).items():
                setattr(run, name, value)
    session.add_all([update.run for update in updates if update.is_new])
    session.flush()
    by_run = sorted(((_key(update.run), update) for update in updates), key=lambda pair: pair[0])
    if (log := undo_log(session)) is not None:
        for key, update in by_run:
            if not update.is_new:
                answers = {how: column.keys for how, column in update.answers.items()}
                log.extend_run(key, update.columns, answers)
    insert_scores(session, ((key, column) for key, update in by_run for column in update.columns if len(column)))
    scores = [
        {"run_id": key, "metric_id": metric, "task_id": task, "value": value, "stderr": stderr, "n_prompts": n}
        for key, update in by_run
        for (metric, task), (value, stderr, n) in update.task_scores.items()
    ]
    _insert_rows(session, metadata.tables["task_score"], scores)
    for key, update in by_run:
        _overwrite(session, key, update)


def _overwrite(session: Session, run_id: int, update: RunUpdate) -> None:
    connection, log = session.connection(), undo_log(session)
    if rows := [
        {"run": run_id, "metric": column.metric_id, "prompt": prompt, "nth": trial, "value": value}
        for column in update.changed_columns
        for prompt, trial, value in zip(*(p.tolist() for p in (*unpack(column.keys), column.values)), strict=True)
    ]:
        if log is not None:
            keys = [(run_id, row["metric"], row["prompt"], row["nth"]) for row in rows]
            log.replace_rows(session, metadata.tables["score"], keys)
        statement = _where(Score, run_id="run", metric_id="metric", prompt_id="prompt", trial="nth")
        of_benchmark = in_partition(session, metadata.tables["score"], update.run.benchmark_id)
        connection.execute(statement.where(of_benchmark), rows)
    if rows := [
        {"run": run_id, "metric": metric, "task": task, "value": value, "stderr": stderr, "n_prompts": n}
        for (metric, task), (value, stderr, n) in update.changed_task_scores.items()
    ]:
        if log is not None:
            tasks = [(run_id, row["metric"], row["task"]) for row in rows]
            log.replace_rows(session, metadata.tables["task_score"], tasks)
        connection.execute(_where(TaskScore, run_id="run", metric_id="metric", task_id="task"), rows)
    if update.is_trusted and any(map(len, (*update.columns, *update.changed_columns))):
        columns = list(load_scores(session, run_id).values())
        update.run.n_scores, update.run.checksum = sum(map(len, columns)), compute_checksum(columns)


def _where(table: type, **keys: str) -> sa.Update:
    described: sa.Table = table.__table__  # type: ignore[attr-defined]
    return sa.update(described).where(*(described.c[column] == sa.bindparam(name) for column, name in keys.items()))


def _link(session: Session, source_id: int, updates: Sequence[RunUpdate]) -> None:
    known = set(session.scalars(select(RunSource.run_id).where(RunSource.source_id == source_id)))
    from_files = (update.run for update in updates if evaluation_identity(update.run.settings) is None)
    keys = dict.fromkeys(map(_key, from_files))
    rows = [{"run_id": key, "source_id": source_id} for key in keys if key not in known]
    _insert_rows(session, metadata.tables["run_source"], rows)


def _insert_rows(session: Session, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows of runs without an object for each, and record those of runs that were stored before."""
    if not rows:
        return
    if (log := undo_log(session)) is not None:
        primary = table.primary_key.columns.keys()
        of_stored_runs = (row for row in rows if not log.is_added("run", row["run_id"]))
        if keys := [tuple(row[name] for name in primary) for row in of_stored_runs]:
            log.add_rows(table.name, keys)
    session.connection().execute(sa.insert(table), rows)


def _key(run: Run) -> int:
    assert run.id is not None
    return run.id
