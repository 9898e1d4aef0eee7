"""Export the prompts that a filter keeps.

ID is the ID of the filter finding, see `suffrage findings`. The formats csv, jsonl and parquet hold name, task, text,
choices, reference answer and split of each prompt, with the reasons of prompts that were flagged but kept. The format
lm-eval is the file for the option --samples of lm-evaluation-harness. With --review N, flagged prompts are sampled
instead, with empty columns for a verdict.

Examples:
    suffrage export filter 2 --output kept.csv
    suffrage export filter 2 --review 10 --output review.csv
"""

from __future__ import annotations

from typing import Annotated

from sqlalchemy.orm import Session

from tracker.exporting.declaration import export
from tracker.exporting.formats.filter.filtered_prompts import load_filtered_prompts
from tracker.exporting.formats.filter.kept_prompts import build_kept_prompts
from tracker.exporting.formats.filter.review_sample import draw_review_sample
from tracker.exporting.table_files import StreamedTable
from tracker.plugins.parameters import ValueHint


@export
def export_filter(
    session: Session,
    key: Annotated[int, ValueHint(metavar="ID")],
    *,
    review: Annotated[
        int | None,
        ("Sample up to N flagged prompts for each reason, for manual review, in place of the kept prompts."),
        ValueHint(metavar="N", minimum=1),
    ] = None,
    seed: Annotated[int, "Seed of the sample for --review.", ValueHint(minimum=0)] = 0,
) -> StreamedTable:
    """Return the prompts that a filter keeps, or a sample of those that it flags.

    Raises:
        NotFoundError: the finding does not exist.
        SelectionError: the finding is not a filter, keeps no prompts, or flags none to review.
    """
    filtered = load_filtered_prompts(session, key)
    if review is None:
        table, warnings = build_kept_prompts(filtered), list(filtered.warnings)
    else:
        table = draw_review_sample(filtered, review, seed=seed)
        drawn = table["reason"].to_pylist()
        counts = [
            f"{drawn.count(step):,} of {len(reason.prompt_ids):,} {step}"
            for step, reason in filtered.filter.reasons.items()
        ]
        warnings = [f"The file has a random sample of the flagged prompts: {', '.join(counts)}."]
    return StreamedTable(schema=table.schema, batches=iter(table.to_batches()), warnings=warnings, counts_rows=False)
