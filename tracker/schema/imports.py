"""Tables of imports: names of tasks in files, under which metrics files were stored, and how to undo that."""

from datetime import datetime

from tracker.schema.table import Instant, Table, column, now


class TaskAlias(Table, table=True):
    """Another name of a task, under which files have it."""

    __tablename__ = "task_alias"
    __table_args__ = ({"comment": "Another name of a task in imported files"},)
    benchmark_id: int = column("the benchmark of the task", key=True, to="benchmark.id")
    name: str = column("the other name, such as mmlu_pro_biology", key=True)
    task_id: int = column("the task", to="task.id", index=True)


class SourceMetric(Table, table=True):
    """A metric under which the scores of a file were stored in a benchmark."""

    __tablename__ = "source_metric"
    __table_args__ = ({"comment": "Under which metrics the scores of a file were stored in a benchmark"},)
    source_id: int = column("the file", key=True, to="source.id", cascade=True)
    benchmark_id: int = column("the benchmark", key=True, to="benchmark.id")
    metric_id: int = column("the metric", key=True, to="metric.id")


class UndoRecord(Table, table=True):
    """The changes that one import made."""

    __tablename__ = "undo_record"
    __table_args__ = ({"comment": "What an import added and changed; suffrage undo reverses it"},)
    id: int | None = column("key; a larger one came later", key=True, default=None)
    source_id: int | None = column(
        "the imported file; null for an archive of a store", to="source.id", default=None, index=True
    )
    path: str = column("name of the file when it was ingested")
    changes: bytes = column("keys of the added rows and replaced values: JSON, compressed with zlib")
    ingested: datetime = column("when it was ingested, UTC", kind=Instant, default_factory=now)
