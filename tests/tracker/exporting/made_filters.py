"""Filters and prompts made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracker.exporting.formats.filter.filtered_prompts import FilteredPrompts
from tracker.queries.filtering.prompt_filter import PromptFilter, ReasonPrompts
from tracker.queries.prompts import PromptTexts

Out = Mapping[int, tuple[bool, int]]
"""Whether a prompt stays in spite of a reason, and its group or -1, by row."""


def reason(out: Out, ids: np.ndarray) -> ReasonPrompts:
    rows = sorted(out)
    return ReasonPrompts(
        prompt_ids=ids[rows],
        retained=np.array([out[row][0] for row in rows], dtype=bool),
        groups=np.array([out[row][1] for row in rows], dtype=np.int64),
    )


def filtered(
    kept: Sequence[bool | None],
    *,
    tasks: Sequence[str] | None = None,
    reasons: Mapping[str, Out] | None = None,
    doc_ids: Sequence[int | None] | None = None,
    texts: Sequence[str | None] | None = None,
    choices: Sequence[Sequence[str] | None] | None = None,
    **more: Any,
) -> FilteredPrompts:
    """A filter's decisions on prompts 10, 13, 16, …; None where it never judged one."""
    n = len(kept)
    ids = 10 + 3 * np.arange(n)
    scored = [row for row in range(n) if kept[row] is not None]
    decided = PromptFilter(
        finding_id=5,
        made_by="smart-filtering",
        benchmark="b",
        prompt_ids=ids[scored],
        kept=np.array([kept[row] for row in scored], dtype=bool),
        reasons={step: reason(out, ids) for step, out in (reasons or {}).items()},
        models=(),
        parameters={},
        selection={},
    )
    every = PromptTexts(
        prompt_ids=ids,
        tasks=tuple(tasks or ["t"] * n),
        names=tuple(f"p{row}" for row in range(n)),
        texts=tuple(texts or [f"Question {row}?" for row in range(n)]),
        choices=tuple(choices or [["yes", "no"]] * n),
        answers=("A",) * n,
        details=tuple({} if item is None else {"lm_eval_doc_id": item} for item in doc_ids or [None] * n),
    )
    options: dict[str, Any] = {"splits": (None,) * n, "other_names": ((),) * n, **more}
    return FilteredPrompts(filter=decided, prompts=every, **options)
