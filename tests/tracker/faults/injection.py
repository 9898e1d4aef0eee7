"""Faults at the n-th call of a process: of the database's driver, of files, of MLflow, of memory, of the clock.

`Faults.install` changes the classes of its process for good; it is called in a forked one.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Literal, get_args

import psycopg
from psycopg import errors

from tracker.cli import _run, main
from tracker.connections import sqlite_connections

Kind = Literal["io", "full", "lost", "answer_lost", "memory", "clock"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DAYS = 400.0
"""The jump of the clock: back and forth in turn."""
MLFLOW_CALLS = (
    "search_experiments", "search_runs", "get_experiment_by_name", "create_experiment", "create_run", "log_batch",
    "log_artifacts", "set_terminated", "set_tag", "delete_run", "set_experiment_tag",
)  # fmt: skip


@dataclass
class Faults:
    """The fault of a process, and the calls that it counts.

    Attributes:
        kind: ``io``: an input or output error, once; ``full``: no space from then on; ``lost``: the connection ends
            before the call; ``answer_lost``: it ends after the call has taken effect; ``memory``: an allocation fails;
            ``clock``: the clock jumps.
        n: number of the call that fails, from 1; 0 for none.
        folder: whose files can fail.
        log: receives the place of the fault.
        n_calls: calls so far.
    """

    kind: Kind
    n: int
    folder: Path
    log: Path
    n_calls: int = 0

    def install(self) -> None:
        """Change the calls that this kind of fault can strike."""
        if self.kind == "memory":
            _fail_in_functions(self)
        elif self.kind == "clock":
            _move_clock(self)
        else:
            _fail_in_drivers(self)
            if "mlflow" in sys.modules:
                _fail_in_mlflow(self)
            if self.kind in ("io", "full"):
                _fail_in_files(self)

    def strikes(self, place: str, *, is_writing: bool = True) -> bool:
        """Count a call; return whether it fails."""
        self.n_calls += 1
        if self.n_calls == self.n:
            self.log_place(place)
            return True
        return self.kind == "full" and 0 < self.n < self.n_calls and is_writing

    def log_place(self, place: str) -> None:
        """Write where the fault was."""
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{self.kind} at call {self.n_calls}: {place}\n".encode(errors="replace"))
        os.close(descriptor)

    def sqlite_error(self) -> sqlite3.Error:
        """The error of SQLite's driver."""
        return sqlite3.OperationalError(
            {"io": "disk I/O error", "full": "database or disk is full"}.get(self.kind, "database is locked")
        )

    def postgres_error(self, connection: Any) -> psycopg.Error:
        """The error of PostgreSQL's driver; a lost connection is closed, so that the server rolls back."""
        if self.kind == "full":
            return errors.DiskFull('could not extend file "base/1/2": No space left on device')
        if self.kind == "io":
            return errors.IoError('could not read block 7 in file "base/1/2": Input/output error')
        connection.pgconn.finish()
        return psycopg.OperationalError("server closed the connection unexpectedly")

    def file_error(self, path: object) -> OSError:
        """The error of a file."""
        number = errno.ENOSPC if self.kind == "full" else errno.EIO
        return OSError(number, os.strerror(number), str(path))


def _is_writing(statement: object) -> bool:
    words = str(statement).lstrip().upper()
    return not words.startswith(("SELECT", "PRAGMA", "ROLLBACK", "BEGIN", "WITH", "SHOW", "SET"))


def _fail_in_drivers(faults: Faults) -> None:
    def guard(call: Callable[..., Any], error: Callable[[Any], Exception], *, is_statement: bool) -> Callable[..., Any]:
        def guarded(self: Any, *arguments: Any, **options: Any) -> Any:
            statement = arguments[0] if is_statement and arguments else call.__name__
            is_writing = _is_writing(statement) if is_statement else call.__name__ in ("commit", "write")
            fails = faults.strikes(f"{call.__name__}: {str(statement)[:90]}", is_writing=is_writing)
            if fails and faults.kind != "answer_lost":
                raise error(self)
            result = call(self, *arguments, **options)
            if fails:
                raise error(self)
            return result

        return guarded

    class Cursor(sqlite3.Cursor):
        """A cursor of SQLite."""

    for name in ("execute", "executemany", "fetchone", "fetchmany", "fetchall"):
        call = getattr(sqlite3.Cursor, name)
        setattr(Cursor, name, guard(call, lambda _: faults.sqlite_error(), is_statement=name.startswith("execute")))
    kind: Any = sqlite_connections.TrackedConnection
    kind.cursor = lambda self, factory=Cursor: sqlite3.Connection.cursor(self, factory)
    kind.execute = lambda self, *arguments: self.cursor().execute(*arguments)
    kind.executemany = lambda self, *arguments: self.cursor().executemany(*arguments)
    kind.commit = guard(sqlite3.Connection.commit, lambda _: faults.sqlite_error(), is_statement=False)

    def lose(cursor: Any) -> Exception:
        return faults.postgres_error(getattr(cursor, "connection", cursor))

    for owner, names in (
        (psycopg.Cursor, ("execute", "executemany", "fetchone", "fetchmany", "fetchall")),
        (psycopg.ServerCursor, ("execute", "fetchone", "fetchmany", "fetchall")),
        (psycopg.Connection, ("commit",)),
        (psycopg.Copy, ("write",)),
    ):
        for name in names:
            setattr(owner, name, guard(getattr(owner, name), lose, is_statement=name.startswith("execute")))


