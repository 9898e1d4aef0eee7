"""Publish runs in a separate process, which loads MLflow while this one parses and stores the results.

MLflow takes longer to load and to open than most results to import. The process is given the same store and MLflow
store, and its errors are reported as if it were this one. If it cannot do its work, this process does.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Engine

OPEN, PUBLISH = "open", "publish"
PATIENCE_SECONDS = 10
"""Time in which an interrupted process records what it has published."""
NOT_NEEDED = ("pandas", "scipy")
"""Packages that MLflow imports if it can, in a quarter of its time, and needs for other things than databases."""
START = f"from {__name__} import answer_parent; answer_parent()"


class PublishingProcess:
    """A process that loads MLflow from the start; a context that ends it.

    Args:
        tracking_uri: of MLflow.
    """

    def __init__(self, tracking_uri: str) -> None:
        self.tracking_uri = tracking_uri
        self._process: subprocess.Popen[bytes] | None = None
        self._has_answered = False
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        self._send(tracking_uri)

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
            event.listen(engine, "connect", lambda *_: self._send((OPEN, None)), once=True)

    def publish_runs(self, engine: Engine, run_ids: Collection[int]) -> None:
        """Publish complete runs, as `tracker.recording.mlflow.publishing.publish_runs` does.

        Raises:
            PublishingError: MLflow cannot be reached or used.
        """
        from tracker.errors import PublishingError

        url = engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)
        self._send((PUBLISH, (url, list(run_ids))))
        try:
            if self._process is None or self._process.stdout is None:
                raise EOFError
            problem = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            from tracker.recording.mlflow.publishing import publish_runs

            publish_runs(engine, run_ids, self.tracking_uri)  # nothing is published twice
        else:
            self._has_answered = True
            if problem is not None:
                raise PublishingError(problem)

    def _send(self, message: Any) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # the process ended: there will be no answer either
                self._process.stdin.write(pickle.dumps(message))
                self._process.stdin.flush()


def answer_parent() -> None:
    """Load MLflow, then execute the messages on standard input; write errors to standard output, None for success."""
    import gc

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print does not reach the parent
    gc.disable()
    tracking_uri = pickle.load(sys.stdin.buffer)
    _load(tracking_uri)
    with suppress(EOFError):
        while True:
            task, value = pickle.load(sys.stdin.buffer)
            if task == OPEN:
                _open(tracking_uri)
            else:
                pickle.dump(_publish(tracking_uri, *value), stream)
                stream.flush()
    gc.freeze()


def _load(tracking_uri: str) -> None:
    """Import what publishing needs; open MLflow's file if it exists."""
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.client import load_mlflow
    from tracker.recording.mlflow.tracking_store import mlflow_store

    with suppress(PublishingError):
        store = mlflow_store(tracking_uri)
        if not store.is_server:
            sys.modules.update(dict.fromkeys(NOT_NEEDED))  # type: ignore[arg-type]
        load_mlflow(store)
        if store.file is not None and store.file.is_file():
            _open(tracking_uri)


def _open(tracking_uri: str) -> None:
    """Open MLflow's store; its creation is completed even if this process is to end."""
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.client import open_client
    from tracker.recording.mlflow.tracking_store import mlflow_store

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    with suppress(PublishingError), open_client(mlflow_store(tracking_uri)):  # reported when there is work to do
        pass
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _publish(tracking_uri: str, url: str, run_ids: Collection[int]) -> str | None:
    """Publish runs; return the problem, if any."""
    from tracker.database import create_unchecked_engine
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.publishing import publish_runs

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was published is recorded first
    engine = create_unchecked_engine(url)
    try:
        publish_runs(engine, run_ids, tracking_uri)
    except PublishingError as error:
        return str(error)
    finally:
        engine.dispose()
    return None
