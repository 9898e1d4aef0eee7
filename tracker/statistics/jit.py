"""Compile numerical loops: cached beside the code, without Python's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile a function of arrays on its first call and cache the machine code on disk.

    Floating-point operations keep their order (no ``fastmath``), so equal inputs give equal bytes for any number of
    workers. The lock is released, so threads scale.

    Kernels call each other with `INT` around literal integers: a literal is a separate type to the compiler, which
    would compile the callee once more.
    """
    return cast(F, numba.njit(nogil=True, cache=True, error_model="numpy")(function))


def sum_kernel(function: F) -> F:
    """Compile like `jit`, but allow reordered sums for vector instructions.

    Equal inputs still give equal bytes on one machine, for any number of workers; another machine may round
    differently. Use it for sums whose ties are decided with a tolerance.
    """
    return cast(F, numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc"})(function))


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
