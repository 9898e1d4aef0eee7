"""Warnings about numbers computed from the prompts that a filter keeps."""

from __future__ import annotations

import shlex

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.catalogue.prompt_names import load_prompt_names
from tracker.queries.filtering.prompt_filter import PromptFilter, load_prompt_filter, load_selected_filter
from tracker.queries.resolution import BenchmarkKey, select_tasks
from tracker.queries.scores import read_prompts
from tracker.queries.selection import Selection
from tracker.queries.sql import tables

MAX_NAMES = 5
"""Number of prompts that a warning names."""


def list_filter_warnings(session: Session, benchmark: BenchmarkKey, selection: Selection) -> tuple[str, ...]:
    """Return the warnings for a selection with a filter: how many prompts it keeps, staleness, and its models.

    Args:
        session: the store; only committed data are visible.
        benchmark: of the selection.
        selection: the selection.

    Raises:
        NotFoundError: the finding does not exist.
        SelectionError: the finding is not a filter, filters another benchmark, or keeps no prompts.
    """
    chosen = load_selected_filter(session, benchmark, selection)
    if chosen is None:
        return ()
    key = chosen.finding_id
    prompt_ids, tasks = read_prompts(session, select_tasks(session, benchmark, selection), split=selection.split)
    stays, _ = chosen.align(prompt_ids)
    warnings = [f"Filter {key} keeps {int(stays.sum()):,} of {len(stays):,} prompts; only these are used."]
    again = f"Run it again: suffrage analyze {chosen.made_by} {shlex.quote(chosen.benchmark)}"
    unjudged = _find_uncovered(session, benchmark, chosen, prompt_ids)
    if n := int(unjudged.sum()):
        names = _describe_prompts(session, prompt_ids[unjudged], tasks[unjudged])
        warnings.append(
            f"{n:,} prompts are left out because filter {key} did not evaluate them; they were stored later or were "
            f"not in its selection: {names}. {again} (`suffrage show {key}` shows its options)."
        )
    if chosen.stale:
        warnings.append(f"Filter {key} is stale ({chosen.stale}). {again}.")
    if chosen.models:
        warnings.append(
            f"Filter {key} chose prompts by the answers of {len(chosen.models)} models. Means, differences and ranks "
            "of these models are biased by that choice, and errors and p-values do not account for it."
        )
    return tuple(warnings)


def _find_uncovered(
    session: Session, benchmark: BenchmarkKey, chosen: PromptFilter, prompt_ids: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return the prompts that no filter evaluated, ``(n,)``: neither this one nor a filter it was applied after."""
    unjudged = ~chosen.align(prompt_ids)[1]
    before = chosen.selection.get("filter")
    if before is not None and unjudged.any():
        earlier = load_prompt_filter(session, benchmark, before)
        unjudged &= earlier.align(prompt_ids)[0] | _find_uncovered(session, benchmark, earlier, prompt_ids)
    return unjudged


def _describe_prompts(session: Session, prompt_ids: NDArray[np.int64], tasks: NDArray[np.str_]) -> str:
    """Return the first of some prompts by their names in files, each with its task."""
    first_ids = prompt_ids[:MAX_NAMES].tolist()
    names = load_prompt_names(session, tables.prompt_alias.c.prompt_id.in_(first_ids))
    lines = [
        f"{names.get(key, key)}{f' ({task})' if task else ''}"
        for key, task in zip(first_ids, tasks[:MAX_NAMES].tolist(), strict=True)
    ]
    return f"{', '.join(lines)}{' …' if len(prompt_ids) > MAX_NAMES else ''}"
