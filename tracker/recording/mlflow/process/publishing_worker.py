"""The process that loads MLflow and executes what `publishing_process` sends: lines of JSON on standard input.

It imports as little as it can, since the command waits for it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracker.recording.mlflow.publisher import Publisher

CREATE_FILE, CONNECT, CLOSE = "create_file", "connect", "close"
NOT_NEEDED = ("pandas", "scipy", "numpy", "pyarrow", "chardet", "pygments")
"""Packages that MLflow and its libraries import if they can, in a third of their time, and that databases need not."""
ONLY_ERRORS = ("fastapi",)
"""Packages of which MLflow takes nothing but the class of an error; they are replaced by a module with such classes."""


def answer_parent() -> None:
    """Load MLflow, then execute the messages on standard input, and write the answers to standard output."""
    import gc

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print does not reach the parent
    gc.disable()

    def answer(value: Any) -> None:
        stream.write(f"{json.dumps(value)}\n")
        stream.flush()

    messages = map(json.loads, sys.stdin)
    tracking_uri = next(messages)["tracking_uri"]
    _load(tracking_uri)
    with suppress(OSError):  # the parent ended
        for message in messages:
            if message["method"] == CREATE_FILE:
                _create_file(tracking_uri)
            elif message["method"] == CONNECT:
                _publish(tracking_uri, message["database_id"], messages, answer)
    os._exit(0)  # everything is written, and freeing MLflow's objects takes a while


class _ErrorClasses(ModuleType):
    """A module in which every name is the class of an error."""

    def __getattr__(self, name: str) -> type[Exception]:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {})


def _load(tracking_uri: str) -> None:
    """Import what publishing needs; open MLflow's file if it exists."""
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.client import load_mlflow
    from tracker.recording.mlflow.tracking_store import mlflow_store

    with suppress(PublishingError):
        store = mlflow_store(tracking_uri)
        if not store.is_server:
            sys.modules.update(dict.fromkeys(NOT_NEEDED))  # type: ignore[arg-type]
            sys.modules.update({name: _ErrorClasses(name) for name in ONLY_ERRORS})
        load_mlflow(store)
        if store.file is not None and store.file.is_file():
            _create_file(tracking_uri)


def _create_file(tracking_uri: str) -> None:
    """Open MLflow's file, and create its tables unless it has them."""
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.client import open_client
    from tracker.recording.mlflow.tracking_store import mlflow_store

    with suppress(PublishingError), _uninterrupted(), open_client(mlflow_store(tracking_uri)):
        pass  # problems are reported when there is something to publish


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Complete the block even if this process is to end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _publish(
    tracking_uri: str, database_id: str, messages: Iterator[dict[str, Any]], answer: Callable[[Any], None]
) -> None:
    """Execute messages with an open MLflow store until it is closed."""
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.publisher import open_publisher
    from tracker.recording.mlflow.tracking_store import mlflow_store

    try:
        with ExitStack() as stack:
            with _uninterrupted():
                publisher = stack.enter_context(open_publisher(mlflow_store(tracking_uri), database_id))
            answer({"result": None})
            for message in messages:
                if message["method"] == CLOSE:
                    break
                answer({"result": _execute(publisher, **message)})
    except PublishingError as error:
        answer({"problem": str(error)})
    else:
        answer({"result": None})


def _execute(publisher: Publisher, method: str, **values: Any) -> Any:
    """Execute a message; return what JSON can express."""
    from tracker.recording.mlflow.publisher import PublishedRun
    from tracker.recording.mlflow.run_spec import MlflowRunSpec

    if method == "find_runs":
        runs = publisher.find_runs([(kind, key) for kind, key in values["keys"]])
        return [(kind, key, list(map(asdict, of_item))) for (kind, key), of_item in runs.items()]
    if method == "create":
        return publisher.create(MlflowRunSpec.from_json(values["spec"]))
    if method == "mark":
        return publisher.mark(PublishedRun(**values["run"]), MlflowRunSpec.from_json(values["spec"]))
    if method == "withdraw":
        return publisher.withdraw(values["run_ids"])
    return publisher.delete([PublishedRun(**run) for run in values["runs"]])
