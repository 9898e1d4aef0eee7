"""The command `suffrage plan`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from tracker.cli.help_text import Command
from tracker.cli.options import cluster_option, database_option, format_option, missing_options, selection_options
from tracker.cli.output import inform, print_record, print_rows, print_summary
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from tracker.queries.comparing.study_plan import PlannedTrials, StudyPlan
    from tracker.queries.findings.summary import Summary


@click.command(cls=Command)
@click.argument("benchmark")
@click.option("--effect", type=float, required=True, metavar="SIZE",
              help="True difference of two models to detect, in the unit of the scores.")  # fmt: skip
@click.option("--power", type=float, default=0.8, show_default=True, metavar="SHARE",
              help="Probability of detecting it.")  # fmt: skip
@click.option("--level", type=float, default=0.95, show_default=True, metavar="SHARE",
              help="Confidence level of the two-sided test.")  # fmt: skip
@click.option("--trials", "n_trials", type=click.IntRange(min=1), metavar="N", show_default="those of the stored runs",
              help="Trials of each prompt. Another number than that of the stored runs needs runs with several trials.",
              )  # fmt: skip
@missing_options("common")
@cluster_option
@selection_options
@database_option
@format_option
def command(
    selection: Selection,
    effect: float,
    power: float,
    level: float,
    n_trials: int | None,
    database: str | None,
    output_format: str,
) -> None:
    """Compute how many prompts and trials detect a difference.

    Uses the variance of paired differences of stored models: of the median pair, and of the pair at 90% of the pairs.
    Shows the prompts that a paired test needs, and the smallest difference that the stored prompts detect. With
    clusters, new prompts must come in new clusters. Name two models with --models to plan by their variance.

    Under --missing bounds, the variance of each pair is the largest that missing scores allow.

    Examples:
        suffrage plan mmlu_pro --effect 0.01 --power 0.8
        suffrage plan mmlu_pro --effect 0.01 --cluster none --models llama-3.1-70b,qwen2.5-72b
    """
    from tracker.database import connect, transaction
    from tracker.queries.comparing.study_plan import plan_comparison

    with transaction(connect(database, create=False), write=False) as session:
        plan = plan_comparison(session, selection, effect=effect, power=power, level=level, n_trials=n_trials)
    rows = [_columns(row) for row in plan.rows]
    if output_format == "json":
        summary = _summarize(plan)
        print_record({"headline": summary.headline, "evidence": list(summary.evidence), "rows": rows}, output_format)
    elif output_format == "csv":
        print_rows(rows, output_format)
    else:
        print_summary(_summarize(plan))
        if len(rows) > 1:
            click.echo("\nBy trials of each prompt:")
            print_rows(rows, "table", drop_order=("detectable_90",))
            inform("The empty number of trials is that of the stored runs.")


def _columns(row: PlannedTrials) -> dict[str, object]:
    prompts = [size.n_prompts if math.isfinite(size.n_prompts) else None for size in (row.median, row.high)]
    return {
        "trials": row.n_trials,
        "prompts": prompts[0],
        "prompts_90": prompts[1],
        "detectable": row.median.detectable,
        "detectable_90": row.high.detectable,
    }


def _summarize(plan: StudyPlan) -> Summary:
    """Summarize whether the stored prompts are enough, and how many are."""
    from tracker.queries.findings.summary import Summary

    first = plan.rows[0]
    enough = "are enough" if first.median.n_prompts <= plan.n_prompts else "are too few"
    pair = f"{first.median.models[0]} and {first.median.models[1]}"
    scope = f"for {pair}" if plan.n_pairs == 1 else f"for the median of {plan.n_pairs:,} pairs of models"
    headline = (
        f"{plan.n_prompts:,} prompts {enough} to detect a difference of {plan.effect:g} with power {plan.power:.0%} "
        f"{scope}: {_count(first.median.n_prompts)} are needed."
    )
    high = "" if plan.n_pairs == 1 else f"; {first.high.detectable:.4f} for 90% of the pairs"
    units = f"{plan.n_clusters:,} clusters by {plan.cluster}" if plan.n_clusters else "prompts as independent"
    units += f" within {plan.n_strata} tasks" if plan.n_strata > 1 else ""
    evidence = [
        f"Smallest difference that {plan.n_prompts:,} prompts detect: {first.median.detectable:.4f}{high}.",
        f"Test: paired, two-sided, at {1 - plan.level:.2g}; {plan.metric} of {plan.benchmark}, {units}.",
    ]
    if plan.n_pairs > 1:
        evidence.insert(0, f"90% of the pairs need at most {_count(first.high.n_prompts)} prompts.")
    caveats = []
    if plan.n_clusters:
        caveats.append(
            f"Prompts are clustered by {plan.cluster}: these are {_count(first.median.n_units)} clusters of the stored "
            f"sizes, against {plan.n_clusters:,} now. More prompts in the same clusters help less."
        )
    if plan.n_excluded:
        caveats.append(f"{plan.n_excluded:,} pairs are left out, because their differences do not vary.")
    return Summary(headline, tuple(evidence), (*caveats, *plan.warnings))


def _count(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) else "more than a trillion"
