"""The prompts that a filter keeps, as a table that can be ingested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.exporting.formats.filter.filtered_prompts import FilteredPrompts

if TYPE_CHECKING:
    import pyarrow as pa


def build_kept_prompts(filtered: FilteredPrompts) -> pa.Table:
    """Return one row per kept prompt, in the order of ingestion.

    Columns: ``prompt_id`` (name in files), ``task``, ``text``, ``choices`` (a list), ``answer``, ``split``; ``reasons``
    that apply although it is kept, ``groups`` of similar prompts, ``other_names`` (lists).
    """
    import pyarrow as pa

    prompts = filtered.prompts
    rows = filtered.kept.tolist()
    texts, lists = pa.string(), pa.list_(pa.string())
    return pa.table(
        {
            "prompt_id": pa.array([prompts.names[row] for row in rows], texts),
            "task": pa.array([prompts.tasks[row] for row in rows], texts),
            "text": pa.array([prompts.texts[row] for row in rows], texts),
            "choices": pa.array([prompts.choices[row] for row in rows], lists),
            "answer": pa.array([prompts.answers[row] for row in rows], texts),
            "split": pa.array([filtered.splits[row] for row in rows], texts),
            "reasons": pa.array([filtered.tags(row) for row in rows], lists),
            "groups": pa.array([filtered.groups(row) for row in rows], lists),
            "other_names": pa.array([filtered.other_names[row] for row in rows], lists),
        }
    )
