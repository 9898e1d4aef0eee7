"""States in which operations start, copied for each fault."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from fingerprint import Fingerprint, take_fingerprint
from operations import Operation, Place, list_mlflow_runs
from protocol_server import ProtocolServer
from store_state import Contents, read_state

from tracker import database


@dataclass
class Disturbance:
    """An operation on an engine, run again and again from the same state.

    Attributes:
        operation: what is run.
        start: the state at the start; its store is a template.
        new_place: makes a copy of it.
        drop_place: deletes the copy that was made last.
        before: contents of the store at the start.
        after: its contents after an undisturbed run.
        published: MLflow runs after an undisturbed run.
        fingerprint: of the state at the start.
    """

    operation: Operation
    start: Place
    new_place: Callable[[], Place]
    drop_place: Callable[[Place], None]
    before: Contents
    after: Contents
    published: list[str]
    fingerprint: Fingerprint


def prepare(
    operation: Operation,
    engine: str,
    folder: Path,
    request: pytest.FixtureRequest,
    stack: ExitStack,
    sqlite_template: Path,
) -> Disturbance:
    """Prepare an operation on an engine, and run it once undisturbed."""
    stores = stack.enter_context(Stores(engine, request, sqlite_template))
    start = Place(folder=folder / "start", url="")
    start.folder.mkdir()
    if operation.name == "evaluation":
        start = replace(start, server=stack.enter_context(ProtocolServer()).url)
    if operation.name in ("copy", "restore"):
        start = replace(start, source=f"sqlite:///{folder}/source.db")
    if operation.name == "publication":
        shutil.copy(request.getfixturevalue("mlflow_template"), start.folder / "mlflow.db")
    start = replace(start, url=stores.make(start.folder, is_empty=operation.starts_empty))
    run_here(lambda: operation.prepare(start))

    def copy_place() -> Place:
        new = folder / uuid.uuid4().hex[:12]
        shutil.copytree(start.folder, new)
        return replace(start, folder=new, url=stores.copy(start, new))

    def drop_place(place: Place) -> None:
        shutil.rmtree(place.folder)
        stores.drop_last()

    place = copy_place()
    fingerprint = take_fingerprint(place)
    for url in dict.fromkeys((place.url, operation.result(place))):
        before = read_state(url)
        assert not before.faults
    run_here(lambda: operation.run(place))
    result = read_state(operation.result(place))
    assert result.faults == []
    published = list_mlflow_runs(place.mlflow) if operation.name == "publication" else []
    assert before.contents != result.contents or published
    return Disturbance(
        operation, start, copy_place, drop_place, before.contents, result.contents, published, fingerprint
    )


def run_here(work: Callable[[], object]) -> None:
    """Run a command that must succeed in this process: the processes forked from it then need no imports."""
    try:
        work()
    except SystemExit as end:
        assert not end.code  # noqa: PT017 - a command ends with this exception
    for engine in list(database._engines):
        engine.dispose()


class Stores:
    """Stores of an engine, and copies of them; a context manager that drops them."""

    def __init__(self, engine: str, request: pytest.FixtureRequest, sqlite_template: Path) -> None:
        self.engine, self.sqlite_template = engine, sqlite_template
        if engine == "postgres":
            self.server: sa.URL = request.getfixturevalue("postgres_server")
            self.template: str = request.getfixturevalue("postgres_template")
            url = self.server.set(drivername="postgresql+psycopg")
            self.administrator = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        self.names: list[str] = []

    def __enter__(self) -> Stores:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def make(self, folder: Path, *, is_empty: bool) -> str:
        """A new store; without tables, if it is to be empty."""
        if self.engine == "postgres":
            return self._create("template0" if is_empty else self.template)
        if not is_empty:
            shutil.copy(self.sqlite_template, folder / "store.db")
        return f"sqlite:///{folder}/store.db"

    def copy(self, start: Place, folder: Path) -> str:
        """A copy of a store; that of SQLite lies in a folder that is copied already."""
        if self.engine == "sqlite":
            return f"sqlite:///{folder}/store.db"
        return self._create(str(sa.make_url(start.url).database))

    def drop_last(self) -> None:
        """Drop the store that was made last."""
        if self.engine == "postgres":
            self._execute(f"DROP DATABASE {self.names.pop()} WITH (FORCE)")

    def _create(self, template: str) -> str:
        name = f"faults_{uuid.uuid4().hex[:12]}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        self.names.append(name)
        return self.server.set(database=name).render_as_string(hide_password=False)

    def _execute(self, statement: str) -> None:
        with self.administrator.connect() as connection:
            connection.exec_driver_sql(statement)
