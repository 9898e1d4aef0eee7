"""What a page was requested with: the store, a key, and validated query parameters."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.database import transaction
from tracker.errors import SelectionError
from tracker.recording.mlflow.links import MlflowLinks
from tracker.recording.mlflow.run_spec import Kind
from tracker.web.background import BackgroundTasks
from tracker.web.store_cache import Snapshot, SnapshotCache, StoreCache

T = TypeVar("T")

ROWS_PER_PAGE = 100
ALL = "all"
"""Number of the page that has every row."""
SPREADSHEET = "for_spreadsheets"
"""Query parameter of every page as CSV: ``yes`` writes it for a spreadsheet."""


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
        excluded: labels of benchmarks that an export leaves out; pages of several benchmarks do not mention them.
        rows_per_page: of long lists.
        mlflow: links to MLflow; None for none.
    """

    engine: sa.Engine
    cache: StoreCache | SnapshotCache
    background: BackgroundTasks
    key: int = 0
    name: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    excluded: Collection[str] = ()
    snapshot: Snapshot | None = None
    rows_per_page: int = ROWS_PER_PAGE
    mlflow: MlflowLinks | None = None

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a session that only reads: in the thread of the page, the state that it shows."""
        if self.snapshot is not None and self.snapshot.thread == threading.get_ident():
            yield self.snapshot.session
            return
        with transaction(self.engine, write=False) as session:
            yield session

    def find_mlflow_run(self, kind: Kind, *keys: int) -> str:
        """Return the address of the MLflow run that shows the last of some findings or runs; '' for none."""
        if self.mlflow is None:
            return ""
        with self.session() as session:
            return self.mlflow.find_address(session, kind, keys)

    def find_mlflow_chart(self, label: str, keys: Sequence[int]) -> str:
        """Return the address in MLflow of the chart of a benchmark's models, else of a run; '' for none.

        Args:
            label: of the benchmark.
            keys: of its runs.
        """
        links = self.mlflow
        if links is None:
            return ""
        key = ("mlflow_chart", label, tuple(keys))
        return self.cache.get(key, lambda: links.find_chart(self.find_mlflow_run("run", *keys)))

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
        """Return one page of a long list, and what the links to the other pages need.

        The parameter ``page`` is its number, or ``all`` for the whole list.
        """
        if self.text("page") == ALL:
            paging = {"page": 1, "n_pages": 1, "first": 1 if rows else 0, "last": len(rows), "n_rows": len(rows)}
            return rows, paging
        n_pages = max(1, -(-len(rows) // self.rows_per_page))
        number = self.number("page", 1, low=1, high=n_pages)
        first = (number - 1) * self.rows_per_page
        selected = rows[first : first + self.rows_per_page]
        return selected, {
            "page": number, "n_pages": n_pages, "first": first + 1 if rows else 0, "last": first + len(selected),
            "n_rows": len(rows),
        }  # fmt: skip

    def sort_places(self, places: NDArray[np.intp], column: NDArray[Any]) -> list[int]:
        """Return places ordered by their values in a column: equal ones in their present order, undefined ones last.

        The parameter ``order`` is ``ascending`` or ``descending``.

        Raises:
            SelectionError: the order is neither.
        """
        is_descending = self.choice("order", ("ascending", "descending"), "ascending") == "descending"
        values = column[places]
        is_undefined = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
        _, ranks = np.unique(values, return_inverse=True)
        order = np.lexsort((-ranks if is_descending else ranks, is_undefined))
        return [int(place) for place in places[order]]
