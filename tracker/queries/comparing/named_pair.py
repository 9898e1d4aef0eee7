"""Select two models or runs by name."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlalchemy.orm import Session

from tracker.queries.catalogue.model_names import find_model
from tracker.queries.resolution import find_benchmark, find_metric
from tracker.queries.selected_runs.runs import select_runs
from tracker.queries.selection import Selection

RUN = re.compile(r"run:(\d{1,18})")
"""Name of a single run."""


def select_named_pair(
    session: Session, selection: Selection, names: tuple[str, str]
) -> tuple[Selection, tuple[str, str]]:
    """Return the selection of two models or runs, and the names of their columns.

    Args:
        session: the store.
        selection: of a benchmark, without models and runs.
        names: of models, or ``run:7`` for a single run.

    Raises:
        NotFoundError: a benchmark, metric, model or run does not exist.
        SelectionError: a model has no scores.
    """
    runs = [RUN.fullmatch(name) for name in names]
    if not any(runs):
        a, b = (find_model(session, name).name for name in names)
        return replace(selection, models=(a, b)), (a, b)
    benchmark = find_benchmark(session, selection.benchmark)
    keys = []
    for name, run in zip(names, runs, strict=True):
        if run is not None:
            keys.append(int(run[1]))
            continue
        only = replace(selection, models=(find_model(session, name).name,))
        metric, _ = find_metric(session, benchmark, only, ("prompt",))
        keys += [row.id for row in select_runs(session, benchmark, metric, "prompt", only)]
    selection = replace(selection, runs=tuple(keys))
    metric, _ = find_metric(session, benchmark, selection, ("prompt",))
    columns = {run.id: run.column for run in select_runs(session, benchmark, metric, "prompt", selection)}
    return selection, (columns[keys[0]], columns[keys[1]])
