"""Tables of findings: results, their data, and where they were published."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tracker.schema.table import BigInt, Double, Instant, Json, Table, column, now, one_of

FINDING_STATUSES = ("complete", "failed")
PUBLICATION_KINDS = ("finding", "run")


class StoredFinding(Table, table=True):
    """The recorded result of an analysis of one selection of data."""

    __tablename__ = "finding"
    __table_args__ = (
        one_of("status", FINDING_STATUSES),
        {"comment": "The recorded result of an analysis", "sqlite_autoincrement": True},
    )
    id: int | None = column("key; a larger one came later", key=True, default=None)
    benchmark_id: int | None = column("the benchmark it is about", to="benchmark.id", default=None, index=True)
    analysis: str = column("which analysis, such as prompt-correlation", index=True)
    parameters: Any = column("options it ran with, by name", kind=Json)
    selection: Any = column("which data it saw: metric, condition, runs, models, tasks", kind=Json)
    seed: int | None = column("seed of its random numbers; null where it draws none", kind=BigInt, default=None)
    input_digest: str = column("SHA-256 of the data it saw")
    code_version: str = column("version of the code that ran")
    filter_id: int | None = column("the finding whose kept prompts it saw", to="finding.id", default=None)
    weights_id: int | None = column("the finding whose prompt weights it used", to="finding.id", default=None)
    encoder_id: int | None = column("whose vectors it used", to="encoder.id", default=None)
    status: str = column("complete or failed", default="complete")
    error: str | None = column("the error message; null where it is complete", default=None)
    stale: str | None = column("why it no longer holds, where a run it rests on was deleted", default=None)
    headline: str | None = column("the result in one sentence; null where it failed", default=None)
    leader: str | None = column(
        "the models with the best rank or mean, separated by commas; null where none is ranked", default=None
    )
    evidence: Any = column("list of sentences with the numbers behind the headline", kind=Json, default=None)
    caveats: Any = column("list of sentences on what limits the headline", kind=Json, default=None)
    warnings: Any = column("list of further warnings about the data and the method", kind=Json, default=None)
    timings: Any = column("seconds spent to load, compute and draw figures", kind=Json, default=None)
    recorded: datetime = column("when it was recorded, UTC", kind=Instant, default_factory=now)


class FindingRun(Table, table=True):
    """The runs a finding is based on; if one changes, the finding is stale."""

    __tablename__ = "finding_run"
    __table_args__ = ({"comment": "Which runs a finding rests on"},)
    finding_id: int = column("the finding", key=True, to="finding.id", cascade=True)
    run_id: int = column("the run", key=True, to="run.id", index=True)
    role: str = column("what it served as; 'scores' by default", key=True)
    checksum: str = column("the run's checksum when it was read", default="")
    status: str = column("the run's status when it was read", default="complete")


class FindingMetric(Table, table=True):
    """A metric of a finding, or the reason why it is undefined."""

    __tablename__ = "finding_metric"
    __table_args__ = (
        sa.CheckConstraint("(value IS NULL) = (reason IS NOT NULL)", name="value_or_reason"),
        {"comment": "A number of a finding, or the reason why there is none"},
    )
    finding_id: int = column("the finding", key=True, to="finding.id", cascade=True)
    name: str = column("such as hamming.variance.pvalue", key=True)
    value: float | None = column("the number; null where it is undefined", kind=Double, default=None)
    reason: str | None = column("why it is undefined, such as: invariant under this null", default=None)
    is_main: bool = column("whether it is shown in MLflow", default=True)
    position: int = column("place in the finding's own order, from 0", default=0)


class FindingArtifact(Table, table=True):
    """Arrays, tables and figures of a finding; MLflow can be rebuilt from them."""

    __tablename__ = "finding_artifact"
    __table_args__ = ({"comment": "Arrays, tables and pictures of a finding"},)
    finding_id: int = column("the finding", key=True, to="finding.id", cascade=True)
    name: str = column("file name, such as null.png", key=True)
    media_type: str = column("such as image/png or application/vnd.apache.parquet")
    content: bytes = column("the file's bytes")


class PromptValue(Table, table=True):
    """A number per prompt: weights, slopes, difficulties."""

    __tablename__ = "prompt_value"
    __table_args__ = ({"comment": "A number per prompt: weights, slopes, difficulties", "sqlite_with_rowid": False},)
    finding_id: int = column("the finding", key=True, to="finding.id", cascade=True)
    name: str = column("which number", key=True)
    prompt_id: int = column("the prompt", key=True, to="prompt.id")
    value: float = column("the number", kind=Double)


class TaskValue(Table, table=True):
    """A number per task."""

    __tablename__ = "task_value"
    __table_args__ = ({"comment": "A number per task", "sqlite_with_rowid": False},)
    finding_id: int = column("the finding", key=True, to="finding.id", cascade=True)
    name: str = column("which number", key=True)
    task_id: int = column("the task", key=True, to="task.id")
    value: float = column("the number", kind=Double)


class FilterDecision(Table, table=True):
    """Whether a filter keeps a prompt."""

    __tablename__ = "filter_decision"
    __table_args__ = ({"comment": "Whether a filter keeps a prompt", "sqlite_with_rowid": False},)
    finding_id: int = column("the finding", key=True, to="finding.id", cascade=True)
    prompt_id: int = column("the prompt", key=True, to="prompt.id")
    kept: bool = column("whether it stays")


class FilterReason(Table, table=True):
    """Why a filter flagged a prompt; several reasons may apply."""

    __tablename__ = "filter_reason"
    __table_args__ = ({"comment": "Why a filter flagged a prompt", "sqlite_with_rowid": False},)
    finding_id: int = column("the finding", key=True, to="finding.id", cascade=True)
    prompt_id: int = column("the prompt", key=True, to="prompt.id")
    step: str = column("such as easy, contaminated, similar", key=True)
    cluster: int | None = column("number of the group of similar prompts it is in", default=None)
    retained: bool = column("whether it was kept in spite of the reason", default=False)


class Ranking(Table, table=True):
    """Models in the order of one scheme."""

    __table_args__ = ({"comment": "Models in the order of one scheme"},)
    finding_id: int = column("the finding", key=True, to="finding.id", cascade=True)
    scheme: str = column("what they are ranked by, such as medoids", key=True)
    model_id: int = column("the model", key=True, to="model.id")
    rank: float = column("1 is best; ties share the mean rank", kind=Double)
    score: float = column("what it is ranked by", kind=Double)
    low: float | None = column("lower end of the score's interval", kind=Double, default=None)
    high: float | None = column("upper end of the score's interval", kind=Double, default=None)
    rank_low: float | None = column("best rank of the interval", kind=Double, default=None)
    rank_high: float | None = column("worst rank of the interval", kind=Double, default=None)


class Publication(Table, table=True):
    """Published findings and runs, so that nothing is published twice."""

    __table_args__ = (one_of("kind", PUBLICATION_KINDS), {"comment": "What was published to which MLflow store"})
    tracking_uri: str = column("the MLflow store, without password", key=True)
    kind: str = column("finding or run", key=True)
    ref_id: int = column("key of the finding or run", key=True)
    mlflow_run_id: str = column("the MLflow run that shows it")
    version: str = column("checksum of what was published; another one means it must be published anew", default="")
    published: datetime = column("when, UTC", kind=Instant, default_factory=now)
