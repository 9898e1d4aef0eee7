"""Runs of an archive, one at a time: matching stored runs, new values and conflicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.errors import ConflictError
from tracker.ingest.archives.archived_names import ArchivedNames
from tracker.ingest.archives.archived_prompts import ArchivedPrompts, parse_cell
from tracker.ingest.archives.run_contents import AnswerKey, AnswerValue, RunContent, RunContents, TaskKey
from tracker.ingest.write.bulk_rows import fetch_raw_rows, insert_answers, insert_scores, load_scores
from tracker.ingest.write.checksums import combine_checksums, compute_checksum
from tracker.ingest.write.score_columns import compare_scores, pack, unpack
from tracker.ingest.write.stored_runs import OUR_LABEL, OnConflict, make_next_label
from tracker.ingest.write.undo_log import undo_log
from tracker.run_fields import RUN_FIELDS, RunFields, merge_run_values
from tracker.run_settings import IDENTITY, evaluation_identity
from tracker.schema import Answer, Metric, Run, RunSource, TaskScore, metadata
from tracker.schema.measurements import CONDITIONS, RUN_STATUSES

Identity = tuple[int, int, str, str]


@dataclass(eq=False)
class _Difference:
    """Difference between a run of the archive and a stored one: new and conflicting values."""

    new: RunContent
    changed: RunContent
    n_unchanged: int = 0
    lacking: dict[AnswerKey, AnswerValue] = field(default_factory=dict)
    """Answers whose probability is missing in the store."""


@dataclass(kw_only=True)
class ValueCounts:
    """Counts of the written values, as in `tracker.ingest.write.store_changes.StoreChanges`."""

    n_scores: int = 0
    n_task_scores: int = 0
    n_answers: int = 0
    n_unchanged: int = 0
    n_skipped: int = 0
    n_updated: int = 0


class ArchivedRuns:
    """Stores the runs of an archive.

    Args:
        names: resolved names of the archive.
        prompts: resolved prompts.
        on_conflict: what to do if scores contradict stored ones.

    Attributes:
        new, extended, unchanged: runs of the store, with the model names of the archive.
        counts: counts of their values.
        warnings: messages for the user.
    """

    def __init__(self, names: ArchivedNames, prompts: ArchivedPrompts, on_conflict: OnConflict) -> None:
        self.session, self.archive, self.names, self.prompts = names.session, names.archive, names, prompts
        self.on_conflict = on_conflict
        self.new: list[tuple[Run, str]] = []
        self.extended: list[tuple[Run, str]] = []
        self.unchanged: list[tuple[Run, str]] = []
        self.counts = ValueCounts()
        self.warnings: list[str] = []
        self._metrics: dict[int, Metric] = {}
        self._labels: dict[Identity, dict[str, int]] = defaultdict(dict)
        self._claimed: set[int] = set()
        self._evaluations: dict[int, str] = {}

    def store(self) -> None:
        """Find or add all runs, and write missing values.

        Raises:
            BadInputError: the archive contradicts itself or the bounds of a metric.
            ConflictError: the archive contradicts stored runs.
        """
        self._metrics = {
            scalar.id: scalar for scalar in self.session.scalars(sa.select(Metric)) if scalar.id is not None
        }
        runs: Any = Run
        stored_identity = runs.settings[IDENTITY].as_string()
        query = sa.select(
            runs.benchmark_id, runs.model_id, runs.condition, runs.variant, stored_identity, runs.label, runs.id
        )
        query = query.where(runs.benchmark_id.in_(self.names.keys["benchmark"].tolist())).order_by(runs.id)
        for benchmark, model, condition, variant, stored_hash, label, key in self.session.execute(query):
            self._labels[benchmark, model, condition, variant][label] = key
            if (evaluation := evaluation_identity({IDENTITY: stored_hash})) is not None:
                self._evaluations[key] = evaluation
        contents = RunContents(self.names, self.prompts, self._metrics)
        rows = list(self.archive.rows("run"))
        keys: list[int] = []
        added: dict[int, Run] = {}
        for place, row in enumerate(rows):
            content = contents.read_run(place, row["n_scores"])
            run, is_new = self._store_run(place, row, content)
            keys.append(run.id or 0)
            if is_new:
                added[place] = run
            self._link(keys[-1], contents.sources(place))
        contents.check_end(len(rows))
        for place, run in added.items():
            if (after := rows[place]["superseded_by"]) is not None:
                run.superseded_by = keys[after]
        self.session.flush()

    # --- matching stored runs ---

    def _store_run(self, place: int, row: Mapping[str, Any], content: RunContent) -> tuple[Run, bool]:
        """Return the store's run for a row with its new values, and whether it is new."""
        for name, words in (("condition", CONDITIONS), ("status", RUN_STATUSES)):
            if row[name] not in words:
                raise self.archive.error("run", place, f"unknown {name} {row[name]!r}")
        identity = (
            int(self.names.keys["benchmark"][row["benchmark"]]),
            int(self.names.keys["model"][row["model"]]),
            str(row["condition"]),
            str(row["variant"]),
        )
        every, label = self._labels[identity], str(row["label"])
        model = self.names.model_names[row["model"]]
        row = {**row, "settings": parse_cell(self.archive, "run", place, "settings", row["settings"], dict)}
        evaluation = evaluation_identity(row["settings"])
        labels = {name: key for name, key in every.items() if self._evaluations.get(key) == evaluation}
        if evaluation is not None and label not in labels:  # the same evaluation may have another label in this store
            label = next((name for name, key in labels.items() if key not in self._claimed), label)
        key = labels.get(label)
        if key is not None and key in self._claimed and not OUR_LABEL.match(label):
            raise self.archive.error("run", place, f"the run {label!r} of {model} is a duplicate")
        if key is None:
            fresh = make_next_label(every) if label in every else label
            if fresh != label:
                self.warnings.append(
                    f"{model}: the store has a different run {label!r}; this one was stored as a new run, {fresh}"
                )
            return self._add(row, identity, fresh, content), True
        difference = self._compare(key, content)
        different = difference.changed.n_values
        if not different and key not in self._claimed:
            return self._extend(key, row, difference, model), False
        text = f"{model}: {different:,} of {different + difference.n_unchanged:,} values differ from the stored ones"
        if OUR_LABEL.match(label) and self.on_conflict == "rerun":
            for earlier in sorted((key for name, key in labels.items() if OUR_LABEL.match(name)), reverse=True):
                rerun = self._compare(earlier, content) if earlier not in self._claimed else None
                if rerun is not None and not rerun.changed.n_values and not rerun.new.n_values and rerun.n_unchanged:
                    return self._extend(earlier, row, rerun, model), False
            fresh = make_next_label(every)
            self.warnings.append(f"{text}; stored as a new run, {fresh}")
            return self._add(row, identity, fresh, content), True
        if self.on_conflict in ("rerun", "error") or key in self._claimed:
            named_run = f" for the run {label!r}" if label else ""
            raise ConflictError(
                f"{self.archive.path}: {text}{named_run}. Keep the stored values with --on-conflict skip, or overwrite "
                "them with --on-conflict update."
            )
        self.warnings.append(f"{text}: {'the stored ones were kept' if self.on_conflict == 'skip' else 'overwritten'}")
        return self._extend(key, row, difference, model), False

    def _compare(self, key: int, content: RunContent) -> _Difference:
        new, changed = RunContent([], {}, {}), RunContent([], {}, {})
        difference = _Difference(new, changed)
        stored = load_scores(self.session, key) if content.columns else {}
        for column in content.columns:
            comparison = compare_scores(column, stored.get(column.metric_id))
            new.columns.append(column.where(comparison.new))
            changed.columns.append(column.where(comparison.different))
            difference.n_unchanged += int((~comparison.new & ~comparison.different).sum())
        stored_answers = self._stored_answers(key) if content.answers else {}
        for answer_key, answer in content.answers.items():
            known = stored_answers.get(answer_key)
            if known is None:
                new.answers[answer_key] = answer
            elif (known[0], known[2]) != (answer[0], answer[2]) or (
                None not in (known[1], answer[1]) and known[1] != answer[1]
            ):
                changed.answers[answer_key] = answer
            else:
                difference.n_unchanged += 1
                if known[1] is None and answer[1] is not None:
                    difference.lacking[answer_key] = answer
        task_scores = self._stored_task_scores(key) if content.task_scores else {}
        for pair, value in content.task_scores.items():
            if pair not in task_scores:
                new.task_scores[pair] = value
            elif task_scores[pair] != value[0]:
                changed.task_scores[pair] = value
            else:
                difference.n_unchanged += 1
        return difference

    def _stored_answers(self, key: int) -> dict[AnswerKey, AnswerValue]:
        a: Any = Answer
        query = sa.select(a.prompt_id, a.extraction, a.trial, a.text, a.probability, a.status).where(a.run_id == key)
        return {(row[0], row[1], row[2]): (row[3], row[4], row[5]) for row in fetch_raw_rows(self.session, query)}

    def _stored_task_scores(self, key: int) -> dict[TaskKey, float]:
        t: Any = TaskScore
        query = sa.select(t.metric_id, t.task_id, t.value).where(t.run_id == key)
        return {(row[0], row[1]): row[2] for row in fetch_raw_rows(self.session, query)}

    # --- writing ---

    def _add(self, row: Mapping[str, Any], identity: Identity, label: str, content: RunContent) -> Run:
        values = {name: value for name, value in row.items() if name not in ("benchmark", "model", "superseded_by")}
        values |= {"benchmark_id": identity[0], "model_id": identity[1], "label": label}
        run = Run(**values, checksum=compute_checksum(content.columns))
        self.session.add(run)
        self.session.flush()
        assert run.id is not None
        self._labels[identity][label] = run.id
        if (evaluation := evaluation_identity(run.settings)) is not None:
            self._evaluations[run.id] = evaluation
        self._claimed.add(run.id)
        self._insert(run.id, content)
        self.new.append((run, self.names.model_names[row["model"]]))
        return run

    def _extend(self, key: int, row: Mapping[str, Any], difference: _Difference, model: str) -> Run:
        run = self.session.get_one(Run, key)
        self._claimed.add(key)
        new, changed = difference.new, difference.changed
        run.n_scores += sum(map(len, new.columns))
        run.checksum = combine_checksums(run.checksum, compute_checksum(new.columns))
        self._insert(key, new)
        if (log := undo_log(self.session)) is not None:
            log.extend_run(key, new.columns, _pack_answers(new.answers))
        self.counts.n_unchanged += difference.n_unchanged
        update = self.on_conflict == "update"
        if update:
            self._overwrite(run, changed)
            self.counts.n_updated += sum(map(len, changed.columns)) + len(changed.task_scores)
        else:
            self.counts.n_skipped += sum(map(len, changed.columns)) + len(changed.task_scores)
        self._overwrite(run, RunContent([], difference.lacking, {}))
        archived = RunFields(**{name: row[name] for name in RUN_FIELDS})
        for name, value in merge_run_values(run, archived).items():
            if name != "settings" and (new.n_values or getattr(run, name) is None):
                setattr(run, name, value)
        whole = run.n_scores == row["n_scores"] and not changed.n_values
        if self._evaluations.get(key) and (run.status, row["status"]) == ("partial", "complete") and whole:
            run.status, run.reason, run.settings = "complete", row["reason"], row["settings"]
            run.ingested = row["ingested"]
        adds = new.n_values or difference.lacking or (update and changed.n_values)
        (self.extended if adds else self.unchanged).append((run, model))
        return run

    def _insert(self, key: int, content: RunContent) -> None:
        insert_scores(self.session, ((key, column) for column in content.columns if len(column)))
        insert_answers(
            self.session,
            [(key, *answer_key, *answer) for answer_key, answer in sorted(content.answers.items(), key=_first)],
        )
        self.session.add_all(
            TaskScore(run_id=key, metric_id=metric, task_id=task, value=value, stderr=stderr, n_prompts=n)
            for (metric, task), (value, stderr, n) in content.task_scores.items()
        )
        self.session.flush()
        self.counts.n_scores += sum(map(len, content.columns))
        self.counts.n_answers += len(content.answers)
        self.counts.n_task_scores += len(content.task_scores)

    def _overwrite(self, run: Run, content: RunContent) -> None:
        key = run.id
        scores = [
            {"run": key, "metric": column.metric_id, "prompt": prompt, "nth": trial, "value": value}
            for column in content.columns
            for prompt, trial, value in zip(*(p.tolist() for p in (*unpack(column.keys), column.values)), strict=True)
        ]
        answers = [
            {"run": key, "prompt": prompt, "how": how, "nth": nth, "text": text, "probability": chance, "status": word}
            for (prompt, how, nth), (text, chance, word) in content.answers.items()
        ]
        tasks = [
            {"run": key, "metric": metric, "task": task, "value": value, "stderr": stderr, "n_prompts": n}
            for (metric, task), (value, stderr, n) in content.task_scores.items()
        ]
        connection, log = self.session.connection(), undo_log(self.session)
        for table, rows, names in (
            ("score", scores, {"run_id": "run", "metric_id": "metric", "prompt_id": "prompt", "trial": "nth"}),
            ("answer", answers, {"run_id": "run", "prompt_id": "prompt", "extraction": "how", "trial": "nth"}),
            ("task_score", tasks, {"run_id": "run", "metric_id": "metric", "task_id": "task"}),
        ):
            if rows:
                described = metadata.tables[table]
                terms = (described.c[column] == sa.bindparam(name) for column, name in names.items())
                if log is not None:
                    log.replace_rows(
                        self.session, described, [tuple(row[name] for name in names.values()) for row in rows]
                    )
                connection.execute(sa.update(described).where(*terms), rows)
        if scores and key is not None:
            columns = list(load_scores(self.session, key).values())
            run.n_scores, run.checksum = sum(map(len, columns)), compute_checksum(columns)

    def _link(self, key: int, sources: Sequence[int]) -> None:
        known = set(self.session.scalars(sa.select(RunSource.source_id).where(RunSource.run_id == key)))  # type: ignore[call-overload]
        fresh = [source for source in dict.fromkeys(sources) if source not in known]
        self.session.add_all(RunSource(run_id=key, source_id=source) for source in fresh)


def _pack_answers(answers: Mapping[AnswerKey, AnswerValue]) -> dict[str, NDArray[np.int64]]:
    """Return prompts and trials of answers, packed, by extraction."""
    pairs: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for prompt, extraction, trial in answers:
        pairs[extraction].append((prompt, trial))
    packed = {how: np.array(keys, dtype=np.int64) for how, keys in pairs.items()}
    return {how: pack(keys[:, 0], keys[:, 1]) for how, keys in packed.items()}


def _first(pair: tuple[AnswerKey, AnswerValue]) -> AnswerKey:
    return pair[0]
