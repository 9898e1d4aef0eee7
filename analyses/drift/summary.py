"""The summary of drift from run to run, and its warnings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyses.drift.method import Drift
from analyses.numerics.comparing.run_steps import RunStep
from tracker.name_lists import join_names
from tracker.number_format import format_difference
from tracker.queries.findings.summary import Summary
from tracker.queries.ranking.history import RunHistory
from tracker.run_settings import BOOKKEEPING

MAX_STEPS = 3
"""Steps that the summary describes; the table has all."""
MAX_SETTINGS = 4
"""Changed settings that a warning names."""


def summarize(finding: Drift) -> Summary:
    """Summarize which runs changed significantly from the run before."""
    steps = finding.steps
    drifted = sorted(finding.drifted, key=lambda step: -abs(step.change))
    shares = [step.share_changed for step in steps if step.n]
    evidence = [describe_step(finding, step) for step in (drifted or steps[-1:])[:MAX_STEPS]]
    if len(drifted) > MAX_STEPS:
        evidence.append(f"{len(drifted) - MAX_STEPS:,} more significant changes are in the table `runs`.")
    if shares and len(steps) > 1:
        evidence.append(f"On average {np.mean(shares):.1%} of the shared prompts change their score between two runs.")
    return Summary(_headline(finding, drifted), tuple(evidence))


def _headline(finding: Drift, drifted: Sequence[RunStep]) -> str:
    steps = finding.steps
    owner = finding.models[steps[0].after] if finding.n_models == 1 else f"{finding.n_models:,} models"
    if len(steps) > 1:
        return _describe_many_steps(finding, drifted, owner)
    [step] = steps
    if not step.n:
        return f"The two runs of {owner} share no prompt, so they cannot be compared."
    if not step.n_better and not step.n_worse:
        return f"{owner} has the same score on every shared prompt in both runs."
    if np.isnan(step.holm):
        return f"{owner} changed by {format_difference(step.change, sign='+')}, on too few prompts for a test."
    if drifted:
        verb = _describe_direction(finding, step)
        return f"{owner} {verb} by {format_difference(abs(step.change))} between its two runs (p = {step.holm:.2g})."
    change = format_difference(step.change, "+")
    return f"{owner} changed by {change} between its two runs, not significantly (p = {step.holm:.2g})."


def _describe_many_steps(finding: Drift, drifted: Sequence[RunStep], owner: str) -> str:
    """Which change is the largest significant one, and how many are significant."""
    n_tested = sum(not np.isnan(step.holm) for step in finding.steps)
    n_steps, test = f"{n_tested:,}", f"significant at {1 - finding.level:.3g} (Holm)"
    if not n_tested:
        return (
            f"None of the {len(finding.steps):,} changes between runs of {owner} can be tested: too few shared prompts."
        )
    if not drifted:
        return f"No change between runs of {owner} is {test}; {n_steps} {'was' if n_tested == 1 else 'were'} tested."
    largest = drifted[0]
    verb = _describe_direction(finding, largest)
    runs = f"from run {finding.runs[largest.before]} to {finding.runs[largest.after]}"
    count = f"{len(drifted):,} of {n_steps} changes {'is' if len(drifted) == 1 else 'are'} {test}"
    return f"{finding.models[largest.after]} {verb} by {format_difference(abs(largest.change))} {runs}; {count}."


def _describe_direction(finding: Drift, step: RunStep) -> str:
    """The verb for a change, whose sign is that of the merit."""
    if finding.higher_is_better:
        return "rose" if step.change > 0 else "fell"
    return "improved" if step.change > 0 else "worsened"


def describe_step(finding: Drift, step: RunStep) -> str:
    """Describe the change between two runs, with its standard error and p-value."""
    name, before, after = finding.models[step.after], finding.runs[step.before], finding.runs[step.after]
    if not step.n:
        return f"{name}, runs {before} and {after}: no shared prompt."
    where = f"{name}, run {before} to {after}: {format_difference(step.change, sign='+')} on {step.n:,} shared prompts"
    flips = f"{step.n_better:,} better, {step.n_worse:,} worse"
    if np.isnan(step.holm):
        return f"{where} ({flips})."
    clusters = f", {step.n_clusters} clusters" if step.n_clusters else ""
    return f"{where} ({flips}; standard error {format_difference(step.stderr)}{clusters}; p = {step.holm:.2g})."


def collect_warnings(history: RunHistory, steps: Sequence[RunStep]) -> list[str]:
    """List warnings about the order of runs, their prompts and their settings."""
    warnings = []
    if not history.scores.higher_is_better:
        warnings.append(f"Lower {history.scores.metric} is better: a change is positive if it is an improvement.")
    undated = sorted(
        {run.model for run in history.runs if not run.is_dated} & {history.runs[s.after].model for s in steps}
    )
    if undated:
        warnings.append(f"Some runs of {join_names(undated)} have no date: runs are in the order of import.")
    for step in steps:
        before, after = history.runs[step.before], history.runs[step.after]
        if step.n_only_before or step.n_only_after:
            warnings.append(
                f"Runs {before.id} and {after.id} have different prompts: {step.n_only_before:,} are only in run "
                f"{before.id}, {step.n_only_after:,} only in run {after.id}. {_describe_missing(history, step)}"
            )
        changed = find_changed_settings(before.settings, after.settings)
        if changed:
            warnings.append(
                f"Settings changed between runs {before.id} and {after.id} of {after.model}: "
                f"{join_names(changed, MAX_SETTINGS)}."
            )
    return warnings


def _describe_missing(history: RunHistory, step: RunStep) -> str:
    """Return what the comparison of two runs does about prompts that only one of them has."""
    if history.scores.missing == "worst":
        return "Their missing scores are replaced by the worst possible score."
    if history.scores.linearized is not None:
        return "Their missing scores are imputed from all runs; the error includes the imputation."
    if step.least == step.most or np.isnan(step.least):
        return "Only shared prompts are compared."
    least, most = format_difference(step.least, "+"), format_difference(step.most, "+")
    return (
        f"On all of them the change is from {least} to {most}, and the test holds for that range; --missing common "
        "compares shared prompts alone."
    )


def find_changed_settings(before: object, after: object, under: str = "") -> list[str]:
    """List the names of settings that differ, with dots between nested names.

    Settings that only one run has are skipped, as is the bookkeeping of an evaluation, such as its token counts.
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [under] if before != after else []
    return [
        name
        for key in sorted(set(before) & set(after) - (set() if under else set(BOOKKEEPING)))
        for name in find_changed_settings(before[key], after[key], f"{under}.{key}" if under else str(key))
    ]
