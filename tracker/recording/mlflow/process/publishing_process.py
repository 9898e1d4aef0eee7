"""Publish runs through a separate process, which loads MLflow while this one parses and stores the results.

MLflow takes longer to load and to open than most results to import. This process reads the store and decides what to
publish; the separate one, see `publishing_worker`, executes it in MLflow's store. They exchange lines of JSON. If the
separate process cannot do its work, this one does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tracker.recording.mlflow.process.publishing_worker import CLOSE, CONNECT, CREATE_FILE, answer_parent

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tracker.recording.mlflow.publisher import Published, PublishedRun
    from tracker.recording.mlflow.run_spec import Kind, MlflowRunSpec
    from tracker.recording.mlflow.tracking_store import MlflowStore

PATIENCE_SECONDS = 10
"""Time in which a process ends that has nothing left to do."""
START = f"from {answer_parent.__module__} import answer_parent; answer_parent()"


class _ProcessEndedError(Exception):
    """The process ended without an answer."""


class PublishingProcess:
    """A process that loads MLflow from the start; a context that ends it.

    Args:
        tracking_uri: of MLflow.
    """

    def __init__(self, tracking_uri: str) -> None:
        self.tracking_uri = tracking_uri
        self._process: subprocess.Popen[str] | None = None
        self._has_answered = False
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                encoding="utf-8",
            )
        self._send({"tracking_uri": tracking_uri})

    def __enter__(self) -> PublishingProcess:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        if self._process is None:
            return
        if not self._has_answered:  # there is nothing to publish, or this process is interrupted
            self._process.terminate()
        with suppress(OSError), self._process:
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):
                self._process.stdin.close()
            try:
                self._process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def open_with(self, engine: Engine) -> None:
        """Open MLflow's store, and create it if need be, as soon as a file is created for a new store."""
        from sqlalchemy import event

        if engine.dialect.name == "sqlite" and not Path(str(engine.url.database)).exists():
            event.listen(engine, "connect", lambda *_: self._send({"method": CREATE_FILE}), once=True)

    def publish_runs(self, engine: Engine, run_ids: Collection[int]) -> None:
        """Publish complete runs, as `tracker.recording.mlflow.publishing.publish_runs` does.

        Raises:
            PublishingError: MLflow cannot be reached or used.
        """
        from tracker.recording.mlflow.publishing import publish_runs

        try:
            publish_runs(engine, run_ids, self.tracking_uri, opener=self._open_publisher)
        except _ProcessEndedError:
            publish_runs(engine, run_ids, self.tracking_uri)  # nothing is published twice

    @contextmanager
    def _open_publisher(self, _store: MlflowStore, database_id: str) -> Iterator[_ProcessPublisher]:
        self.request(CONNECT, database_id=database_id)
        yield _ProcessPublisher(self)
        self.request(CLOSE)
        self._has_answered = True

    def request(self, method: str, **values: Any) -> Any:
        """Send a message, and return the answer.

        Raises:
            PublishingError: MLflow cannot be reached or used.
            _ProcessEndedError: there is no answer.
        """
        from tracker.errors import PublishingError

        self._send({"method": method, **values})
        line = ""
        if self._process is not None and self._process.stdout is not None:
            with suppress(OSError):
                line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise _ProcessEndedError
        answer = json.loads(line)
        if "problem" in answer:
            self._has_answered = True
            raise PublishingError(answer["problem"])
        return answer["result"]

    def _send(self, message: Any) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # the process ended: there will be no answer either
                self._process.stdin.write(f"{json.dumps(message)}\n")
                self._process.stdin.flush()


class _ProcessPublisher:
    """The MLflow runs of one store, by way of the process."""

    def __init__(self, process: PublishingProcess) -> None:
        self.process = process

    def find_runs(self, keys: Collection[tuple[Kind, int]]) -> Published:
        from tracker.recording.mlflow.publisher import PublishedRun

        answer = self.process.request("find_runs", keys=list(keys))
        return {(kind, key): [PublishedRun(**run) for run in runs] for kind, key, runs in answer}

    def create(self, spec: MlflowRunSpec) -> str:
        return str(self.process.request("create", spec=spec.as_json()))

    def mark(self, mlflow_run: PublishedRun, spec: MlflowRunSpec) -> str:
        return str(self.process.request("mark", run=asdict(mlflow_run), spec=spec.as_json()))

    def withdraw(self, run_ids: Collection[int]) -> None:
        self.process.request("withdraw", run_ids=list(run_ids))

    def delete(self, runs: Sequence[PublishedRun]) -> None:
        self.process.request("delete", runs=[asdict(run) for run in runs])
