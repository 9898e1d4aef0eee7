"""Scores of whole tasks as a long table, a row for each."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.exporting.exported_runs import ExportedRuns
from tracker.exporting.table_files import StreamedTable
from tracker.queries.filtering.prompt_filter import make_task_scores_error
from tracker.queries.resolution import BenchmarkKey, select_tasks
from tracker.queries.selection import Selection, restricts_split
from tracker.queries.sql import tables


def build_task_score_table(
    session: Session, benchmark: BenchmarkKey, selection: Selection, chosen: ExportedRuns
) -> StreamedTable:
    """Return a row per score of a whole task, as on a leaderboard.

    Raises:
        SelectionError: a filter or split is selected, which does not apply to whole tasks.
    """
    import pyarrow as pa

    if selection.filter is not None or restricts_split(selection.split):
        raise make_task_scores_error(benchmark, ", ".join(chosen.metrics.values()))
    tasks = select_tasks(session, benchmark, selection)
    score: Any = tables.task_score.c
    rows: list[dict[str, Any]] = []
    for run in chosen.runs:
        query = sa.select(score.metric_id, score.task_id, score.value, score.stderr, score.n_prompts).where(
            score.run_id == run.id, score.metric_id.in_(run.metric_ids)
        )
        for metric, task, value, stderr, n_prompts in session.execute(query.order_by(score.metric_id, score.task_id)):
            if task in tasks:
                rows.append(
                    {
                        "benchmark": benchmark.label, "model": run.model, "task": tasks[task],
                        "metric": chosen.metrics[metric], "score": value, "stderr": stderr, "n_prompts": n_prompts,
                        "condition": run.condition, "variant": run.variant, "run": run.label, "few_shot": run.few_shot,
                    }
                )  # fmt: skip
    texts, numbers, counts = pa.string(), pa.float64(), pa.int32()
    kinds = {"score": numbers, "stderr": numbers, "n_prompts": counts, "few_shot": counts}
    names = ("benchmark", "model", "task", "metric", *kinds, "condition", "variant", "run")
    ordered = [*names[:7], "condition", "variant", "run", "few_shot"]
    schema = pa.schema([(name, kinds.get(name, texts)) for name in ordered])
    return StreamedTable.from_table(pa.Table.from_pylist(rows, schema))
