"""Compile numerical loops: cached beside the code, without Python's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one kernel's machine code; files that cannot be unpickled are ignored and overwritten.

    The files name the classes of the kernel's arguments. An older version of the program leaves files that name
    classes which no longer exist. Unpickling such a file, or a damaged one, can raise any exception.
    """

    def _load_index(self) -> dict[Any, str]:
        try:
            return cast(dict[Any, str], super()._load_index())
        except Exception:  # noqa: BLE001
            return {}

    def _load_data(self, name: str) -> Any:
        try:
            return super()._load_data(name)
        except Exception as error:
            raise FileNotFoundError(name) from error  # the kernel is compiled as if the file were absent


class _Cache(FunctionCache):  # type: ignore[misc]
    """The cache of one kernel on disk.

    Numba compiles a kernel anew where the kernel's source file has changed. Its machine code also contains the kernels
    that it calls and the numbers that it reads, so this cache compares these too, whatever file they are in.

    Attributes:
        file_stamp: a hash of the kernel's source file.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.file_stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CacheFile(self._cache_path, self._impl.filename_base, self.file_stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load machine code; every kernel that this one calls is defined by now."""
        self._cache_file._source_stamp = self.file_stamp, _stamp_globals(self._py_func, {})
        return super().load_overload(sig, target_context)


def _stamp_globals(function: Callable[..., Any], stamps: dict[str, Any]) -> dict[str, Any]:
    """Add the numbers that a kernel reads, and the files of the kernels that it calls, directly or not."""
    for name in function.__code__.co_names:
        key, value = f"{function.__module__}.{name}", function.__globals__.get(name)
        if isinstance(value, int | float):
            stamps[key] = value
        elif key not in stamps and isinstance(cache := getattr(value, "_cache", None), _Cache):
            stamps[key] = cache.file_stamp
            _stamp_globals(cache._py_func, stamps)
    return stamps


def _compile(function: F, **options: Any) -> F:
    kernel = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if kernel is not function:  # the same where NUMBA_DISABLE_JIT is set
        kernel._cache = _Cache(function)
    return cast(F, kernel)


def jit(function: F) -> F:
    """Compile a function of arrays on its first call and cache the machine code on disk.

    Floating-point operations keep their order (no ``fastmath``), so equal inputs give equal bytes for any number of
    workers. The lock is released, so threads scale.

    Kernels call each other with `INT` around literal integers: a literal is a separate type to the compiler, which
    would compile the callee once more.
    """
    return _compile(function)


def sum_kernel(function: F) -> F:
    """Compile like `jit`, but allow reordered sums for vector instructions.

    Equal inputs still give equal bytes on one machine, for any number of workers; another machine may round
    differently. Use it for sums whose ties are decided with a tolerance.
    """
    return _compile(function, fastmath={"reassoc"})


INT = np.int64
"""The type of every integer except bit masks."""


def _popcount(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


popcount = intrinsic(_popcount)
"""Count the set bits of a 64-bit word; callable from kernels only."""


@jit
def bit_counts(words: Any) -> Any:
    """Count the set bits of each row of a ``(n, n_words)`` uint64 array, as ``(n,)`` int64."""
    counts = np.zeros(words.shape[0], np.int64)
    for i in range(words.shape[0]):
        total = np.uint64(0)
        for w in range(words.shape[1]):
            total += popcount(words[i, w])
        counts[i] = np.int64(total)
    return counts
