"""Diversity against sensitivity, in plain words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from analyses.numerics.elections.tradeoff_panel import (
    ABOVE,
    BELOW,
    MIN_POINTS,
    Association,
    TradeoffPanel,
    format_correlation,
)
from analyses.presentation.validation import ValidationErrors
from tracker.queries.findings.finding_records import FindingRecord

QUESTION = "social-choice"
NAMED = 8
"""Names that a sentence lists before it breaks off."""
CHANGE = {"tau": "tau", "mrc": "MRC"}
NO_TEST = (
    "Benchmarks are few, no random sample of anything, and share models; both numbers of a point come from the same "
    "scores. So the intervals show how little so few points say, and nothing here is a test."
)
ENDS = "Constant and Random lie at the ends, where two points alone make a correlation."


def problems(
    records: Sequence[FindingRecord], names: Sequence[str], *, which: Sequence[int], exclude: Sequence[str]
) -> ValidationErrors:
    """Why there is nothing to put side by side, and what to do about it."""
    known = [record.id for record in records]
    lost = [key for key in which if key not in known]
    unknown = [name for name in exclude if name not in names]
    return {
        f"No finding of {QUESTION} is recorded yet. Run `suffrage analyze {QUESTION} BENCHMARK` for some benchmarks, "
        "and `suffrage simulate constant` and `suffrage simulate random` for the baselines.": not records,
        f"Finding {lost[0] if lost else ''} is none of {QUESTION}. `suffrage analyses --name {QUESTION}` lists them.": (
            bool(lost)
        ),
        f"No point is called {unknown[0] if unknown else ''!r}. Choose --exclude from: {listed(names)}.": bool(unknown),
    }


def nothing_to_show(shown: Collection[int], passed_over: Mapping[str, Mapping[str, str]]) -> ValidationErrors:
    """Why no finding suits."""
    reasons = [f"{name}: {why}" for passed in passed_over.values() for name, why in passed.items()]
    because = f" ({reasons[0]})" if reasons else ""
    return {
        f"No finding of {QUESTION} suits{because}. Run `suffrage analyze {QUESTION} BENCHMARK` again, give the options "
        "with which findings were made, such as --columns raw, or choose findings by --which ID.": not shown
    }


def option(name: str, value: Any) -> str:
    """An option of a finding as it would be given."""
    shown = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value
    return f"--{name.replace('_', '-')} {shown}"


def no_correlation(n: int) -> str:
    """Why there is no correlation."""
    return _too_few(n) if n < MIN_POINTS else "diversity or sensitivity is the same in all points"


def no_interval(found: Association) -> str:
    """Why there is no interval around a correlation."""
    if not np.isfinite(found.pearson):
        return no_correlation(found.n)
    return _too_few(found.n) if found.n == MIN_POINTS else "all points lie on a straight line"


def no_slope(n: int) -> str:
    """Why there is no line through the origin."""
    return _too_few(n) if n < MIN_POINTS else "all points have diversity 0"


def no_line(panel: TradeoffPanel) -> str:
    """Why there is no line from Constant to Random."""
    ends = (("constant", panel.constant), ("random", panel.random))
    missing = [f"`suffrage simulate {name}`" for name, place in ends if place is None]
    return f"run {' and '.join(missing)} first" if missing else "Constant and Random have the same diversity"


def panel(p: TradeoffPanel) -> str:
    """One sentence or two on a panel."""
    a, real = p.association, p.benchmark_association
    n_simulated = int(p.is_simulated.sum())
    said = f"{p.system.capitalize()} sensitivity as {CHANGE[p.change]} against diversity, {_points(a.n)}"
    said += f", {n_simulated} of them simulated" if n_simulated else ""
    if open_ones := int((~p.is_exact).sum()):
        said += f" ({open_ones} known as {'an interval' if open_ones == 1 else 'intervals'}, taken at the lower end)"
    if not np.isfinite(a.pearson):
        return f"{said}: no correlation ({no_correlation(a.n)})."
    said += f": Pearson's r {format_correlation(a.pearson)}"
    if np.isfinite(a.low):
        said += f" (95 % interval {format_correlation(a.low)} to {format_correlation(a.high)})"
    said += f", Spearman's {format_correlation(a.spearman)}"
    if n_simulated:
        without = f"r {format_correlation(real.pearson)}" if np.isfinite(real.pearson) else "none"
        said += f"; of the {real.n} real benchmarks alone {without}"
    place = p.place
    if place is None:
        return f"{said}. No line from Constant to Random: {no_line(p)}."
    below, above, rest = (int((place == side).sum()) for side in (BELOW, ABOVE, 0))
    undecided = f", {rest - 2} left open by bounds" if rest > 2 else ""
    return f"{said}. {below} below the line from Constant to Random, {above} above it{undecided}."


def warnings(
    panels: Sequence[TradeoffPanel],
    passed_over: Mapping[str, Mapping[str, str]],
    unasked: Collection[str],
    shown: Sequence[FindingRecord],
    *,
    is_chosen: bool,
) -> list[str]:
    """What the reader should know of what is shown, and of what is not."""
    said = []
    for system, passed in passed_over.items():
        reasons = [f"{name} ({why})" for name, why in passed.items()]
        if reasons:
            said.append(f"Not among the {system} points: {listed(reasons)}.")
    if unasked:
        said.append(
            f"Not asked yet: {listed(sorted(unasked))}. `suffrage analyze {QUESTION} BENCHMARK` makes a point of one."
        )
    said += dict.fromkeys(
        f"No line from Constant to Random among the {p.system} points: {no_line(p)}."
        for p in panels
        if p.baseline_line(p.found) is None
    )
    if is_chosen:
        said.append("Findings were chosen by ID: whether their options agree is for you to see in the table of points.")
        stale = [f"{record.id} ({record.stale})" for record in shown if record.stale]
        if stale:
            said.append(f"Stale findings among them: {listed(stale)}.")
    return said


def listed(names: Sequence[str]) -> str:
    """Names with commas, the first few."""
    return f"{', '.join(names[:NAMED])}{' …' if len(names) > NAMED else ''}"


def _too_few(n: int) -> str:
    return f"{_points(n)} {'is' if n == 1 else 'are'} too few"


def _points(n: int) -> str:
    return "1 point" if n == 1 else f"{n} points"
