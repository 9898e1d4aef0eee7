"""The summary of a comparison of two models, and its warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from analyses.comparison.method import ModelComparison
from analyses.numerics.comparing.paired_comparison import PairedComparison
from analyses.numerics.comparing.power import ALPHA, POWER
from analyses.numerics.comparing.task_differences import TaskDifference
from tracker.queries.findings.summary import Summary

MAX_TEXT = 90
"""Characters of a prompt that a warning shows."""
Flip: TypeAlias = Mapping[str, Any]
"""A row of the table of flips."""


def summarize(finding: ModelComparison) -> Summary:
    """The verdict, with its numbers."""
    pair, names = finding.comparison, finding.models
    sentences = [
        _verdict(pair, names, finding.cluster),
        _tests(pair),
        _unpaired(pair),
        _power(pair),
        _flips(pair, names),
        _by_task(finding.tasks, names, pair.level),
    ]
    return Summary.from_sentences(sentence for sentence in sentences if sentence)


def _verdict(pair: PairedComparison, names: tuple[str, str], by: str) -> str:
    best, p, n = pair.best, pair.pvalue, f"{pair.n:,} shared prompt{'s' * (pair.n != 1)}"
    if not pair.advantage.any():
        return f"{names[0]} and {names[1]} have the same score on every one of {n}: nothing tells them apart."
    ahead, behind = names if best.mean >= 0 else names[::-1]
    first, second = (pair.mean_a, pair.mean_b) if best.mean >= 0 else (pair.mean_b, pair.mean_a)
    means = f"means {first:.4f} and {second:.4f}"
    if np.isnan(best.stderr):
        return (
            f"{ahead} is ahead of {behind} by {abs(best.mean):.4f} on {n} ({means}): too few to say how sure that is."
        )
    interval = f"{pair.level:.0%} interval {_ends(best.low, best.high, best.mean)}"
    if best.stderr == 0:
        interval = f"no interval, since {'clusters' if pair.clustered is not None else 'prompts'} all say the same"
    clustered = f", clustered by {by} ({best.n_units} clusters{'' if pair.is_even else ' of very unequal sizes'})"
    clustered = clustered if pair.clustered is not None else ", prompts taken as independent"
    size = f"{abs(best.mean):.4f} (standard error {best.stderr:.4f})"
    if p <= 1 - pair.level:
        return f"{ahead} is better than {behind} by {size} on {n} ({means}; {interval}{clustered}; p = {p:.2g})."
    if best.mean == 0:
        return f"{names[0]} and {names[1]} have equal means on {n} ({means}; {interval}{clustered})."
    return (
        f"{ahead} and {behind} cannot be told apart: {ahead} is ahead by {size} on {n} ({means}; "
        f"{interval}{clustered}; p = {p:.2g})."
    )


def _ends(low: float, high: float, mean: float) -> str:
    """An interval of the advantage of the one ahead."""
    return f"{low:.4f} to {high:.4f}" if mean >= 0 else f"{-high:.4f} to {-low:.4f}"


def _tests(pair: PairedComparison) -> str:
    """The tests that are not the verdict's own."""
    if not pair.advantage.any() or pair.n < 2:
        return ""
    further = []
    flat = pair.best.stderr == 0
    if pair.flips_clustered is not None and not flat:
        further.append(f"flipped signs of whole clusters {_p(pair.flips_clustered.pvalue)}")
    if pair.clustered is not None:
        alone = "exact McNemar" if not np.isnan(pair.mcnemar) else "flipped signs"
        p = pair.flips.pvalue if np.isnan(pair.mcnemar) else pair.mcnemar
        further.append(f"{alone}, as if prompts were independent, {_p(p)}")
    else:
        alone = "exact McNemar test" if not np.isnan(pair.mcnemar) else "flipped signs"
        text = f"The test is {'the ' if 'McNemar' in alone else 'that of '}{alone}, on the same prompts."
        inside = pair.best.low <= 0 <= pair.best.high
        if not flat and inside != (pair.pvalue > 1 - pair.level):
            text += " The interval is Student's t and says otherwise; the verdict is the test's."
        return text
    if flat:
        return f"The test is that of flipped signs of whole clusters; beside it: {'; '.join(further)}."
    return f"The test is paired t with {pair.best.degrees:.3g} degrees of freedom; beside it: {'; '.join(further)}."


