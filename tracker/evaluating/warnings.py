"""What a user should be told of an evaluation, beside its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session

from tracker.evaluating.plan import Plan, option_name
from tracker.schema import Answer, Run, Score

OF_BOTH = ("price_read", "price_written")
"""What concerns servers, but foretells what a model in this process would cost there."""


def of_options(plan: Plan, method: str) -> list[str]:
    """Options that were given and change nothing, a sentence for each reason.

    Args:
        plan: what was said.
        method: how answers are found.
    """
    said = []
    if plan.serving.api_base is None:
        if method != "generation":
            said.append((_given(plan.writing), f"--method {method} compares options, and the model writes nothing"))
        servers = [name for name in _given(plan.serving) if name not in OF_BOTH]
        said.append((servers, "without --api-base no server is asked"))
    else:
        said.append((_given(plan.loading), "with --api-base no model is loaded here"))
    return [f"{_options(names)} changes nothing: {why}" for names, why in said if names]


def _given(part: Any) -> list[str]:
    return [field.name for field in fields(part) if getattr(part, field.name) != field.default]


def _options(names: Iterable[str]) -> str:
    return ", ".join(option_name(name) for name in names)


def of_run(session: Session, run: Run) -> list[str]:
    """Answers that could not be read, and whether another run of the model stands before this one.

    Args:
        session: an open transaction.
        run: the one that was made, or found.
    """
    said = []
    answer: Any = Answer
    key = (answer.prompt_id, answer.trial)
    rows = session.execute(
        sa.select(sa.func.count(), sa.func.sum(sa.column("is_empty"))).select_from(
            sa.select(sa.func.max(sa.case((answer.status == "empty", 1), else_=0)).label("is_empty"))
            .where(answer.run_id == run.id)
            .group_by(*key)
            .subquery()
        )
    ).one()
    if n_empty := int(rows[1] or 0):
        said.append(f"{n_empty:,} of {rows[0]:,} answers are empty, or nothing could be read off them: they score 0")
    if run.status == "complete" and (before := _other(session, run)):
        said.append(before)
    return said


def _other(session: Session, run: Run) -> str | None:
    runs: Any = Run
    score: Any = Score
    mine = sa.select(score.metric_id).where(score.run_id == run.id)
    shared = sa.exists().where(score.run_id == runs.id, score.metric_id.in_(mine))
    others = session.execute(
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
    newest = max((other.id for other in others), default=0)
    if newest > (run.id or 0):
        return (
            f"run {newest} of the same model is newer, and leaderboards take the newest: "
            f"`suffrage runs hide {newest}` gives way to this one"
        )
    larger = [other.id for other in others if other.n_scores > run.n_scores]
    if run.limited and larger:
        return (
            f"this run is of fewer prompts than run {max(larger)}, and as the newest it is the one that leaderboards "
            f"take: if it was a trial, `suffrage runs hide {run.id}`"
        )
    return None


def of_cost(usage: Mapping[str, float]) -> list[str]:
    """What a run has cost, where prices were given."""
    if "cost" not in usage:
        return []
    read, written = (int(usage.get(name, 0)) for name in ("tokens_read", "tokens_written"))
    return [f"{read:,} tokens read and {written:,} written cost {price(usage['cost'])} by the prices given"]


def price(cost: float) -> str:
    """A cost in the currency of the prices: two decimals, and two digits at least."""
    return f"{cost:,.2f}" if cost >= 1 or cost == 0 else f"{cost:.2g}"
