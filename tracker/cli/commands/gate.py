"""The command `suffrage gate`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracker.cli.help_text import Command
from tracker.cli.options import describe_policies
from tracker.cli.output import inform, print_record
from tracker.cli.progress import show_activity
from tracker.cli.values.setting_option import SettingOption
from tracker.cli.values.terminal_text import echo
from tracker.queries.selection import MIN_COVERAGE, POLICIES, Policy

if TYPE_CHECKING:
    from tracker.api.gate import GateResult

REGRESSION_CODE = 3
"""Exit code of a significant regression; errors have 1 and 2."""


@click.command(cls=Command)
@click.argument("results", type=click.Path(path_type=Path, readable=False))
@click.option("--baseline", metavar="MODEL", default="", show_default="the model's earlier results",
              help="Name of the baseline model, in --baseline-results or else in RESULTS.")  # fmt: skip
@click.option("--baseline-results", type=click.Path(path_type=Path, readable=False), metavar="PATH",
              help="File or folder with earlier results to compare with.")  # fmt: skip
@click.option("--model", "models", metavar="NAME", multiple=True, show_default="all",
              help="Name of a model to check. Repeatable.")  # fmt: skip
@click.option("--benchmark", metavar="NAME", show_default="as in the file", help="Name of the benchmark.")
@click.option("--metric", cls=SettingOption, metavar="NAME", show_default="that of the benchmark",
              help="Name of the metric.")  # fmt: skip
@click.option("--margin", type=click.FloatRange(min=0), default=0.0, show_default=True, metavar="SIZE",
              help="Largest loss that does not matter, in the unit of the scores.")  # fmt: skip
@click.option("--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05, show_default=True,
              metavar="SHARE", help="Probability of failing without a true loss, over all comparisons.")  # fmt: skip
@click.option("--min-coverage", cls=SettingOption, type=click.FloatRange(0, 1), default=MIN_COVERAGE,
              show_default=True, metavar="SHARE",
              help="Share of the prompts that both must have scores for, from 0 to 1. Less is an error.")  # fmt: skip
@click.option("--missing", type=click.Choice(POLICIES), default="common", show_default=True,
              help=f"Treatment of prompts that only one of the two has a score for. {describe_policies()}")  # fmt: skip
@click.option("--summary", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="File to append the Markdown summary to.")  # fmt: skip
@click.option("--format", "output_format", type=click.Choice(["markdown", "json"]), default="markdown",
              show_default=True, help="Output format on stdout: Markdown, or JSON for programs.")  # fmt: skip
def command(
    results: Path,
    baseline: str,
    baseline_results: Path | None,
    models: tuple[str, ...],
    benchmark: str | None,
    metric: str | None,
    margin: float,
    alpha: float,
    min_coverage: float,
    missing: Policy,
    summary: Path | None,
    output_format: str,
) -> None:
    """Check new results against a baseline, for continuous integration.

    Compares each model in RESULTS with its baseline, by default on the prompts that both have scores for. The baseline
    is the same model in --baseline-results, or the model that --baseline names. Nothing is stored.

    A regression is a significant loss. With --margin, the whole interval must lie below minus the margin.

    The exit code is 0 without a regression, 3 with one, and 1 after an error.

    Examples:
        suffrage gate results/ --baseline-results baseline/ --margin 0.01
        suffrage gate results/ --baseline llama-3.1-70b --summary summary.md
    """
    if not baseline and baseline_results is None:
        raise click.UsageError(
            "No baseline is named. Add --baseline-results PATH for earlier results, or --baseline MODEL for a model."
        )
    from tracker.api.gate import GateOptions, check_results
    from tracker.api.gate_summary import describe_gate, format_gate_summary

    options = GateOptions(
        results=results,
        baseline_results=baseline_results,
        baseline=baseline,
        models=models,
        benchmark=benchmark or None,
        metric=metric or None,
        margin=margin,
        alpha=alpha,
        min_coverage=min_coverage,
        missing=missing,
    )
    with show_activity("comparing with the baseline"):
        result = check_results(options)
    text = format_gate_summary(result)
    if output_format == "json":
        print_record(_as_record(result), output_format)
    else:
        echo(text, nl=False)
    if summary is not None:
        _append(summary, text)
    if result.regressions:
        inform(f"{describe_gate(result)}.")
        sys.exit(REGRESSION_CODE)


def _append(path: Path, text: str) -> None:
    """Append a summary to a file.

    Raises:
        OutputError: the file cannot be written.
    """
    from tracker.errors import OutputError

    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}. Name another file with --summary.") from error


def _as_record(result: GateResult) -> dict[str, object]:
    from tracker.api.gate_summary import describe_gate

    rows = []
    for item in result.comparisons:
        row = asdict(item)
        rows.append({"status": item.status, **row.pop("pair"), **row})
    return {"headline": describe_gate(result), "n_regressions": len(result.regressions), "comparisons": rows}
