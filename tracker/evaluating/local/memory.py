"""Retry with smaller batches when memory is exhausted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def process_in_halves(
    work: Callable[[Sequence[T]], R], items: Sequence[T], report: Callable[[int], None] | None = None
) -> Iterator[R]:
    """Process items together, or in halves if memory does not suffice.

    Args:
        work: processes some of the items.
        items: all items.
        report: called with the batch size that is tried next.

    Raises:
        RuntimeError: memory does not suffice for a single item.
    """
    todo = [items]
    while todo:
        part = todo.pop()
        try:
            result = work(part)
        except (RuntimeError, MemoryError) as error:
            if len(part) == 1 or not is_out_of_memory(error):
                raise
            half = (len(part) + 1) // 2
            todo += [part[half:], part[:half]]
        else:
            yield result
            continue
        _free_memory()
        if report is not None:
            report(half)


def count_free_bytes(device: str) -> int | None:
    """Return the free memory of a CUDA device, including what its allocator keeps for reuse; None for other devices."""
    import torch

    if not device.startswith("cuda"):
        return None
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error reports that memory of the machine or its accelerator is exhausted."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    words = str(error).lower()
    return "out of memory" in words or "can't allocate memory" in words


def _free_memory() -> None:
    import gc

    import torch

    if torch.cuda.is_available():  # main memory needs no explicit release
        gc.collect()
        torch.cuda.empty_cache()
