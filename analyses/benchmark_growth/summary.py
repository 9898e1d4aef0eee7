"""The summary of benchmark growth, and warnings about the order."""

from __future__ import annotations

from analyses.benchmark_growth.method import EARLY, BenchmarkGrowth
from tracker.queries.findings.summary import Summary
from tracker.recording.finding import Undefined


def summarize(finding: BenchmarkGrowth) -> Summary:
    """The result with its numbers."""
    return Summary.from_sentences([*_stable_sizes(finding), *_early_means(finding), "None of this is a test."])


def _stable_sizes(finding: BenchmarkGrowth) -> list[str]:
    """From which size on the ranking stays near the final one, informative prompts first and otherwise."""
    n, n_models, random, permuted = finding.n_prompts, finding.n_models, finding.random, finding.permuted
    if n_models == 1:
        return [f"On {n:,} prompts and one model there is no ranking to follow."]
    size = finding.size_within
    sentences = [
        f"On {n:,} prompts and {n_models} models, the ranking stays within a Kendall distance of "
        f"{finding.within:g} of the final one from {size:,} prompts on when the most informative come "
        f"first, and from {random.stable_size_quantile(0.5):,.0f} on in random order (median of "
        f"{random.stable_sizes.size:,} orders; 97.5% of them from {random.stable_size_quantile(0.975):,.0f} on)."
    ]
    if size > random.stable_size_quantile(0.975):
        sentences.append(
            "Prompts chosen for being informative in this sense settle the ranking later than random ones."
        )
    if permuted:
        sentences.append(
            f"With every model's scores shuffled, the same method needs {permuted.stable_size_quantile(0.5):,.0f} "
            f"(median of {permuted.stable_sizes.size:,} tables)."
        )
    sentences.append(
        "At full size the distance is 0 by construction, and these sizes are about agreement with this benchmark's "
        "own ranking; the first of them also depends on the prompt to start with."
    )
    return sentences


def _early_means(finding: BenchmarkGrowth) -> list[str]:
    """The mean of the first prompts beside that of all."""
    metrics, name = finding.metrics, f"mean_at_{EARLY}"
    if isinstance(metrics[name], Undefined):
        return []
    sentences = [
        f"The first {EARLY} informative prompts give a mean of {metrics[name]:.3f}, {EARLY} random ones "
        f"{metrics[f'{name}.random_mean']:.3f}, all {metrics['mean_final']:.3f}."
    ]
    if isinstance(metrics[f"{name}.permuted_mean"], Undefined):
        return [
            *sentences,
            "Shuffling rows of scores against the vectors gives random orders: they are the control here.",
        ]
    sentences.append(
        f"That this differs from the mean of all is not by itself a sign of difficult prompts: on shuffled tables, "
        "where no prompt is harder than another but by chance, the method begins at "
        f"{metrics[f'{name}.permuted_mean']:.3f}."
    )
    if finding.n_zero:
        sentences.append(
            f"{finding.n_zero:,} prompts have no score but 0; by definition they are at distance 1 from all others, "
            "and so come early."
        )
    return sentences


def list_order_warnings(finding: BenchmarkGrowth, first: int, encoder: str | None) -> list[str]:
    """What the reader of the numbers should know of the order behind them.

    Args:
        finding: of the analysis.
        first: key of the first prompt.
        encoder: of the vectors that decide on the order; None where the scores do.
    """
    warnings = [f"The first prompt is {first}; --start chooses another."]
    if encoder is not None:
        warnings.append(f"Prompts come in the order of their vectors by {encoder}.")
    if encoder is not None and finding.n_zero:
        warnings.append(f"{finding.n_zero:,} vectors are all zeros; they are at distance 1 from every prompt.")
    if finding.n_distinct + bool(finding.n_zero) == 1:
        warnings.append("All prompts have the same direction, so they come in the order of their keys.")
    return warnings
