"""Plot diversity against sensitivity for all benchmarks.

Each point is the latest finding of social-choice on a benchmark, beside the reference points of `suffrage simulate`.
Values that are not proven are drawn as intervals. Nothing is recomputed: run `suffrage analyze social-choice` on each
benchmark first.

Source: Zhang & Hardt 2024, figures 2 to 4.
Definitions: docs/reference/statistics/tradeoff.md.

Examples:
    suffrage analyze tradeoff
    suffrage analyze tradeoff --exclude gpqa
"""

from __future__ import annotations

from typing import Annotated, Literal

from analyses.presentation.epsilon_option import parse_epsilon_option
from analyses.presentation.validation import validate
from analyses.tradeoff import figures, tables
from analyses.tradeoff.method import (
    PointSelection,
    SocialChoiceFindings,
    Tradeoff,
    build_panels,
    choose_findings,
    number_points,
)
from analyses.tradeoff.summary import collect_warnings, summarize
from analyses.tradeoff.validation import check_points, check_selection
from tracker.queries.findings.latest_findings import finding_subject
from tracker.recording.finding import Report, analysis


@analysis
def analyze(
    findings: SocialChoiceFindings,
    *,
    finding_ids: Annotated[
        tuple[int, ...], "IDs of the findings to plot, separated by commas. By default the latest of each benchmark."
    ] = (),
    exclude: Annotated[tuple[str, ...], "Names of benchmarks or other points to leave out, separated by commas."] = (),
    diversity: Annotated[
        Literal["diversity", "diversity.tie_corrected", "diversity.complete_tasks"],
        "Measure of diversity on the horizontal axis.",
    ] = "diversity",
    columns: Annotated[Literal["standardised", "raw"], "Use findings computed with this option."] = "standardised",
    epsilon: Annotated[str, "Use findings computed with this option."] = "0.01",
    top: Annotated[float, "Use findings computed with this option. Simulated findings may differ."] = 0.2,
    win_rate: Annotated[Literal["pairwise", "per-task"], "Use findings computed with this option."] = "pairwise",
    method: Annotated[Literal["exact", "paper"], "Use findings computed with this option."] = "exact",
) -> Report:
    """Plot diversity and sensitivity of all benchmarks.

    Args:
        findings: of `social-choice`; stale ones are ignored.
        finding_ids: these findings, whatever their options, data and age.
        exclude: names of points.
        diversity: name of the number on the horizontal axis.
        columns: of the cardinal system.
        epsilon: of the cardinal system.
        top: of the ordinal system.
        win_rate: of the ordinal system.
        method: of both.

    Raises:
        SelectionError: there is no finding to plot, or none of that name or ID, or epsilon is invalid.
    """
    options: dict[str, object] = {
        "columns": columns,
        "epsilon": parse_epsilon_option(epsilon),
        "top": top,
        "top_models": [],
        "win_rate": win_rate,
        "method": method,
    }
    selection = PointSelection(ids=finding_ids, exclude=exclude, diversity=diversity, options=options)
    names = sorted({finding_subject(record) for record in findings.records})
    validate(check_selection(findings.records, names, selection))
    chosen = choose_findings(findings.records, selection)
    validate(check_points(chosen))
    panels = build_panels(chosen, selection)
    numbers = number_points(panels)
    finding = Tradeoff(panels=panels, n_excluded=chosen.n_excluded)
    without_finding = set() if selection.is_by_id else set(findings.benchmarks) - set(names)
    return Report(
        finding,
        summary=summarize(finding),
        tables={"points": tables.list_points(panels, numbers, chosen.by_system)},
        figures={"tradeoff": lambda: figures.draw_tradeoff(panels, numbers, diversity)},
        warnings=collect_warnings(panels, chosen, without_finding, is_by_id=selection.is_by_id),
    )
