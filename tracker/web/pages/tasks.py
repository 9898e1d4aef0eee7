"""The means of tasks by model, as a heat map."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.name_lists import join_names
from tracker.queries.browsing.keys import find_benchmark_label, load_model_keys
from tracker.web.page import Page
from tracker.web.pages.selections import load_board, load_tasks, make_selection
from tracker.web.query import Query

MAX_MODELS = 40
"""Models in the table, the best first."""
MAX_NAMES = 3


def show_tasks(query: Query) -> Page:
    """Return the means of tasks by model, the best models first."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
        models = load_model_keys(session)
    selection = make_selection(query, label)
    board, _ = load_board(query, selection)
    matrix = load_tasks(query, selection)
    part = query.text("model").casefold()
    order = [row.model for row in board.rows if row.model in matrix.models and part in row.model.casefold()]
    names = order[:MAX_MODELS]
    T = matrix.T[:, [matrix.models.index(name) for name in names]]
    low, high = (np.nanmin(T), np.nanmax(T)) if np.isfinite(T).any() else (0.0, 1.0)
    best = _find_best(T, matrix.higher_is_better)
    rows = [
        {
            "task": task or "no task",
            **{name: float(T[i, j]) if math.isfinite(T[i, j]) else None for j, name in enumerate(names)},
        }
        for i, task in enumerate(matrix.tasks)
    ]
    best_models = [[name for name, is_best in zip(names, row, strict=True) if is_best] for row in best]
    page_rows, paging = query.take_page(rows)
    first = paging["first"] - 1 if rows else 0
    data: dict[str, Any] = {
        "benchmark": {"id": query.key, "label": label, "metric": matrix.metric},
        "headline": _describe_leaders(best_models, names),
        "models": [{"name": name, "id": models[name].id if name in models else None} for name in names],
        "n_models": len(order),
        "scale": {"low": float(low), "high": float(high), "higher_is_better": matrix.higher_is_better},
        "rows": page_rows,
        "best": best_models[first : first + len(page_rows)],
        "paging": paging,
        "options": dict(query.parameters),
    }
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    return Page(title=f"Tasks of {label}", template="tasks.html", data=data, table="rows", trail=trail)


def _find_best(T: NDArray[np.float64], higher_is_better: bool) -> NDArray[np.bool_]:
    """Return which cells are the best of their row; none in a row without values."""
    if not T.size:
        return np.zeros(T.shape, dtype=np.bool_)
    worst = -np.inf if higher_is_better else np.inf
    filled = np.where(np.isnan(T), worst, T)
    best = filled.max(axis=1) if higher_is_better else filled.min(axis=1)
    is_best: NDArray[np.bool_] = np.isfinite(T) & (filled == best[:, None])
    return is_best


def _describe_leaders(best: list[list[str]], names: list[str]) -> str:
    """Return which models are alone the best in how many tasks, as a sentence.

    Args:
        best: the best models of each task.
        names: of the models.
    """
    counts = {name: sum(models == [name] for models in best) for name in names}
    ordered = sorted((name for name in names if counts[name]), key=lambda name: (-counts[name], name))
    if not ordered:
        return "No model is alone the best in any task."
    parts = [f"{name} in {counts[name]}" for name in ordered]
    return f"Best of {len(best)} task{'s' * (len(best) != 1)}: {join_names(parts, MAX_NAMES)}."
