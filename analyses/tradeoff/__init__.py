"""Do diverse benchmarks pay with stability?

Each point is a benchmark of which `social-choice` was asked: how far its tasks disagree, against how far its ranking
can be moved by what should not matter. Beside them stand the baselines of `suffrage simulate`. What is not proven is
drawn as an interval. Nothing is computed anew: the latest recorded findings are put side by side.

Source: Zhang & Hardt 2024, figures 2 to 4; every number is defined in docs/statistics/tradeoff.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np

from analyses.numerics.elections.tradeoff_panel import ABOVE, BELOW, TradeoffPanel
from analyses.presentation.epsilon_option import parse_epsilon_option
from analyses.presentation.validation import validate
from analyses.tradeoff import figures, tables
from analyses.tradeoff import summary as wording
from tracker.queries.findings.finding_records import FindingRecord
from tracker.queries.findings.latest_findings import SIMULATED, Findings, select_latest, subject
from tracker.recording.finding import Finding, Metric, Report, Undefined, analysis, finite_or_undefined

SYSTEMS, CHANGES = ("cardinal", "ordinal"), ("tau", "mrc")
OPTIONS = {"cardinal": ("columns", "epsilon", "method"), "ordinal": ("top", "top_models", "win_rate", "method")}
"""Parameters of social-choice that decide what a sensitivity means."""
OWN_SIZE = ("top", "top_models")
"""Of them, those in which simulated fields may differ: a field of thousands has ten that lead."""
DATA = ("benchmark", "metric", "condition", "variant")
"""Choices of data under which a finding is still about the benchmark as a whole."""


class SocialChoiceFindings(Findings):
    """Findings of `social-choice`."""

    analysis: ClassVar[str] = "social-choice"


@dataclass(frozen=True, kw_only=True)
class Tradeoff(Finding):
    """Diversity against sensitivity, in up to four panels.

    Attributes:
        panels: tau and MRC of each system that has points.
        n_left_out: benchmarks with findings of which none suits.
    """

    panels: tuple[TradeoffPanel, ...]
    n_excluded: int

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then correlations and lines by panel."""
        names = {name for panel in self.panels for name in panel.names}
        found: dict[str, Metric] = {"n_points": float(len(names)), "n_left_out": float(self.n_excluded)}
        for panel in self.panels:
            found |= {f"{panel.system}.{panel.change}.{name}": value for name, value in _numbers(panel).items()}
        return found

    def summary(self) -> str:
        """What was found, in plain words."""
        ends = [wording.ENDS] if any(panel.is_simulated.any() for panel in self.panels) else []
        return " ".join([*map(wording.panel, self.panels), *ends, wording.NO_TEST])


def _numbers(panel: TradeoffPanel) -> Mapping[str, Metric]:
    every, real = panel.association, panel.benchmark_association
    line, place = panel.baseline_line(panel.found), panel.place
    absent = Undefined(wording.no_line(panel))
    return {
        "n": float(every.n),
        "n_exact": float(panel.is_exact.sum()),
        "pearson": finite_or_undefined(every.pearson, wording.no_correlation(every.n)),
        "pearson.low": finite_or_undefined(every.low, wording.no_interval(every)),
        "pearson.high": finite_or_undefined(every.high, wording.no_interval(every)),
        "pearson.benchmarks": finite_or_undefined(real.pearson, wording.no_correlation(real.n)),
        "spearman": finite_or_undefined(every.spearman, wording.no_correlation(every.n)),
        "slope": finite_or_undefined(every.slope, wording.no_slope(every.n)),
        "baselines.slope": line[0] if line else absent,
        "n_below": absent if place is None else float((place == BELOW).sum()),
        "n_above": absent if place is None else float((place == ABOVE).sum()),
    }


