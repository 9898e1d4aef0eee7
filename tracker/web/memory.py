"""Memory of the server: how much values take, and how the C library returns what was freed."""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from typing import Any

import numpy as np

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
N_SAMPLED = 200
"""Items of a long list that are measured."""
LARGE_BLOCK = 1_000_000
"""Bytes from which a block is returned to the system as soon as it is freed."""


def return_freed_memory() -> None:
    """Let glibc share its blocks between threads, and return large ones when they are freed.

    By default every thread keeps what it once needed. Other C libraries have no such settings.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    set_option(M_ARENA_MAX, 2)
    set_option(M_MMAP_THRESHOLD, LARGE_BLOCK)


def measure_size(value: Any) -> int:
    """Return about how many bytes a value takes: its arrays, texts, containers and dataclasses."""
    return _measure(value, set())


def _measure(value: Any, counted: set[int]) -> int:
    if id(value) in counted:
        return 0
    counted.add(id(value))
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return sum(_measure(getattr(value, field.name), counted) for field in dataclasses.fields(value))
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(_measure(key, counted) + _measure(item, counted) for key, item in value.items())
    if isinstance(value, list | tuple) and len(value) > 2 * N_SAMPLED:  # the rows of a long table resemble each other
        sample = value[:: len(value) // N_SAMPLED]
        return size + sum(_measure(item, counted) for item in sample) * len(value) // len(sample)
    if isinstance(value, list | tuple | set | frozenset):
        return size + sum(_measure(item, counted) for item in value)
    return size
