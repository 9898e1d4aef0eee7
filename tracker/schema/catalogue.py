"""Tables of the catalogue: benchmarks, tasks, prompts, models and metrics."""

from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from tracker.schema.table import BigInt, Double, Instant, Json, Table, column, now


class Database(Table, table=True):
    """This store's identity, which tags published runs."""

    __table_args__ = ({"comment": "Identity of this store; one row"},)
    id: str = column("UUID made when the store was created", key=True)
    created: datetime = column("when the store was created, UTC", kind=Instant, default_factory=now)


class Benchmark(Table, table=True):
    """A collection of tasks."""

    __table_args__ = (sa.UniqueConstraint("name", "revision"), {"comment": "A collection of tasks"})
    id: int | None = column("key", key=True, default=None)
    name: str = column("name, such as mmlu_pro")
    revision: str = column("version of its content; '' where there is only one", default="")
    default_metric_id: int | None = column(
        "the metric of commands that name none, as chosen; null where the first one stored is used",
        to="metric.id",
        default=None,
    )


class Task(Table, table=True):
    """A named part of a benchmark."""

    __table_args__ = (sa.UniqueConstraint("benchmark_id", "name"), {"comment": "A named part of a benchmark"})
    id: int | None = column("key", key=True, default=None)
    benchmark_id: int = column("the benchmark it is part of", to="benchmark.id")
    name: str = column("name, such as physics; '' holds prompts without a task", default="")


class Prompt(Table, table=True):
    """One item of a task, identified by the hash of its content once its text is known."""

    __table_args__ = (
        sa.UniqueConstraint("task_id", "content_hash", "occurrence"),
        {"comment": "One item of a task"},
    )
    id: int | None = column("key", key=True, default=None)
    task_id: int = column("the task it is part of", to="task.id")
    content_hash: str | None = column("SHA-256 of text and choices; null until the text is known", default=None)
    occurrence: int = column("0 for the first prompt of a task with this content, 1 for the second, ...", default=0)
    text: str | None = column("the question, without few-shot examples; null until known", default=None)
    choices: Any = column("options of a multiple-choice prompt, a list of texts", kind=Json, default=None)
    answer: str | None = column("the reference answer: the text, or the letter of the option", default=None)
    split: str | None = column("train, validation, test, ...; null where unknown", default=None)
    details: Any = column("further fields of the source, by name", kind=Json, default=None)


class PromptAlias(Table, table=True):
    """The name of a prompt in a harness or a family of files."""

    __tablename__ = "prompt_alias"
    __table_args__ = ({"comment": "The key of a prompt in a harness or a family of files"},)
    task_id: int = column("the task of the prompt", key=True, to="task.id")
    namespace: str = column("source of the key: '' for tables, lm_eval, ...", key=True)
    key: str = column("the key, such as a row id or a document hash", key=True)
    prompt_id: int = column("the prompt", to="prompt.id", index=True)


class Model(Table, table=True):
    """A language model under test."""

    __table_args__ = ({"comment": "A language model under test"},)
    id: int | None = column("key", key=True, default=None)
    name: str = column("name, such as org/model-7b", unique=True)
    organization: str | None = column("organization that made it", default=None)
    family: str | None = column("models of common descent, such as llama-3", default=None)
    parameters: int | None = column("number of parameters", kind=BigInt, default=None)
    released: date | None = column("day of its release", default=None)
    open_weights: bool | None = column("whether its weights can be downloaded", default=None)


class ModelAlias(Table, table=True):
    """Another name of a model."""

    __tablename__ = "model_alias"
    __table_args__ = ({"comment": "Another name of a model"},)
    name: str = column("the other name", key=True)
    model_id: int = column("the model", to="model.id")


class Metric(Table, table=True):
    """A metric by which answers are scored."""

    __table_args__ = ({"comment": "How answers are scored"},)
    id: int | None = column("key", key=True, default=None)
    name: str = column("such as accuracy; a filter of the harness is part of the name", unique=True)
    higher_is_better: bool = column("whether larger scores are better", default=True)
    lower: float | None = column("smallest possible score; null where unbounded", kind=Double, default=None)
    upper: float | None = column("largest possible score; null where unbounded", kind=Double, default=None)
