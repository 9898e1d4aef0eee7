"""Smaller batches where memory is too small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def process_in_halves(
    work: Callable[[Sequence[T]], R], items: Sequence[T], report: Callable[[int], None] | None = None
) -> Iterator[R]:
    """Work on items together, or in halves where there is not enough memory for that.

    Args:
        work: what is done with some of them.
        items: all of them.
        report: called with the number that is tried next.

    Raises:
        RuntimeError: even one is too much.
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


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory, of the machine or of its accelerator, was too small."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    words = str(error).lower()
    return "out of memory" in words or "can't allocate memory" in words


def _free_memory() -> None:
    import gc

    import torch

    if torch.cuda.is_available():  # memory of the machine is given back without being asked
        gc.collect()
        torch.cuda.empty_cache()
