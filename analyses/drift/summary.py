"""Whether scores drifted from run to run, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyses.numerics.comparing.steps import RunStep
from analyses.presentation.name_lists import join_names
from analyses.presentation.validation import ValidationErrors
from tracker.queries.ranking.history import RunHistory
from tracker.run_settings import BOOKKEEPING

SAID_STEPS = 3
SAID_SETTINGS = 4


def problems(n_series: int, benchmark: str, level: float) -> ValidationErrors:
    """Why there is no drift to speak of, and what to do about it."""
    return {
        f"No model has two runs on {benchmark or 'this benchmark'} under this metric, condition and variant, so "
        "nothing can have drifted. Take in a later run, or see what there is: suffrage runs": n_series == 0,
        f"level is {level:g}; it must be between 0 and 1, such as 0.95.": not 0 < level < 1,
    }


def summary(found: Sequence[RunStep], models: Sequence[str], runs: Sequence[int], n_models: int, level: float) -> str:
    """What was found, with its numbers."""
    if len(found) == 1:
        return step_in_words(found[0], models, runs, level)
    alpha = f"{1 - level:.3g}"
    drifted = sorted((step for step in found if step.holm <= 1 - level), key=lambda step: -abs(step.change))
    whose = models[found[0].after] if n_models == 1 else f"{n_models:,} models"
    said = [
        f"{len(drifted):,} of {len(found):,} steps between runs of {whose} "
        f"{'is' if len(drifted) == 1 else 'are'} more than chance at {alpha} for all of them together (Holm)."
    ]
    said += [step_in_words(step, models, runs, level) for step in drifted[:SAID_STEPS]]
    if len(drifted) > SAID_STEPS:
        said.append(f"The table of runs has the other {len(drifted) - SAID_STEPS:,}.")
    shares = [step.share_changed for step in found if step.n]
    if shares:
        said.append(f"From run to run {np.mean(shares):.1%} of the shared prompts change their score.")
    return " ".join(said)


def step_in_words(step: RunStep, models: Sequence[str], runs: Sequence[int], level: float) -> str:
    """One step, with its numbers."""
    name, before, after = models[step.after], runs[step.before], runs[step.after]
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
    if step.holm <= 1 - level:
        return f"{name} {verb} by {abs(step.change):.4f} ({error}) {where} (p = {step.holm:.2g}; {flips})."
    return (
        f"{name} did not drift more than chance allows {where}: {step.change:+.4f} ({error}; p = {step.holm:.2g}; "
        f"{flips})."
    )


def warnings(history: RunHistory, found: Sequence[RunStep]) -> list[str]:
    """What the reader of the numbers should know."""
    said = []
    undated = sorted(
        {run.model for run in history.runs if not run.is_dated} & {history.runs[s.after].model for s in found}
    )
    if undated:
        said.append(
            f"Of {join_names(undated)} it is not known of every run when it was made: runs are in the order in which "
            "they were taken in."
        )
    for step in found:
        before, after = history.runs[step.before], history.runs[step.after]
        if step.n_only_before or step.n_only_after:
            said.append(
                f"Runs {before.id} and {after.id} were not asked the same: {step.n_only_before:,} prompts are only in "
                f"the former, {step.n_only_after:,} only in the latter. Shared prompts are compared."
            )
        other = settings_changed(before.settings, after.settings)
        if other:
            said.append(
                f"Between runs {before.id} and {after.id} of {after.model} settings changed: "
                f"{join_names(other, SAID_SETTINGS)}."
            )
    return said


def settings_changed(before: object, after: object, under: str = "") -> list[str]:
    """Names of settings that differ, nested ones with dots between; what only one run tells of is passed over.

    So is what an evaluation keeps account of, such as the tokens it took: it decides no answer.
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [under] if before != after else []
    return [
        name
        for key in sorted(set(before) & set(after) - (set() if under else set(BOOKKEEPING)))
        for name in settings_changed(before[key], after[key], f"{under}.{key}" if under else str(key))
    ]
