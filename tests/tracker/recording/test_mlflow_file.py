"""The file of an MLflow store: a new one commits fast, and one that exists stays as it is."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from tracker.recording.mlflow.file_commits import fast_commits
from tracker.recording.mlflow.tracking_store import mlflow_store


def journal_mode(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


@pytest.mark.parametrize("exists", [False, True])
def test_only_a_new_file_gets_a_write_ahead_log(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "with a space & more.db"
    if exists:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE mine (x)")
    store = mlflow_store(f"sqlite:///{path}")
    with fast_commits(store), closing(sa.create_engine(store.uri).connect()) as connection:
        connection.exec_driver_sql("CREATE TABLE another (x)")
        synchronous = connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
        connection.commit()
    assert (journal_mode(path), synchronous) == (("delete", 2) if exists else ("wal", 1))


def test_a_copy_of_the_file_is_complete_while_connections_stay_open(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    store = mlflow_store(f"sqlite:///{path}")
    engine = sa.create_engine(store.uri)
    with fast_commits(store), engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE mine (x)")
    shutil.copy(path, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copied:
        assert copied.execute("SELECT count(*) FROM mine").fetchone() == (0,)
    engine.dispose()


def test_other_files_are_not_touched(tmp_path: Path) -> None:
    store, file = mlflow_store(f"sqlite:///{tmp_path / 'mlflow.db'}"), tmp_path / "mine.db"
    with fast_commits(store), closing(sa.create_engine(f"sqlite:///{file}").connect()) as connection:
        connection.exec_driver_sql("CREATE TABLE mine (x)")
        connection.commit()
    assert journal_mode(file) == "delete"
