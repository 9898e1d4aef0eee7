"""Run the tasks of `map_blocks` on the workers of a Dask cluster, through joblib's back-end for Dask.

Data reach each worker once. A worker that dies costs only time: Dask repeats its tasks elsewhere. It can send the data
of a task again, because the scheduler keeps them in its graph of tasks.
"""

from __future__ import annotations

import asyncio
import platform
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from typing import Any

import dask
import distributed
import numpy as np
from distributed.scheduler import KilledWorker
from joblib import parallel_config
from joblib._dask import DaskDistributedBackend
from numpy.typing import NDArray

from tracker.statistics.cluster.task_pickling import PickledTask, digest_array, pickle_task, unpickle_task

PACKAGES = ("suffrage", "numpy", "scipy", "numba", "scikit-learn")
"""Packages that results depend on. Client and workers need the same versions."""
KEPT_CALLS = 16
"""Data that none of so many calls of `map_blocks` used leave the workers."""
KEPT_TASKS = 2
"""Unpickled tasks that a worker keeps."""

_TASKS: OrderedDict[str, Callable[[int], Any]] = OrderedDict()
_LOCK = threading.Lock()

Versions = tuple[tuple[str, str], ...]
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
Progress = Callable[[int, int], None]


class BlockError(RuntimeError):
    """A cluster that could not compute a block, with the reason and what to do."""


class ClusterBackend(DaskDistributedBackend):  # type: ignore[misc]
    """joblib's back-end for Dask; it sends data once, counts blocks, and raises where joblib's would wait forever.

    Args:
        client: of the cluster.
        progress: receives the number of finished blocks and that of all blocks of a call of `map_blocks`.
    """

    def __init__(self, client: distributed.Client, progress: Progress | None = None) -> None:
        super().__init__(client=client)
        self._progress, self._n_done, self._n_blocks = progress, 0, 0
        self._sent: OrderedDict[str, tuple[int, distributed.Future]] = OrderedDict()
        self._n_calls = 0

    def prepare(self, task: Callable[[int], Any], n_blocks: int) -> Callable[[int], Call]:
        """Send a task and its data; return the function from a block to the call that computes it on a worker."""
        self._n_done, self._n_blocks, self._n_calls = 0, n_blocks, self._n_calls + 1
        pickled = pickle_task(task)
        key = digest_array(pickled.pickled)
        futures = [self._send(key, pickled.pickled), *(self._send(*item) for item in pickled.arrays.items())]
        self._forget_old()
        rest = (key, tuple(pickled.arrays), list_versions(), *futures)
        return lambda block: (run_block, (block, *rest), {})

    def _send(self, digest: str, array: NDArray[Any]) -> distributed.Future:
        """Return the array on the cluster; it is sent unless it is there."""
        future = self._sent[digest][1] if digest in self._sent else None
        if future is None or future.status in {"cancelled", "error", "lost"}:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
                future = self.client.submit(keep, array, key=f"suffrage-{digest}")
        self._sent[digest] = self._n_calls, future
        self._sent.move_to_end(digest)
        return future

    def _forget_old(self) -> None:
        while next(iter(self._sent.values()))[0] <= self._n_calls - KEPT_CALLS:
            self._sent.popitem(last=False)

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the number of blocks at once; joblib would compute them in this process if it were 1."""
        return max(2, int(super().effective_n_jobs(n_jobs)))

    async def _collect(self) -> None:
        """Pass each result to joblib; joblib's version ignores blocks that have no result."""
        while self._continue:
            async for future, result in self.waiting_futures:
                self._results.pop(future, None)
                callback = self._callbacks.pop(future, None)
                if callback is None:
                    continue  # of a call that was interrupted
                if future.status != "finished":
                    result = _explain(future.status, result)
                callback(self._count(result))
            await asyncio.sleep(0.01)

    def _count(self, result: Any) -> Any:
        """Report the blocks of a result; return it, or the error of the report, for which joblib would wait forever."""
        if self._progress is not None and isinstance(result, list):
            self._n_done += len(result)
            try:
                self._progress(self._n_done, self._n_blocks)
            except Exception as error:  # noqa: BLE001
                return BlockError(f"The progress cannot be shown: {error}")
        return result

    def retrieve_result_callback(self, out: Any) -> Any:
        """Return the results of some blocks."""
        if isinstance(out, BlockError):
            raise out
        return super().retrieve_result_callback(out)

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel what was submitted, so that workers are free at once after an error or an interrupt."""
        self.client.cancel(list(self._callbacks), force=True)
        self._callbacks.clear()
        self._results.clear()
        super().abort_everything(ensure_ready)


def _explain(status: str, result: Any) -> BlockError:
    """Return the error of a block without a result."""
    error = result[1] if isinstance(result, tuple) else result
    if isinstance(error, KilledWorker):
        return BlockError(
            "Several workers ended while they computed the same block; they may lack memory. Give each worker "
            "more memory, or select fewer prompts or models."
        )
    if status == "error":
        return BlockError(f"The cluster could not compute a block: {error}")
    return BlockError("The cluster dropped a block: its scheduler ended or was restarted. Run the analysis again.")


def run_block(
    block: int, key: str, digests: Sequence[str], versions: Versions, pickled: NDArray[np.uint8], *arrays: NDArray[Any]
) -> Any:
    """Compute a block of a task on a worker.

    Args:
        block: its number.
        key: digest of the pickled task.
        digests: those of the arrays.
        versions: those of the client, which the worker must have too.
        pickled, arrays: as in `PickledTask`.

    Raises:
        BlockError: the worker has other versions.
    """
    if versions != (installed := list_versions()):
        raise BlockError(describe_difference(versions, installed))
    with _LOCK:
        if key not in _TASKS:
            _TASKS[key] = unpickle_task(PickledTask(pickled, dict(zip(digests, arrays, strict=True))))
        _TASKS.move_to_end(key)
        task = _TASKS[key]
        while len(_TASKS) > KEPT_TASKS:
            _TASKS.popitem(last=False)
    with parallel_config(backend="sequential"):  # a block is the unit of work; nothing in it is distributed again
        return task(block)


def keep(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array: the task whose result is the data of others."""
    return array


@cache
def list_versions() -> Versions:
    """Return the versions of Python and of `PACKAGES` in this process."""
    return ("python", platform.python_version()), *((name, metadata.version(name)) for name in PACKAGES)


def describe_difference(client: Versions, worker: Versions) -> str:
    """Say which versions of a worker differ, and what to do."""
    pairs = zip(client, worker, strict=True)
    differ = ", ".join(f"{name} {new} instead of {known}" for (name, known), (_, new) in pairs if known != new)
    return f"A worker has {differ}, which may change results. Install the same versions on all workers."
