"""Do diverse benchmarks pay with stability?

Each point is a benchmark of which `social-choice` was asked: how far its tasks disagree, against how far its ranking
can be moved by what should not matter. Beside them stand the baselines of `suffrage simulate`. What is not proven is
drawn as an interval. Nothing is computed anew: the latest recorded findings are put side by side.

Source: Zhang & Hardt 2024, figures 2 to 4.
Definitions: docs/reference/statistics/tradeoff.md.
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
    finding_ids: Annotated[tuple[int, ...], "findings to show, by ID, in place of the latest of each benchmark"] = (),
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
        finding_ids: these findings, whatever their options, data and age.
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
