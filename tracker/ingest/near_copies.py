"""Warn of imported runs whose model is a near-copy of another one of the benchmark.

The comparison is bounded, so that an import of any size takes a few milliseconds longer: one metric, a part of the
prompts, and the models that were imported last. `suffrage models related` compares all of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.connections.partitions import find_benchmarks, in_partitions_of_runs
from tracker.ingest.write.store_changes import StoredRun
from tracker.integrity.sealed_rows import CHECKED, find_moved
from tracker.name_lists import join_names
from tracker.schema import Metric, Run, metadata
from tracker.statistics.related.error_agreement import MIN_MODELS, ErrorAgreement, compare_errors

RUN, MODEL, METRIC, SCORE = (metadata.tables[name] for name in ("run", "model", "metric", "score"))

MAX_BENCHMARKS = 3
MAX_PROMPTS = 200
MAX_RUNS = 50
MIN_PROMPTS = 20
"""Fewer prompts cannot show a near-copy."""
MAX_PAIRS = 2
"""Pairs that a warning describes; the others are counted."""


def describe_near_copies(session: Session, new_runs: Sequence[StoredRun]) -> list[str]:
    """Return a warning for each benchmark on which a new run is a near-copy of a run of another model.

    Args:
        session: the store with the new runs.
        new_runs: the runs; with several benchmarks, only the first ones are compared.
    """
    by_benchmark: dict[str, list[StoredRun]] = {}
    for run in new_runs:
        by_benchmark.setdefault(run.benchmark, []).append(run)
    benchmarks = list(by_benchmark.items())[:MAX_BENCHMARKS]
    return [warning for name, runs in benchmarks for warning in _compare(session, name, runs)]


def _compare(session: Session, benchmark: str, new_runs: Sequence[StoredRun]) -> Iterator[str]:
    first = session.get_one(Run, new_runs[0].id)
    models = _find_runs(session, first, [run.id for run in new_runs][:MAX_RUNS])
    if len(models) < MIN_MODELS or find_moved(session.connection()).keys() & models:
        return  # too few, or in sealed files: an import does not bring them back for a warning
    metric_id = _find_binary_metric(session, new_runs[0].id)
    if metric_id is None:
        return
    prompt_ids, n_prompts = _choose_prompts(session, new_runs[0].id, metric_id)
    if len(prompt_ids) < MIN_PROMPTS:
        return
    Q, higher_is_better = _read(session, metric_id, list(models), prompt_ids)
    if not np.isin(Q[~np.isnan(Q)], (0.0, 1.0)).all():
        return
    agreement = compare_errors(Q if higher_is_better else 1 - Q)
    new_ids = {run.id for run in new_runs}
    names, is_new = list(models.values()), np.array([key in new_ids for key in models])
    is_same = np.array([[first == second for second in names] for first in names])
    copies = agreement.near_copies & (is_new[:, None] | is_new) & ~is_same
    pairs = [(int(i), int(j)) for i, j in np.argwhere(np.triu(copies, 1))]
    if pairs:
        pairs.sort(key=lambda pair: -float(agreement.excess[pair]))
        texts = (_describe(agreement, names, i, j) for i, j in pairs)
        yield (
            f"near-copies on {benchmark}: {join_names(texts, MAX_PAIRS, separator='; ')} (compared on "
            f"{len(prompt_ids):,} of {n_prompts:,} prompts with {len(names):,} models). See all: "
            f"suffrage models related {shlex.quote(benchmark)}"
        )


def _describe(agreement: ErrorAgreement, names: Sequence[str], i: int, j: int) -> str:
    shares = f"{agreement.agreement[i, j]:.0%} of errors, {agreement.expected_agreement[i, j]:.0%} expected"
    return f"{names[i]} and {names[j]} agree on {shares}"


def _find_runs(session: Session, first: Run, new_ids: Sequence[int]) -> dict[int, str]:
    """Return the model of each run to compare: the new ones, then the latest one of other models."""
    columns = sa.select(RUN.c.id, MODEL.c.name).join(MODEL, MODEL.c.id == RUN.c.model_id)
    models = {key: name for key, name in session.execute(columns.where(RUN.c.id.in_(new_ids)))}  # noqa: C416
    latest = (
        sa.select(sa.func.max(RUN.c.id))
        .where(
            RUN.c.benchmark_id == first.benchmark_id,
            RUN.c.condition == first.condition,
            RUN.c.variant == first.variant,
            RUN.c.status == "complete",
        )
        .group_by(RUN.c.model_id)
    )
    for key, name in session.execute(columns.where(RUN.c.id.in_(latest)).order_by(RUN.c.id.desc()).limit(MAX_RUNS)):
        if len(models) < MAX_RUNS and name not in models.values():
            models[key] = name
    return models


def _find_binary_metric(session: Session, run_id: int) -> int | None:
    """Return the first metric of a run whose bounds are 0 and 1, or unknown."""
    metric = METRIC.c
    has_scores = sa.exists().where(
        SCORE.c.run_id == run_id, SCORE.c.metric_id == metric.id, in_partitions_of_runs(session, SCORE, [run_id])
    )
    bounded = [sa.or_(bound.is_(None), bound == value) for bound, value in ((metric.lower, 0), (metric.upper, 1))]
    key: int | None = session.scalar(sa.select(metric.id).where(has_scores, *bounded).order_by(metric.id).limit(1))
    return key


def _choose_prompts(session: Session, run_id: int, metric_id: int) -> tuple[list[int], int]:
    """Return prompts of a run by evenly spaced keys, and how many it has."""
    score = SCORE.c
    of_metric = (
        score.run_id == run_id,
        score.metric_id == metric_id,
        score.trial == 0,
        in_partitions_of_runs(session, SCORE, [run_id]),
    )
    n_prompts = session.scalar(sa.select(sa.func.count()).select_from(SCORE).where(*of_metric)) or 0
    step = max(1, n_prompts // MAX_PROMPTS)
    keys = sa.select(score.prompt_id).where(*of_metric, score.prompt_id % step == 0).order_by(score.prompt_id)
    return list(session.scalars(keys.limit(MAX_PROMPTS))), n_prompts


def _read(
    session: Session, metric_id: int, run_ids: Sequence[int], prompt_ids: Sequence[int]
) -> tuple[NDArray[np.float64], bool]:
    """Return the scores of the first trial, ``(n_prompts, n_runs)``, and whether large ones are good."""
    benchmarks = find_benchmarks(session.connection(), run_ids) if session.get_bind().dialect.name != "sqlite" else {}
    of_benchmarks = f" AND benchmark_id IN ({','.join(map(str, sorted(set(benchmarks.values()))))})" * bool(benchmarks)
    statement = (  # keys as literals: binding tens of thousands of parameters would take longer than the query
        f"SELECT run_id, prompt_id, value FROM score WHERE metric_id = {metric_id} AND trial = 0 "
        f"AND run_id IN ({','.join(map(str, run_ids))}) AND prompt_id IN ({','.join(map(str, prompt_ids))})"
        f"{of_benchmarks} {CHECKED}"
    )
    cells = np.array([*map(tuple, session.connection().exec_driver_sql(statement))], dtype=np.float64).reshape(-1, 3)
    order = np.argsort(run_ids)
    columns = order[np.searchsorted(np.array(run_ids)[order], cells[:, 0])]
    Q = np.full((len(prompt_ids), len(run_ids)), np.nan)
    Q[np.searchsorted(prompt_ids, cells[:, 1]), columns] = cells[:, 2]
    return Q, session.get_one(Metric, metric_id).higher_is_better