def _p(value: float) -> str:
    return f"p = {value:.2g}"


def _unpaired(pair: PairedComparison) -> str:
    unpaired = pair.unpaired
    if np.isnan(unpaired.pvalue):
        return ""
    return (
        f"An unpaired z-test, which forgets that the prompts are the same, would have said {_p(unpaired.pvalue)} "
        f"(standard error {unpaired.stderr:.4f}, paired {pair.naive.stderr:.4f})."
    )


def _power(pair: PairedComparison) -> str:
    if np.isnan(pair.detectable):
        return ""
    text = f"With this error a true difference of {pair.detectable:.4f} would be found in {POWER:.0%} of the cases"
    if np.isfinite(pair.n_needed) and pair.n_needed > pair.n:
        text += f"; for one as large as the observed it would take about {_enough(pair)}"
    return f"{text} (t-test, two-sided, at {ALPHA:g})."


def _enough(pair: PairedComparison) -> str:
    """How many units would be enough: more prompts of the same clusters would not do."""
    if pair.clustered is None:
        return f"{pair.n_needed:,.0f} prompts like these"
    n_clusters = round(pair.n_needed * pair.best.n_units / pair.n)
    return f"{n_clusters:,} clusters like these {pair.best.n_units:,}, of {pair.n_needed:,.0f} prompts together"


def _flips(pair: PairedComparison, names: tuple[str, str]) -> str:
    n_a, n_b = int((pair.advantage > 0).sum()), int((pair.advantage < 0).sum())
    if not n_a and not n_b:
        return ""
    return f"{names[0]} is better on {n_a:,} prompts, {names[1]} on {n_b:,}; on {pair.n - n_a - n_b:,} they are equal."


def _by_task(tasks: Sequence[TaskDifference], names: tuple[str, str], level: float) -> str:
    tested = [task for task in tasks if not np.isnan(task.holm)]
    if len(tasks) < 2 or not tested:
        return ""
    significant = [task for task in tested if task.holm <= 1 - level]
    n_a, n_b = sum(task.difference > 0 for task in significant), sum(task.difference < 0 for task in significant)
    wins = sum(task.difference > 0 for task in tasks), sum(task.difference < 0 for task in tasks)
    return (
        f"By task, {names[0]} is ahead in {wins[0]} and {names[1]} in {wins[1]} of {len(tasks)}; after Holm's "
        f"correction for {len(tested)} tests, {n_a} and {n_b} of these are more than chance."
    )


def collect_warnings(
    finding: ModelComparison, *, higher_is_better: bool, metric: str, flips: Sequence[Flip], n_flips: int
) -> list[str]:
    """What the reader of the numbers should know.

    Args:
        finding: the numbers.
        higher_is_better: whether large scores are good.
        metric: what the scores are.
        flips: prompts on which the two differ, in order.
        n_flips: how many of them to show for each model.
    """
    pair, names = finding.comparison, finding.models
    warnings = []
    for name, rival, n in zip(names, names[::-1], finding.n_only, strict=True):
        if n:
            warnings.append(
                f"{n:,} prompts of {name} are left out, since {rival} was not measured on them: only shared prompts "
                "are compared."
            )
    direction = "" if higher_is_better else f"; under {metric} lower is better, so that is {names[1]} less {names[0]}"
    warnings.append(f"Differences are positive where {names[0]} is better{direction}.")
    if not pair.flips.is_exact and np.isnan(pair.mcnemar):
        smallest = 1 / (pair.flips.n_drawn + 1)
        warnings.append(
            f"Signs of prompts were drawn {pair.flips.n_drawn:,} times, so that their p-value is at least "
            f"{smallest:.1g}."
        )
    for name in names:
        warnings += [describe_flip(flip) for flip in flips if flip["better"] == name][:n_flips]
    return warnings


def describe_flip(flip: Flip) -> str:
    """A prompt on which a model is better than the other, in one line."""
    task, text = flip["task"], flip["text"]
    start = f"{flip['better']} alone does better on {flip['prompt']}{f' ({task})' if task else ''}"
    if not text:
        return f"{start}."
    line = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return f"{start}: {line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + '…'}"
