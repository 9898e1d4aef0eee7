"""Tables of measurements: runs, scores, answers, embeddings, and their source files."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tracker.run_fields import run_meaning
from tracker.schema.table import BigInt, Double, Instant, Json, Table, column, finite, now, one_of

CONDITIONS = ("full", "answer_only")
RUN_STATUSES = ("partial", "complete", "hidden", "superseded")
ANSWER_STATUSES = ("ok", "error", "empty", "truncated")


class Source(Table, table=True):
    """An ingested file, or the ingested files of one run."""

    __table_args__ = ({"comment": "An ingested file, or the ingested files of one run"},)
    id: int | None = column("key", key=True, default=None)
    identity: str = column("SHA-256 of content and of the options it was read with", unique=True)
    digest: str = column("SHA-256 of the bytes on disk")
    path: str = column("name of the file when it was ingested")
    format: str = column("name of the format it was read as")
    harness: str | None = column("program and version that wrote it, where known", default=None)
    ingested: datetime = column("when it was ingested, UTC", kind=Instant, default_factory=now)


class Run(Table, table=True):
    """One model evaluated once on one benchmark."""

    __table_args__ = (
        sa.UniqueConstraint("benchmark_id", "model_id", "condition", "variant", "label"),
        one_of("condition", CONDITIONS),
        one_of("status", RUN_STATUSES),
        sa.Index("ix_run_model_id", "model_id"),
        {"comment": "One model answering one benchmark once; a larger id came later", "sqlite_autoincrement": True},
    )
    id: int | None = column("key; a larger one came later", key=True, default=None)
    benchmark_id: int = column("the benchmark that the model was evaluated on", to="benchmark.id")
    model_id: int = column("the model that was evaluated", to="model.id")
    condition: str = column(run_meaning("condition"), default="full")
    variant: str = column(run_meaning("variant"), default="")
    label: str = column(run_meaning("label"), default="")
    few_shot: int | None = column(run_meaning("few_shot"), default=None)
    settings: Any = column(run_meaning("settings"), kind=Json, default=None)
    limited: bool = column(run_meaning("limited"), default=False)
    status: str = column(
        "complete, partial (its file was damaged, or its evaluation has not finished), hidden or superseded; "
        "the last three are selected only by key",
        default="complete",
    )
    superseded_by: int | None = column(
        "the run that replaced it; null where none did", to="run.id", default=None, index=True
    )
    reason: str | None = column("why it is not complete, as text", default=None)
    unverified: str | None = column(
        "which scores that its harness reports differ from those computed from its rows; null where none does",
        default=None,
    )
    n_scores: int = column("how many rows of score it has", kind=BigInt, default=0)
    checksum: str = column("order-free 128-bit checksum of its rows of score, hexadecimal", default="0" * 32)
    started: datetime | None = column(run_meaning("started"), kind=Instant, default=None)
    ingested: datetime = column("when it was ingested, UTC", kind=Instant, default_factory=now)


class RunSource(Table, table=True):
    """The files a run came from."""

    __tablename__ = "run_source"
    __table_args__ = ({"comment": "Which files a run came from"},)
    run_id: int = column("the run", key=True, to="run.id", cascade=True)
    source_id: int = column("the file", key=True, to="source.id", index=True)


class Score(Table, table=True):
    """A number for one prompt in one run under one metric; a missing score has no row."""

    __table_args__ = (
        finite("value"),
        {"comment": "A number for one prompt; what was not measured has no row", "sqlite_with_rowid": False},
    )
    run_id: int = column("the run", key=True, to="run.id", cascade=True)
    metric_id: int = column("the metric", key=True, to="metric.id")
    prompt_id: int = column("the prompt", key=True, to="prompt.id")
    trial: int = column("0 for the first answer to the prompt, 1 for the second, ...", key=True)
    value: float = column("the score, in the metric's unit; finite", kind=Double)


class Answer(Table, table=True):
    """A model's answer to a prompt."""

    __table_args__ = (
        one_of("status", ANSWER_STATUSES),
        {"comment": "The answer extracted from a model's response", "sqlite_with_rowid": False},
    )
    run_id: int = column("the run", key=True, to="run.id", cascade=True)
    prompt_id: int = column("the prompt", key=True, to="prompt.id")
    extraction: str = column(
        "how the answer was extracted; '' is the only or default method. reasoning, finish_reason, judge and "
        "judge_prompt hold what the model wrote before its answer, why the text ended, a judge's verdict, and the "
        "prompt of the judge",
        key=True,
    )
    trial: int = column("0 for the first answer to the prompt, 1 for the second, ...", key=True)
    text: str | None = column("the answer as extracted", default=None)
    probability: float | None = column("the model's own probability of it, in [0, 1]", kind=Double, default=None)
    status: str = column(
        "ok, error (the model failed), empty (nothing could be extracted), truncated (at the maximum number of tokens)",
        default="ok",
    )


class EvaluationLease(Table, table=True):
    """A prompt of an unfinished run that a command is evaluating."""

    __tablename__ = "evaluation_lease"
    __table_args__ = ({"comment": "A prompt of an unfinished run that a command is evaluating"},)
    run_id: int = column("the run that is being evaluated", key=True, to="run.id", cascade=True)
    prompt_id: int = column("the prompt", key=True, to="prompt.id", cascade=True, index=True)
    holder: str = column("the command that evaluates the prompt: machine, process and a random number")
    expires: float = column(
        "when another command may evaluate the prompt: seconds since 1970-01-01 UTC, by the clock of the database "
        "server, or of the machine for SQLite",
        kind=Double,
    )


class TaskScore(Table, table=True):
    """A score for a whole task without scores of its prompts."""

    __tablename__ = "task_score"
    __table_args__ = (finite("value"), {"comment": "A score for a whole task, where nothing finer was published"})
    run_id: int = column("the run", key=True, to="run.id", cascade=True)
    metric_id: int = column("the metric", key=True, to="metric.id")
    task_id: int = column("the task", key=True, to="task.id")
    value: float = column("the score, in the metric's unit; finite", kind=Double)
    stderr: float | None = column("standard error as published", kind=Double, default=None)
    n_prompts: int | None = column("number of prompts behind it, as published", default=None)


class Encoder(Table, table=True):
    """An encoder, which turns a prompt's text into a vector."""

    __table_args__ = (
        sa.UniqueConstraint("name", "revision", "template"),
        {"comment": "A model that embeds the text of prompts"},
    )
    id: int | None = column("key", key=True, default=None)
    name: str = column("such as all-MiniLM-L6-v2")
    revision: str = column("version of its weights; '' where unknown", default="")
    template: str = column("which text of the prompt is embedded", default="question+choices")
    dimensions: int = column("length of its vectors")


class Embedding(Table, table=True):
    """A prompt's vector."""

    __table_args__ = (sa.UniqueConstraint("encoder_id", "prompt_id"), {"comment": "A prompt's vector"})
    id: int | None = column("key", key=True, default=None)
    encoder_id: int = column("the encoder that computed it", to="encoder.id")
    prompt_id: int = column("the prompt", to="prompt.id")
    vector: bytes = column("little-endian float32, as many as the encoder has dimensions")
