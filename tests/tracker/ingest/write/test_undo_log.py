"""Undo is the inverse of import, whatever the imports add to, fill in, move or overwrite."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from measurement_blocks import ACCURACY, B, parsed_file, prompts
from sqlalchemy.orm import Session
from store_rows import session_rows

from tracker.ingest.measurement import (
    Answers,
    Measurement,
    MetricDescription,
    ParsedFile,
    RunDescription,
    Scores,
    TaskScores,
)
from tracker.ingest.write.checksums import verify_checksums
from tracker.ingest.write.undo_log import UndoLog
from tracker.ingest.write.writer import store_file
from tracker.recording.undo.imports import find_import, list_imports, load_log
from tracker.recording.undo.removal import undo_import

LAW = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
TASKS = ("t", "u", "u", "t")
FACTS: dict[str, Any] = {"family": "f", "parameters": 7}

file_kinds = st.fixed_dictionaries(
    {
        "prompts": st.sets(st.integers(0, 3), min_size=1),
        "model": st.sampled_from("mn"),
        "metric": st.sampled_from([ACCURACY, MetricDescription(name="loss", higher_is_better=False, lower=0.0)]),
        "value": st.sampled_from([0.0, 0.5, 1.0]),
        "trial": st.integers(0, 1),
        "with_tasks": st.booleans(),
        "with_text": st.booleans(),
        "with_facts": st.booleans(),
        "with_answers": st.booleans(),
        "with_task_scores": st.booleans(),
        "namespace": st.sampled_from(["", "harness"]),
        "on_conflict": st.sampled_from(["rerun", "skip", "update"]),
        "partial": st.booleans(),
    }
)


def make_file(kind: dict[str, Any]) -> ParsedFile:
    """One file with scores of one model, and what else its kind has."""
    rows = sorted(kind["prompts"])
    keys: list[Any] = [(TASKS[row], f"q{row}") if kind["with_tasks"] else f"q{row}" for row in rows]
    content: dict[str, Any] = {"namespace": kind["namespace"]}
    if kind["with_text"]:
        content |= {"text": [f"text {row}" for row in rows], "split": ["test"] * len(rows)}
        content |= {"details": [{kind["model"]: row} for row in rows], "answer": ["A"] * len(rows)}
    of = prompts(keys, **content)
    facts = FACTS if kind["with_facts"] else {}
    started = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) if kind["with_facts"] else None
    run = RunDescription(model=kind["model"], model_facts=facts, started=started, settings={"facts": len(facts)})
    values = np.full(len(rows), kind["value"])
    blocks: list[Measurement] = [
        Scores(run=run, metric=kind["metric"], prompts=of, values=values, trials=kind["trial"])
    ]
    if kind["with_answers"]:
        chances = values if kind["with_facts"] else np.full(len(rows), np.nan)
        texts: list[str | None] = [str(kind["value"])] * len(rows)
        blocks.append(Answers(run=run, prompts=of, text=texts, trials=kind["trial"], probability=chances))
    if kind["with_task_scores"]:
        blocks.append(TaskScores(run=run, metric=kind["metric"], tasks=["t"], values=np.array([kind["value"]])))
    file = parsed_file(*blocks)
    return ParsedFile(**{**vars(file), "damage": "cut off" if kind["partial"] else ""})


PLAIN: dict[str, Any] = {
    "prompts": {0, 1}, "model": "m", "metric": ACCURACY, "value": 0.5, "trial": 0, "with_tasks": False,
    "with_text": False, "with_facts": False, "with_answers": True, "with_task_scores": True, "namespace": "",
    "on_conflict": "rerun", "partial": True,
}  # fmt: skip


class TestLaws:
    @LAW
    @example(kinds=[PLAIN, {**PLAIN, "prompts": {0, 1, 2}, "partial": False, "with_facts": True, "with_text": True}])
    @example(kinds=[PLAIN, {**PLAIN, "with_tasks": True}])
    @example(kinds=[PLAIN, {**PLAIN, "value": 1.0, "on_conflict": "update"}])
    @given(kinds=st.lists(file_kinds, min_size=1, max_size=4))
    def test_undo_is_the_inverse_of_import(self, store: sa.Engine, kinds: list[dict[str, Any]]) -> None:
        with Session(store) as session:
            before = []
            for kind in kinds:
                with session.begin_nested() as savepoint:
                    before.append(session_rows(session))
                    try:
                        store_file(
                            session, make_file(kind), B, on_conflict=kind["on_conflict"], partial=True, new_metric=True
                        )
                    except ValueError:  # the file contradicts the store
                        savepoint.rollback()
                        session.expunge_all()
                        before.pop()
            assert verify_checksums(session) == []
            assert len(list_imports(session)) == len(before)
            for expected in reversed(before):
                undo_import(session, find_import(session))
                assert session_rows(session) == expected
            session.rollback()

    @LAW
    @given(kinds=st.lists(file_kinds, min_size=1, max_size=3))
    def test_a_log_is_the_same_after_it_was_stored(self, store: sa.Engine, kinds: list[dict[str, Any]]) -> None:
        with Session(store) as session:
            for kind in kinds:
                store_file(session, make_file({**kind, "with_tasks": True}), B, on_conflict="update", new_metric=True)
            for row in list_imports(session):
                log = load_log(session, row.id)
                assert vars(UndoLog.from_bytes(log.as_bytes())).keys() == vars(log).keys()
                assert UndoLog.from_bytes(log.as_bytes()).as_bytes() == log.as_bytes()
            session.rollback()


def test_a_large_import_of_new_runs_leaves_a_small_record(store: sa.Engine) -> None:
    n = 2000
    of = prompts([f"q{i}" for i in range(n)])
    blocks = [
        Scores(run=RunDescription(model=f"m{j}"), metric=ACCURACY, prompts=of, values=np.ones(n)) for j in range(20)
    ]
    with Session(store) as session:
        store_file(session, parsed_file(*blocks), B)
        (size,) = session.scalars(sa.text("SELECT length(changes) FROM undo_record"))
        assert size < 1000  # of 40,000 scores
        session.rollback()
