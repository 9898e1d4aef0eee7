"""Pickle a task of `map_blocks` for a worker on another machine, with its large arrays apart.

A task is a function with the data that it reads, such as a score table. Tasks of one analysis share these data. Arrays
are identified by their contents, so a worker receives each of them once, however many tasks read it.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

LARGE = 10_000
"""Bytes from which an array is sent apart from the task."""


@dataclass(frozen=True, slots=True)
class PickledTask:
    """A pickled task.

    Attributes:
        pickled: the function and its small data, as uint8.
        arrays: the large arrays that it reads, by the digest of their contents.
    """

    pickled: NDArray[np.uint8]
    arrays: Mapping[str, NDArray[Any]]


class _TaskPickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.arrays: dict[str, NDArray[Any]] = {}

    def persistent_id(self, value: Any) -> str | None:
        """Return the digest of a large array, which the pickle then contains in its place."""
        if type(value) is not np.ndarray or value.nbytes < LARGE or value.dtype.hasobject:
            return None
        if not (value.flags.c_contiguous or value.flags.f_contiguous):
            return None
        digest = digest_array(value)
        self.arrays[digest] = value
        return digest

    def reducer_override(self, value: Any) -> Any:
        """Refer to the kernel of a module by its name, so that the worker uses its cached machine code."""
        function = getattr(value, "py_func", None)
        module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
        if function is not None and getattr(sys.modules.get(module), name, None) is value:
            return _import_kernel, (module, name)
        return super().reducer_override(value)


class _TaskUnpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().__init__(file)
        self._arrays = arrays

    def persistent_load(self, pid: str) -> NDArray[Any]:
        """Return the array with a digest."""
        return self._arrays[pid]


def pickle_task(task: Callable[[int], Any]) -> PickledTask:
    """Pickle a task; functions of modules are pickled by name, all others by value."""
    file = io.BytesIO()
    pickler = _TaskPickler(file)
    pickler.dump(task)
    return PickledTask(np.frombuffer(file.getvalue(), np.uint8), pickler.arrays)


def unpickle_task(task: PickledTask) -> Callable[[int], Any]:
    """Return the task that `pickle_task` pickled in a process of the same program."""
    unpickled: Callable[[int], Any] = _TaskUnpickler(io.BytesIO(task.pickled.tobytes()), task.arrays).load()
    return unpickled


def digest_array(array: NDArray[Any]) -> str:
    """Return a digest of an array's values, type, shape and order in memory."""
    order = "C" if array.flags.c_contiguous else "F"
    described = f"{array.dtype.str} {array.shape} {order}".encode()
    contents = hashlib.blake2b(described, digest_size=16)
    contents.update(array.ravel(order="K").view(np.uint8).data)
    return contents.hexdigest()


def _import_kernel(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)
