"""What a page was requested with: the store, a key, and validated query parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import transaction
from tracker.errors import SelectionError
from tracker.web.background import BackgroundTasks
from tracker.web.store_cache import StoreCache

T = TypeVar("T")

ROWS_PER_PAGE = 100


@dataclass(frozen=True, kw_only=True)
class Query:
    """A request for a page.

    Attributes:
        engine: the store.
        cache: values computed from it.
        background: values that take long.
        key: key in the address; 0 without one.
        name: name in the address; '' without one.
        parameters: query parameters that are not empty.
        rows_per_page: of long lists.
    """

    engine: sa.Engine
    cache: StoreCache
    background: BackgroundTasks
    key: int = 0
    name: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    rows_per_page: int = ROWS_PER_PAGE

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a session that only reads."""
        with transaction(self.engine, write=False) as session:
            yield session

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as it is."""
        return self.parameters.get(name, default)

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """Return a parameter with a fixed set of values.

        Raises:
            SelectionError: it has another value.
        """
        value = self.text(name, default)
        if value not in allowed:
            raise SelectionError(f"{name} is {value!r}; it must be one of: {', '.join(filter(None, allowed))}.")
        return value

    def number(self, name: str, default: T, *, low: float, high: float, kind: type = int) -> Any | T:
        """Return a parameter that is a number.

        Raises:
            SelectionError: it is none, or out of range.
        """
        value = self.parameters.get(name)
        if value is None:
            return default
        try:
            number = kind(value)
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise SelectionError(f"{name} is {value!r}; it must be a number from {low:g} to {high:g}.")
        return number

    def take_page(self, rows: Sequence[T]) -> tuple[Sequence[T], dict[str, int]]:
        """Return one page of a long list, by the parameter ``page``, and what the links to the other pages need."""
        n_pages = max(1, -(-len(rows) // self.rows_per_page))
        number = self.number("page", 1, low=1, high=n_pages)
        first = (number - 1) * self.rows_per_page
        selected = rows[first : first + self.rows_per_page]
        return selected, {
            "page": number, "n_pages": n_pages, "first": first + 1 if rows else 0, "last": first + len(selected),
            "n_rows": len(rows),
        }  # fmt: skip
