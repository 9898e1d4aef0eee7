"""Benchmarks as points of the trade-off, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.elections.tradeoff_panel import ABOVE, BELOW, TradeoffPanel
from tracker.queries.findings.finding_records import FindingRecord

PLACES = {BELOW: "below", ABOVE: "above"}
PARAMETERS = ("columns", "epsilon", "top", "top_models", "win_rate", "method", "time_limit")


def points(
    panels: Sequence[TradeoffPanel], numbers: Mapping[str, int], records: Mapping[str, Sequence[FindingRecord]]
) -> pa.Table:
    """One row for each benchmark and system.

    Args:
        panels: tau, then MRC of each system.
        numbers: of each name in the picture.
        records: the findings behind the points of each system, in the same order.
    """
    columns: dict[str, list[Any]] = {}

    def add(name: str, values: Sequence[Any] | NDArray[Any]) -> None:
        columns.setdefault(name, []).extend(values.tolist() if isinstance(values, np.ndarray) else values)

    for tau, mrc in zip(panels[::2], panels[1::2], strict=True):
        found = records[tau.system]
        add("number", [numbers[name] for name in tau.names])
        add("name", tau.names)
        add("system", [tau.system] * len(tau.names))
        add("is_simulated", tau.is_simulated)
        add("diversity", tau.diversity)
        for panel in (tau, mrc):
            add(panel.change, panel.found)
            add(f"{panel.change}_upper", panel.upper_bound)
            add(f"{panel.change}_against_baselines", _places(panel))
        add("finding", [record.id for record in found])
        add("metric", [record.selection.get("metric") or "" for record in found])
        for name in ("n_tasks", "n_models"):
            add(
                name,
                [next((number.value for number in record.numbers if number.name == name), None) for record in found],
            )
        for name in PARAMETERS:
            add(name, [_text(record.parameters.get(name)) for record in found])
    return pa.table(columns)


def _places(panel: TradeoffPanel) -> list[str | None]:
    place = panel.place
    return [None] * len(panel.names) if place is None else [PLACES.get(one, "open") for one in place.tolist()]


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else "" if value is None else str(value)
