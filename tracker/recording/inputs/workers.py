"""The workers that an analysis computes with: threads of this process, or those of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tracker.errors import ClusterError, MissingExtraError, SelectionError
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from distributed import Client

Workers = int | str
"""A number of threads, -1 for one per core; or the address of the scheduler of a Dask cluster."""
Progress = Callable[[int, int], None]

TIMEOUT = 10
"""Seconds to wait for a scheduler, and for its first worker."""


def is_address(value: object) -> bool:
    """Whether a value is an address of a scheduler, such as ``tcp://host:8786``, not a number or a field's name."""
    return isinstance(value, str) and "://" in value


def separate_cluster(selection: Selection | None, workers: Workers) -> tuple[Selection | None, Workers]:
    """Return the selection without the address of a cluster, which is the workers.

    Raises:
        SelectionError: there are two addresses.
    """
    if selection is None or not is_address(selection.cluster):
        return selection, workers
    if is_address(workers) and workers != selection.cluster:
        raise SelectionError(f"There are two clusters, {workers} and {selection.cluster}. Choose one.")
    return replace(selection, cluster=None), str(selection.cluster)


@contextmanager
def use_workers(workers: Workers, progress: Progress | None = None) -> Iterator[None]:
    """Compute what the block draws with these workers.

    Args:
        workers: as above.
        progress: receives the number of finished blocks and of all blocks of each loop that a cluster computes.

    Raises:
        ClusterError: the cluster cannot be used.
    """
    import joblib

    if not isinstance(workers, str):
        with joblib.parallel_config(n_jobs=workers, backend="threading"), _visible_interrupts():
            yield
        return
    try:
        from tracker.statistics.cluster.backend import BlockError, ClusterBackend
    except ModuleNotFoundError as error:
        raise MissingExtraError("A cluster", "cluster") from error
    with _connect(workers) as client:
        try:
            with joblib.parallel_config(backend=ClusterBackend(client, progress)):
                yield
        except BlockError as error:
            raise ClusterError(str(error)) from error


@contextmanager
def _visible_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt again where Numba has turned it into a SystemError."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__
        if cause is not None:
            raise KeyboardInterrupt from error
        raise


@contextmanager
def _connect(address: str) -> Iterator[Client]:
    """Connect to a scheduler whose workers have the versions of this process."""
    from distributed import Client

    try:
        client = Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at {address}. Start one with `dask scheduler`; it prints its address."
        ) from error
    with client:
        _check_workers(client, address)
        yield client


def _check_workers(client: Client, address: str) -> None:
    from tracker.statistics.cluster.backend import describe_difference, list_versions

    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError as error:
        raise ClusterError(
            f"The scheduler at {address} has no worker. Start workers: dask worker {address} --nthreads 1"
        ) from error
    for worker, versions in client.run(list_versions, on_error="return").items():
        if isinstance(versions, OSError):
            continue  # the worker ended meanwhile; one in its place is checked with its first block
        if isinstance(versions, BaseException):
            raise ClusterError(
                f"The worker {worker} cannot import Suffrage ({versions}). Install the same version on all workers."
            ) from versions
        if versions != list_versions():
            raise ClusterError(f"{describe_difference(list_versions(), versions)} The worker: {worker}.")
