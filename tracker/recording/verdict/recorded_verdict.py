"""Record a verdict as a finding, and find the recorded one that is still current."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import transaction
from tracker.queries.findings.finding_records import FindingRow, get_finding, list_findings, load_artifact
from tracker.queries.findings.summary import MAX_CAVEATS, MAX_EVIDENCE, Summary
from tracker.queries.ranking.leaderboard_result import Leaderboard
from tracker.queries.resolution import find_benchmark
from tracker.queries.scores import compute_digest
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.artifacts import decode_table
from tracker.recording.finding import Finding, Metric, Report, Undefined, VerdictLine
from tracker.recording.pipeline import RecordedFinding, record_report
from tracker.recording.record import Provenance
from tracker.recording.registry import discover_analyses
from tracker.recording.rerun_command import VERDICT
from tracker.recording.verdict.benchmark_verdict import (
    Verdict,
    VerdictCheck,
    list_test_checks,
    load_verdict,
    sort_checks,
)
from tracker.recording.verdict.open_questions import list_open_questions
from tracker.recording.verdict.recorded_lines import is_of_leaderboard
from tracker.recording.verdict.recorded_tests import TOPIC, adjust_first_place
from tracker.recording.verdict.verdict_tags import CHOICES, CHOICES_FILE
from tracker.version import __version__


@dataclass(frozen=True, kw_only=True)
class VerdictFinding(Finding):
    """The numbers of a verdict.

    Attributes:
        n_models: ranked models.
        n_may_lead: models that may be first, if that is tested.
        margin: how far the first mean is ahead of the next, in the metric's unit.
        n_choices: choices that were tried.
        n_changes: choices that put another model first.
        n_open: choices by which several models may be first.
        n_undecided: choices of which that is not known.
    """

    n_models: int
    n_may_lead: Metric
    margin: Metric
    n_choices: int
    n_changes: int
    n_open: int
    n_undecided: int


@dataclass(frozen=True, kw_only=True)
class RecordedVerdict:
    """A recorded verdict whose data and choices are the present ones.

    Attributes:
        finding_id: its finding.
        recorded: when, UTC.
        looks: as of `Verdict`; counts the tests that are recorded now.
        checks: as of `Verdict`.
        open_questions: what the data that are stored now cannot show.
    """

    finding_id: int
    recorded: datetime
    looks: str
    checks: tuple[VerdictCheck, ...]
    open_questions: tuple[str, ...]


def record_verdict(
    engine: sa.Engine,
    selection: Selection,
    *,
    workers: int = 1,
    publish_to: str | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[Verdict, RecordedFinding]:
    """Compute the verdict on a benchmark, and record it as a finding.

    Args:
        engine: the store.
        selection, workers, report: as for `load_verdict`.
        publish_to: MLflow's tracking URI; None records only.

    Raises:
        SuffrageError: as for `load_verdict`, or the store cannot be written.
    """
    verdict, provenance, findings_report = compute_verdict_report(engine, selection, workers=workers, report=report)
    return verdict, record_report(engine, provenance, findings_report, publish_to=publish_to)


def compute_verdict_report(
    engine: sa.Engine,
    selection: Selection,
    *,
    workers: int = 1,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[Verdict, Provenance, Report]:
    """Compute what `record_verdict` records: the verdict, what it was computed from, and its report.

    Raises:
        SuffrageError: as for `load_verdict`.
    """
    run = tables.run.c
    with transaction(engine, write=False) as session:
        benchmark = find_benchmark(session, selection.benchmark)
        stored = sa.select(run.id, run.checksum, run.status).where(run.benchmark_id == benchmark.id)
        as_read = {key: (checksum, status) for key, checksum, status in session.execute(stored)}
    verdict = load_verdict(engine, selection, workers=workers, report=report)
    return verdict, _describe_provenance(verdict, selection, benchmark.id, as_read), _make_report(verdict)


def _describe_provenance(
    verdict: Verdict, selection: Selection, benchmark_id: int, as_read: Mapping[int, tuple[str, str]]
) -> Provenance:
    """Return what a verdict was computed from.

    Args:
        verdict: the verdict.
        selection: the user's choices.
        benchmark_id: key of the benchmark.
        as_read: checksum and status of each run before the verdict was computed. A run that was stored later has none,
            so that the finding is stale.
    """
    board = verdict.board
    chosen = replace(
        selection, metric=board.metric, missing=board.missing, task_effects=board.task_effects, cluster=board.cluster
    )
    states = {key: as_read.get(key, ("", "complete")) for key in sorted(row.run_id for row in board.rows)}
    checksums = [checksum for checksum, _ in states.values()]
    return Provenance(
        analysis=VERDICT,
        code_version=f"suffrage {__version__}",
        selection=chosen,
        parameters=_list_choices(selection),
        benchmark_id=benchmark_id,
        input_digest=compute_digest((np.array(list(states), dtype=np.int64),), checksums),
        runs={("scores", key): checksum for key, (checksum, _) in states.items()},
        statuses={key: status for key, (_, status) in states.items()},
        filter_id=selection.filter,
    )


def _list_choices(selection: Selection) -> dict[str, object]:
    """Return the choices of a selection as the user made them; the recorded selection has them resolved.

    Without a choice each analysis of a verdict has its own default.
    """
    return {name: getattr(selection, name) for name in ("missing", "min_coverage", "task_effects", "cluster")}


def _make_report(verdict: Verdict) -> Report:
    """Return a verdict as a report; the line about recorded tests is left out, since later tests change it."""
    checks = [check for check in verdict.checks if check.line.topic != TOPIC]
    changes = [check.line.leader_changes for check in checks]
    margin: Metric = Undefined("fewer than two models have a rank") if verdict.margin is None else verdict.margin
    n_may_lead: Metric = Undefined(verdict.board.no_rank_intervals)
    if verdict.contenders is not None:
        n_may_lead = len(verdict.contenders)
    finding = VerdictFinding(
        n_models=sum(row.rank is not None for row in verdict.board.rows),
        n_may_lead=n_may_lead,
        margin=margin,
        n_choices=len(checks),
        n_changes=changes.count("yes"),
        n_open=changes.count("maybe"),
        n_undecided=changes.count("unknown"),
    )
    summary = Summary(
        headline=verdict.headline,
        evidence=tuple(_summarize_check(check) for check in checks[:MAX_EVIDENCE]),
        caveats=verdict.open_questions[:MAX_CAVEATS],
    )
    return Report(
        finding,
        summary=summary,
        tables={CHOICES: replace(verdict, checks=tuple(checks)).to_arrow()} if checks else {},
        warnings=(*verdict.open_questions[MAX_CAVEATS:], *verdict.notices, *verdict.warnings),
        leaders=verdict.leaders,
    )


def _summarize_check(check: VerdictCheck) -> str:
    """Return a choice and whether it changes the first place, as a sentence of the summary."""
    topic = check.line.topic
    return f"{topic[:1].upper()}{topic[1:]} ({check.line.answer}): {check.line.text}"


def find_current_verdict(session: Session, selection: Selection, board: Leaderboard) -> RecordedVerdict | None:
    """Return the latest recorded verdict with the runs and choices of a leaderboard; None if none is current.

    It is not current if an analysis that a verdict only reads from findings was recorded later.

    Args:
        session: the store.
        selection: of the leaderboard.
        board: the leaderboard.
    """
    findings = list_findings(session, benchmark=selection.benchmark)
    verdicts = (row for row in findings if row.name == VERDICT and is_of_leaderboard(session, row, selection, board))
    chosen = _list_choices(selection)
    row = next((row for row in verdicts if get_finding(session, row.id).parameters == chosen), None)
    if row is None or any(later.id > row.id and later.name in _read_from_findings() for later in findings):
        return None
    resolved = replace(selection, metric=board.metric)
    first_place = adjust_first_place(session, board)
    checks = _load_checks(session, row)
    if checks is None:
        return None
    return RecordedVerdict(
        finding_id=row.id,
        recorded=row.recorded,
        looks=first_place.looks,
        checks=sort_checks([*checks, *list_test_checks(first_place, board.benchmark)]),
        open_questions=tuple(list_open_questions(session, resolved)),
    )


def _read_from_findings() -> set[str]:
    """Return the names of the analyses whose recorded leader a verdict shows."""
    return {name for name, plugin in discover_analyses().items() if plugin.options.get("verdict_limit") is not None}


def _load_checks(session: Session, row: FindingRow) -> list[VerdictCheck] | None:
    """Return the choices of a recorded verdict; None if it was recorded before a choice could leave the leader open."""
    if CHOICES_FILE not in {artifact.name for artifact in get_finding(session, row.id).artifacts}:
        return []
    choices = decode_table(load_artifact(session, row.id, CHOICES_FILE)).to_pylist()
    if not all(isinstance(choice["leader_changes"], str) for choice in choices):
        return None
    return [
        VerdictCheck(
            line=VerdictLine(topic=choice["choice"], text=choice["text"], leader_changes=choice["leader_changes"]),
            command=choice["command"],
        )
        for choice in choices
    ]
