"""Remove exactly what an import added, and restore what it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys
from tracker.ingest.write.bulk_rows import load_scores
from tracker.ingest.write.checksums import compute_checksum
from tracker.ingest.write.score_columns import unpack
from tracker.ingest.write.undo_log import RowKey
from tracker.queries.findings.staleness import compare_staleness, list_stale_findings
from tracker.queries.sql import tables
from tracker.recording.run_status import delete, preview_deletion
from tracker.recording.undo.dependents import (
    check_later_imports,
    check_runs,
    runs_of,
    runs_with_metrics,
    runs_with_prompts,
)
from tracker.recording.undo.imports import ImportRow, load_log
from tracker.schema import metadata

DERIVED = ("n_scores", "checksum")
"""Columns of a run that follow from its scores."""
RESTORED = ("score", "answer", "task_score", "prompt", "model", "model_alias", "metric", "benchmark", "source", "run")
"""Tables with replaced values, in the order in which they are restored."""
REFERENCES: Mapping[str, Sequence[tuple[str, str]]] = {
    "prompt": (("prompt_value", "prompt_id"), ("filter_decision", "prompt_id"), ("filter_reason", "prompt_id")),
    "task": (("task_value", "task_id"), ("prompt", "task_id")),
    "benchmark": (("finding", "benchmark_id"), ("task", "benchmark_id")),
    "model": (("ranking", "model_id"),),
    "metric": (),
    "encoder": (("finding", "encoder_id"), ("embedding", "encoder_id")),
}
"""By table, in the order of deletion: columns of findings, and of rows that they need, that refer to it."""
PARTS: Mapping[str, Sequence[tuple[str, str]]] = {
    "prompt": (("prompt_alias", "prompt_id"), ("embedding", "prompt_id")),
    "task": (("task_alias", "task_id"),),
    "benchmark": (("source_metric", "benchmark_id"),),
    "model": (("model_alias", "model_id"),),
    "metric": (("source_metric", "metric_id"),),
    "encoder": (),
}
"""By table: columns of the rows that are removed with a row."""


@dataclass(frozen=True, kw_only=True)
class UndoResult:
    """The effects of undoing an import.

    Attributes:
        removed: number of removed rows, by table.
        n_restored: number of rows whose earlier values were restored.
        kept: number of added rows that stay because findings refer to them, by table.
        run_ids: runs that were removed or changed.
        stale: findings that became stale, or are stale for another reason than before, with the reason.
        sound: findings that are no longer stale.
    """

    removed: Mapping[str, int]
    n_restored: int
    kept: Mapping[str, int]
    run_ids: tuple[int, ...]
    stale: Mapping[int, str]
    sound: tuple[int, ...]


def undo_import(session: Session, chosen: ImportRow) -> UndoResult:
    """Remove what an import added, restore what it changed, and forget the import.

    Catalogue rows that findings refer to stay. Values that were changed again since stay too.

    Args:
        session: an exclusive write transaction; to preview, roll it back.
        chosen: the import.

    Raises:
        ConflictError: later data depend on what would be removed.
    """
    return _Removal(session, chosen).run()


class _Removal:
    """One import that is being removed."""

    def __init__(self, session: Session, chosen: ImportRow) -> None:
        self.session, self.chosen, self.log = session, chosen, load_log(session, chosen.id)
        self.removed: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.n_restored = 0

    def run(self) -> UndoResult:
        """Remove the import."""
        self._forget_replaced_keys()
        check_later_imports(self.session, self.chosen, self.log)
        before = list_stale_findings(self.session)
        changed = {key for (key,) in self.log.replaced.get("run", {})} | {run for run, _ in self.log.scores}
        runs = self._existing("run", [key for (key,) in self.log.added.get("run", ())])
        self._remove_runs(runs)
        self._remove_values()
        self._remove_keys("run_source")
        self._remove_keys("prompt_alias")
        self._restore()
        self._check_dependents()
        self._remove_catalogue()
        self._remove_source()
        stale, sound = compare_staleness(before, list_stale_findings(self.session))
        return UndoResult(
            removed=dict(self.removed),
            n_restored=self.n_restored,
            kept=dict(self.kept),
            run_ids=(*runs, *self._existing("run", sorted(changed))),
            stale=stale,
            sound=sound,
        )

    def _forget_replaced_keys(self) -> None:
        """Leave out rows that were deleted since, and whose key a later import used again."""
        record = tables.undo_record.c
        later_ids = self.session.scalars(sa.select(record.id).where(record.id > self.chosen.id)).all()
        for later in (load_log(self.session, key) for key in later_ids):
            for table, keys in later.added.items():
                self.log.added[table] -= keys

    # --- measurements ---

    def _remove_runs(self, runs: Sequence[int]) -> None:
        for part in split_keys(runs):
            preview = preview_deletion(self.session, part)
            counts = {"score": preview.n_scores, "answer": preview.n_answers, "task_score": preview.n_task_scores}
            self.removed.update({**counts, "run": len(part)})
            delete(self.session, part, f"{self.chosen.title} undone")

    def _remove_values(self) -> None:
        """Remove what was added to stored runs."""
        for (run, metric), keys in self.log.scores.items():
            self._delete_values("score", run, "metric_id", metric, keys)
        for (run, extraction), keys in self.log.answers.items():
            self._delete_values("answer", run, "extraction", extraction, keys)
        self._remove_keys("task_score")
        embedding = metadata.tables["embedding"]
        for encoder, prompts in self.log.vectors.items():
            for part in split_keys(prompts.tolist()):
                terms = (embedding.c.encoder_id == encoder, embedding.c.prompt_id.in_(part))
                self._count("embedding", self.session.execute(sa.delete(embedding).where(*terms)))

    def _delete_values(self, name: str, run: int, column: str, value: Any, keys: Any) -> None:
        table = metadata.tables[name]
        prompts, trials = unpack(keys)
        by_trial: dict[int, list[int]] = {}
        for prompt, trial in zip(prompts.tolist(), trials.tolist(), strict=True):
            by_trial.setdefault(trial, []).append(prompt)
        for trial, all_prompts in by_trial.items():
            for part in split_keys(all_prompts):
                terms = (
                    table.c.run_id == run,
                    table.c[column] == value,
                    table.c.trial == trial,
                    in_partitions_of_runs(self.session, table, [run]),
                )
                statement = sa.delete(table).where(*terms, table.c.prompt_id.in_(part))
                self._count(name, self.session.execute(statement))

    def _remove_keys(self, name: str) -> None:
        table = metadata.tables[name]
        for key in sorted(self.log.added.get(name, ())):
            self._count(name, self.session.execute(sa.delete(table).where(*_is_row(table, key))))

    # --- replaced values ---

    def _restore(self) -> None:
        for name in RESTORED:
            table, replaced = metadata.tables[name], self.log.replaced.get(name, {})
            further = in_partitions_of_runs(self.session, table, {key[0] for key in replaced})
            for key, values in replaced.items():
                self._restore_row(table, key, values, self.log.written.get(name, {}).get(key, {}), further)

    def _restore_row(
        self,
        table: sa.Table,
        key: RowKey,
        values: Mapping[str, Any],
        written: Mapping[str, Any],
        further: sa.ColumnElement[bool],
    ) -> None:
        """Restore the values of a row, which meets further terms, that nobody changed since."""
        is_row = *_is_row(table, key), further
        current = self.session.execute(sa.select(table).where(*is_row)).mappings().first()
        if current is None:
            return
        restored = {
            name: value
            for name, value in values.items()
            if name not in written or _as_utc(current[name]) == _as_utc(written[name])
        }
        if table.name == "run" and set(DERIVED) & (set(values) - set(restored)):
            columns = list(load_scores(self.session, key[0]).values())
            restored |= {"n_scores": sum(map(len, columns)), "checksum": compute_checksum(columns)}
        if restored:
            self.session.execute(sa.update(table).where(*is_row).values(**restored))
            self.n_restored += 1
        if table.name == "prompt" and "task_id" in restored:
            alias = metadata.tables["prompt_alias"]
            moved = sa.update(alias).where(alias.c.prompt_id == key[0])
            self.session.execute(moved.values(task_id=restored["task_id"]))

    # --- catalogue ---

    def _check_dependents(self) -> None:
        added = {name: [key for (key,) in self.log.added.get(name, ())] for name in ("benchmark", "model", "metric")}
        run = tables.run.c
        checks = (
            (runs_of(self.session, run.benchmark_id, added["benchmark"]), "is on its benchmark"),
            (runs_of(self.session, run.model_id, added["model"]), "is of its model"),
            (runs_with_prompts(self.session, self.log.prompts, self.log.benchmarks), "has scores of its prompts"),
            (runs_with_metrics(self.session, added["metric"]), "has scores under its metric"),
        )
        for runs, uses in checks:
            check_runs(self.session, self.chosen, runs, uses)

    def _remove_catalogue(self) -> None:
        self._remove_keys("source_metric")
        self._remove_keys("task_alias")
        self._remove_keys("model_alias")
        for name in REFERENCES:
            keys = [key for (key,) in self.log.added.get(name, ())]
            if name == "prompt":
                keys = [key for first, last in self.log.prompts for key in range(first, last + 1)]
            for part in split_keys(sorted(keys)):
                self._remove_rows(name, self._existing(name, part))

    def _remove_rows(self, name: str, keys: Sequence[int]) -> None:
        """Remove rows and their parts, except those that findings need."""
        needed: set[int] = set()
        for table_name, column in REFERENCES[name]:
            referring = metadata.tables[table_name].c[column]
            needed.update(self.session.scalars(sa.select(referring).where(referring.in_(keys)).distinct()))
        self.kept[name] += len(needed)
        free = [key for key in keys if key not in needed]
        for table_name, column in PARTS[name]:
            table = metadata.tables[table_name]
            result = self.session.execute(sa.delete(table).where(table.c[column].in_(free)))
            self._count(table_name, result)
        if name == "metric":
            benchmark = metadata.tables["benchmark"]
            chosen = sa.update(benchmark).where(benchmark.c.default_metric_id.in_(free))
            self.session.execute(chosen.values(default_metric_id=None))
        table = metadata.tables[name]
        self._count(name, self.session.execute(sa.delete(table).where(table.c.id.in_(free))))

    def _remove_source(self) -> None:
        record, source = metadata.tables["undo_record"], metadata.tables["source"]
        self.session.execute(sa.delete(record).where(record.c.id == self.chosen.id))
        keys = [key for (key,) in self.log.added.get("source", ())]
        linked = metadata.tables["run_source"]
        self.session.execute(sa.delete(linked).where(linked.c.source_id.in_(keys)))
        self._count("source", self.session.execute(sa.delete(source).where(source.c.id.in_(keys))))

    def _existing(self, name: str, keys: Sequence[int]) -> list[int]:
        table = metadata.tables[name]
        existing: list[int] = []
        for part in split_keys(sorted(keys)):
            existing += self.session.scalars(sa.select(table.c.id).where(table.c.id.in_(part)).order_by(table.c.id))
        return existing

    def _count(self, name: str, result: Any) -> None:
        self.removed[name] += result.rowcount


def _is_row(table: sa.Table, key: RowKey) -> Iterator[sa.ColumnElement[bool]]:
    return (column == value for column, value in zip(table.primary_key.columns, key, strict=True))


def _as_utc(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value
