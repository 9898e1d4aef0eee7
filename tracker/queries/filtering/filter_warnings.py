"""What a reader should know of numbers that rest on the prompts that a filter keeps."""

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
"""Prompts that a note names before it breaks off."""


def list_filter_warnings(session: Session, benchmark: BenchmarkKey, selection: Selection) -> tuple[str, ...]:
    """What to say where a selection names a filter: how much it keeps, of what, whether it is stale, who chose.

    Args:
        session: the store; only what is committed is seen.
        benchmark: that of the selection.
        selection: which data.

    Raises:
        NotFoundError: there is no such finding.
        SelectionError: it filters no prompts, or those of another benchmark, or keeps none.
    """
    chosen = load_selected_filter(session, benchmark, selection)
    if chosen is None:
        return ()
    key = chosen.finding_id
    prompt_ids, tasks = read_prompts(session, select_tasks(session, benchmark, selection))
    stays, _ = chosen.align(prompt_ids)
    warnings = [f"Only the {int(stays.sum()):,} of {len(stays):,} prompts that filter {key} keeps."]
    again = f"Make it anew: suffrage analyze {chosen.made_by} {shlex.quote(chosen.benchmark)}"
    unjudged = _find_uncovered(session, benchmark, chosen, prompt_ids)
    if n := int(unjudged.sum()):
        names = _describe_prompts(session, prompt_ids[unjudged], tasks[unjudged])
        warnings.append(
            f"Filter {key} never judged {n:,} of them, which came later or were not among the data chosen for it; left "
            f"out: {names}. {again} (`suffrage show {key}` tells its options)."
        )
    if chosen.stale:
        warnings.append(f"Filter {key} was made of scores that are no longer the latest ({chosen.stale}). {again}.")
    if chosen.models:
        warnings.append(
            f"Filter {key} chose prompts by the answers of {len(chosen.models)} models: their means, differences and "
            "ranks here are those of a selection that they had a part in, of which no error or p-value knows."
        )
    return tuple(warnings)


def _find_uncovered(
    session: Session, benchmark: BenchmarkKey, chosen: PromptFilter, prompt_ids: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """``(n,)`` which prompts no filter judged: neither this one nor one of whose kept prompts it was made."""
    unjudged = ~chosen.align(prompt_ids)[1]
    before = chosen.selection.get("filter")
    if before is not None and unjudged.any():
        earlier = load_prompt_filter(session, benchmark, before)
        unjudged &= earlier.align(prompt_ids)[0] | _find_uncovered(session, benchmark, earlier, prompt_ids)
    return unjudged


def _describe_prompts(session: Session, prompt_ids: NDArray[np.int64], tasks: NDArray[np.str_]) -> str:
    """The first of some prompts, as files call them, each with its task."""
    first_ids = prompt_ids[:MAX_NAMES].tolist()
    names = load_prompt_names(session, tables.prompt_alias.c.prompt_id.in_(first_ids))
    lines = [
        f"{names.get(key, key)}{f' ({task})' if task else ''}"
        for key, task in zip(first_ids, tasks[:MAX_NAMES].tolist(), strict=True)
    ]
    return f"{', '.join(lines)}{' …' if len(prompt_ids) > MAX_NAMES else ''}"
