"""The summary of weight robustness, and warnings about its models."""

from __future__ import annotations

import numpy as np

from analyses.numerics.weighting.random_weights import CENTRAL
from analyses.weight_robustness.method import WeightRobustness
from tracker.queries.findings.summary import Summary
from tracker.recording.finding import Undefined

MAX_DEVIATION = 3.5
"""Over the root of the number of draws, a difference that no share of draws has by chance: seven standard errors."""


def summarize(finding: WeightRobustness) -> Summary:
    """The result with its numbers."""
    u = finding.under
    words = [_leader(finding), _pairs(finding)] if len(finding.models) > 1 else []
    widest, ranging = int(np.argmax(u.high - u.low)), int(np.argmax(u.range_high - u.range_low))
    tail, known = "n", "the weights know nothing of the prompts"
    if finding.is_weighted:
        tail = "the effective number of prompts"
        known = "the weights scatter around the chosen ones and know nothing else of the prompts"
    words += [
        f"Weighted means spread most for {finding.models[widest]}: {u.mean[widest]:.4f}, 95 % interval "
        f"{u.low[widest]:.4f} to {u.high[widest]:.4f}. From the quantile 1/(B + 1) to B/(B + 1), where about the "
        f"smallest and the largest of B = {u.n_draws:,} draws lie, {finding.models[ranging]} ranges over "
        f"{u.range_high[ranging] - u.range_low[ranging]:.4f}; more draws would make that wider.",
        f"This is the Bayesian bootstrap: {known}, and the standard deviation of a weighted mean is that of the "
        f"scores over √({tail} + 1), for accuracies √(p(1 − p)/({tail} + 1)), here with {finding.n_effective:,.0f}. "
        "Intervals are functions of that number and of the scores' spread, ranges of B too, and neither of how "
        "well the benchmark is built. Nothing here is a test.",
    ]
    return Summary.from_sentences(words)


def _leader(finding: WeightRobustness) -> str:
    u, error = finding.under, finding.metrics["leader_changes.stderr"]
    tied = int((finding.rank == finding.rank.min()).sum()) - 1
    leading = f"{finding.models[0]} and {tied} tied with it hold" if tied else f"{finding.models[0]} holds"
    draws = f"all but {finding.n_changes:,} of {u.n_draws:,}" if finding.n_changes else f"all {u.n_draws:,}"
    text = (
        f"With {finding.n_prompts:,} prompts weighed at random{' around the chosen weights' * finding.is_weighted}, "
        f"{leading} the first place in {draws} draws: another model leads with chance "
        f"{finding.n_changes / u.n_draws:.3g} (± {error:.1g})"
    )
    least, most = finding.leader_change_bounds()
    if not isinstance(least, Undefined) and not isinstance(most, Undefined):
        about = f"{least:.3g}" if f"{least:.3g}" == f"{most:.3g}" else f"between {least:.3g} and {most:.3g}"
        text += f", by the exact chances {about}"
    if u.is_identical[1, 0]:
        return f"{text}. {finding.models[1]} has the same scores as {finding.models[0]}: the two are identical."
    return f"{text}. {finding.models[1]} is ahead of {finding.models[0]} with chance {u.beats[1, 0]:.3g}."


def _pairs(finding: WeightRobustness) -> str:
    upsets = finding.reversed
    if not upsets.size:
        return "All models have the same scores (identical), so no order can change."
    if upsets.size == 1:
        return f"The two are in the opposite order under a share of {upsets[0]:.3g} of the weightings."
    return (
        f"Of {upsets.size:,} pairs of models that differ, {int((upsets > CENTRAL[0]).sum()):,} are in the opposite "
        f"order under more than {CENTRAL[0]:.1%} of the weightings; the average pair under {upsets.mean():.2%}."
    )


def list_model_warnings(finding: WeightRobustness) -> list[str]:
    """What the reader of the numbers should know of the models behind them."""
    models, u = finding.models, finding.under
    warnings = []
    pairs = [f"{models[i]} = {models[j]}" for i, j in zip(*np.nonzero(np.triu(u.is_identical, 1)), strict=True)]
    if pairs:
        warnings.append(
            f"Identical on every prompt, so neither is ever ahead (0.5) and they share their places: "
            f"{', '.join(pairs[:5])}{' …' if len(pairs) > 5 else ''}."
        )
    constant = [name for name, is_so in zip(models, u.least == u.most, strict=True) if is_so]
    if constant:
        warnings.append(
            f"The same score on every prompt, which no weights can change: {', '.join(constant[:5])}"
            f"{' …' if len(constant) > 5 else ''}."
        )
    if u.draws_differ_by > MAX_DEVIATION / np.sqrt(u.n_draws):
        warnings.append(
            f"Some weights are so small that the draws cannot tell models apart: a chance of being ahead and its share "
            f"in the draws differ by {u.draws_differ_by:.2g}. Read the exact chances (--method exact), and no places."
        )
    return warnings
