"""Methods of a store that need rows of sealed files copy them back into the store."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from tracker.errors import SealedRowsError

C = TypeVar("C")


def loads_sealed_rows(kind: type[C]) -> type[C]:
    """Let the public methods of a class begin again after loading the rows that they need from sealed files."""
    for name, method in [*vars(kind).items()]:
        if inspect.isfunction(method) and not name.startswith("_"):
            if inspect.isgeneratorfunction(inspect.unwrap(method)):
                continue  # a context, whose block cannot be begun again
            setattr(kind, name, load_rows_for(method))
    return kind


def load_rows_for(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function begin again after loading the rows that it needs from sealed files."""

    @functools.wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except SealedRowsError as error:
            from tracker.recording.sealing.loading import with_sealed_rows

            needed = error
        return with_sealed_rows(functools.partial(method, *arguments, **options), needed=needed)

    return call
