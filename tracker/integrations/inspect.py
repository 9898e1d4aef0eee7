"""A hook for Inspect AI that stores the log of each task as it ends.

Inspect finds it by the entry point `inspect_ai` of this package, or by an import of this module. It is enabled where
the environment variable SUFFRAGE_DATABASE_URL names a store. SUFFRAGE_BENCHMARK names the benchmark; without it, the
task is the benchmark.
"""

from __future__ import annotations

import os

import anyio.to_thread
from inspect_ai.hooks import Hooks, RunEnd, TaskEnd, hooks

from tracker.connections.store_url import URL_VARIABLES
from tracker.integrations.storing import store_location

STORE_VARIABLE = URL_VARIABLES[0]


@hooks(name="suffrage", description=f"stores each log in the store of {STORE_VARIABLE}")
class StoreLogs(Hooks):  # type: ignore[misc]  # Inspect is optional, and unknown to the type checker
    """Stores logs as ``suffrage ingest LOG`` does: of tasks that end, and of failed or cancelled ones after the run."""

    def __init__(self) -> None:
        self._stored: set[str] = set()

    def enabled(self) -> bool:
        """Whether the environment names the store."""
        return bool(os.environ.get(STORE_VARIABLE))

    async def on_task_end(self, data: TaskEnd) -> None:
        """Store the log of a task with scores."""
        await self._store(data.log.location)

    async def on_run_end(self, data: RunEnd) -> None:
        """Store the logs that ended without `on_task_end`: of failed and cancelled tasks."""
        for log in data.logs:
            await self._store(log.location)
        self._stored.clear()

    async def _store(self, location: str) -> None:
        """Store a log in a thread, so that samples of other tasks go on meanwhile."""
        if not location or location in self._stored:
            return
        self._stored.add(location)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(store_location, location, download)


def download(url: str, path: str) -> None:
    """Copy a log from where Inspect wrote it, such as ``s3://bucket/log.eval``."""
    import fsspec

    fsspec.open(url).fs.get_file(url, path)
