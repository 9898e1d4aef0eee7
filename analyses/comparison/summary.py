"""Whether one model is better than another, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyses.numerics.comparing.by_task import TaskDifference
from analyses.numerics.comparing.power import ALPHA, POWER
from analyses.numerics.comparing.two_models import PairedComparison
from analyses.presentation.name_lists import join_names
from analyses.presentation.validation import ValidationErrors, check_minimum

SHOWN_TEXT = 90
"""Characters of a prompt that a note shows."""
NO_ERROR = "fewer than two prompts are shared"
CONSTANT = "the difference is the same on all prompts"


def problems(
    models: Sequence[str], chosen: tuple[str, str], *, n_resamples: int, n_flips: int, level: float, seed: int
) -> ValidationErrors:
    """Why these two cannot be compared, and what to do about it.

    Args:
        models: names of columns.
        chosen: what the two are called; '' where they were not named.
        n_resamples, n_flips, level, seed: as asked for.
    """
    return {
        "A comparison needs two models. Name them with --model-a and --model-b. "
        f"Known: {join_names(models, most=10)}.": ("" in chosen and len(models) != 2),
        f"Both models are {chosen[0]}. Name two different ones.": bool(chosen[0]) and chosen[0] == chosen[1],
        **check_minimum(1, n_resamples=n_resamples),
        **check_minimum(0, n_flips=n_flips, seed=seed),
        f"level is {level:g}; it must be between 0 and 1, such as 0.95.": not 0 < level < 1,
    }


def unshared(names: tuple[str, str], n_shared: int, n_only: tuple[int, int]) -> ValidationErrors:
    """Two models that were not asked the same."""
    said = ", ".join(f"{name} {n:,}" for name, n in zip(names, n_only, strict=True))
    return {
        f"{names[0]} and {names[1]} have no prompt in common (measured: {said}), so there is nothing to compare. "
        "Choose other runs or tasks.": n_shared == 0
    }


def summary(found: PairedComparison, names: tuple[str, str], by: str, tasks: Sequence[TaskDifference]) -> str:
    """The verdict, with its numbers."""
    said = [_verdict(found, names, by), _tests(found)]
    said += [_unpaired(found), _power(found), _flips(found, names), _by_task(tasks, names, found.level)]
    return " ".join(one for one in said if one)


def _verdict(found: PairedComparison, names: tuple[str, str], by: str) -> str:
    best, p, n = found.best, found.pvalue, f"{found.n:,} shared prompt{'s' * (found.n != 1)}"
    if not found.advantage.any():
        return f"{names[0]} and {names[1]} have the same score on every one of {n}: nothing tells them apart."
    ahead, behind = names if best.mean >= 0 else names[::-1]
    first, second = (found.mean_a, found.mean_b) if best.mean >= 0 else (found.mean_b, found.mean_a)
    means = f"means {first:.4f} and {second:.4f}"
    if np.isnan(best.stderr):
        return (
            f"{ahead} is ahead of {behind} by {abs(best.mean):.4f} on {n} ({means}): too few to say how sure that is."
        )
    interval = f"{found.level:.0%} interval {_ends(best.low, best.high, best.mean)}"
    if best.stderr == 0:
        interval = f"no interval, since {'clusters' if found.clustered is not None else 'prompts'} all say the same"
    clustered = f", clustered by {by} ({best.n_units} clusters{'' if found.is_even else ' of very unequal sizes'})"
    clustered = clustered if found.clustered is not None else ", prompts taken as independent"
    size = f"{abs(best.mean):.4f} (standard error {best.stderr:.4f})"
    if p <= 1 - found.level:
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


def _tests(found: PairedComparison) -> str:
    """The tests that are not the verdict's own."""
    if not found.advantage.any() or found.n < 2:
        return ""
    others = []
    flat = found.best.stderr == 0
    if found.flips_clustered is not None and not flat:
        others.append(f"flipped signs of whole clusters {_p(found.flips_clustered.pvalue)}")
    if found.clustered is not None:
        alone = "exact McNemar" if not np.isnan(found.mcnemar) else "flipped signs"
        p = found.flips.pvalue if np.isnan(found.mcnemar) else found.mcnemar
        others.append(f"{alone}, as if prompts were independent, {_p(p)}")
    else:
        alone = "exact McNemar test" if not np.isnan(found.mcnemar) else "flipped signs"
        said = f"The test is {'the ' if 'McNemar' in alone else 'that of '}{alone}, on the same prompts."
        inside = found.best.low <= 0 <= found.best.high
        if not flat and inside != (found.pvalue > 1 - found.level):
            said += " The interval is Student's t and says otherwise; the verdict is the test's."
        return said
    if flat:
        return f"The test is that of flipped signs of whole clusters; beside it: {'; '.join(others)}."
    return f"The test is paired t with {found.best.degrees:.3g} degrees of freedom; beside it: {'; '.join(others)}."


