"""The only writer of measurements: a file is stored whole, or not at all.

`store` resolves the names in a reading, finds out what is new, and writes it. It never commits:
whoever opened the transaction does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlmodel import Session, select

from tracker.ingest.archives.archive_writer import store_archive
from tracker.ingest.measurement import ParsedFile, Prompts, ReadOptions
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.resolve.prompt_resolver import PromptResolver
from tracker.ingest.resolve.prompt_texts import storable
from tracker.ingest.write.answer_columns import ReferenceScorer
from tracker.ingest.write.answer_texts import write_answers
from tracker.ingest.write.bulk_rows import insert_scores, stored_scores
from tracker.ingest.write.checksums import checksum, combine_checksums
from tracker.ingest.write.run_parser import RunParser
from tracker.ingest.write.score_columns import unpack
from tracker.ingest.write.stored_runs import OnConflict, RunUpdate, StoredRuns, first_warnings
from tracker.run_settings import evaluation_identity, remove_evaluation
from tracker.schema import Run, RunSource, Score, Source, TaskScore
from tracker.schema.run_fields import merge_run_values


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run that a file belongs to.

    Attributes:
        id: its key.
        benchmark, model, condition, variant, label: which run it is.
    """

    id: int
    benchmark: str
    model: str
    condition: str
    variant: str
    label: str


@dataclass(frozen=True, kw_only=True)
class StoreChanges:
    """What storing a file changed.

    Attributes:
        source_id: key of the file; None where it leaves no row, as an archive does.
        already_known: whether the same file was taken in before with the same options; then nothing changed.
        benchmarks: names of those it concerns.
        runs_new, runs_extended, runs_unchanged: its runs; extended ones gained or changed a value.
        n_scores, n_task_scores: scores of prompts, and of whole tasks, written anew.
        n_scores_unchanged, n_scores_skipped, n_scores_updated: of both kinds: stored before, different ones kept,
            different ones overwritten.
        n_answers: answers written anew.
        n_runs_partial: how many of its runs are partial.
        damage: why the file was stored in part only; '' where it was stored whole.
        warnings: what the reader should be told.
    """

    source_id: int | None
    already_known: bool = False
    benchmarks: tuple[str, ...] = ()
    n_prompts_new: int = 0
    n_models_new: int = 0
    runs_new: tuple[StoredRun, ...] = ()
    runs_extended: tuple[StoredRun, ...] = ()
    runs_unchanged: tuple[StoredRun, ...] = ()
    n_scores: int = 0
    n_task_scores: int = 0
    n_scores_unchanged: int = 0
    n_scores_skipped: int = 0
    n_scores_updated: int = 0
    n_answers: int = 0
    n_runs_partial: int = 0
    damage: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def run_ids(self) -> list[int]:
        """Keys of the runs that are new or were extended."""
        return [run.id for run in (*self.runs_new, *self.runs_extended)]

    def summary(self) -> str:
        """What changed, in one line."""
        if self.already_known:
            return "taken in before, nothing changed"
        counts = (
            (self.n_prompts_new, "new prompt"),
            (self.n_models_new, "new model"),
            (len(self.runs_new), "new run"),
            (len(self.runs_extended), "extended run"),
            (self.n_scores, "score"),
            (self.n_task_scores, "score of a whole task"),
            (self.n_scores_updated, "overwritten score"),
            (self.n_scores_skipped, "score left as stored"),
            (self.n_answers, "answer"),
        )
        parts = [_counted(n, what) for n, what in counts if n]
        return ", ".join(parts) if parts else "nothing new"


