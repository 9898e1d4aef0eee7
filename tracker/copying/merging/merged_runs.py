"""Runs of a store, one at a time: matching stored runs, new values and conflicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from tracker.connections.partitions import PARTITIONED, in_partition
from tracker.copying.merging.merged_names import MergedNames
from tracker.copying.merging.merged_prompts import MergedPrompts
from tracker.copying.merging.run_values import RunDifference, RunValues, SourceRuns, compare_run
from tracker.errors import ConflictError
from tracker.ingest.write.bulk_rows import insert_answers, insert_scores, load_scores
from tracker.ingest.write.checksums import combine_checksums, compute_checksum
from tracker.ingest.write.score_columns import unpack
from tracker.ingest.write.stored_runs import OUR_LABEL, OnConflict, make_next_label
from tracker.ingest.write.undo_log import undo_log
from tracker.run_fields import RUN_FIELDS, RunFields, merge_run_values
from tracker.run_settings import IDENTITY, evaluation_identity
from tracker.schema import Metric, Run, RunSource, TaskScore, metadata

Identity = tuple[int, int, str, str]
REFERENCES = ("id", "benchmark_id", "model_id", "superseded_by")
"""Columns of a run with keys, which differ in the target."""


@dataclass(kw_only=True)
class ValueCounts:
    """Counts of the written values, as in `tracker.ingest.write.store_changes.StoreChanges`."""

    n_scores: int = 0
    n_task_scores: int = 0
    n_answers: int = 0
    n_unchanged: int = 0
    n_skipped: int = 0
    n_updated: int = 0


class MergedRuns:
    """Stores the runs of a store.

    Args:
        names: resolved names of the source.
        prompts: resolved prompts.
        on_conflict: what to do if scores contradict stored ones.

    Attributes:
        new, extended, unchanged: runs of the target, with the names of their models.
        counts: counts of their values.
        warnings: messages for the user.
    """

    def __init__(self, names: MergedNames, prompts: MergedPrompts, on_conflict: OnConflict) -> None:
        self.session, self.source, self.names, self.prompts = names.session, names.source, names, prompts
        self.on_conflict = on_conflict
        self.new: list[tuple[Run, str]] = []
        self.extended: list[tuple[Run, str]] = []
        self.unchanged: list[tuple[Run, str]] = []
        self.counts = ValueCounts()
        self.warnings: list[str] = []
        self._labels: dict[Identity, dict[str, int]] = defaultdict(dict)
        self._claimed: set[int] = set()
        self._evaluations: dict[int, str] = {}

    def store(self) -> None:
        """Find or add all runs, and write missing values.

        Raises:
            BadInputError: the source contradicts itself or the bounds of a metric.
            ConflictError: the source contradicts stored runs.
        """
        self._read_labels()
        metrics = {scalar.id: scalar for scalar in self.session.scalars(sa.select(Metric)) if scalar.id is not None}
        values = SourceRuns(self.names, self.prompts, metrics)
        sources: dict[int, list[int]] = defaultdict(list)
        for link in self.source.rows("run_source"):
            sources[link["run_id"]].append(self.names.keys["source"][link["source_id"]])
        rows = self.source.rows("run")
        keys: dict[int, int] = {}
        added: list[tuple[Run, int | None]] = []
        for row in rows:
            run, is_new = self._store_run(row, values.read(row["id"]))
            keys[row["id"]] = run.id or 0
            if is_new:
                added.append((run, row["superseded_by"]))
            self._link(keys[row["id"]], sources[row["id"]])
        for run, after in added:
            if after is not None:
                run.superseded_by = keys[after]
        self.session.flush()

    def _read_labels(self) -> None:
        runs: Any = Run
        stored_identity = runs.settings[IDENTITY].as_string()
        query = sa.select(
            runs.benchmark_id, runs.model_id, runs.condition, runs.variant, stored_identity, runs.label, runs.id
        )
        query = query.where(runs.benchmark_id.in_(self.names.keys["benchmark"].values())).order_by(runs.id)
        for benchmark, model, condition, variant, stored_hash, label, key in self.session.execute(query):
            self._labels[benchmark, model, condition, variant][label] = key
            if (evaluation := evaluation_identity({IDENTITY: stored_hash})) is not None:
                self._evaluations[key] = evaluation

    # --- matching stored runs ---

    def _store_run(self, row: Mapping[str, Any], values: RunValues) -> tuple[Run, bool]:
        """Return the target's run for a row with its new values, and whether it is new."""
        benchmark, owner = self.names.keys["benchmark"][row["benchmark_id"]], self.names.keys["model"][row["model_id"]]
        identity = (benchmark, owner, row["condition"], row["variant"])
        every, label, model = self._labels[identity], row["label"], self.names.model_names[row["model_id"]]
        evaluation = evaluation_identity(row["settings"])
        labels = {name: key for name, key in every.items() if self._evaluations.get(key) == evaluation}
        if evaluation is not None and label not in labels:  # the same evaluation may have another label in this store
            label = next((name for name, key in labels.items() if key not in self._claimed), label)
        key = labels.get(label)
        if key is not None and key in self._claimed and not OUR_LABEL.match(label):
            raise self.source.error("run", row["id"], f"the run {label!r} of {model} is a duplicate")
        if key is None:
            fresh = make_next_label(every) if label in every else label
            if fresh != label:
                self.warnings.append(
                    f"{model}: the store has a different run {label!r}; this one was stored as a new run, {fresh}"
                )
            return self._add(row, identity, fresh, values), True
        difference = compare_run(self.session, key, values)
        different = difference.changed.n_values
        if not different and key not in self._claimed:
            return self._extend(key, row, difference, model), False
        text = f"{model}: {different:,} of {different + difference.n_unchanged:,} values differ from the stored ones"
        if OUR_LABEL.match(label) and self.on_conflict == "rerun":
            return self._add_rerun(row, identity, values, text)
        if self.on_conflict in ("rerun", "error") or key in self._claimed:
            labelled = f" for the run {label!r}" if label else ""
            raise ConflictError(
                f"{self.source.path}: {text}{labelled}. Keep the stored values with --on-conflict skip, or overwrite "
                "them with --on-conflict update."
            )
        self.warnings.append(f"{text}: {'the stored ones were kept' if self.on_conflict == 'skip' else 'overwritten'}")
        return self._extend(key, row, difference, model), False

    def _add_rerun(self, row: Mapping[str, Any], identity: Identity, values: RunValues, text: str) -> tuple[Run, bool]:
        """Return the stored run with the same values under another number, else a new run."""
        every, model = self._labels[identity], self.names.model_names[row["model_id"]]
        evaluation = evaluation_identity(row["settings"])
        same = [
            key for name, key in every.items() if OUR_LABEL.match(name) and self._evaluations.get(key) == evaluation
        ]
        for earlier in sorted(same, reverse=True):
            rerun = compare_run(self.session, earlier, values) if earlier not in self._claimed else None
            if rerun is not None and not rerun.changed.n_values and not rerun.new.n_values and rerun.n_unchanged:
                return self._extend(earlier, row, rerun, model), False
        fresh = make_next_label(every)
        self.warnings.append(f"{text}; stored as a new run, {fresh}")
        return self._add(row, identity, fresh, values), True

    # --- writing ---

    def _add(self, row: Mapping[str, Any], identity: Identity, label: str, values: RunValues) -> Run:
        facts = {name: value for name, value in row.items() if name not in REFERENCES}
        facts |= {"benchmark_id": identity[0], "model_id": identity[1], "label": label}
        facts |= {"n_scores": values.n_scores, "checksum": compute_checksum(values.columns)}
        run = Run(**facts)
        self.session.add(run)
        self.session.flush()
        assert run.id is not None
        self._labels[identity][label] = run.id
        if (evaluation := evaluation_identity(run.settings)) is not None:
            self._evaluations[run.id] = evaluation
        self._claimed.add(run.id)
        self._insert(run.id, values)
        self.new.append((run, self.names.model_names[row["model_id"]]))
        return run

    def _extend(self, key: int, row: Mapping[str, Any], difference: RunDifference, model: str) -> Run:
        run = self.session.get_one(Run, key)
        self._claimed.add(key)
        new, changed = difference.new, difference.changed
        run.n_scores += new.n_scores
        run.checksum = combine_checksums(run.checksum, compute_checksum(new.columns))
        self._insert(key, new)
        if (log := undo_log(self.session)) is not None:
            log.extend_run(key, new.columns, new.packed_answers)
        self.counts.n_unchanged += difference.n_unchanged
        update, n_changed = self.on_conflict == "update", changed.n_scores + len(changed.task_scores)
        if update:
            self._overwrite(run, changed)
            self.counts.n_updated += n_changed
        else:
            self.counts.n_skipped += n_changed
        self._overwrite(run, difference.lacking)
        merged = RunFields(**{name: row[name] for name in RUN_FIELDS})
        for name, value in merge_run_values(run, merged).items():
            if name != "settings" and (new.n_values or getattr(run, name) is None):
                setattr(run, name, value)
        whole = run.n_scores == row["n_scores"] and not changed.n_values
        if self._evaluations.get(key) and (run.status, row["status"]) == ("partial", "complete") and whole:
            run.status, run.reason, run.settings = "complete", row["reason"], row["settings"]
            run.ingested = row["ingested"]
        adds = new.n_values or difference.lacking.n_values or (update and changed.n_values)
        (self.extended if adds else self.unchanged).append((run, model))
        return run

    def _insert(self, key: int, values: RunValues) -> None:
        insert_scores(self.session, ((key, column) for column in values.columns if len(column)))
        answers = sorted(values.answers.items(), key=lambda pair: pair[0])
        insert_answers(self.session, [(key, *answer_key, *answer) for answer_key, answer in answers])
        self.session.add_all(
            TaskScore(run_id=key, metric_id=metric, task_id=task, value=value, stderr=stderr, n_prompts=n)
            for (metric, task), (value, stderr, n) in values.task_scores.items()
        )
        self.session.flush()
        self.counts.n_scores += values.n_scores
        self.counts.n_answers += len(values.answers)
        self.counts.n_task_scores += len(values.task_scores)

    def _overwrite(self, run: Run, values: RunValues) -> None:
        """Replace values of a stored run, which are recorded to be restored."""
        scores = [
            ((run.id, column.metric_id, prompt, trial), {"value": value})
            for column in values.columns
            for prompt, trial, value in zip(*(p.tolist() for p in (*unpack(column.keys), column.values)), strict=True)
        ]
        answers = [
            ((run.id, *key), dict(zip(("text", "probability", "status"), answer, strict=True)))
            for key, answer in values.answers.items()
        ]
        task_scores = [
            ((run.id, *key), dict(zip(("value", "stderr", "n_prompts"), value, strict=True)))
            for key, value in values.task_scores.items()
        ]
        connection, log = self.session.connection(), undo_log(self.session)
        parts: Mapping[str, Sequence[Any]] = {"score": scores, "answer": answers, "task_score": task_scores}
        for name, rows in parts.items():
            if rows:
                table = metadata.tables[name]
                if log is not None:
                    log.replace_rows(self.session, table, [key for key, _ in rows])
                primary = list(table.primary_key.columns)
                terms = [column == sa.bindparam(f"key_{column.name}") for column in primary]
                if name in PARTITIONED:
                    terms.append(in_partition(self.session, table, run.benchmark_id))
                keys = [{f"key_{c.name}": part for c, part in zip(primary, key, strict=True)} for key, _ in rows]
                updates = [key | content for key, (_, content) in zip(keys, rows, strict=True)]
                connection.execute(sa.update(table).where(*terms), updates)
        if scores and run.id is not None:
            columns = list(load_scores(self.session, run.id).values())
            run.n_scores, run.checksum = sum(map(len, columns)), compute_checksum(columns)

    def _link(self, key: int, sources: Sequence[int]) -> None:
        known = set(self.session.scalars(sa.select(RunSource.source_id).where(RunSource.run_id == key)))  # type: ignore[call-overload]
        fresh = [source for source in dict.fromkeys(sources) if source not in known]
        self.session.add_all(RunSource(run_id=key, source_id=source) for source in fresh)
