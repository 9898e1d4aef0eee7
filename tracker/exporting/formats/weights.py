"""Export the prompt weights of a finding, one row each.

ID is the ID of a finding with weights; ID:SCHEME selects one of several schemes. `suffrage weights` imports such a
table.

Examples:
    suffrage export weights 1 --output exported_weights.csv
"""

from __future__ import annotations

from typing import Annotated

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.exporting.declaration import export
from tracker.exporting.prompt_labels import find_shared_prompt_labels, make_prompt_labels
from tracker.exporting.table_files import StreamedTable
from tracker.plugins.parameters import ValueHint
from tracker.queries.resolution import benchmark_label
from tracker.queries.selected_runs.conditions import MAX_KEY
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.queries.weights import PREFIX, load_prompt_weights


@export
def export_weights(session: Session, selector: Annotated[str, ValueHint(metavar="ID[:SCHEME]")]) -> StreamedTable:
    """Return prompt, task and weight, in the order in which the prompts were ingested.

    Args:
        session: the store; only committed data are visible.
        selector: the key of a finding with weights, with ``:scheme`` if it has several.

    Raises:
        NotFoundError: the finding does not exist, or has no such scheme.
        SelectionError: the finding has no weights, or has several schemes and none is named.
    """
    import pyarrow as pa

    key, analysis, benchmark = selector.partition(":")[0], tables.finding.c, tables.benchmark.c
    if not key.isdecimal():
        raise SelectionError(f"No weights {selector!r}. Use the key of a finding, such as 12 or 12:distance.")
    query = sa.select(benchmark.id, benchmark.name, benchmark.revision).join(
        tables.finding, analysis.benchmark_id == benchmark.id
    )
    about = None if int(key) > MAX_KEY else session.execute(query.where(analysis.id == int(key))).first()
    if about is None:
        value = tables.prompt_value.c
        known = session.scalars(sa.select(value.finding_id).where(value.name.startswith(PREFIX)).distinct()).all()
        raise NotFoundError("finding with weights", key, sorted(known))
    selection = Selection(benchmark=benchmark_label(about.name, about.revision), weights=selector)
    weights = load_prompt_weights(session, selection)
    ids = weights.prompt_ids.tolist()
    prompt, task = tables.prompt.c, tables.task.c
    query = sa.select(prompt.id, task.name).join(tables.task, task.id == prompt.task_id)
    tasks = {row[0]: row[1] for row in session.execute(query.where(task.benchmark_id == about.id))}
    names = find_shared_prompt_labels(session, about.id, ids)
    warnings = []
    if names is None:
        names = make_prompt_labels(session, {prompt_id: tasks[prompt_id] for prompt_id in ids})
        warnings.append(
            "No single source of names covers all of these prompts, so `suffrage weights` will not recognize some."
        )
    if weights.stale:
        warnings.append(f"Finding {key} is stale ({weights.stale}).")
    table = pa.table(
        {
            "prompt_id": pa.array([names[prompt_id] for prompt_id in ids], pa.string()),
            "task": pa.array([tasks[prompt_id] for prompt_id in ids], pa.string()),
            "weight": pa.array(weights.values),
        }
    )
    return StreamedTable.from_table(table, warnings)
