"""The command `suffrage plan`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.options import cluster_option, database_option, format_option, missing_options, selection_options
from tracker.cli.output import inform, print_record, print_rows, print_summary
from tracker.cli.progress import show_activity
from tracker.cli.values.terminal_text import echo
from tracker.queries.selection import Selection


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

    engine = connect(database, create=False)
    with show_activity(f"planning for {selection.benchmark}"), transaction(engine, write=False) as session:
        plan = plan_comparison(session, selection, effect=effect, power=power, level=level, n_trials=n_trials)
    rows = plan.list_records()
    if output_format == "json":
        summary = plan.summarize()
        print_record({"headline": summary.headline, "evidence": list(summary.evidence), "rows": rows}, output_format)
    elif output_format == "csv":
        print_rows(rows, output_format)
    else:
        print_summary(plan.summarize())
        if len(rows) > 1:
            echo("\nBy trials of each prompt:")
            print_rows(rows, "table", drop_order=("detectable_90",))
            inform("The empty number of trials is that of the stored runs.")
