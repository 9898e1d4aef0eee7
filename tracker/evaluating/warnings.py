"""Warnings about the options, the run and the cost of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.evaluating.plan import Plan, option_name
from tracker.schema import Answer, Run, Score

PRICE_OPTIONS = ("price_read", "price_written")
"""Options of servers that also serve to estimate what a model in this process would cost there."""


def list_option_warnings(plan: Plan, method: str) -> list[str]:
    """Options that are set and change nothing, a sentence for each reason.

    Args:
        plan: the options.
        method: how answers are found.
    """
    unused = []
    if plan.server.api_base is None:
        if method != "generation":
            unused.append(
                (_list_changed(plan.generation), f"--method {method} compares options, and the model writes nothing")
            )
        server_options = [name for name in _list_changed(plan.server) if name not in PRICE_OPTIONS]
        unused.append((server_options, "without --api-base no server is asked"))
    else:
        unused.append((_list_changed(plan.loading), "with --api-base no model is loaded here"))
    return [f"{_format_options(names)} changes nothing: {reason}" for names, reason in unused if names]


def _list_changed(settings: Any) -> list[str]:
    return [field.name for field in fields(settings) if getattr(settings, field.name) != field.default]


def _format_options(names: Iterable[str]) -> str:
    return ", ".join(option_name(name) for name in names)


def list_run_warnings(session: Session, run: Run) -> list[str]:
    """Answers that could not be extracted, and whether another run of the model stands before this one.

    Args:
        session: an open transaction.
        run: the one that the evaluation made or continued.
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
    if n_empty := int(rows[1] or 0):
        warnings.append(
            f"{n_empty:,} of {rows[0]:,} answers are empty, or nothing could be read off them: they score 0"
        )
    if run.status == "complete" and (warning := _compare_with_other_runs(session, run)):
        warnings.append(warning)
    return warnings


def _compare_with_other_runs(session: Session, run: Run) -> str | None:
    runs: Any = Run
    score: Any = Score
    metric_ids = sa.select(score.metric_id).where(score.run_id == run.id)
    shared = sa.exists().where(score.run_id == runs.id, score.metric_id.in_(metric_ids))
    rows = session.execute(
        sa.select(runs.id, runs.n_scores).where(
            runs.benchmark_id == run.benchmark_id,
            runs.model_id == run.model_id,
            runs.condition == run.condition,
            runs.variant == run.variant,
            runs.status == "complete",
            runs.id != run.id,
            shared.correlate(Run),
        )
    ).all()
    newest = max((row.id for row in rows), default=0)
    if newest > (run.id or 0):
        return (
            f"run {newest} of the same model is newer, and leaderboards take the newest: "
            f"`suffrage runs hide {newest}` gives way to this one"
        )
    larger = [row.id for row in rows if row.n_scores > run.n_scores]
    if run.limited and larger:
        return (
            f"this run is of fewer prompts than run {max(larger)}, and as the newest it is the one that leaderboards "
            f"take: if it was a trial, `suffrage runs hide {run.id}`"
        )
    return None


def list_cost_warnings(usage: Mapping[str, float]) -> list[str]:
    """The cost of a run, where prices are known."""
    if "cost" not in usage:
        return []
    read, written = (int(usage.get(name, 0)) for name in ("tokens_read", "tokens_written"))
    return [f"{read:,} tokens read and {written:,} written cost {format_price(usage['cost'])} by the prices given"]


def format_price(cost: float) -> str:
    """A cost in the currency of the prices: two decimals, and two digits at least."""
    return f"{cost:,.2f}" if cost >= 1 or cost == 0 else f"{cost:.2g}"
