"""A recorded filter joined with the current prompts of its benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.queries.filtering.filter_warnings import list_filter_warnings
from tracker.queries.filtering.prompt_filter import PromptFilter, load_prompt_filter
from tracker.queries.prompts import PromptTexts, load_prompts
from tracker.queries.resolution import BenchmarkKey, benchmark_label
from tracker.queries.selected_runs.conditions import MAX_KEY
from tracker.queries.selection import Selection
from tracker.queries.sql import tables

N_LISTED = 8


@dataclass(frozen=True, kw_only=True)
class FilteredPrompts:
    """A filter, and every prompt of its benchmark.

    Attributes:
        filter: its decisions.
        prompts: all prompts of the benchmark, evaluated by the filter or not.
        splits: of each prompt; None if unknown.
        other_names: further names of each prompt in files, besides its name in ``load_prompts``, as ``harness:name``.
        warnings: number of kept prompts, prompts the filter did not evaluate, staleness.
    """

    filter: PromptFilter
    prompts: PromptTexts
    splits: tuple[str | None, ...]
    other_names: tuple[tuple[str, ...], ...]
    warnings: tuple[str, ...] = ()

    @cached_property
    def kept(self) -> NDArray[np.intp]:
        """Rows of the kept prompts, ascending."""
        return np.flatnonzero(self.filter.align(self.prompts.prompt_ids)[0])

    def tags(self, row: int) -> tuple[str, ...]:
        """Return the reasons that apply to a prompt; ``easy (retained)`` if it is kept in spite of one."""
        return tuple(f"{step} (retained)" if stays else step for step, stays, _ in self._reasons[row])

    def groups(self, row: int) -> tuple[str, ...]:
        """Return the groups of similar prompts that it is in, such as ``similar 12``."""
        return tuple(f"{step} {group}" for step, _, group in self._reasons[row] if group >= 0)

    @cached_property
    def _reasons(self) -> list[list[tuple[str, bool, int]]]:
        """Return the step, whether the prompt is kept in spite of it, and the group or -1, of each row."""
        reasons: list[list[tuple[str, bool, int]]] = [[] for _ in self.prompts.prompt_ids]
        for step, reason in self.filter.reasons.items():
            rows = self.prompts.find_rows(reason.prompt_ids).tolist()
            for row, stays, group in zip(rows, reason.retained.tolist(), reason.groups.tolist(), strict=True):
                reasons[row].append((step, stays, group))
        return reasons


def load_filtered_prompts(session: Session, key: int) -> FilteredPrompts:
    """Load the filter of a finding, with the prompts of its benchmark.

    Raises:
        NotFoundError: the finding does not exist.
        SelectionError: the finding is not a filter, or keeps no prompts.
    """
    benchmark = _find_filtered_benchmark(session, key)
    chosen = load_prompt_filter(session, benchmark, key)
    if not chosen.n_kept:
        raise SelectionError(
            f"Filter {key} keeps no prompts. Create one that does: suffrage analyze {chosen.made_by} …"
        )
    every = load_prompts(session, Selection(benchmark=benchmark.label))
    prompt, alias, task = tables.prompt.c, tables.prompt_alias.c, tables.task.c
    splits = dict(
        session.execute(
            sa.select(prompt.id, prompt.split)
            .join(tables.task, task.id == prompt.task_id)
            .where(task.benchmark_id == benchmark.id)
        ).all()
    )
    names: dict[int, set[tuple[str, str]]] = {}
    query = (
        sa.select(alias.prompt_id, alias.namespace, alias.key)
        .join(tables.task, task.id == alias.task_id)
        .where(task.benchmark_id == benchmark.id)
    )
    for prompt_id, namespace, name in session.execute(query):
        names.setdefault(prompt_id, set()).add((namespace, name))
    # The first of them in this order is the one in `PromptTexts.names`.
    further_names = {
        prompt_id: [f"{n}:{name}" if n else name for n, name in sorted(aliases)[1:]]
        for prompt_id, aliases in names.items()
    }
    ids = every.prompt_ids.tolist()
    return FilteredPrompts(
        filter=chosen,
        prompts=every,
        splits=tuple(splits[prompt_id] for prompt_id in ids),
        other_names=tuple(tuple(further_names.get(prompt_id, ())) for prompt_id in ids),
        warnings=list_filter_warnings(session, benchmark, Selection(benchmark=benchmark.label, filter=key)),
    )


def _find_filtered_benchmark(session: Session, key: int) -> BenchmarkKey:
    analysis, benchmark, decision = tables.finding.c, tables.benchmark.c, tables.filter_decision.c
    has_decisions = sa.select(sa.literal(1)).where(decision.finding_id == analysis.id).exists()
    filters = session.scalars(sa.select(analysis.id).where(has_decisions).order_by(analysis.id)).all()
    finding = None
    if 0 < key <= MAX_KEY:
        finding = session.execute(
            sa.select(analysis.analysis, benchmark.id, benchmark.name.label("benchmark"), benchmark.revision)
            .outerjoin(tables.benchmark, benchmark.id == analysis.benchmark_id)
            .where(analysis.id == key)
        ).first()
    if finding is None:
        raise NotFoundError("finding with a filter", key, filters)
    if key not in filters:
        hint = f"Filters: {', '.join(map(str, filters[-N_LISTED:]))}." if filters else "There are none yet."
        raise SelectionError(
            f"Finding {key} ({finding.analysis}) is not a filter. {hint} Create one: suffrage analyze "
            "smart-filtering BENCHMARK"
        )
    return BenchmarkKey(finding.id, benchmark_label(finding.benchmark, finding.revision))
