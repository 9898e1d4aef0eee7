"""The summary of drift from run to run, and its warnings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyses.drift.method import Drift
from analyses.numerics.comparing.run_steps import RunStep
from analyses.presentation.name_lists import join_names
from tracker.queries.findings.summary import Summary
from tracker.queries.ranking.history import RunHistory
from tracker.run_settings import BOOKKEEPING

MAX_STEPS = 3
"""Steps that the summary describes; the table has all."""
MAX_SETTINGS = 4
"""Changed settings that a warning names."""


def summarize(finding: Drift) -> Summary:
    """The result, with its numbers."""
    steps = finding.steps
    if len(steps) == 1:
        return Summary(describe_step(finding, steps[0]))
    alpha = f"{1 - finding.level:.3g}"
    drifted = sorted(finding.drifted, key=lambda step: -abs(step.change))
    owner = finding.models[steps[0].after] if finding.n_models == 1 else f"{finding.n_models:,} models"
    sentences = [
        f"{len(drifted):,} of {len(steps):,} steps between runs of {owner} "
        f"{'is' if len(drifted) == 1 else 'are'} more than chance at {alpha} for all of them together (Holm)."
    ]
    sentences += [describe_step(finding, step) for step in drifted[:MAX_STEPS]]
    if len(drifted) > MAX_STEPS:
        sentences.append(f"The table of runs has the other {len(drifted) - MAX_STEPS:,}.")
    shares = [step.share_changed for step in steps if step.n]
    if shares:
        sentences.append(f"From run to run {np.mean(shares):.1%} of the shared prompts change their score.")
    return Summary.from_sentences(sentences)


def describe_step(finding: Drift, step: RunStep) -> str:
    """One step, with its numbers."""
    name, before, after = finding.models[step.after], finding.runs[step.before], finding.runs[step.after]
    if not step.n:
        return f"Runs {before} and {after} of {name} share no prompt, so they cannot be compared."
    where = f"on the {step.n:,} prompts that runs {before} and {after} share"
    if not step.n_better and not step.n_worse:
        return f"{name} has the same score on every one of {step.n:,} prompts in runs {before} and {after}."
    flips = f"{step.n_better:,} prompts better, {step.n_worse:,} worse"
    if np.isnan(step.holm):
        return f"{name} changed by {step.change:+.4f} {where}: too few to say how sure that is ({flips})."
    verb = "rose" if step.change > 0 else "fell"
    error = f"standard error {step.stderr:.4f}"
    if step.n_clusters:
        error += f", {step.n_clusters} clusters"
    if step.holm <= 1 - finding.level:
        return f"{name} {verb} by {abs(step.change):.4f} ({error}) {where} (p = {step.holm:.2g}; {flips})."
    return (
        f"{name} did not drift more than chance allows {where}: {step.change:+.4f} ({error}; p = {step.holm:.2g}; "
        f"{flips})."
    )


def collect_warnings(history: RunHistory, steps: Sequence[RunStep]) -> list[str]:
    """What the reader of the numbers should know."""
    warnings = []
    undated = sorted(
        {run.model for run in history.runs if not run.is_dated} & {history.runs[s.after].model for s in steps}
    )
    if undated:
        warnings.append(
            f"Of {join_names(undated)} it is not known of every run when it was made: runs are in the order in which "
            "they were taken in."
        )
    for step in steps:
        before, after = history.runs[step.before], history.runs[step.after]
        if step.n_only_before or step.n_only_after:
            warnings.append(
                f"Runs {before.id} and {after.id} were not asked the same: {step.n_only_before:,} prompts are only in "
                f"the former, {step.n_only_after:,} only in the latter. Shared prompts are compared."
            )
        changed = find_changed_settings(before.settings, after.settings)
        if changed:
            warnings.append(
                f"Between runs {before.id} and {after.id} of {after.model} settings changed: "
                f"{join_names(changed, MAX_SETTINGS)}."
            )
    return warnings


def find_changed_settings(before: object, after: object, under: str = "") -> list[str]:
    """Names of settings that differ, nested ones with dots between; what only one run tells of is passed over.

    So is what an evaluation keeps account of, such as the tokens it took: it decides no answer.
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [under] if before != after else []
    return [
        name
        for key in sorted(set(before) & set(after) - (set() if under else set(BOOKKEEPING)))
        for name in find_changed_settings(before[key], after[key], f"{under}.{key}" if under else str(key))
    ]
