"""The verdict on a benchmark, from its leaderboard and from every analysis that takes part."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import SuffrageError
from tracker.notebook.result import NotebookResult, make_table
from tracker.plugins.discovery import PluginModule
from tracker.queries.notices import list_notices
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.ranking.leaderboard_result import Leaderboard
from tracker.queries.ranking.leaders import find_leaders
from tracker.queries.selection import Selection
from tracker.recording.declaration import load_declaration
from tracker.recording.finding import VerdictLine
from tracker.recording.pipeline import compute_report
from tracker.recording.registry import discover_analyses
from tracker.recording.rerun_command import selection_arguments
from tracker.recording.verdict.alternative_rankings import compare_alternatives
from tracker.recording.verdict.open_questions import list_open_questions
from tracker.recording.verdict.recorded_lines import find_recorded_line
from tracker.recording.verdict.recorded_tests import FirstPlaceTest, adjust_first_place
from tracker.recording.verdict.verdict_tags import make_verdict_tags

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

__all__ = ["Verdict", "VerdictCheck", "load_verdict"]


@dataclass(frozen=True, kw_only=True)
class VerdictCheck:
    """A line of the verdict, with the command that shows more.

    Attributes:
        line: the line.
        command: a command of the shell.
    """

    line: VerdictLine
    command: str


@dataclass(frozen=True, kw_only=True)
class Verdict(NotebookResult):
    """The verdict on a benchmark.

    Attributes:
        benchmark, metric: of the selection.
        headline: who is first, by how much, how sure.
        looks: how many recorded tests came before that of the first place, and what Holm over all leaves; '' without a
            test.
        leaders: names of the models in the first place.
        margin: how far the first mean is ahead of the next, in the metric's unit; None with fewer than two ranks.
        contenders: names of the models that may be first; None where that is not tested.
        checks: choices that could change the first place, those that do so first.
        open_questions: what the data cannot show, a sentence each.
        notices: choices that were made for the user, such as the run of a model.
        warnings: warnings of the leaderboard, and why an analysis has no line.
        board: the leaderboard.
    """

    benchmark: str
    metric: str
    headline: str
    looks: str
    leaders: tuple[str, ...]
    margin: float | None
    contenders: tuple[str, ...] | None
    checks: tuple[VerdictCheck, ...]
    open_questions: tuple[str, ...]
    notices: tuple[str, ...]
    warnings: tuple[str, ...]
    board: Leaderboard

    def list_records(self) -> list[dict[str, object]]:
        """Return the choices that could change the first place, by name of the column."""
        return [
            {
                "choice": check.line.topic,
                "leader_changes": check.line.leader_changes,
                "text": check.line.text,
                "command": check.command,
            }
            for check in self.checks
        ]

    def to_arrow(self) -> pa.Table:
        """Return a row for each choice that could change the first place."""
        return make_table(self.list_records())

    def plot(self) -> Figure:
        """Draw the leaderboard of the verdict."""
        return self.board.plot()

    def describe(self) -> str:
        """Return the headline."""
        return self.headline

    def list_details(self) -> Sequence[str]:
        """Return what is not known, and the warnings."""
        return (self.looks, *(f"Not known: {text}" for text in self.open_questions), *self.notices, *self.warnings)

    @property
    def tags(self) -> Mapping[str, str]:
        """The verdict as tags of an MLflow run: the leader, and for each choice whether it changes the first place."""
        return make_verdict_tags(
            self.headline,
            self.leaders,
            None if self.contenders is None else len(self.contenders),
            self.margin,
            {check.line.topic: check.line.leader_changes for check in self.checks},
        )


def load_verdict(
    engine: sa.Engine, selection: Selection, *, workers: int = 1, report: Callable[[str], None] = lambda _: None
) -> Verdict:
    """Compute the verdict on a benchmark; nothing is recorded.

    Args:
        engine: the store.
        selection: the selection; options that an analysis does not use are left out there.
        workers: number of parallel workers; -1 means one per core.
        report: called with what is being computed.

    Raises:
        SuffrageError: a benchmark, metric, model, task or run does not exist, or there is nothing to rank.
    """
    report("ranking the models")
    with transaction(engine, write=False) as session:
        board = load_leaderboard(session, selection, n_resamples=0)
        notices = list_notices(session)
        report("treating missing scores and tasks in other ways")
        resolved = replace(selection, metric=board.metric)
        alternatives = [
            VerdictCheck(line=line, command=_command("leaderboard", replace(selection, **changes)))
            for line, changes in compare_alternatives(session, resolved, board)
        ]
        first_place = adjust_first_place(session, board)
        alternatives += list_test_checks(first_place, board.benchmark)
        open_questions = tuple(list_open_questions(session, resolved))
        leaders = board.leaders if _is_plain(selection) else find_leaders(session, resolved)
    ranked = [row for row in board.rows if row.rank is not None]
    lines, problems = [], []
    for plugin in _analyses_in_verdict() if len(ranked) > 1 else ():
        report(f"running the analysis {plugin.name}")
        try:
            lines += _run_in_verdict(engine, plugin, selection, board, leaders=leaders, workers=workers)
        except SuffrageError as error:
            problems.append(f"{plugin.name} has no line: {error}")
    return Verdict(
        benchmark=board.benchmark,
        metric=board.metric,
        headline=board.describe_lead(),
        looks=first_place.looks,
        leaders=board.leaders,
        margin=abs(ranked[0].mean - ranked[1].mean) if len(ranked) > 1 else None,
        contenders=board.contenders,
        checks=sort_checks([*alternatives, *lines]),
        open_questions=open_questions,
        notices=tuple(notices),
        warnings=(*board.warnings, *problems),
        board=board,
    )


def list_test_checks(first_place: FirstPlaceTest, benchmark: str) -> list[VerdictCheck]:
    """Return the line about recorded tests, if they leave the first place open."""
    if first_place.line is None:
        return []
    return [VerdictCheck(line=first_place.line, command=shlex.join(["suffrage", "looks", benchmark]))]


def sort_checks(checks: Sequence[VerdictCheck]) -> tuple[VerdictCheck, ...]:
    """Return choices in the order of the verdict: those that change the first place, unknown ones, the others."""
    order = ("yes", "maybe", "unknown", "no")
    return tuple(sorted(checks, key=lambda check: order.index(check.line.leader_changes)))


def _analyses_in_verdict() -> Iterator[PluginModule]:
    """Yield each analysis that takes part."""
    for plugin in discover_analyses().values():
        if plugin.options.get("in_verdict") is not None and not plugin.problem:
            yield plugin


def _run_in_verdict(
    engine: sa.Engine,
    plugin: PluginModule,
    selection: Selection,
    board: Leaderboard,
    *,
    leaders: Sequence[str],
    workers: int,
) -> list[VerdictCheck]:
    """Return the lines of an analysis: of its latest finding if there are too many scores to run it, else computed.

    Args:
        engine: the store.
        plugin: the analysis.
        selection: of the verdict.
        board: its leaderboard.
        leaders: as for `compute_report`.
        workers: number of parallel workers.

    Raises:
        SuffrageError: the scores do not suit the analysis.
    """
    limit, resolved = plugin.options.get("verdict_limit"), replace(selection, metric=board.metric)
    if limit is not None and board.n_units * len(board.rows) > limit:
        with transaction(engine, write=False) as session:
            recorded = find_recorded_line(session, plugin.name, resolved, board)
        return [] if recorded is None else [VerdictCheck(line=recorded[0], command=f"suffrage show {recorded[1]}")]
    accepted = _accepted(plugin.name, selection, board)
    report = compute_report(
        engine,
        plugin.name,
        replace(accepted, metric=board.metric),
        plugin.options["in_verdict"],
        workers=workers,
        leaders=leaders,
    )
    command = _command(f"analyze {plugin.name}", accepted)
    lines = report.verdict(board.leaders) if callable(report.verdict) else report.verdict
    return [VerdictCheck(line=line, command=command) for line in lines]


def _is_plain(selection: Selection) -> bool:
    """Return whether the leaderboard of a selection has equal weights, all prompts, and the default policy."""
    return selection.weights is None and selection.filter is None and selection.missing is None


def _accepted(analysis: str, selection: Selection, board: Leaderboard) -> Selection:
    """Return the selection for an analysis: with the leaderboard's policy where scores are missing, and without task
    effects that it does not have.
    """
    declaration = load_declaration(analysis)
    is_incomplete = any(row.rank is not None and row.coverage < 1 for row in board.rows)
    is_open = selection.missing is None and board.missing == "bounds" and is_incomplete and board.unit == "prompt"
    if is_open and "bounds" not in declaration.policies:
        selection = replace(selection, missing="bounds")
    return selection if declaration.has_option("cluster") else replace(selection, task_effects=None, cluster=None)


def _command(command: str, selection: Selection) -> str:
    chosen = selection.as_json()
    if selection.min_coverage is not None:  # also without a policy
        chosen["min_coverage"] = selection.min_coverage
    arguments = shlex.join([selection.benchmark, *selection_arguments(chosen)])
    return f"suffrage {command} {arguments}"
