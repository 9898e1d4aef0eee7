"""The rule that chooses splits for a selection that names none.

A model covers a split if it has scores for at least half as many of its prompts as any other model. The split that most
models cover is used, with every other split that the same models cover. So a few models with scores of another split
do not make the others incomplete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.name_lists import join_names
from tracker.queries.notices import add_notice
from tracker.queries.resolution import BenchmarkKey, MetricKey, select_tasks
from tracker.queries.scores import read_scores
from tracker.queries.selected_runs.runs import SelectedRun, list_scored_runs, resolve_model_names
from tracker.queries.selection import Selection
from tracker.queries.splits.names import UNKNOWN, check_split, list_splits
from tracker.queries.sql.arrow import number_columns, read_arrow, word_column
from tracker.queries.sql.run_terms import join_keys

PREFERRED = "test"
"""Split that is used if several are covered by equally many models."""

MAX_NAMES = 5
_CHOSEN = "suffrage.splits"


def choose_split(session: Session, benchmark: BenchmarkKey, metric: MetricKey, selection: Selection) -> Selection:
    """Return the selection with the splits that it uses; unchanged if it names some or every split is used.

    A notice reports splits that are not used. The choice is the same for all models of a benchmark, unless the selected
    models have no scores in it.

    Args:
        session: the store.
        benchmark: of the selection.
        metric: metric of the scores.
        selection: the selection.

    Raises:
        NotFoundError: a split does not exist.
    """
    tasks = select_tasks(session, benchmark, selection)
    if selection.split:
        check_split(session, tasks, selection.split)
        return selection
    names = list_splits(session, tasks)
    if len(names) < 2:
        return selection
    key = (benchmark.id, metric.id, replace(selection, filter=None, weights=None, encoder=None, cluster=None))
    known: dict[object, tuple[str, ...]] = session.info.setdefault(_CHOSEN, {})
    if key not in known:
        known[key] = _choose(session, benchmark, metric, selection, names, tasks)
    return replace(selection, split=known[key])


def rank_splits(counts: NDArray[np.int64], names: Sequence[str]) -> list[int]:
    """Return the indices of the splits to use, ascending.

    Args:
        counts: ``(n_models, n_splits)`` prompts of each split that each model has scores for; each split has some.
        names: of the splits.
    """
    covers = (counts > 0) & (2 * counts >= counts.max(axis=0))
    n_covering, n_scores = covers.sum(axis=0).tolist(), counts.sum(axis=0).tolist()
    order = sorted(range(len(names)), key=lambda i: (-n_covering[i], names[i] != PREFERRED, -n_scores[i], names[i]))
    return [i for i in range(len(names)) if covers[covers[:, order[0]], i].all()]


def _choose(
    session: Session,
    benchmark: BenchmarkKey,
    metric: MetricKey,
    selection: Selection,
    names: Sequence[str],
    tasks: dict[int, str],
) -> tuple[str, ...]:
    """Return the names of the splits to use; none if all splits with scores are used."""
    runs = list_scored_runs(session, benchmark, metric, "prompt", replace(selection, models=()))
    counts, models = _count_prompts(session, metric, runs, names, tasks)
    measured = np.flatnonzero(counts.any(axis=0))
    if len(measured) < 2:
        return ()
    counts, names = counts[:, measured], [names[i] for i in measured.tolist()]
    chosen = rank_splits(counts, names)
    if selection.models:
        selected = resolve_model_names(session, selection.models, models)
        rows = [i for i, name in enumerate(models) if name in selected]
        if not counts[rows][:, chosen].any() and counts[rows].any():
            some = np.flatnonzero(counts[rows].any(axis=0))
            used = tuple(names[i] for i in some.tolist())
            counts, models, names = counts[rows][:, some], [models[i] for i in rows], used
            chosen = rank_splits(counts, names)
            if len(chosen) == len(names):
                return used
    if len(chosen) == len(names):
        return ()
    add_notice(session, _describe(benchmark, names, chosen, counts, models))
    return tuple(names[i] for i in chosen)


def _count_prompts(
    session: Session,
    metric: MetricKey,
    runs: Sequence[SelectedRun],
    names: Sequence[str],
    tasks: dict[int, str],
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the prompts of each split that a run of each model has scores for, ``(n_models, n_splits)``."""
    table = read_arrow(
        session,
        f"SELECT id, COALESCE(split, '{UNKNOWN}') FROM prompt WHERE task_id IN ({join_keys(list(tasks))})",
    )
    ids = number_columns(table.select([0]))[0].astype(np.int64)
    split_of = np.empty(len(ids), dtype=np.int64)
    start = 0
    for batch in table.to_batches():
        codes, words = word_column(batch.column(1))
        split_of[start : start + len(codes)] = np.array([names.index(word) for word in words], dtype=np.int64)[codes]
        start += len(codes)
    run_ids = sorted(run.id for run in runs)
    is_scored = ~np.isnan(read_scores(session, metric.id, run_ids, ids))
    counts = np.stack([is_scored[split_of == place].sum(axis=0) for place in range(len(names))], axis=1)
    by_run = dict(zip(run_ids, counts, strict=True))
    models = sorted({run.model for run in runs})
    best = {name: np.zeros(len(names), dtype=np.int64) for name in models}
    for run in runs:
        best[run.model] = np.maximum(best[run.model], by_run[run.id])
    return np.array([best[name] for name in models], dtype=np.int64).reshape(len(models), len(names)), models


def _describe(
    benchmark: BenchmarkKey, names: Sequence[str], chosen: Sequence[int], counts: NDArray[np.int64], models: list[str]
) -> str:
    """Return the notice: the used splits, the others, and how to select them."""
    scored = np.asarray(counts[:, chosen].any(axis=1))
    used = [names[i] for i in chosen]
    unused = [i for i in range(len(names)) if i not in chosen]
    parts = []
    for i in unused:
        n_models, n_prompts = int((counts[:, i] > 0).sum()), int(counts[:, i].max())
        parts.append(f"{names[i]} ({n_prompts:,} prompts, {n_models:,} model{'s' * (n_models != 1)})")
    without = [name for name, has in zip(models, scored.tolist(), strict=True) if not has]
    lacking = f" Without scores there: {join_names(without, MAX_NAMES)}." if without else ""
    return (
        f"Split{'s' * (len(used) != 1)} of {benchmark.label}: {', '.join(used)}, with scores of "
        f"{int(scored.sum()):,} of {len(models):,} models. Not used: {'; '.join(parts)}.{lacking} Select others with "
        f"--split {','.join(names[i] for i in unused)} or --split all."
    )