def store(
    session: Session,
    reading: ParsedFile,
    options: ReadOptions,
    *,
    on_conflict: OnConflict = "rerun",
    partial: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> StoreChanges:
    """Store a reading.

    Args:
        session: an open transaction that writes; on PostgreSQL an exclusive one.
        reading: the file.
        options: what the user said of it.
        on_conflict: what becomes of scores that contradict the stored ones: ``rerun`` makes a new run of the model
            (for runs that the file labels: an error), ``skip`` keeps the stored, ``update`` overwrites them.
        partial: leave out what is wrong instead of refusing the file for it. New runs of a file that is damaged, or of
            which something was left out, are ``partial`` until a sound file holds all that is stored of them.
        progress: told how many blocks of how many have been looked at.

    Raises:
        BadInputError: the file contradicts itself, a stored prompt, or a metric's bounds.
        AmbiguousError: it is not clear which prompt is meant.
        ConflictError: it contradicts what is stored.
    """
    if reading.archive is not None:
        return store_archive(session, reading, reading.archive, options, on_conflict=on_conflict)
    source = session.scalar(select(Source).where(Source.identity == reading.identity))
    if source is not None and on_conflict != "update" and not _lost_runs(session, source, reading, options):
        assert source.id is not None
        return StoreChanges(source_id=source.id, already_known=True, warnings=tuple(reading.warnings))
    identities = CatalogueResolver(session, reading.path)
    book = PromptResolver(session, identities, reading.path, on_conflict, partial=partial)
    gold = ReferenceScorer(session, reading.path)
    drafting = RunParser(reading, options, identities, book, gold, partial=partial, progress=progress)
    drafts = drafting.drafts()
    stored_runs = StoredRuns(session, drafts, reading.path, drafting.prompt_names, source.id if source else None)
    decisions = [stored_runs.decide(draft, on_conflict) for draft in drafts]
    damage = "\n".join(filter(None, (reading.damage, *_left_out(book, drafting))))
    if source is None:
        source = Source(
            identity=reading.identity,
            digest=reading.digest,
            path=storable(str(reading.path)),
            format=reading.format,
            harness=reading.harness,
        )
        session.add(source)
    _write(session, decisions, whole=not damage)
    by_draft = {id(original): decision for original, decision in zip(drafts, decisions, strict=True)}
    write_answers(session, reading.measurements, [(by_draft[id(draft)], draft.answer_pieces) for draft in drafts])
    session.flush()
    assert source.id is not None
    _link(session, source.id, decisions)
    session.flush()

    def runs(chosen: Sequence[RunUpdate]) -> tuple[StoredRun, ...]:
        return tuple(_stored_run(decision, identities) for decision in chosen)

    old = [d for d in decisions if not d.is_new]
    remarks = first_warnings([d.note for d in decisions if d.note])
    return StoreChanges(
        source_id=source.id,
        benchmarks=tuple(identities.benchmark_names.values()),
        n_prompts_new=book.n_new,
        n_models_new=identities.n_models_new,
        runs_new=runs([d for d in decisions if d.is_new]),
        runs_extended=runs([d for d in old if d.changes_something]),
        runs_unchanged=runs([d for d in old if not d.changes_something]),
        n_scores=sum(sum(map(len, d.columns)) for d in decisions),
        n_task_scores=sum(len(d.task_scores) for d in decisions),
        n_scores_unchanged=sum(d.n_unchanged for d in decisions),
        n_scores_skipped=sum(d.n_skipped for d in decisions),
        n_scores_updated=sum(sum(map(len, d.changed_columns)) + len(d.changed_task_scores) for d in decisions),
        n_answers=sum(sum(map(len, d.answers.values())) for d in decisions),
        n_runs_partial=sum(d.run.status == "partial" for d in decisions),
        damage=damage,
        warnings=(*reading.warnings, *book.warnings, *book.details.remarks, *remarks),
    )


def _left_out(book: PromptResolver, drafting: RunParser) -> Iterator[str]:
    """What was left out as wrong, in words."""
    for n, first, what in (
        (book.n_left_out, book.left_out, "prompts were left out"),
        (drafting.n_left_out, drafting.left_out, "values were left out"),
    ):
        if n:
            more = [f"and {n - len(first):,} more"] if n > len(first) else []
            yield f"{n:,} {what}:\n  " + "\n  ".join([*first, *more])


def _lost_runs(session: Session, source: Source, reading: ParsedFile, options: ReadOptions) -> bool:
    """Whether some of a file's runs were deleted since, so that it may come in again."""
    described = {
        (options.benchmark or run.benchmark, run.model, run.condition, run.variant, run.label)
        for run in (block.run for block in reading.measurements if not isinstance(block, Prompts))
    }
    linked = sa.select(sa.func.count()).select_from(RunSource).where(RunSource.source_id == source.id)  # type: ignore[arg-type]
    return (session.scalar(linked) or 0) < len(described)


def _write(session: Session, decisions: Sequence[RunUpdate], *, whole: bool) -> None:
    for decision in decisions:
        run, draft = decision.run, decision.draft
        if evaluation_identity(run.settings) is not None:
            continue  # the file says nothing new of it, and how it was run is known
        if decision.is_trusted is None:
            run.n_scores += sum(map(len, decision.columns))
            run.checksum = combine_checksums(run.checksum, checksum(decision.columns))
        if decision.is_new and not whole:
            run.status = "partial"
        elif whole and run.status == "partial" and decision.covers_stored:
            run.status = "complete"
        if not decision.is_new:
            values = replace(draft.fields, settings=remove_evaluation(draft.fields.settings))
            for name, value in merge_run_values(run, values).items():
                setattr(run, name, value)
    session.add_all([decision.run for decision in decisions if decision.is_new])
    session.flush()
    by_run = sorted(((_key(d.run), d) for d in decisions), key=lambda pair: pair[0])
    insert_scores(session, ((key, column) for key, d in by_run for column in d.columns if len(column)))
    session.add_all(
        TaskScore(run_id=key, metric_id=metric, task_id=task, value=value, stderr=stderr, n_prompts=n)
        for key, d in by_run
        for (metric, task), (value, stderr, n) in d.task_scores.items()
    )
    for key, decision in by_run:
        _overwrite(session, key, decision)


def _overwrite(session: Session, run_id: int, decision: RunUpdate) -> None:
    connection = session.connection()
    if rows := [
        {"run": run_id, "metric": column.metric_id, "prompt": prompt, "nth": trial, "value": value}
        for column in decision.changed_columns
        for prompt, trial, value in zip(*(p.tolist() for p in (*unpack(column.keys), column.values)), strict=True)
    ]:
        connection.execute(_where(Score, run_id="run", metric_id="metric", prompt_id="prompt", trial="nth"), rows)
    if rows := [
        {"run": run_id, "metric": metric, "task": task, "value": value, "stderr": stderr, "n_prompts": n}
        for (metric, task), (value, stderr, n) in decision.changed_task_scores.items()
    ]:
        connection.execute(_where(TaskScore, run_id="run", metric_id="metric", task_id="task"), rows)
    if decision.is_trusted and any(map(len, (*decision.columns, *decision.changed_columns))):
        columns = list(stored_scores(session, run_id).values())
        decision.run.n_scores, decision.run.checksum = sum(map(len, columns)), checksum(columns)


def _where(table: type, **keys: str) -> sa.Update:
    described: sa.Table = table.__table__  # type: ignore[attr-defined]
    return sa.update(described).where(*(described.c[column] == sa.bindparam(name) for column, name in keys.items()))


def _link(session: Session, source_id: int, decisions: Sequence[RunUpdate]) -> None:
    known = set(session.scalars(select(RunSource.run_id).where(RunSource.source_id == source_id)))
    from_files = (decision.run for decision in decisions if evaluation_identity(decision.run.settings) is None)
    keys = dict.fromkeys(map(_key, from_files))
    session.add_all(RunSource(run_id=key, source_id=source_id) for key in keys if key not in known)


def _stored_run(decision: RunUpdate, identities: CatalogueResolver) -> StoredRun:
    run = decision.run
    return StoredRun(
        id=_key(run),
        benchmark=identities.benchmark_names[run.benchmark_id],
        model=decision.draft.model,
        condition=run.condition,
        variant=run.variant,
        label=run.label,
    )


def _key(run: Run) -> int:
    assert run.id is not None
    return run.id


def _counted(n: int, what: str) -> str:
    if n == 1:
        return f"{n:,} {what}"
    one, mark, rest = what.partition(" left")
    return f"{n:,} {one}s{mark}{rest}" if one != "score of a whole task" else f"{n:,} scores of whole tasks"