def _p(value: float) -> str:
    return f"p = {value:.2g}"


def _unpaired(found: PairedComparison) -> str:
    one = found.unpaired
    if np.isnan(one.pvalue):
        return ""
    return (
        f"An unpaired z-test, which forgets that the prompts are the same, would have said {_p(one.pvalue)} (standard "
        f"error {one.stderr:.4f}, paired {found.naive.stderr:.4f})."
    )


def _power(found: PairedComparison) -> str:
    if np.isnan(found.detectable):
        return ""
    said = f"With this error a true difference of {found.detectable:.4f} would be found in {POWER:.0%} of the cases"
    if np.isfinite(found.n_needed) and found.n_needed > found.n:
        said += f"; for one as large as the observed it would take about {_enough(found)}"
    return f"{said} (t-test, two-sided, at {ALPHA:g})."


def _enough(found: PairedComparison) -> str:
    """How many units would be enough: more prompts of the same clusters would not do."""
    if found.clustered is None:
        return f"{found.n_needed:,.0f} prompts like these"
    n_clusters = round(found.n_needed * found.best.n_units / found.n)
    return f"{n_clusters:,} clusters like these {found.best.n_units:,}, of {found.n_needed:,.0f} prompts together"


def _flips(found: PairedComparison, names: tuple[str, str]) -> str:
    n_a, n_b = int((found.advantage > 0).sum()), int((found.advantage < 0).sum())
    if not n_a and not n_b:
        return ""
    return f"{names[0]} is better on {n_a:,} prompts, {names[1]} on {n_b:,}; on {found.n - n_a - n_b:,} they are equal."


def _by_task(tasks: Sequence[TaskDifference], names: tuple[str, str], level: float) -> str:
    tested = [task for task in tasks if not np.isnan(task.holm)]
    if len(tasks) < 2 or not tested:
        return ""
    clear = [one for one in tested if one.holm <= 1 - level]
    n_a, n_b = sum(one.difference > 0 for one in clear), sum(one.difference < 0 for one in clear)
    wins = sum(task.difference > 0 for task in tasks), sum(task.difference < 0 for task in tasks)
    return (
        f"By task, {names[0]} is ahead in {wins[0]} and {names[1]} in {wins[1]} of {len(tasks)}; after Holm's "
        f"correction for {len(tested)} tests, {n_a} and {n_b} of these are more than chance."
    )


def warnings(
    found: PairedComparison,
    names: tuple[str, str],
    *,
    n_only: tuple[int, int],
    higher_is_better: bool,
    metric: str,
    shown: Sequence[str],
) -> list[str]:
    """What the reader of the numbers should know."""
    said = []
    for name, other, n in zip(names, names[::-1], n_only, strict=True):
        if n:
            said.append(
                f"{n:,} prompts of {name} are left out, since {other} was not measured on them: only shared prompts "
                "are compared."
            )
    turned = "" if higher_is_better else f"; under {metric} lower is better, so that is {names[1]} less {names[0]}"
    said.append(f"Differences are positive where {names[0]} is better{turned}.")
    if not found.flips.is_exact and np.isnan(found.mcnemar):
        least = 1 / (found.flips.n_drawn + 1)
        said.append(
            f"Signs of prompts were drawn {found.flips.n_drawn:,} times, so that their p-value is at least {least:.1g}."
        )
    return [*said, *shown]


def flip_in_words(name: str, prompt: str, task: str, text: str | None) -> str:
    """A prompt on which a model is better than the other, in one line."""
    said = f"{name} alone does better on {prompt}{f' ({task})' if task else ''}"
    if not text:
        return f"{said}."
    line = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return f"{said}: {line if len(line) <= SHOWN_TEXT else line[: SHOWN_TEXT - 1] + '…'}"
