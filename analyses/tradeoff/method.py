"""Findings of social-choice as points: diversity against sensitivity, in up to four panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from analyses.numerics.elections.tradeoff_panel import ABOVE, BELOW, MIN_POINTS, Association, TradeoffPanel
from analyses.presentation.epsilon_option import parse_epsilon_option
from tracker.queries.findings.finding_records import FindingRecord
from tracker.queries.findings.latest_findings import SIMULATED, Findings, finding_subject, select_latest
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined

SYSTEMS, CHANGES = ("cardinal", "ordinal"), ("tau", "mrc")
OPTIONS = {"cardinal": ("columns", "epsilon", "method"), "ordinal": ("top", "top_models", "win_rate", "method")}
"""Parameters of social-choice that decide what a sensitivity means."""
SIZE_OPTIONS = ("top", "top_models")
"""Of them, those in which simulated fields may differ: a field of thousands has ten that lead."""
WHOLE_DATA_OPTIONS = ("benchmark", "metric", "condition", "variant", "missing", "min_coverage")
"""Choices of data under which a finding is still about the benchmark as a whole."""


class SocialChoiceFindings(Findings):
    """Findings of `social-choice`."""

    analysis: ClassVar[str] = "social-choice"


@dataclass(frozen=True, kw_only=True)
class Tradeoff(Finding):
    """Diversity against sensitivity, in up to four panels.

    Attributes:
        panels: tau and MRC of each system that has points.
        n_excluded: benchmarks with findings of which none suits.
    """

    panels: tuple[TradeoffPanel, ...]
    n_excluded: int

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then correlations and lines by panel."""
        names = {name for panel in self.panels for name in panel.names}
        metrics: dict[str, Metric] = {"n_points": float(len(names)), "n_left_out": float(self.n_excluded)}
        for panel in self.panels:
            prefix = f"{panel.system}.{panel.change}"
            metrics |= {f"{prefix}.{name}": value for name, value in _panel_metrics(panel).items()}
        return metrics


@dataclass(frozen=True, kw_only=True)
class PointSelection:
    """Which findings become points.

    Attributes:
        ids: findings by ID, in place of the latest of each benchmark.
        exclude: names of points that are left out.
        diversity: name of the number on the horizontal axis.
        options: values that findings must have been recorded with, by name.
    """

    ids: tuple[int, ...]
    exclude: tuple[str, ...]
    diversity: str
    options: Mapping[str, object]

    @property
    def is_by_id(self) -> bool:
        """Whether findings are chosen by ID."""
        return bool(self.ids)


@dataclass(frozen=True, kw_only=True)
class ChosenFindings:
    """The findings behind the points of each system.

    Attributes:
        by_system: findings by system.
        skipped: by system, the reason why a benchmark has no point.
    """

    by_system: Mapping[str, Sequence[FindingRecord]]
    skipped: Mapping[str, Mapping[str, str]]

    @property
    def records(self) -> list[FindingRecord]:
        """Each finding once."""
        return list({record.id: record for records in self.by_system.values() for record in records}.values())

    @property
    def n_excluded(self) -> int:
        """Benchmarks with findings of which none suits."""
        skipped = {name for reasons in self.skipped.values() for name in reasons}
        return len(skipped - {finding_subject(record) for record in self.records})


def choose_findings(records: Sequence[FindingRecord], selection: PointSelection) -> ChosenFindings:
    """The latest suitable finding of each benchmark in each system, or those chosen by ID.

    Args:
        records: of `social-choice`.
        selection: which of them.
    """
    candidates = [record for record in records if finding_subject(record) not in selection.exclude]
    if selection.is_by_id:
        candidates = [record for record in candidates if record.id in selection.ids]
    by_system: dict[str, Sequence[FindingRecord]] = {}
    skipped: dict[str, Mapping[str, str]] = {}
    for system in SYSTEMS:
        with_system = [record for record in candidates if f"{system}.tau" in _values(record)]
        result = select_latest(
            with_system, partial(_reason_to_skip, system=system, selection=selection), each=selection.is_by_id
        )
        by_system[system], skipped[system] = result.records, result.passed_over
    return ChosenFindings(by_system=by_system, skipped=skipped)


def build_panels(chosen: ChosenFindings, selection: PointSelection) -> tuple[TradeoffPanel, ...]:
    """Panels of tau and MRC for each system that has points.

    Args:
        chosen: the findings.
        selection: names the diversity.
    """
    labels = _point_labels(chosen.records, with_ids=selection.is_by_id)
    return tuple(
        _build_panel(system, change, chosen.by_system[system], labels, selection.diversity)
        for system in SYSTEMS
        if chosen.by_system[system]
        for change in CHANGES
    )


def number_points(panels: Sequence[TradeoffPanel]) -> Mapping[str, int]:
    """Number of each point by name, from 1: benchmarks, then simulated ones."""
    is_simulated = {
        name: bool(simulated)
        for panel in panels
        for name, simulated in zip(panel.names, panel.is_simulated, strict=True)
    }
    order = sorted(is_simulated, key=lambda name: (is_simulated[name], name))
    return {name: number for number, name in enumerate(order, start=1)}


def explain_correlation(n_points: int) -> str:
    """Why there is no correlation."""
    return explain_too_few(n_points) if n_points < MIN_POINTS else "diversity or sensitivity is the same in all points"


