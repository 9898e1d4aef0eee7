"""Warnings about the options, the run and the cost of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partition
from tracker.evaluating.plan import Plan, option_name
from tracker.evaluating.scoring.options import LABEL_PROBABILITY
from tracker.queries.run_choice import choose_runs, measure_coverage
from tracker.schema import Answer, Metric, Run, Score

MIN_LABEL_PROBABILITY = 0.5
"""Mean probability of all labels together below which their comparison may differ from the answers of the model."""

PRICE_OPTIONS = ("price_read", "price_written")
"""Server options that also serve to estimate the cost of a local model on a server."""


def list_option_warnings(plan: Plan, method: str) -> list[str]:
    """Return warnings about options that have no effect, one per reason.

    Args:
        plan: the options.
        method: how the model answers.
    """
    unused = []
    if plan.server.api_base is None:
        if method != "generation":
            unused.append(
                (
                    _list_changed(plan.generation),
                    (f"--method {method} compares options, and the model generates no text"),
                )
            )
        server_options = [name for name in _list_changed(plan.server) if name not in PRICE_OPTIONS]
        unused.append((server_options, "without --api-base no server is used"))
    else:
        if method != "generation" and plan.generation.judge:
            unused.append((["judge"], f"--method {method} generates no text to grade"))
        unused.append((_list_changed(plan.loading), "with --api-base no local model is loaded"))
    return [f"{_format_options(names)} ignored: {reason}" for names, reason in unused if names]


def _list_changed(settings: Any) -> list[str]:
    return [field.name for field in fields(settings) if getattr(settings, field.name) != field.default]


def _format_options(names: Iterable[str]) -> str:
    return ", ".join(option_name(name) for name in names)


def list_run_warnings(session: Session, run: Run) -> list[str]:
    """Return warnings about answers that could not be extracted, and about newer or larger runs of the model.

    Args:
        session: an open transaction.
        run: the run created or continued by the evaluation.
    """
    warnings: list[str] = []
    answer: Any = Answer
    key = (answer.prompt_id, answer.trial)
    rows: Any = session.execute(
        sa.select(sa.func.count(), sa.func.sum(sa.column("is_empty"))).select_from(
            sa.select(sa.func.max(sa.case((answer.status == "empty", 1), else_=0)).label("is_empty"))
            .where(answer.run_id == run.id)
            .group_by(*key)
            .subquery()
        )
    ).one()
    if n_truncated := count_truncated(session, run):
        warnings.append(
            f"{n_truncated:,} of {rows[0]:,} responses were truncated at the maximum number of tokens, and score 0. "
            "Raise --max-tokens, or end responses with --stop"
        )
    if n_empty := int(rows[1] or 0):
        warnings.append(f"{n_empty:,} of {rows[0]:,} answers are empty or could not be extracted, and score 0")
    if n_filtered := _count_filtered(session, run):
        warnings.append(f"the server's content filter ended {n_filtered:,} of {rows[0]:,} responses")
    if (mean := _mean_label_probability(session, run)) is not None and mean < MIN_LABEL_PROBABILITY:
        warnings.append(
            f"all labels together have a mean probability of only {mean:.2f}: the model usually begins its response "
            "otherwise. Show few-shot examples, use --chat for a chat model, or --method generation"
        )
    if run.status == "complete" and (warning := _compare_with_other_runs(session, run)):
        warnings.append(warning)
    return warnings


def _mean_label_probability(session: Session, run: Run) -> float | None:
    """Return the mean probability of all labels together; None if it is not known."""
    score: Any = Score
    query = sa.select(sa.func.avg(score.value)).join(Metric, Metric.id == score.metric_id)
    of_benchmark = in_partition(session, Score.__table__, run.benchmark_id)  # type: ignore[attr-defined]
    mean = session.scalar(query.where(score.run_id == run.id, Metric.name == LABEL_PROBABILITY, of_benchmark))  # type: ignore[arg-type]
    return None if mean is None else float(mean)


def count_truncated(session: Session, run: Run) -> int:
    """Return the number of truncated responses of a run."""
    answer: Any = Answer
    of_benchmark = in_partition(session, Answer.__table__, run.benchmark_id)  # type: ignore[attr-defined]
    conditions = answer.run_id == run.id, answer.status == "truncated", of_benchmark
    return int(session.scalar(sa.select(sa.func.count()).select_from(Answer).where(*conditions)) or 0)


def _count_filtered(session: Session, run: Run) -> int:
    """Return the number of responses that the content filter of a server ended."""
    answer: Any = Answer
    of_benchmark = in_partition(session, Answer.__table__, run.benchmark_id)  # type: ignore[attr-defined]
    is_filtered = answer.extraction == "finish_reason", answer.text == "content_filter"
    conditions = answer.run_id == run.id, *is_filtered, of_benchmark
    return int(session.scalar(sa.select(sa.func.count()).select_from(Answer).where(*conditions)) or 0)


def _compare_with_other_runs(session: Session, run: Run) -> str | None:
    runs: Any = Run
    score: Any = Score
    of_benchmark = in_partition(session, Score.__table__, run.benchmark_id)  # type: ignore[attr-defined]
    same = (
        runs.benchmark_id == run.benchmark_id,
        runs.model_id == run.model_id,
        runs.condition == run.condition,
        runs.variant == run.variant,
        runs.status == "complete",
    )
    keys = list(session.scalars(sa.select(runs.id).where(*same)))
    metric_ids = sa.select(score.metric_id).where(score.run_id == run.id, of_benchmark).distinct()
    for metric_id in session.scalars(metric_ids).all():
        coverage = measure_coverage(session, metric_id, keys)
        chosen = choose_runs({"": [*keys, run.id or 0]}, coverage)[""]
        if chosen != run.id:
            return (
                f"leaderboards use run {chosen} of the same model ({coverage[chosen].describe()}), not this one: name "
                f"it with --runs, or hide the other: `suffrage runs hide {chosen}`"
            )
    return None


def list_cost_warnings(usage: Mapping[str, float]) -> list[str]:
    """Return the cost of a run, if prices are known."""
    if "cost" not in usage:
        return []
    read, written = (int(usage.get(name, 0)) for name in ("tokens_read", "tokens_written"))
    return [
        (f"{read:,} input tokens and {written:,} output tokens cost {format_price(usage['cost'])} at the given prices")
    ]


def format_price(cost: float) -> str:
    """Format a cost in the currency of the prices: two decimals, and at least two digits."""
    return f"{cost:,.2f}" if cost >= 1 or cost == 0 else f"{cost:.2g}"
