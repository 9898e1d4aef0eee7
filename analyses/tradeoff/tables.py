"""Benchmarks as points of the trade-off, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.elections.tradeoff_panel import ABOVE, BELOW, TradeoffPanel
from tracker.queries.findings.finding_records import FindingRecord

SIDES = {BELOW: "below", ABOVE: "above"}
PARAMETERS = ("columns", "epsilon", "top", "top_models", "win_rate", "method", "time_limit")


def list_points(
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
        findings = records[tau.system]
        add("number", [numbers[name] for name in tau.names])
        add("name", tau.names)
        add("system", [tau.system] * len(tau.names))
        add("is_simulated", tau.is_simulated)
        add("diversity", tau.diversity)
        for panel in (tau, mrc):
            add(panel.change, panel.sensitivity)
            add(f"{panel.change}_upper", panel.upper_bound)
            add(f"{panel.change}_against_baselines", _side_names(panel))
        add("finding", [record.id for record in findings])
        add("metric", [record.selection.get("metric") or "" for record in findings])
        for name in ("n_tasks", "n_models"):
            add(
                name,
                [next((number.value for number in record.numbers if number.name == name), None) for record in findings],
            )
        for name in PARAMETERS:
            add(name, [_format_value(record.parameters.get(name)) for record in findings])
    return pa.table(columns)


def _side_names(panel: TradeoffPanel) -> list[str | None]:
    sides = panel.sides
    return [None] * len(panel.names) if sides is None else [SIDES.get(side, "open") for side in sides.tolist()]


def _format_value(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else "" if value is None else str(value)
