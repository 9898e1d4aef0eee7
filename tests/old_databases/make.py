"""Dump a small store of the present version, with some rows in every table.

    python tests/old_databases/make.py > tests/old_databases/0014_small.sql

Run once per version, when it is released; a dump that is here is never made again.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from tracker import schema
from tracker.connections.schema_versions import current_version
from tracker.database import connect, transaction
from tracker.ingest.measurement import (
    Answers,
    MetricDescription,
    ParsedFile,
    Prompts,
    ReadOptions,
    RunDescription,
    Scores,
    TaskScores,
)
from tracker.ingest.write.writer import store_file
from tracker.schema.search_index import SQLITE, drop_search_index

ACCURACY = MetricDescription(name="accuracy", higher_is_better=True, lower=0.0, upper=1.0)
LOSS = MetricDescription(name="loss", higher_is_better=False)


def results() -> ParsedFile:
    """Two models on four prompts of two tasks, and their published task scores."""
    prompts = Prompts(
        keys=["1", "2", "1", "2"],
        tasks=["law", "law", "physics", "physics"],
        text=["Who may sue?", "Who may sue?", "What is g?", None],
        choices=[["anyone", "no one"], ["anyone", "no one"], None, None],
        answer=["A", "A", "9.81", None],
        split=["test", "test", "test", None],
        details=[{"year": 2023}, None, None, None],
    )
    small = RunDescription(
        model="small",
        few_shot=5,
        settings={"temperature": 0.0},
        started=datetime(2024, 5, 1, 12, tzinfo=UTC),
        model_facts={"organization": "o", "family": "f", "parameters": 7_000_000_000, "released": date(2024, 4, 1)},
    )
    large, blind = RunDescription(model="large"), RunDescription(model="large", condition="answer_only")
    return ParsedFile(
        path=Path("results.csv"),
        files=(),
        format="made",
        harness="harness 1.0",
        digest="0" * 64,
        identity="1" * 64,
        measurements=[
            Scores(run=small, metric=ACCURACY, prompts=prompts, values=np.array([1.0, 0.0, 1.0, np.nan])),
            Scores(run=large, metric=ACCURACY, prompts=prompts, values=np.array([1.0, 1.0, 0.5, 0.1])),
            Scores(run=large, metric=LOSS, prompts=prompts, values=np.array([0.1, 0.2, 1 / 3, 2.0])),
            Scores(run=blind, metric=ACCURACY, prompts=prompts, values=np.array([0.0, 0.0, 0.0, 1.0])),
            Answers(
                run=large,
                prompts=prompts,
                text=["A", "anyone", None, "it's 'nine'"],
                probability=np.array([0.9, 0.8, np.nan, np.nan]),
            ),
            TaskScores(run=small, metric=ACCURACY, tasks=["law", "physics"], values=np.array([0.5, 1.0])),
            TaskScores(
                run=large,
                metric=ACCURACY,
                tasks=["law", "physics"],
                values=np.array([1.0, 0.3]),
                stderr=np.array([0.1, np.nan]),
                n_prompts=[2, None],
            ),
        ],
    )


def findings() -> list[list[schema.Table]]:
    """A finding with everything that can hang on one, a filter that it saw, and where it was published."""
    query = {"parameters": {"n": 3}, "selection": {"benchmark": "small"}, "input_digest": "2" * 64, "code_version": "1"}
    return [
        [
            schema.ModelAlias(name="big", model_id=2),
            schema.TaskAlias(benchmark_id=1, name="small_law", task_id=1),
            schema.Encoder(id=1, name="encoder", dimensions=2),
            schema.StoredFinding(id=1, analysis="filter", benchmark_id=1, **query),
        ],
        [
            schema.StoredFinding(
                id=2,
                analysis="prompt-correlation",
                benchmark_id=1,
                seed=2**40,
                filter_id=1,
                weights_id=1,
                encoder_id=1,
                headline="They agree more than chance allows.",
                evidence=["The mean similarity is 0.5."],
                caveats=["Two models."],
                warnings=["One prompt has no text."],
                stale="its run 9 of small was deleted",
                timings={"load": 0.1},
                **query,
            ),
            schema.StoredFinding(analysis="failed", status="failed", error="too few prompts", **query),
        ],
        [
            schema.SealedRun(
                run_id=2,
                address="/sealed/small-1-444444444444",
                digest="4" * 64,
                checksum="5" * 32,
                answer_checksum="6" * 32,
                n_answers=4,
                rows_in_store=True,
            ),
            schema.SealedMetric(run_id=2, metric_id=1, n_scores=4, mean=0.65),
            schema.EvaluationLease(run_id=1, prompt_id=1, holder="machine/1/0", expires=1.5),
            schema.Embedding(encoder_id=1, prompt_id=1, vector=np.array([1.0, -0.5], dtype="<f4").tobytes()),
            schema.FilterDecision(finding_id=1, prompt_id=1, kept=True),
            schema.FilterDecision(finding_id=1, prompt_id=2, kept=False),
            schema.FilterReason(finding_id=1, prompt_id=2, step="similar", cluster=1),
            schema.FindingRun(finding_id=2, run_id=1, role="scores"),
            schema.FindingMetric(finding_id=2, name="hamming.mean", value=0.5),
            schema.FindingMetric(finding_id=2, name="hamming.mean.pvalue", reason="invariant under this null"),
            schema.FindingArtifact(finding_id=2, name="x.bin", media_type="application/octet-stream", content=b"\0\1"),
            schema.PromptValue(finding_id=2, name="weight.medoids", prompt_id=1, value=0.75),
            schema.TaskValue(finding_id=2, name="difficulty", task_id=1, value=-1.0),
            schema.Ranking(finding_id=2, scheme="mean", model_id=1, rank=1.5, score=0.5, low=0.25, high=0.75),
            schema.Publication(tracking_uri="sqlite:///mlflow.db", kind="finding", ref_id=2, mlflow_run_id="3" * 32),
        ],
    ]


def main() -> None:
    """Write the dump to stdout."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        engine = connect(f"sqlite:///{path}")
        with transaction(engine) as session:
            store_file(session, results(), ReadOptions(benchmark="small@1"))
            for rows in findings():
                session.add_all(rows)
                session.flush()
            again = schema.Run(benchmark_id=1, model_id=1, label="#2", status="superseded", superseded_by=1)
            session.add_all([again, schema.Run(benchmark_id=1, model_id=2, label="#2", status="hidden", reason="odd")])
            for table in schema.metadata.sorted_tables:
                assert session.scalar(sa.select(sa.func.count()).select_from(table)), f"no rows in {table.name}"
        print(f"-- A store of version {current_version(engine)}, made by: python tests/old_databases/make.py")
        with engine.begin() as connection:  # a dump holds no virtual table
            drop_search_index(connection)
        engine.dispose()
        raw = sqlite3.connect(path)
        sys.stdout.writelines(f"{line}\n" for line in raw.iterdump())
        sys.stdout.writelines(f"{line};\n" for line in SQLITE)
        raw.close()


if __name__ == "__main__":
    main()
