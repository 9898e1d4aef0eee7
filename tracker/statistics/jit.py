"""Compile numerical loops: cached beside the code, without Python's lock."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

LONGEST_COMPILATION = 60
"""Seconds to wait for another process that compiles the same kernel, before this process compiles it too."""

_compiling = [0.0]
"""Seconds that this process spent so far on loading and compiling kernels."""

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
        self._lock = ExitStack()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load machine code; every kernel that this one calls is defined by now.

        Where there is none, wait for other processes that compile the kernel, and look again. If there is still none,
        this process compiles it, and others wait until `unlock`.
        """
        self._cache_file._source_stamp = self.file_stamp, _stamp_globals(self._py_func, {})
        machine_code = super().load_overload(sig, target_context)
        if machine_code is None and self._acquire_lock():
            machine_code = super().load_overload(sig, target_context)
        return machine_code

    def _acquire_lock(self) -> bool:
        from filelock import FileLock

        try:
            self._impl.locator.ensure_cache_path()
            path = Path(self._cache_path, f"{self._impl.filename_base}.lock")
            self._lock.enter_context(FileLock(path, timeout=LONGEST_COMPILATION))
        except (OSError, NotImplementedError):  # a folder that cannot be written, or a compilation that hangs
            return False
        return True

    def unlock(self) -> None:
        """Let other processes load or compile the kernel."""
        self._lock.close()


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


def working_time() -> float:
    """Seconds of the monotonic clock without those in which kernels were loaded or compiled.

    A search with a time limit goes by this clock: kernels are compiled on the first call after an installation, which
    takes up to ten seconds, and its result would be another one than later.
    """
    return monotonic() - _compiling[0]


def _load_or_compile(kernel: Any) -> Callable[[Any], Any]:
    """A function that loads or compiles a kernel for some types of arguments.

    Python's garbage collector waits meanwhile: it would take a tenth of the time and find nothing.
    """
    compile_signature = kernel.compile

    def load_or_compile(signature: Any) -> Any:
        with global_compiler_lock:  # one thread at a time stops the collector and starts it again
            begun, is_enabled = monotonic(), gc.isenabled()
            gc.disable()
            try:
                return compile_signature(signature)
            finally:
                if is_enabled:
                    gc.enable()
                kernel._cache.unlock()
                _compiling[0] += monotonic() - begun

    return load_or_compile


def _compile(function: F, **options: Any) -> F:
    compile_function = partial(numba.njit, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)
    kernel = compile_function()(function)
    if kernel is not function:  # the same where NUMBA_DISABLE_JIT is set
        kernel._cache = _Cache(function)
        # Other kernels call a version that Python cannot call, which takes half the time to compile.
        inner = compile_function(no_cpython_wrapper=True)(function)
        kernel.get_call_template, kernel.get_overload = inner.get_call_template, inner.get_overload
        kernel.compile = _load_or_compile(kernel)
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
