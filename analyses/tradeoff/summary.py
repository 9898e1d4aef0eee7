"""The summary of diversity against sensitivity, and its warnings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from analyses.numerics.elections.tradeoff_panel import ABOVE, BELOW, MIN_POINTS, TradeoffPanel, format_correlation
from analyses.tradeoff.method import (
    ChosenFindings,
    Tradeoff,
    count_points,
    explain_baseline,
    explain_correlation,
)
from tracker.name_lists import join_names
from tracker.queries.findings.summary import Summary

SOCIAL_CHOICE = "social-choice"
MAX_NAMES = 8
"""Names that a list has before it is cut."""
CHANGE_LABELS = {"tau": "tau", "mrc": "MRC"}
NO_TEST = (
    "Descriptive: benchmarks are few, share models and are no random sample; no number here is a significance test."
)
BASELINES_CAVEAT = "The simulated baselines Constant and Random lie at the ends and alone can make a correlation."


def summarize(finding: Tradeoff) -> Summary:
    """Summarize how sensitivity goes with diversity over benchmarks."""
    correlations = [_describe_panel(panel) for panel in finding.panels if np.isfinite(panel.association.pearson)]
    caveats = [BASELINES_CAVEAT] if any(panel.is_simulated.any() for panel in finding.panels) else []
    return Summary(
        _headline(finding.panels), (*_describe_undefined(finding.panels), *correlations), (*caveats, NO_TEST)
    )


def _headline(panels: Sequence[TradeoffPanel]) -> str:
    clauses = [
        f"{panel.system} {CHANGE_LABELS[panel.change]} r = {format_correlation(panel.association.pearson)}"
        for panel in panels
        if np.isfinite(panel.association.pearson)
    ]
    if not clauses:
        return f"Sensitivity has no correlation with diversity: {explain_correlation(panels[0].association.n)}."
    n = max(panel.association.n for panel in panels)
    return f"Correlation of sensitivity with diversity over {count_points(n)}: {', '.join(clauses)}."


def _describe_undefined(panels: Sequence[TradeoffPanel]) -> list[str]:
    """List the panels without a correlation by their reason."""
    labels: dict[str, list[str]] = {}
    for panel in panels:
        if not np.isfinite(panel.association.pearson):
            label = f"{panel.system} {CHANGE_LABELS[panel.change]}"
            labels.setdefault(explain_correlation(panel.association.n), []).append(label)
    advice = f"Run `suffrage analyze {SOCIAL_CHOICE}` on at least {MIN_POINTS} benchmarks."
    return [
        f"No correlation for {', '.join(names)}: {reason}." + (f" {advice}" if reason.endswith("too few") else "")
        for reason, names in labels.items()
    ]


def _describe_panel(panel: TradeoffPanel) -> str:
    """The correlation of one panel, and the sides of the line between the baselines."""
    association, benchmarks = panel.association, panel.benchmark_association
    n_simulated, n_open = int(panel.is_simulated.sum()), int((~panel.is_exact).sum())
    label = f"{panel.system.capitalize()} {CHANGE_LABELS[panel.change]}, {count_points(association.n)}"
    label += f", {n_simulated} simulated" if n_simulated else ""
    label += f", {n_open} at the lower end of an interval" if n_open else ""
    sentence = f"{label}: Pearson {format_correlation(association.pearson)}"
    if np.isfinite(association.low):
        low, high = format_correlation(association.low), format_correlation(association.high)
        sentence += f" (95 % interval {low} to {high})"
    sentence += f", Spearman {format_correlation(association.spearman)}"
    if n_simulated and np.isfinite(benchmarks.pearson):
        sentence += f"; without baselines {format_correlation(benchmarks.pearson)}"
    sides = panel.sides
    if sides is None:
        return f"{sentence}."
    n_below, n_above = int((sides == BELOW).sum()), int((sides == ABOVE).sum())
    n_undecided = len(sides) - n_below - n_above - 2  # the baselines themselves are on no side
    undecided = f", {n_undecided} open" if n_undecided > 0 else ""
    return f"{sentence}. Line from Constant to Random: {n_below} below, {n_above} above{undecided}."


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
            messages.append(f"Excluded from the {system} points: {join_names(reasons, MAX_NAMES)}.")
    if without_finding:
        messages.append(
            f"Without a finding: {join_names(sorted(without_finding), MAX_NAMES)}. Add one: "
            f"`suffrage analyze {SOCIAL_CHOICE} BENCHMARK`."
        )
    without_line: dict[str, dict[str, None]] = {}
    for panel in panels:
        if panel.baseline_line(panel.sensitivity) is None:
            without_line.setdefault(explain_baseline(panel), {})[panel.system] = None
    messages += [
        f"No line from Constant to Random among the {' and '.join(systems)} points: {reason}."
        for reason, systems in without_line.items()
    ]
    policies = {record.id: (record.selection or {}).get("missing", "common") for record in chosen.records}
    if differing := [f"{key} ({policy})" for key, policy in policies.items() if policy != "common"]:
        messages.append(
            f"Findings with another policy for missing scores than common: {join_names(differing, MAX_NAMES)}."
        )
    if is_by_id:
        messages.append("Findings were chosen by ID. Check in the table of points that their options agree.")
        stale = [f"{record.id} ({record.stale})" for record in chosen.records if record.stale]
        if stale:
            messages.append(f"Stale findings: {join_names(stale, MAX_NAMES)}.")
    return messages