def explain_interval(association: Association) -> str:
    """Why there is no interval around a correlation."""
    if not np.isfinite(association.pearson):
        return explain_correlation(association.n)
    if association.n == MIN_POINTS:
        return explain_too_few(association.n)
    return "all points lie on a straight line"


def explain_slope(n_points: int) -> str:
    """Why there is no line through the origin."""
    return explain_too_few(n_points) if n_points < MIN_POINTS else "all points have diversity 0"


def explain_baseline(panel: TradeoffPanel) -> str:
    """Why there is no line from Constant to Random."""
    ends = (("constant", panel.constant), ("random", panel.random))
    missing = [f"`suffrage simulate {name}`" for name, index in ends if index is None]
    return f"run {' and '.join(missing)} first" if missing else "Constant and Random have the same diversity"


def explain_too_few(n_points: int) -> str:
    """That points are too few."""
    return f"{count_points(n_points)} {'is' if n_points == 1 else 'are'} too few"


def count_points(n_points: int) -> str:
    """A number of points with its noun."""
    return "1 point" if n_points == 1 else f"{n_points} points"


def _panel_metrics(panel: TradeoffPanel) -> Mapping[str, Metric]:
    association, benchmarks = panel.association, panel.benchmark_association
    line, sides = panel.baseline_line(panel.sensitivity), panel.sides
    undefined = Undefined(explain_baseline(panel))
    no_correlation, no_interval = explain_correlation(association.n), explain_interval(association)
    return {
        "n": float(association.n),
        "n_exact": float(panel.is_exact.sum()),
        "pearson": finite_or_undefined(association.pearson, no_correlation),
        "pearson.low": finite_or_undefined(association.low, no_interval),
        "pearson.high": finite_or_undefined(association.high, no_interval),
        "pearson.benchmarks": finite_or_undefined(benchmarks.pearson, explain_correlation(benchmarks.n)),
        "spearman": finite_or_undefined(association.spearman, no_correlation),
        "slope": finite_or_undefined(association.slope, explain_slope(association.n)),
        "baselines.slope": line[0] if line else undefined,
        "n_below": undefined if sides is None else float((sides == BELOW).sum()),
        "n_above": undefined if sides is None else float((sides == ABOVE).sum()),
    }


def _values(record: FindingRecord) -> Mapping[str, float | None]:
    return {number.name: number.value for number in record.numbers}


def _reason_to_skip(record: FindingRecord, *, system: str, selection: PointSelection) -> str:
    """Why a finding cannot be a point in a system; '' where it can.

    Args:
        record: with some number of that system.
        system: cardinal or ordinal.
        selection: options that it must have been recorded with; findings chosen by ID need the numbers only.
    """
    values = _values(record)
    required = (selection.diversity, *(f"{system}.{change}{suffix}" for change in CHANGES for suffix in ("", "_upper")))
    if missing := [name for name in required if values.get(name) is None]:
        return f"gives no {missing[0]}"
    if selection.is_by_id:
        return ""
    if record.stale:
        return f"is stale ({record.stale})"
    is_simulated = bool(record.parameters.get(SIMULATED))
    for name in OPTIONS[system]:
        value = record.parameters.get(name)
        recorded = parse_epsilon_option(str(value)) if name == "epsilon" else value
        if recorded != selection.options[name] and not (is_simulated and name in SIZE_OPTIONS):
            return f"was made with {_format_option(name, value)}"
    filters = [name for name, value in record.selection.items() if name not in WHOLE_DATA_OPTIONS and value]
    if not is_simulated and (
        filters or record.selection.get("condition") == "answer_only" or record.selection.get("variant")
    ):
        return f"is about a choice of data ({', '.join(filters) or 'condition or variant'})"
    return ""


def _format_option(name: str, value: object) -> str:
    """An option of a finding as on the command line."""
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value
    return f"--{name.replace('_', '-')} {text}"


def _point_labels(records: Sequence[FindingRecord], *, with_ids: bool) -> Mapping[int, str]:
    """Name of each finding's point; with the finding's ID where several are about one subject and all are shown."""
    names = [finding_subject(record) for record in records]
    return {
        record.id: f"{name} #{record.id}" if with_ids and names.count(name) > 1 else name
        for record, name in zip(records, names, strict=True)
    }


def _build_panel(
    system: str, change: str, records: Sequence[FindingRecord], labels: Mapping[int, str], diversity: str
) -> TradeoffPanel:
    values = [_values(record) for record in records]
    return TradeoffPanel(
        system=system,
        change=change,
        names=tuple(labels[record.id] for record in records),
        is_simulated=np.array([bool(record.parameters.get(SIMULATED)) for record in records], dtype=np.bool_),
        diversity=np.array([value[diversity] for value in values], dtype=np.float64),
        sensitivity=np.array([value[f"{system}.{change}"] for value in values], dtype=np.float64),
        upper_bound=np.array([value[f"{system}.{change}_upper"] for value in values], dtype=np.float64),
        constant=_baseline_index(records, "constant"),
        random=_baseline_index(records, "random"),
    )


def _baseline_index(records: Sequence[FindingRecord], baseline: str) -> int | None:
    """Index of the finding about a baseline; None where there is none, or several were chosen."""
    indices = [index for index, record in enumerate(records) if record.parameters.get(SIMULATED) == baseline]
    return indices[0] if len(indices) == 1 else None