def _fail_in_mlflow(faults: Faults) -> None:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import TEMPORARILY_UNAVAILABLE

    def guard(call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(self: Any, *arguments: Any, **options: Any) -> Any:
            fails = faults.strikes(
                f"MLflow {call.__name__}", is_writing=not call.__name__.startswith(("search", "get"))
            )
            failure = MlflowException(f"the {faults.kind} fault of a test", error_code=TEMPORARILY_UNAVAILABLE)
            if fails and faults.kind != "answer_lost":
                raise failure
            result = call(self, *arguments, **options)
            if fails:
                raise failure
            return result

        return guarded

    for name in MLFLOW_CALLS:
        setattr(MlflowClient, name, guard(getattr(MlflowClient, name)))


def _fail_in_files(faults: Faults) -> None:
    """Let calls that open, read, write, sync, move and remove files of the folder fail."""

    class File(io.FileIO):
        """A file whose reads and writes can fail."""

        def _check(self, name: str) -> None:
            if faults.strikes(f"file {name}: {self.name}", is_writing=name == "write"):
                raise faults.file_error(self.name)

        def readinto(self, buffer: Any, /) -> int:
            self._check("read")
            return super().readinto(buffer)  # type: ignore[return-value]

        def readall(self) -> bytes:
            self._check("read")
            return super().readall()  # type: ignore[return-value]

        def write(self, content: Any, /) -> int:
            self._check("write")
            return super().write(content)  # type: ignore[return-value]

    def is_ours(path: Any) -> bool:
        return isinstance(path, str | bytes | os.PathLike) and str(faults.folder) in os.path.abspath(os.fsdecode(path))

    plain_open = io.open

    def open_file(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
        newline: str | None = None, closefd: bool = True, opener: Any = None,
    ) -> Any:  # fmt: skip
        if not is_ours(file):
            return plain_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        is_writing = any(letter in mode for letter in "wax+")
        if faults.strikes(f"open for {mode}: {file}", is_writing=is_writing):
            raise faults.file_error(file)
        raw = File(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if buffering == 0:
            return raw
        buffered: Any = io.BufferedRandom if "+" in mode else io.BufferedWriter if is_writing else io.BufferedReader
        stream = buffered(raw)
        return stream if "b" in mode else io.TextIOWrapper(stream, encoding or "utf-8", errors, newline)

    builtins.open = io.open = open_file  # type: ignore[assignment]

    def guard(call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(path: Any, *arguments: Any, **options: Any) -> Any:
            is_counted = is_ours(path) or call.__name__ == "fsync"
            if is_counted and faults.strikes(
                f"{call.__name__}: {path}", is_writing=call.__name__ not in ("unlink", "rmdir")
            ):
                raise faults.file_error(path)
            return call(path, *arguments, **options)

        return guarded

    for name in ("replace", "rename", "fsync", "mkdir", "unlink", "rmdir"):
        setattr(os, name, guard(getattr(os, name)))


def _fail_in_functions(faults: Faults) -> None:
    """Let the n-th call of a function of the product fail for want of memory."""
    product = str(Path(sqlite_connections.__file__).parents[2])
    folders = tuple(os.path.join(product, name) + os.sep for name in ("tracker", "analyses"))

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(folders):
            if frame.f_code.co_name in ("__del__", "_forget", "_close_connections"):
                return  # Python itself reports what fails there
            if frame.f_code in (main.__code__, _run.__code__):
                return  # they explain what fails within them
            if faults.strikes(f"{frame.f_code.co_filename.removeprefix(product)}:{frame.f_lineno}"):
                sys.setprofile(None)
                raise MemoryError

    sys.setprofile(watch)


def _move_clock(faults: Faults) -> None:
    from tracker.schema import table

    plain_time, offset = time.time, [0.0]

    def move(place: str) -> float:
        if faults.strikes(place):
            offset[0] += DAYS * 86_400 * (1 if faults.n % 2 else -1)
        return offset[0]

    class Clock(datetime):
        """The clock of stored moments."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(seconds=move("datetime.now"))

    time.time = lambda: plain_time() + move("time.time")
    table.datetime = Clock  # type: ignore[attr-defined]
