"""The tables, in the order data flows: catalogue, measurements, findings; and the views on them."""

from tracker.schema.catalogue import Benchmark, Database, Metric, Model, ModelAlias, Prompt, PromptAlias, Task
from tracker.schema.checksums import Checksum
from tracker.schema.findings import (
    FilterDecision,
    FilterReason,
    FindingArtifact,
    FindingMetric,
    FindingRun,
    PromptValue,
    Publication,
    Ranking,
    StoredFinding,
    TaskValue,
)
from tracker.schema.imports import SourceMetric, TaskAlias, UndoRecord
from tracker.schema.measurements import (
    Answer,
    Embedding,
    Encoder,
    EvaluationLease,
    Run,
    RunSource,
    Score,
    Source,
    TaskScore,
)
from tracker.schema.sealed_runs import SealedMetric, SealedRun
from tracker.schema.table import metadata

__all__ = [
    "Answer",
    "Benchmark",
    "Checksum",
    "Database",
    "Embedding",
    "Encoder",
    "EvaluationLease",
    "FilterDecision",
    "FilterReason",
    "FindingArtifact",
    "FindingMetric",
    "FindingRun",
    "Metric",
    "Model",
    "ModelAlias",
    "Prompt",
    "PromptAlias",
    "PromptValue",
    "Publication",
    "Ranking",
    "Run",
    "RunSource",
    "Score",
    "SealedMetric",
    "SealedRun",
    "Source",
    "SourceMetric",
    "StoredFinding",
    "Task",
    "TaskAlias",
    "TaskScore",
    "TaskValue",
    "UndoRecord",
    "metadata",
]
