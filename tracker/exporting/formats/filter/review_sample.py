"""A random sample of the prompts that a filter flagged, for human review.

Source: Gupta et al. 2024, section 5.3, where 100 examples were read for each of two reasons.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.exporting.formats.filter.filtered_prompts import FilteredPrompts
from tracker.option_labels import option_letter

if TYPE_CHECKING:
    import pyarrow as pa

MAX_MEMBERS = 20
"""Maximum number of other group members in a row; a group may have hundreds."""


def draw_review_sample(filtered: FilteredPrompts, n: int, *, seed: int = 0) -> pa.Table:
    """Sample up to ``n`` prompts per reason.

    Every reason is sampled independently, so that a filter with an additional reason has the same sample for the
    others.

    Columns: ``reason``, ``removed`` (whether the prompt is removed, for this reason or another), ``retained`` (whether
    it is kept in spite of this one), ``prompt_id``, ``task``, ``text``, ``choices`` (lettered lines), ``answer``,
    ``group`` (number; null = none), ``n_others`` and ``others`` (the other members of the group, 20 at most), and the
    empty columns ``verdict`` and ``comment``.

    Args:
        filtered: a filter and its prompts.
        n: prompts per reason.
        seed: seed of the draw.

    Raises:
        SelectionError: the filter flagged no prompts.
    """
    import pyarrow as pa

    if not filtered.filter.reasons:
        raise SelectionError(f"Filter {filtered.filter.finding_id} flagged no prompts, so there is nothing to review.")
    prompts = filtered.prompts
    stays = np.zeros(len(prompts.prompt_ids), dtype=np.bool_)
    stays[filtered.kept] = True
    lines: list[dict[str, Any]] = []
    for step, reason in filtered.filter.reasons.items():
        rows = prompts.find_rows(reason.prompt_ids).tolist()
        groups: dict[int, list[int]] = defaultdict(list)
        for row, group in zip(rows, reason.groups.tolist(), strict=True):
            groups[group].append(row)
        for place in _draw_places(len(rows), n, step, seed).tolist():
            row, group = rows[place], int(reason.groups[place])
            members = [member for member in groups[group] if member != row] if group >= 0 else []
            lines.append(
                {
                    "reason": step,
                    "removed": not stays[row],
                    "retained": bool(reason.retained[place]),
                    "prompt_id": prompts.names[row],
                    "task": prompts.tasks[row],
                    "text": prompts.texts[row],
                    "choices": _letter_options(prompts.choices[row]),
                    "answer": prompts.answers[row],
                    "group": group if group >= 0 else None,
                    "n_others": len(members),
                    "others": _join_members(filtered, members),
                }
            )
    kinds = {"removed": pa.bool_(), "retained": pa.bool_(), "group": pa.int64(), "n_others": pa.int64()}
    columns = {name: pa.array([line[name] for line in lines], kinds.get(name, pa.string())) for name in lines[0]}
    empty = pa.array([""] * len(lines), pa.string())
    return pa.table({**columns, "verdict": empty, "comment": empty})


def _draw_places(n_flagged: int, n: int, step: str, seed: int) -> NDArray[np.int64]:
    """Return the indices of the sampled prompts, ascending."""
    rng = np.random.default_rng([seed, zlib.crc32(step.encode())])
    return np.sort(rng.permutation(n_flagged)[:n])


def _letter_options(choices: Any) -> str | None:
    """Format the options as lettered lines."""
    if not choices:
        return None
    return "\n".join(f"{option_letter(place)}. {choice}" for place, choice in enumerate(choices))


def _join_members(filtered: FilteredPrompts, rows: list[int]) -> str | None:
    prompts = filtered.prompts
    lines = []
    for row in rows[:MAX_MEMBERS]:
        parts = (
            f"[{prompts.names[row]}] {prompts.texts[row] or '(its text is not known)'}",
            _letter_options(prompts.choices[row]),
        )
        lines.append("\n".join(filter(None, parts)))
    if len(rows) > MAX_MEMBERS:
        lines.append(f"and {len(rows) - MAX_MEMBERS:,} more")
    return "\n\n".join(lines) or None
