"""The result of a gate as Markdown: the verdict, the comparisons as a table, then their evidence."""

from __future__ import annotations

import html
from collections.abc import Iterator

from tracker.api.gate import GateResult
from tracker.exporting.document_tables import escape_markdown
from tracker.recording.comparing.regressions import BETTER, IDENTICAL, REGRESSION, UNTESTED, BaselineComparison

DASH = "–"
TITLES = ("Result", "Model", "Baseline", "Benchmark", "Metric", "Prompts", "Mean", "Baseline mean", "Difference",
          "Interval", "p", "Detectable")  # fmt: skip


def format_gate_summary(result: GateResult) -> str:
    """Return the Markdown of a result.

    Names come from files of results: nothing in them is markup.

    Args:
        result: the comparisons.
    """
    lines = [f"## {describe_gate(result)}", ""]
    lines += [f"- {escape_markdown(describe_comparison(item))}" for item in result.comparisons]
    lines += ["", f"| {' | '.join(TITLES)} |", "|---|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    lines += [f"| {' | '.join(_cells(item))} |" for item in result.comparisons]
    lines += ["", _describe_rule(result), ""]
    for benchmark, lead in result.leads.items():
        lines += [f"{escape_markdown(benchmark)}: {escape_markdown(lead)}", ""]
    lines += list(_list_evidence(result))
    return "\n".join(lines).rstrip() + "\n"


def describe_gate(result: GateResult) -> str:
    """Return the verdict: how many comparisons are regressions."""
    n, n_regressions = len(result.comparisons), len(result.regressions)
    comparisons = f"{n} comparison{'s' * (n != 1)}"
    if not n_regressions:
        return f"No significant regression in {comparisons}"
    if n == 1:
        return "Significant regression"
    return f"{n_regressions} significant regression{'s' * (n_regressions != 1)} in {comparisons}"


def describe_comparison(comparison: BaselineComparison) -> str:
    """Return how a model differs from its baseline, in one sentence."""
    pair, status = comparison.pair, comparison.status
    baseline = "its earlier results" if pair.model == pair.baseline else f"its baseline {pair.baseline}"
    n = comparison.n_compared or comparison.n_prompts
    prompts = f"{n:,} prompt{'s' * (n != 1)} of {pair.benchmark}"
    if status == IDENTICAL:
        return f"{pair.model} has the same scores as {baseline} on {prompts}."
    size = f"{abs(comparison.difference):.4f}"
    direction = "better" if comparison.difference > 0 else "worse"
    if comparison.difference == 0:
        return f"{pair.model} has the same mean as {baseline} on {prompts}."
    if status == UNTESTED:
        return f"{pair.model} is {direction} than {baseline} by {size} on {prompts}, too few for a test."
    numbers = f"({_percent(comparison.level)} interval {_interval(comparison)}, p = {comparison.pvalue:.2g})"
    if status in (REGRESSION, BETTER):
        return f"{pair.model} is {direction} than {baseline} by {size} on {prompts} {numbers}."
    if comparison.pvalue is not None and comparison.pvalue <= 1 - comparison.level:
        margin = f"the loss is not significantly larger than the margin of {comparison.margin:g}"
        return f"{pair.model} is worse than {baseline} by {size} on {prompts} {numbers}, but {margin}."
    lead = "ahead of" if comparison.difference > 0 else "behind"
    return f"{pair.model} is {lead} {baseline} by {size} on {prompts}, but not significantly {numbers}."


def _cells(comparison: BaselineComparison) -> tuple[str, ...]:
    pair = comparison.pair
    is_identical = comparison.status == IDENTICAL
    return (
        comparison.status,
        *map(escape_markdown, (pair.model, pair.baseline, pair.benchmark, pair.metric)),
        f"{comparison.n_prompts:,}",
        _number(comparison.mean),
        _number(comparison.baseline_mean),
        DASH if is_identical else f"{comparison.difference:+.4f}",
        DASH if is_identical else _interval(comparison),
        DASH if comparison.pvalue is None else f"{comparison.pvalue:.2g}",
        _number(comparison.detectable),
    )


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.4f}"


def _percent(level: float) -> str:
    return f"{100 * level:.4g}%"


def _interval(comparison: BaselineComparison) -> str:
    if comparison.low is None or comparison.high is None:
        return DASH
    return f"{comparison.low:+.4f} to {comparison.high:+.4f}"


def _describe_rule(result: GateResult) -> str:
    """Return what a regression is, and what the columns mean."""
    options, n = result.options, len(result.comparisons)
    level = _percent(1 - options.alpha / n)
    beyond = f" and an interval below {-options.margin:g}" if options.margin else ""
    correction = f" (Bonferroni's correction for {n} comparisons of {options.alpha:g})" if n > 1 else ""
    return (
        f"A regression is a loss with p ≤ {options.alpha / n:.3g}{correction}{beyond}. Differences are positive if the "
        f"model is better than its baseline; intervals have level {level}. Detectable is the smallest true difference "
        "that these prompts detect with power 80%: smaller regressions can remain unseen."
    )


def _list_evidence(result: GateResult) -> Iterator[str]:
    for item in result.comparisons:
        if not item.evidence:
            continue
        title = f"Evidence: {item.pair.model} on {item.pair.benchmark}"
        yield f"<details><summary>{html.escape(' '.join(title.split()))}</summary>"
        yield ""
        yield from (f"- {escape_markdown(sentence)}" for sentence in item.evidence)
        if item.n_unshared:
            compared = "not compared" if item.missing == "common" else f"compared under --missing {item.missing}"
            yield f"- {item.n_unshared:,} prompts have a score of only one of the two and are {compared}."
        yield ""
        yield "</details>"
        yield ""
