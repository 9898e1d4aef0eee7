"""What is disturbed: each operation with the state it starts from, and what a store holds afterwards."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tracker.cli import main
from tracker.connections.partition_conversion import BEGUN
from tracker.connections.schema_versions import upgrade
from tracker.database import create_unchecked_engine

OLD_DATABASES = Path(__file__).parents[2] / "old_databases"


@dataclass(frozen=True)
class Place:
    """Where an operation runs.

    Attributes:
        folder: with the files of the operation.
        url: of the store that it changes.
        source: of the store that it copies from.
        server: address of a model server.
    """

    folder: Path
    url: str
    source: str = ""
    server: str = ""

    @property
    def mlflow(self) -> str:
        """URI of MLflow's file."""
        return f"sqlite:///{self.folder}/mlflow.db"


@dataclass(frozen=True)
class Operation:
    """A command that changes a store.

    Attributes:
        name: for the tests.
        prepare: brings an empty store into the state in which the command starts.
        arguments: of the command.
        is_gradual: whether a part of the result may be stored after a fault; else all or nothing.
        is_repeatable: whether the command, run again after it has succeeded, changes nothing.
        starts_empty: whether the store has no tables at the start.
        halfway: version of a store that an upgrade on PostgreSQL may leave, which no command but the next upgrade uses.
        result: URL of the store that holds the result.
    """

    name: str
    prepare: Callable[[Place], None]
    arguments: Callable[[Place], Sequence[str]]
    is_gradual: bool = False
    is_repeatable: bool = True
    starts_empty: bool = False
    halfway: str = ""
    result: Callable[[Place], str] = lambda place: place.url

    def run(self, place: Place) -> None:
        """Run the command; ends the process."""
        main([*self.arguments(place)])


def write_scores(folder: Path, name: str = "scores.csv", n_prompts: int = 12) -> Path:
    """A file with the scores of three models."""
    path = folder / name
    rows = [f"t{n % 2},q{n},{n % 2},{n % 3 // 2},{int(n > 4)}" for n in range(n_prompts)]
    path.write_text("\n".join(["task,prompt_id,a,b,c", *rows]) + "\n")
    return path


def succeed(*arguments: str) -> None:
    """Run a command that must succeed."""
    try:
        main(arguments)
    except SystemExit as end:
        assert end.code == 0, arguments  # noqa: PT017 - a command ends with this exception


def _ingest_scores(place: Place) -> None:
    path = write_scores(place.folder)
    succeed("ingest", str(path), "--benchmark", "b", "--metric", "accuracy", "--database", place.url, "--no-mlflow")


def _ingest_answers(place: Place) -> None:
    rows = [f"{model},q{n},{n % 2},answer {n}" for model in "ab" for n in range(8)]
    path = place.folder / "answers.csv"
    path.write_text("\n".join(["model,prompt_id,score,predicted", *rows]) + "\n")
    succeed("ingest", str(path), "--benchmark", "b", "--metric", "accuracy", "--database", place.url, "--no-mlflow")


def _seal_answers(place: Place) -> None:
    _ingest_answers(place)
    succeed("seal", "b", "--to", str(place.folder / "sealed"), "--database", place.url)


def _write_only(place: Place) -> None:
    write_scores(place.folder)


def _import_prompts(place: Place) -> None:
    rows = (json.dumps({"q": f"Number {n}?", "o": ["one", "two", "six"], "a": n % 3}) for n in range(6))
    path = place.folder / "prompts.jsonl"
    path.write_text("\n".join(rows))
    maps = ("--map", "text=q", "--map", "choices=o", "--map", "answer=a", "--answer-is", "index")
    succeed("prompts", "import", "quiz", str(path), *maps, "--database", place.url)


def _fill_source(place: Place) -> None:
    path = Path(place.source.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(max(OLD_DATABASES.glob("*.sql")).read_text())
    engine = create_unchecked_engine(place.source)
    upgrade(engine)
    engine.dispose()


def _fill_old_store(place: Place) -> None:
    engine = create_unchecked_engine(place.url)
    if engine.dialect.name == "sqlite":
        with closing(sqlite3.connect(str(engine.url.database))) as connection:
            connection.executescript((OLD_DATABASES / "0009_small.sql").read_text())
    else:
        upgrade(engine, "0009")
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO model (name) VALUES ('m'), ('n')")
            connection.exec_driver_sql("INSERT INTO benchmark (name, revision) VALUES ('b', '')")
    engine.dispose()


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation(
            name="import",
            prepare=_write_only,
            arguments=lambda place: [
                "ingest", str(place.folder / "scores.csv"), "--benchmark", "b", "--metric", "accuracy",
                "--database", place.url, "--no-mlflow",
            ],
        ),
        Operation(
            name="analysis",
            prepare=_ingest_scores,
            arguments=lambda place: [
                "analyze", "rank-intervals", "b", "--database", place.url, "--no-mlflow",
            ],
            is_repeatable=False,
        ),
        Operation(
            name="publication",
            prepare=_ingest_scores,
            arguments=lambda place: ["publish", "--database", place.url, "--tracking-uri", place.mlflow],
            is_gradual=True,
        ),
        Operation(
            name="evaluation",
            prepare=_import_prompts,
            arguments=lambda place: [
                "evaluate", "quiz", "--model", "parrot", "--api-base", place.server, "--concurrency", "1",
                "--database", place.url,
            ],
            is_gradual=True,
        ),
        Operation(
            name="copy",
            prepare=_fill_source,
            arguments=lambda place: ["db", "copy", place.source, place.url],
            starts_empty=True,
            is_repeatable=False,
        ),
        Operation(
            name="backup",
            prepare=_ingest_scores,
            arguments=lambda place: ["db", "backup", str(place.folder / "backup.db"), "--database", place.url],
            is_repeatable=False,
            result=lambda place: f"sqlite:///{place.folder}/backup.db",
        ),
        Operation(
            name="restore",
            prepare=_fill_source,
            arguments=lambda place: [
                "db", "restore", place.source.removeprefix("sqlite:///"), "--database", place.url,
            ],
            starts_empty=True,
            is_repeatable=False,
        ),
        Operation(
            name="seal",
            prepare=_ingest_answers,
            arguments=lambda place: ["seal", "b", "--to", str(place.folder / "sealed"), "--database", place.url],
        ),
        Operation(
            name="unseal",
            prepare=_seal_answers,
            arguments=lambda place: ["unseal", "b", "--database", place.url],
        ),
        Operation(
            name="upgrade",
            prepare=_fill_old_store,
            arguments=lambda place: ["db", "upgrade", "--database", place.url],
            starts_empty=True,
            halfway=BEGUN,
        ),
    )
}  # fmt: skip


def list_mlflow_runs(uri: str) -> list[str]:
    """The active MLflow runs, without their keys and times."""
    from mlflow import MlflowClient
    from mlflow.entities import ViewType

    client = MlflowClient(tracking_uri=uri)
    experiments = client.search_experiments(filter_string="name LIKE 'suffrage/%'", view_type=ViewType.ALL)
    names = {experiment.experiment_id: experiment.name for experiment in experiments}
    if not names:
        return []
    return sorted(
        repr((names[run.info.experiment_id], run.info.run_name, run.info.status, run.data.metrics, run.data.params,
              run.data.tags.get("suffrage.run_id"), _list_artifacts(client, run.info.run_id)))
        for run in client.search_runs(list(names), run_view_type=ViewType.ACTIVE_ONLY)
    )  # fmt: skip


def _list_artifacts(client: object, run_id: str) -> list[str]:
    return sorted(item.path for item in client.list_artifacts(run_id))  # type: ignore[attr-defined]
