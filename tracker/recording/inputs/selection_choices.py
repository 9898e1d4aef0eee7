"""Complete the selection of an analysis before its inputs load, so that every choice is recorded."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.plugins.parameters import CPU
from tracker.queries.clusters import choose_task_effects
from tracker.queries.ranking.policy_choice import choose_policy
from tracker.queries.resolution import find_benchmark, select_tasks
from tracker.queries.selection import Selection
from tracker.recording.declaration import SELECTION_OPTIONS, Declaration
from tracker.recording.inputs.workers import Workers


def choose_default_policy(session: Session, declaration: Declaration, selection: Selection | None) -> Selection | None:
    """Return the selection with an explicit policy for missing scores, if the analysis reads scores."""
    if selection is None:
        return None
    if not declaration.score_units:
        if selection.missing is not None:
            raise SelectionError(f"{declaration.name} does not use missing. Leave --missing out.")
        return selection
    if selection.min_coverage is None:
        selection = replace(selection, min_coverage=declaration.min_coverage)
    return choose_policy(
        session,
        selection,
        default=declaration.missing,
        supported=declaration.accepted_policies,
        units=declaration.score_units,
        subject=declaration.name,
    )


def choose_effects(session: Session, declaration: Declaration, selection: Selection | None) -> Selection | None:
    """Return the selection with explicit task effects, if the analysis has errors that depend on them."""
    if selection is None or not declaration.has_option("cluster"):
        return selection
    tasks = select_tasks(session, find_benchmark(session, selection.benchmark), selection)
    return replace(selection, task_effects=choose_task_effects(selection, list(tasks.values())))


def check_device_choice(declaration: Declaration, workers: Workers, device: str) -> None:
    """Reject a device other than the CPU where the analysis or the workers cannot use it.

    Raises:
        SelectionError: they cannot.
    """
    if device == CPU:
        return
    if not declaration.has_device:
        raise SelectionError(f"{declaration.name} computes on the CPU only. Leave --device out.")
    if isinstance(workers, str):
        raise SelectionError("The workers of a cluster compute on CPUs only. Leave --device or --cluster out.")


def check_selection(declaration: Declaration, selection: Selection | None) -> None:
    """Reject options that the analysis does not use, and missing options that it needs.

    Raises:
        SelectionError: such an option is set or missing.
    """
    if selection is None:
        if declaration.is_of_one_benchmark:
            raise SelectionError(f"{declaration.name} needs a benchmark. Name one.")
        return
    if not declaration.is_of_one_benchmark:
        raise SelectionError(f"{declaration.name} uses findings of all benchmarks. Leave the benchmark out.")
    for choice in SELECTION_OPTIONS:
        if getattr(selection, choice) is not None and not declaration.has_option(choice):
            raise SelectionError(f"{declaration.name} does not use {choice}. Leave --{choice} out.")
    if selection.task_effects is not None and not declaration.has_option("cluster"):
        raise SelectionError(f"{declaration.name} does not use task effects. Leave --task-effects out.")
