"""Checks of what a store holds: runs, models, prompts, metrics and findings."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.ingest.resolve.similar_models import find_similar_models, show_name
from tracker.name_lists import join_names
from tracker.queries.catalogue.prompt_problems import count_prompt_problems
from tracker.queries.findings.finding_records import get_finding
from tracker.queries.findings.staleness import list_stale_findings
from tracker.queries.resolution import benchmark_label
from tracker.queries.sql import tables
from tracker.recording.rerun_command import rerun_advice
from tracker.run_settings import describe_progress, evaluation_identity, get_command

Verdict = Literal["ok", "warning", "problem"]

MAX_NAMES = 5


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of one check.

    Attributes:
        name: subject of the check.
        verdict: ok; warning: something is missing or old; problem: something is broken.
        result: what the check found.
        advice: how to fix it; '' if nothing is to be done.
    """

    name: str
    verdict: Verdict
    result: str
    advice: str = ""


def check_contents(session: Session) -> Iterator[Check]:
    """Yield the checks of runs, models, prompts, metrics and findings."""
    run, prompt, metric = tables.run.c, tables.prompt.c, tables.metric.c
    counted = session.execute(sa.select(run.status, sa.func.count()).group_by(run.status))
    statuses: dict[str, int] = dict(counted.all())
    counted_runs = ", ".join(f"{statuses[status]:,} {status}" for status in sorted(statuses)) or "none yet"
    if statuses.get("partial"):
        yield Check(name="runs", verdict="warning", result=counted_runs, advice=_partial(session))
    else:
        yield Check(name="runs", verdict="ok", result=counted_runs)
    yield _models(session)
    n_prompts = session.scalar(sa.select(sa.func.count()).select_from(tables.prompt)) or 0
    silent = session.scalar(sa.select(sa.func.count()).select_from(tables.prompt).where(prompt.text.is_(None))) or 0
    advice = (
        "Analyses of texts leave them out. Import a prompt table with texts: suffrage ingest PROMPTS" if silent else ""
    )
    description = f"{n_prompts:,}, {silent:,} of them without text" if silent else f"{n_prompts:,}, all with text"
    if problems := count_prompt_problems(session):
        yield _wrong_prompts(description, problems)
    else:
        yield Check(name="prompts", verdict="ok", result=description if n_prompts else "none yet", advice=advice)
    open_ended = metric.lower.is_(None) | metric.upper.is_(None)
    unbounded = session.scalars(sa.select(metric.name).where(open_ended).order_by(metric.name)).all()
    n_metrics = session.scalar(sa.select(sa.func.count()).select_from(tables.metric)) or 0
    description = f"{n_metrics:,}"
    if unbounded:
        description += f", {len(unbounded)} of them without bounds: {join_names(unbounded, MAX_NAMES)}"
    yield Check(name="metrics", verdict="ok", result=description)
    yield _stale(session)


def _models(session: Session) -> Check:
    """Return the warning about models whose names are similar; the model that was stored first stays, as in imports."""
    model, alias = tables.model.c, tables.model_alias.c
    query = sa.select(model.name).where(model.name.not_in(sa.select(alias.name))).order_by(model.id)
    names = session.scalars(query).all()
    pairs = find_similar_models(names, {})
    if not pairs:
        return Check(name="models", verdict="ok", result=f"{len(names):,}" if names else "none yet")
    similar = join_names((f"{show_name(first)} and {show_name(second)}" for first, second in pairs), MAX_NAMES)
    commands = [f"suffrage models merge {show_name(first)} {show_name(second)}" for first, second in pairs]
    return Check(
        name="models",
        verdict="warning",
        result=f"{len(names):,}, some with similar names: {similar}",
        advice=f"If they are one model: {join_names(commands, MAX_NAMES)}",
    )


def _wrong_prompts(description: str, problems: Mapping[str, Mapping[str, int]]) -> Check:
    """Return the warning about prompts whose content is wrong."""
    totals: Counter[str] = Counter()
    for by_problem in problems.values():
        totals.update(by_problem)
    listing = "; ".join(f"{problem}: {n:,}" for problem, n in totals.items())
    commands = [f"suffrage prompts check {shlex.quote(benchmark)}" for benchmark in problems]
    return Check(
        name="prompts",
        verdict="warning",
        result=f"{description}. {listing[0].upper()}{listing[1:]}",
        advice=f"List them: {join_names(commands, MAX_NAMES)}",
    )


def _partial(session: Session) -> str:
    """Return advice on partial runs: some are truncated by damage, others are being evaluated or were stopped."""
    run, model, benchmark = tables.run.c, tables.model.c, tables.benchmark.c
    rows = session.execute(
        sa.select(run.id, run.settings, model.name.label("model"), benchmark.name, benchmark.revision)
        .join(tables.model, model.id == run.model_id)
        .join(tables.benchmark, benchmark.id == run.benchmark_id)
        .where(run.status == "partial")
        .order_by(run.id)
    ).all()
    unfinished = [row for row in rows if evaluation_identity(row.settings) is not None]
    sentences = [
        f"The evaluation of run {row.id} is not complete ({describe_progress(row.settings)}). Resume it with: "
        + get_command(row.settings, benchmark_label(row.name, row.revision), row.model)
        for row in unfinished[:MAX_NAMES]
    ]
    if more := len(unfinished) - MAX_NAMES:
        sentences += [f"{more:,} more evaluations are not complete: suffrage runs lists them."] if more > 0 else []
    if damaged := [row.id for row in rows if evaluation_identity(row.settings) is None]:
        sentences.append(
            f"Run {join_names(damaged, MAX_NAMES)} has only the data before the damage of its file. Ingest the "
            "complete file, then: suffrage runs delete ID"
        )
    return "; ".join(sentence.rstrip(".") for sentence in sentences) + "." if len(sentences) > 1 else sentences[0]


def _stale(session: Session) -> Check:
    complete = tables.finding.c.status == "complete"
    n = session.scalar(sa.select(sa.func.count()).select_from(tables.finding).where(complete)) or 0
    stale = list_stale_findings(session)
    if not stale:
        return Check(name="findings", verdict="ok", result=f"{n:,}, none of them stale")
    latest = max(stale)
    return Check(
        name="findings",
        verdict="warning",
        result=(
            f"{len(stale):,} of {n:,} {'is' if len(stale) == 1 else 'are'} stale: "
            f"{join_names(sorted(stale), MAX_NAMES)}. Finding {latest}: {stale[latest]}"
        ),
        advice=f"{rerun_advice(get_finding(session, latest))} `suffrage show ID` shows the reason of each.",
    )
