"""The summary of a comparison of two models, and its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from analyses.comparison.method import ModelComparison
from analyses.numerics.comparing.paired_comparison import PairedComparison
from analyses.numerics.comparing.task_differences import TaskDifference
from tracker.number_format import format_difference
from tracker.queries.findings.summary import Summary
from tracker.statistics.planning.power import ALPHA, POWER


def summarize(finding: ModelComparison) -> Summary:
    """Summarize which of the two models is better, by how much and how sure."""
    pair, names = finding.comparison, finding.models
    evidence = (
        _describe_means(pair, names, finding.cluster),
        _describe_flips(pair, names),
        _describe_tests(finding),
        _describe_tasks(finding.tasks, names, pair.level),
        _describe_margin(finding) or _describe_power(finding.decisive),
    )
    caveats = (*_describe_missing(finding), *_list_caveats(finding))
    return Summary(_headline_with_margin(finding), tuple(item for item in evidence if item), caveats)


def _headline_with_margin(finding: ModelComparison) -> str:
    """The verdict: better, equivalent, or, with a margin and neither, inconclusive."""
    pair, names, test = finding.decisive, finding.models, finding.equivalence
    if test is None:
        return _headline(finding)
    is_better = finding.pvalue <= 1 - pair.level
    interval = f"{1 - 2 * test.alpha:.0%} interval {format_difference(test.low)} to {format_difference(test.high)}"
    if test.is_equivalent:
        verdict = f"{names[0]} and {names[1]} are equivalent within ±{test.margin:g}"
        if is_better:
            ahead = names[0] if pair.best.mean > 0 else names[1]
            return f"{verdict}: {ahead} is better, but by less than the margin ({interval})."
        return f"{verdict}: their difference is {format_difference(pair.best.mean)} ({interval})."
    if is_better or np.isnan(test.low):
        return _headline(finding)
    return (
        f"Inconclusive: {names[0]} and {names[1]} are neither significantly different nor equivalent within "
        f"±{test.margin:g} (difference {format_difference(pair.best.mean)}, {interval})."
    )


def _describe_margin(finding: ModelComparison) -> str:
    """The test of equivalence, where there is a margin."""
    test = finding.equivalence
    if test is None:
        return ""
    level = f"{1 - 2 * test.alpha:.0%}"
    if np.isnan(test.low):
        return f"Equivalence within ±{test.margin:g} is not tested: there is no {level} interval."
    lies = "lies" if test.is_equivalent else "does not lie"
    interval = f"{format_difference(test.low)} to {format_difference(test.high)}"
    return (
        f"Equivalence: the {level} interval, {interval}, {lies} within ±{test.margin:g} (two one-sided tests, "
        f"{test.test}, {_p(test.pvalue)})."
    )


def _headline(finding: ModelComparison) -> str:
    pair, names, is_open = finding.decisive, finding.models, finding.completions is not None
    best = pair.best
    if not pair.advantage.any() and not is_open:
        return f"{names[0]} and {names[1]} have the same score on every shared prompt."
    ahead, behind = names if best.mean >= 0 else names[::-1]
    size = f"{format_difference(abs(best.mean))}"
    if np.isnan(best.stderr):
        return f"{ahead} is ahead of {behind} by {size}, on too few prompts for a test."
    numbers = f"({_describe_interval(finding)}{_p(finding.pvalue)})"
    if finding.pvalue <= 1 - pair.level:
        whatever = " also with missing scores at their bounds" if is_open else ""
        return f"{ahead} is better than {behind} by {size}{whatever} {numbers}."
    if is_open and pair.pvalue <= 1 - pair.level:
        return (
            f"Undecided, because scores are missing: {ahead} is better than {behind} by {size} on the {pair.n:,} "
            f"shared prompts ({_p(pair.pvalue)}), but not with missing scores at their bounds {numbers}."
        )
    if best.mean == 0:
        return f"{names[0]} and {names[1]} have equal means{' on the shared prompts' if is_open else ''}."
    return f"{ahead} is ahead of {behind} by {size}, but not significantly {numbers}."


def _describe_interval(finding: ModelComparison) -> str:
    """The interval of the advantage of the model ahead; '' without one."""
    best, (low, high) = finding.decisive.best, finding.interval
    if np.isnan(low):
        return ""
    if best.mean < 0:
        low, high = -high, -low
    return f"{finding.comparison.level:.0%} interval {format_difference(low)} to {format_difference(high)}, "


def _describe_missing(finding: ModelComparison) -> Iterator[str]:
    """How many scores are missing, what they can change, and how to leave incomplete prompts out."""
    if finding.imputed is not None:
        pair = finding.comparison
        difference = format_difference(pair.best.mean)
        yield (
            f"{finding.n_imputed:,} score{'s are' if finding.n_imputed > 1 else ' is'} imputed, on "
            f"{finding.imputed.n:,} prompts. On the {pair.n:,} shared prompts the difference is {difference} "
            f"({_p(pair.pvalue)}). The error includes the imputation, if effects of prompts and models add up."
        )
    cases = finding.completions
    if cases is None:
        return
    n = f"{cases.n_missing:,} score{'s are' if cases.n_missing > 1 else ' is'} missing"
    ends, (ahead, behind) = (cases.worst.best.mean, cases.best.best.mean), finding.models
    if finding.decisive.best.mean < 0:
        ends, (ahead, behind) = (0.0 - ends[1], 0.0 - ends[0]), (behind, ahead)
    yield (
        f"{n}. On all {cases.n:,} prompts the advantage of {ahead} over {behind} is therefore from "
        f"{format_difference(ends[0])} to {format_difference(ends[1])}; --missing common uses the shared prompts alone."
    )


def _describe_means(pair: PairedComparison, names: tuple[str, str], cluster: str) -> str:
    best = pair.best
    n = f"{pair.n:,} shared prompt{'s' * (pair.n != 1)}"
    means = f"Means on {n}: {names[0]} {format_difference(pair.mean_a)}, {names[1]} {format_difference(pair.mean_b)}."
    if np.isnan(best.stderr) or not pair.advantage.any():
        return means
    if pair.stratified is not None:
        kind = "stratified by task"
    elif pair.clustered is None:
        kind = "prompts as independent"
    else:
        kind = f"clustered by {cluster}: {best.n_units} clusters{'' if pair.is_even else ' of very unequal sizes'}"
    return f"{means} Standard error of the difference {format_difference(best.stderr)} ({kind})."


def _describe_tests(finding: ModelComparison) -> str:
    """The test behind the verdict, and the other tests."""
    pair, cases = finding.decisive, finding.completions
    if np.isnan(pair.best.stderr):
        return ""
    if cases is None:
        return _describe_tests_of_pair(pair)
    if (case := cases.decisive) is not None:
        side = "against" if (case is cases.worst) == (case.best.mean > 0) else "for"
        return (
            f"{_describe_tests_of_pair(case)} Every missing score is set {side} the model ahead, which has the larger "
            f"p; on the shared prompts {_p(pair.pvalue)}."
        )
    return f"Missing scores leave open who is ahead, so p = 1; on the shared prompts {_p(pair.pvalue)}."


def _describe_tests_of_pair(pair: PairedComparison) -> str:
    if not pair.advantage.any() or pair.n < 2:
        return ""
    by_prompt = "exact McNemar" if not np.isnan(pair.mcnemar) else "sign flips"
    p_by_prompt = pair.flips.pvalue if np.isnan(pair.mcnemar) else pair.mcnemar
    further = []
    if pair.clustered is None:
        test = by_prompt
    elif pair.best.stderr == 0:
        test = "sign flips of whole clusters"
        further.append(f"{by_prompt} on prompts as independent {_p(p_by_prompt)}")
    else:
        test = f"paired t-test, {pair.best.degrees:.3g} degrees of freedom"
        if pair.flips_clustered is not None:
            further.append(f"sign flips of whole clusters {_p(pair.flips_clustered.pvalue)}")
        further.append(f"{by_prompt} on prompts as independent {_p(p_by_prompt)}")
    gain = ""
    if abs(pair.pairing_gain - 1) >= 0.05:
        gain = f" On separate prompts, the same error needs {pair.pairing_gain:.2g} times as many."
    return f"Test: {test}." + (f" For comparison: {'; '.join(further)}." if further else "") + gain


def _p(value: float) -> str:
    return f"p = {value:.2g}"


def _list_caveats(finding: ModelComparison) -> Iterator[str]:
    pair = finding.decisive
    best = pair.best
    if not pair.advantage.any() or np.isnan(best.stderr):
        return
    kind = "Student's t"
    if best.stderr == 0 and finding.completions is None:
        units = "clusters" if pair.clustered is not None else "prompts"
        kind = f"by the share of {units} that can differ"
        reason = "there is no interval" if np.isnan(finding.interval[0]) else f"the interval is {kind}"
        yield f"All {units} give the same difference, so {reason}."
    low, high = finding.interval
    if not np.isnan(low) and (low <= 0 <= high) != (finding.pvalue > 1 - pair.level):
        yield f"The interval ({kind}) and the test disagree; the verdict follows the test."


def _describe_power(pair: PairedComparison) -> str:
    if np.isnan(pair.detectable):
        return ""
    size = format_difference(pair.detectable)
    return f"Power {POWER:.0%} needs a true difference of {size} (two-sided t-test at {ALPHA:g})."


def _describe_flips(pair: PairedComparison, names: tuple[str, str]) -> str:
    n_a, n_b = int((pair.advantage > 0).sum()), int((pair.advantage < 0).sum())
    if not n_a and not n_b:
        return ""
    return f"{names[0]} is better on {n_a:,} prompts, {names[1]} on {n_b:,}; {pair.n - n_a - n_b:,} are equal."


def _describe_tasks(tasks: Sequence[TaskDifference], names: tuple[str, str], level: float) -> str:
    tested = [task for task in tasks if not np.isnan(task.holm)]
    if len(tasks) < 2 or not tested:
        return ""
    significant = [task for task in tested if task.holm <= 1 - level]
    n_a, n_b = sum(task.difference > 0 for task in significant), sum(task.difference < 0 for task in significant)
    wins = sum(task.difference > 0 for task in tasks), sum(task.difference < 0 for task in tasks)
    return (
        f"Tasks: {names[0]} is ahead in {wins[0]} of {len(tasks)}, {names[1]} in {wins[1]}; significant after Holm's "
        f"correction for {len(tested)} tests: {n_a} and {n_b}."
    )


def collect_warnings(finding: ModelComparison, *, higher_is_better: bool, metric: str) -> list[str]:
    """List warnings about prompts without both scores, the direction of differences and the tests.

    Args:
        finding: the result.
        higher_is_better: whether large scores are good.
        metric: name of the metric.
    """
    pair, names = finding.comparison, finding.models
    warnings = []
    for name, rival, n in zip(names, names[::-1], finding.n_only, strict=True):
        if n and finding.completions is None and finding.imputed is None:
            warnings.append(
                f"{n:,} prompt{'s' * (n != 1)} of {name} without a score of {rival} "
                f"{'is' if n == 1 else 'are'} excluded."
            )
    if not higher_is_better:
        warnings.append(
            f"Lower {metric} is better: a difference is {names[1]} minus {names[0]}, positive if {names[0]} is better."
        )
    if not pair.flips.is_exact and np.isnan(pair.mcnemar):
        smallest = 1 / (pair.flips.n_drawn + 1)
        warnings.append(
            f"The sign-flip test drew {pair.flips.n_drawn:,} samples; its smallest possible p-value is {smallest:.1g}."
        )
    return warnings
