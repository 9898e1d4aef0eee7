"""Diversity against sensitivity, in plain words: summary and warnings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from analyses.numerics.elections.tradeoff_panel import ABOVE, BELOW, TradeoffPanel, format_correlation
from analyses.tradeoff.method import ChosenFindings, Tradeoff, count_points, explain_baseline, explain_correlation
from tracker.queries.findings.summary import Summary

SOCIAL_CHOICE = "social-choice"
MAX_NAMES = 8
"""Names that a sentence lists before it breaks off."""
CHANGE_LABELS = {"tau": "tau", "mrc": "MRC"}
NO_TEST = (
    "Benchmarks are few, no random sample of anything, and share models; both numbers of a point come from the same "
    "scores. So the intervals show how little so few points say, and nothing here is a test."
)
BASELINES_CAVEAT = "Constant and Random lie at the ends, where two points alone make a correlation."


def summarize(finding: Tradeoff) -> Summary:
    """The result in one paragraph."""
    caveats = [BASELINES_CAVEAT] if any(panel.is_simulated.any() for panel in finding.panels) else []
    return Summary.from_sentences([*map(_describe_panel, finding.panels), *caveats, NO_TEST])


def _describe_panel(panel: TradeoffPanel) -> str:
    """One sentence or two on a panel."""
    association, benchmarks = panel.association, panel.benchmark_association
    n_simulated, n_open = int(panel.is_simulated.sum()), int((~panel.is_exact).sum())
    sentence = f"{panel.system.capitalize()} sensitivity as {CHANGE_LABELS[panel.change]} against diversity, "
    sentence += count_points(association.n)
    sentence += f", {n_simulated} of them simulated" if n_simulated else ""
    if n_open:
        sentence += f" ({n_open} known as {'an interval' if n_open == 1 else 'intervals'}, taken at the lower end)"
    if not np.isfinite(association.pearson):
        return f"{sentence}: no correlation ({explain_correlation(association.n)})."
    sentence += f": Pearson's r {format_correlation(association.pearson)}"
    if np.isfinite(association.low):
        low, high = format_correlation(association.low), format_correlation(association.high)
        sentence += f" (95 % interval {low} to {high})"
    sentence += f", Spearman's {format_correlation(association.spearman)}"
    if n_simulated:
        r = f"r {format_correlation(benchmarks.pearson)}" if np.isfinite(benchmarks.pearson) else "none"
        sentence += f"; of the {benchmarks.n} real benchmarks alone {r}"
    sides = panel.sides
    if sides is None:
        return f"{sentence}. No line from Constant to Random: {explain_baseline(panel)}."
    n_below, n_above = int((sides == BELOW).sum()), int((sides == ABOVE).sum())
    n_undecided = len(sides) - n_below - n_above - 2  # the baselines themselves are on no side
    undecided = f", {n_undecided} left open by bounds" if n_undecided > 0 else ""
    return f"{sentence}. {n_below} below the line from Constant to Random, {n_above} above it{undecided}."


def collect_warnings(
    panels: Sequence[TradeoffPanel], chosen: ChosenFindings, without_finding: Collection[str], *, is_by_id: bool
) -> list[str]:
    """Warnings on what is shown, and on what is not.

    Args:
        panels: of the figure.
        chosen: the findings behind them.
        without_finding: benchmarks without a finding.
        is_by_id: whether findings were chosen by ID.
    """
    messages = []
    for system, skipped in chosen.skipped.items():
        reasons = [f"{name} ({reason})" for name, reason in skipped.items()]
        if reasons:
            messages.append(f"Not among the {system} points: {join_names(reasons)}.")
    if without_finding:
        messages.append(
            f"Not asked yet: {join_names(sorted(without_finding))}. `suffrage analyze {SOCIAL_CHOICE} BENCHMARK` makes "
            "a point of one."
        )
    messages += dict.fromkeys(
        f"No line from Constant to Random among the {panel.system} points: {explain_baseline(panel)}."
        for panel in panels
        if panel.baseline_line(panel.sensitivity) is None
    )
    if is_by_id:
        messages.append(
            "Findings were chosen by ID: whether their options agree is for you to see in the table of points."
        )
        stale = [f"{record.id} ({record.stale})" for record in chosen.records if record.stale]
        if stale:
            messages.append(f"Stale findings among them: {join_names(stale)}.")
    return messages


def join_names(names: Sequence[str]) -> str:
    """Names with commas, the first few."""
    return f"{', '.join(names[:MAX_NAMES])}{' …' if len(names) > MAX_NAMES else ''}"
