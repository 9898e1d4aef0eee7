"""The command `suffrage leaderboard`."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import click

from tracker.cli.help_text import Command
from tracker.cli.options import (
    BOUNDS,
    cluster_option,
    database_option,
    document_format_option,
    missing_options,
    selection_options,
    weights_option,
)
from tracker.cli.output import inform, print_document, print_rows, warn
from tracker.cli.progress import show_activity
from tracker.cli.values.terminal_text import echo
from tracker.exporting.document_tables import DOCUMENT_FORMATS, DocumentFormat
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from tracker.queries.ranking.leaderboard_result import Leaderboard, RankInterval

DROP_ORDER = ("run", "stderr", "n", "stratified", "clustered", "95 % low", "95 % high")
OMITTED_IN_DOCUMENTS = ("stderr", "stratified", "clustered", "run")
"""Columns that a paper's table has no room for; their content is in the intervals."""
MAX_NAMES, MAX_GROUPS = 8, 6
N_RESAMPLES = 1000
"""Resamples of bootstrap ranks, which only JSON and CSV show."""


@click.command(cls=Command)
@click.argument("benchmark")
@missing_options(BOUNDS)
@cluster_option
@weights_option
@selection_options
@database_option
@document_format_option
def command(selection: Selection, database: str | None, output_format: str) -> None:
    """Rank models by their mean score.

    The column `ranks` is an interval of ranks. All intervals hold together with 95 % probability: each pair of models
    is tested on the prompts both have scores for, with Holm's correction. Errors and intervals are about these tasks.
    With --task-effects random they are about other tasks like these; the first line gives the leader's ranks for both.
    Prompts are assumed to be a sample of those that matter. With --weights, means and errors are weighted and there are
    no rank intervals. Intervals keep their level for every value of missing scores that the metric allows.

    Examples:
        suffrage leaderboard mmlu_pro
        suffrage leaderboard mmlu_pro --missing common --task-effects random
        suffrage leaderboard mmlu_pro --weights task-equal --format latex
    """
    from tracker.database import connect, transaction
    from tracker.queries.ranking.leaderboard import load_leaderboard

    engine = connect(database, create=False)
    with show_activity(f"ranking {selection.benchmark}"), transaction(engine, write=False) as session:
        n_resamples = N_RESAMPLES if output_format in ("json", "csv") else 0
        board = load_leaderboard(session, selection, n_resamples=n_resamples)
    if output_format in DOCUMENT_FORMATS:
        _print_document(board, output_format)
    elif output_format != "table":
        print_rows(board.list_records(), output_format)
        for warning in (*board.warnings, *board.cluster_warnings):
            warn(warning)
    else:
        _print_board(board)


def _print_document(board: Leaderboard, output_format: DocumentFormat) -> None:
    """Print the verdict, what the numbers are, and the rows, as LaTeX or Markdown."""
    from tracker.report.leaderboard_rows import describe_intervals

    rows = [{name: row[name] for name in row if name not in OMITTED_IN_DOCUMENTS} for row in _list_columns(board)]
    if all(row.coverage == 1 for row in board.rows):
        rows = [{name: row[name] for name in row if name not in ("n", "coverage")} for row in rows]
    print_document(rows, output_format, [board.describe_lead(), _describe_scores(board), describe_intervals(board)])
    for warning in (*board.warnings, *board.cluster_warnings):
        warn(warning)


def _print_board(board: Leaderboard) -> None:
    """Print the verdict about rank 1, the table, then what else limits the ranking."""
    echo(board.describe_lead())
    if better := board.describe_better_excluded():
        warn(better)
    inform(_describe_scores(board))
    print_rows(_list_columns(board), "table", drop_order=DROP_ORDER)
    _print_warnings(board)
    contenders = set(board.contenders or ())  # the first line has named them
    groups = [
        sentence
        for group, sentence in zip(board.groups, board.describe_groups(), strict=True)
        if set(group) != contenders
    ]
    for line in groups[:MAX_GROUPS]:
        inform(_cut(line))
    if len(groups) > MAX_GROUPS:
        inform(f"and {len(groups) - MAX_GROUPS} more such groups. Record them all: `suffrage analyze rank-intervals`.")
    if len(board.rank_intervals) > 2 and not board.groups:
        inform("All differences between neighbouring ranks are significant.")


def _describe_scores(board: Leaderboard) -> str:
    """Return what the means are over."""
    tasks = f" in {board.n_tasks} task{'s' * (board.n_tasks != 1)}" if board.unit == "prompt" and board.n_tasks else ""
    better = "larger" if board.higher_is_better else "smaller"
    effective = f" (weighted: an effective number of {board.n_effective:,.1f})" if board.weights else ""
    return (
        f"{board.benchmark}: {board.metric} over {board.n_units:,} {board.unit}s{tasks}{effective}; {better} is better."
    )


def _print_warnings(board: Leaderboard) -> None:
    """Print why errors are not clustered, and the warnings."""
    reasons = {row.unclustered for row in board.rows if row.unclustered}
    if len(reasons) == 1 and board.cluster != "none":
        inform(f"Standard errors are not clustered: {reasons.pop()}.")
    if spread := board.describe_task_spread():
        inform(spread)
    if trials := board.describe_trials():
        inform(trials)
    for warning in (*board.warnings, *board.cluster_warnings):
        warn(warning)


def _list_columns(board: Leaderboard) -> list[dict[str, object]]:
    """Return the cells of each row by the title of their column; columns without any value are left out."""
    has_ranks, is_stratified, is_clustered = bool(board.rank_intervals), board.is_stratified, board.is_clustered
    is_unverified = any(row.unverified for row in board.rows)
    rows: list[dict[str, object]] = []
    for row in board.rows:
        interval = board.rank_intervals.get(row.model)
        cells: dict[str, object] = {
            "rank": None if row.rank is None else Decimal(f"{row.rank:g}")  # 2, or 1.5 for two that share the first two
        }
        if has_ranks:
            cells["ranks"] = "" if interval is None else _span(interval)
        cells |= {
            "model": row.model,
            "mean": row.mean,
            "95 % low": row.low,
            "95 % high": row.high,
            "stderr": row.stderr,
        }
        if is_stratified:
            cells["stratified"] = row.stderr_stratified
        if is_clustered:
            cells["clustered"] = row.stderr_clustered
        cells |= {"n": row.n, "coverage": row.coverage, "run": row.run_id}
        if is_unverified:
            cells["unverified"] = row.unverified != ""
        rows.append(cells)
    return rows


def _span(interval: RankInterval) -> str:
    return f"{interval.low:g}" if interval.low == interval.high else f"{interval.low:g}–{interval.high:g}"


def _cut(sentence: str) -> str:
    """Cut the middle of a long list of names."""
    head, _, model_names = sentence.partition(": ")
    names = model_names.removesuffix(".").split(", ")
    if len(names) <= MAX_NAMES:
        return sentence
    half = MAX_NAMES // 2
    between = len(names) - 2 * half
    return f"{head}: {', '.join(names[:half])}, {between} more, {', '.join(names[-half:])}."
