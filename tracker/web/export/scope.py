"""The benchmarks of an export: what belongs to no other is left out of every page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from tracker.database import transaction
from tracker.queries.browsing.keys import load_benchmark_keys
from tracker.queries.resolution import find_benchmark
from tracker.web.export.addresses import Target
from tracker.web.page import Page


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The benchmarks of an export.

    Attributes:
        benchmarks: keys by label.
        excluded: labels of all further benchmarks of the store.
    """

    benchmarks: Mapping[str, int]
    excluded: frozenset[str]

    def covers(self, target: Target) -> bool:
        """Return whether a page is about an exported benchmark, or about none."""
        is_benchmark = target.route is not None and target.route.path.startswith("/benchmark/")
        return not is_benchmark or target.key in self.benchmarks.values()

    def restrict(self, page: Page) -> Page:
        """Return a page without the records of other benchmarks, and without those of all benchmarks together."""
        if not self.excluded:
            return page
        data = {name: self._restrict_value(value) for name, value in page.data.items()}
        if "paging" in data and len(data[page.table]) < len(page.data[page.table]):
            n = len(data[page.table])
            data["paging"] = {"page": 1, "n_pages": 1, "first": min(n, 1), "last": n, "n_rows": n}
        return dataclasses.replace(page, data=data)

    def _restrict_value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [item for item in value if not (isinstance(item, dict) and self._is_excluded(item))]

    def _is_excluded(self, record: Mapping[str, Any]) -> bool:
        if "analysis" in record and record.get("benchmark") is None:
            return True
        label = record.get("benchmark", record.get("label"))
        return isinstance(label, str) and label in self.excluded


def load_scope(engine: sa.Engine, names: Sequence[str]) -> Scope:
    """Return the scope of some benchmarks; of all without names.

    Raises:
        NotFoundError: a benchmark does not exist.
        AmbiguousError: a benchmark has several revisions.
    """
    with transaction(engine, write=False) as session:
        keys = load_benchmark_keys(session)
        labels = [find_benchmark(session, name).label for name in names] or list(keys)
    return Scope(benchmarks={label: keys[label] for label in labels}, excluded=frozenset(set(keys) - set(labels)))
