"""The summary of benchmark growth, and warnings about the order."""

from __future__ import annotations

from collections.abc import Iterator

from analyses.benchmark_growth.method import EARLY, BenchmarkGrowth
from tracker.queries.findings.summary import Summary
from tracker.recording.finding import Undefined

QUANTILE = 0.975
"""Share of the random orders for which the headline's number of prompts is enough."""


def summarize(finding: BenchmarkGrowth) -> Summary:
    """Summarize how many prompts give nearly the final ranking."""
    return Summary(
        _headline(finding), (*_list_evidence(finding), _describe_data(finding)), tuple(_list_caveats(finding))
    )


def _headline(finding: BenchmarkGrowth) -> str:
    if finding.n_models == 1:
        return "Whether fewer prompts are enough is open: one model has no ranking."
    n, enough = finding.n_prompts, finding.random.stable_size_quantile(QUANTILE)
    near = f"within a Kendall distance of {finding.within:g} of the final one ({QUANTILE:.1%} of random orders)"
    if enough >= n:
        return f"Only all {n:,} prompts keep the ranking {near}."
    return f"{enough:,.0f} of {n:,} prompts, chosen at random, are enough for a ranking {near}."


def _list_evidence(finding: BenchmarkGrowth) -> Iterator[str]:
    if finding.n_models > 1:
        yield from _describe_sizes(finding)
    yield from _describe_early_means(finding)
    yield from _describe_predictions(finding)
    if finding.n_zero and finding.permuted and finding.item_response is None:
        yield (
            f"{finding.n_zero:,} prompts have score 0 from every model. By definition they are at distance 1 from all "
            "others, so they come early."
        )


def _describe_data(finding: BenchmarkGrowth) -> str:
    """Describe the prompts and the models."""
    return f"Data: {finding.n_prompts:,} prompts and {finding.n_models} model{'s' * (finding.n_models != 1)}."


def _describe_sizes(finding: BenchmarkGrowth) -> Iterator[str]:
    """Describe from which size on the ranking stays near the final one."""
    size, random, permuted = finding.size_within, finding.random, finding.permuted
    yield (
        f"Prompts needed in random order: {random.stable_size_quantile(0.5):,.0f} (median of "
        f"{random.stable_sizes.size:,} orders)."
    )
    later = ", more than in random order" if size > random.stable_size_quantile(QUANTILE) else ""
    control = (
        f" With every model's scores shuffled: {permuted.stable_size_quantile(0.5):,.0f} (median of "
        f"{permuted.stable_sizes.size:,} tables)."
        if permuted
        else ""
    )
    yield f"Prompts needed with the most informative first: {size:,}{later}.{control}"


def _describe_early_means(finding: BenchmarkGrowth) -> Iterator[str]:
    """Describe the mean of the first prompts beside that of all."""
    metrics, name = finding.metrics, f"mean_at_{EARLY}"
    if isinstance(metrics[name], Undefined):
        return
    permuted = metrics[f"{name}.permuted_mean"]
    shuffled = "" if isinstance(permuted, Undefined) else f", {permuted:.3f} on shuffled tables"
    yield (
        f"Mean score of the first {EARLY} prompts: {metrics[name]:.3f} with informative ones, "
        f"{metrics[f'{name}.random_mean']:.3f} with random ones{shuffled}; {metrics['mean_final']:.3f} of all."
    )


def _describe_predictions(finding: BenchmarkGrowth) -> Iterator[str]:
    """Describe how far item response predicts a model's mean from the first prompts."""
    metrics, name = finding.metrics, f"prediction_error_at_{EARLY}"
    if finding.predictions is None or isinstance(metrics[f"{name}.random"], Undefined):
        return
    yield (
        f"Mean absolute error of a model's mean from {EARLY} prompts: {metrics[f'{name}.random_plain']:.3f} as plain "
        f"mean of random prompts. Predicted by item response without this model: {metrics[f'{name}.random']:.3f} with "
        f"random prompts, {metrics[f'{name}.informative']:.3f} with informative ones."
    )


def _list_caveats(finding: BenchmarkGrowth) -> Iterator[str]:
    if finding.n_models > 1:
        yield "The reference is this benchmark's own ranking, so the distance at full size is 0 by construction."
    early = finding.metrics[f"mean_at_{EARLY}"]
    if finding.permuted and not isinstance(early, Undefined):
        yield "A low mean of the first prompts is no sign of hard prompts: compare it with that on shuffled tables."
    if finding.item_response is not None:
        n_open = int((finding.item_response.floors == 0).sum())
        if n_open:
            yield f"{n_open:,} prompts have no stored options, so item response takes a floor of 0 for them."
        if finding.predictions is not None:
            yield "Predictions hold for models like the stored ones, not for much stronger ones."
    if not finding.permuted:
        yield "The order does not use scores, so random orders are the control."
    yield "Descriptive: no number here is a significance test."


def list_order_warnings(finding: BenchmarkGrowth, encoder: str | None) -> list[str]:
    """List warnings about the order of the prompts.

    Args:
        finding: the result.
        encoder: of the vectors that decide on the order; None where the scores do.
    """
    warnings = []
    if finding.n_distinct + bool(finding.n_zero) == 1:
        warnings.append("All prompts have the same direction, so they come in the order of their keys.")
    if not finding.converged:
        warnings.append("The fit of item response did not converge. The order by information may change.")
    if encoder is not None and finding.n_zero:
        warnings.append(f"{finding.n_zero:,} vectors are all zeros. They are at distance 1 from every prompt.")
    if encoder is not None:
        warnings.append(f"The order of the prompts uses the vectors by {encoder}.")
    return warnings