@analysis
def analyze(
    findings: SocialChoiceFindings,
    *,
    which: Annotated[tuple[int, ...], "findings to show, by ID, in place of the latest of each benchmark"] = (),
    exclude: Annotated[tuple[str, ...], "benchmarks, or other points by name, to leave out"] = (),
    diversity: Annotated[
        Literal["diversity", "diversity.tie_corrected", "diversity.complete_tasks"], "which diversity to show"
    ] = "diversity",
    columns: Annotated[Literal["standardised", "raw"], "take findings made with this"] = "standardised",
    epsilon: Annotated[str, "take findings made with this"] = "0.01",
    top: Annotated[float, "take findings made with this; simulated ones may differ"] = 0.2,
    win_rate: Annotated[Literal["pairwise", "per-task"], "take findings made with this"] = "pairwise",
    method: Annotated[Literal["exact", "paper"], "take findings made with this"] = "exact",
) -> Report:
    """Put diversity and sensitivity of all benchmarks side by side.

    Args:
        findings: of `social-choice`; stale ones are passed over.
        which: these findings, whatever their options, data and age.
        exclude: names of points.
        diversity: name of the number on the horizontal axis.
        columns: of the cardinal system.
        epsilon: of the cardinal system.
        top: of the ordinal system.
        win_rate: of the ordinal system.
        method: of both.

    Raises:
        SelectionError: there is no finding to show, or none of that name or ID, or no such epsilon.
    """
    options: dict[str, object] = {
        "columns": columns,
        "epsilon": parse_epsilon_option(epsilon),
        "top": top,
        "top_models": [],
        "win_rate": win_rate,
        "method": method,
    }
    names = sorted({subject(record) for record in findings.records})
    validate(wording.problems(findings.records, names, which=which, exclude=exclude))
    kept = [record for record in findings.records if subject(record) not in exclude]
    records = [record for record in kept if record.id in which] if which else kept
    chosen: dict[str, Sequence[FindingRecord]] = {}
    passed_over: dict[str, Mapping[str, str]] = {}
    for system in SYSTEMS:
        having = [record for record in records if f"{system}.tau" in _values(record)]
        suited = partial(_unsuited, system=system, diversity=diversity, options=None if which else options)
        taken = select_latest(having, suited, each=bool(which))
        chosen[system], passed_over[system] = taken.records, taken.passed_over
    shown = {record.id: record for system in SYSTEMS for record in chosen[system]}
    left_out = {name for passed in passed_over.values() for name in passed} - {subject(one) for one in shown.values()}
    validate(wording.nothing_to_show(shown, passed_over))
    labels = _labels(list(shown.values()), tell_apart=bool(which))
    panels = tuple(
        _panel(system, change, chosen[system], labels, diversity)
        for system in SYSTEMS
        if chosen[system]
        for change in CHANGES
    )
    numbers = {name: number for number, name in enumerate(_in_order(panels), start=1)}
    unasked = set() if which else set(findings.benchmarks) - set(names)
    return Report(
        Tradeoff(panels=panels, n_excluded=len(left_out)),
        tables={"points": tables.points(panels, numbers, chosen)},
        figures={"tradeoff": lambda: figures.tradeoff(panels, numbers, diversity)},
        warnings=wording.warnings(panels, passed_over, unasked, list(shown.values()), is_chosen=bool(which)),
    )


def _in_order(panels: Sequence[TradeoffPanel]) -> Sequence[str]:
    """Names of all points: benchmarks, then what is simulated."""
    simulated = {
        name: bool(is_so) for panel in panels for name, is_so in zip(panel.names, panel.is_simulated, strict=True)
    }
    return sorted(simulated, key=lambda name: (simulated[name], name))


def _values(record: FindingRecord) -> Mapping[str, float | None]:
    return {number.name: number.value for number in record.numbers}


def _unsuited(record: FindingRecord, *, system: str, diversity: str, options: Mapping[str, object] | None) -> str:
    """Why a finding cannot be a point in a system; '' where it can.

    Args:
        record: with some number of that system.
        system: cardinal or ordinal.
        diversity: which one is shown.
        options: what it must have been made with, of fresh and whole data; None asks for its numbers only.
    """
    values = _values(record)
    needed = (diversity, *(f"{system}.{change}{suffix}" for change in CHANGES for suffix in ("", "_upper")))
    if missing := [name for name in needed if values.get(name) is None]:
        return f"gives no {missing[0]}"
    if options is None:
        return ""
    if record.stale:
        return f"is stale ({record.stale})"
    simulated = bool(record.parameters.get(SIMULATED))
    for name in OPTIONS[system]:
        value = record.parameters.get(name)
        asked = parse_epsilon_option(str(value)) if name == "epsilon" else value
        if asked != options[name] and not (simulated and name in OWN_SIZE):
            return f"was made with {wording.option(name, value)}"
    chosen = [name for name, value in record.selection.items() if name not in DATA and value]
    if not simulated and (
        chosen or record.selection.get("condition") == "answer_only" or record.selection.get("variant")
    ):
        return f"is about a choice of data ({', '.join(chosen) or 'condition or variant'})"
    return ""


def _labels(records: Sequence[FindingRecord], *, tell_apart: bool) -> Mapping[int, str]:
    """Name of each finding's point; with the finding's ID where several are about one thing and all are shown."""
    names = [subject(record) for record in records]
    return {
        record.id: f"{name} #{record.id}" if tell_apart and names.count(name) > 1 else name
        for record, name in zip(records, names, strict=True)
    }


def _panel(
    system: str, change: str, records: Sequence[FindingRecord], labels: Mapping[int, str], diversity: str
) -> TradeoffPanel:
    values = [_values(record) for record in records]
    names = tuple(labels[record.id] for record in records)
    return TradeoffPanel(
        system=system,
        change=change,
        names=names,
        is_simulated=np.array([bool(record.parameters.get(SIMULATED)) for record in records], dtype=np.bool_),
        diversity=np.array([one[diversity] for one in values], dtype=np.float64),
        found=np.array([one[f"{system}.{change}"] for one in values], dtype=np.float64),
        upper_bound=np.array([one[f"{system}.{change}_upper"] for one in values], dtype=np.float64),
        constant=_only(records, "constant"),
        random=_only(records, "random"),
    )


def _only(records: Sequence[FindingRecord], simulated: str) -> int | None:
    """Place of the finding about a baseline; None where there is none, or several were chosen."""
    places = [place for place, record in enumerate(records) if record.parameters.get(SIMULATED) == simulated]
    return places[0] if len(places) == 1 else None
