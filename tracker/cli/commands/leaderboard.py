"""Rank the models of a benchmark, with standard errors and coverage."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from tracker.cli.options import database_option, format_option, selection_options, weights_option
from tracker.cli.output import print_rows, say
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from tracker.queries.leaderboard import LeaderboardRow

SPARE = ("run", "coverage", "n", "stderr")


@click.command()
@click.argument("benchmark")
@weights_option
@selection_options
@database_option
@format_option
def command(selection: Selection, database: str | None, output_format: str) -> None:
    """Rank the models of a benchmark by their mean score.

    Beside the plain standard error stands the one clustered by task (CR1); the 95 % interval uses it
    where there are tasks. A model that lacks scores is shown below the others, without a rank. With
    --weights, means and errors are weighted, and prompts without a weight count for nobody.
    """
    from tracker.database import connect, transaction
    from tracker.queries.leaderboard import LeaderboardRow, leaderboard

    with transaction(connect(database), write=False) as session:
        board = leaderboard(session, selection)
    if output_format != "table":
        names = [one.name for one in fields(LeaderboardRow) if board.weights or one.name != "n_effective"]
        print_rows(board.rows, output_format, columns=names)
        for note in board.notes if board.weights or board.filter_id else ():
            say(note)
        return
    tasks = f" in {board.n_tasks} tasks" if board.unit == "prompt" and board.n_tasks else ""
    better = "larger" if board.higher_is_better else "smaller"
    effective = f" (weighted: an effective number of {board.n_effective:,.1f})" if board.weights else ""
    say(
        f"{board.benchmark}: {board.metric} over {board.n_units:,} {board.unit}s{tasks}{effective}; {better} is better."
    )
    print_rows([_shown(row) for row in board.rows], output_format, spare=SPARE)
    for row in board.rows:
        if row.unranked:
            say(f"{row.model} has no rank: {row.unranked}.")
    reasons = {row.unclustered for row in board.rows if row.unclustered}
    if len(reasons) == 1:
        say(f"No standard error clustered by task: {reasons.pop()}.")
    for note in board.notes:
        say(note)


def _shown(row: LeaderboardRow) -> dict[str, object]:
    return {
        "rank": None if row.rank is None else Decimal(f"{row.rank:g}"),  # 2, or 1.5 for two that share the first two
        "model": row.model,
        "mean": row.mean,
        "95 % low": row.low,
        "95 % high": row.high,
        "stderr": row.stderr,
        "clustered": row.stderr_clustered,
        "n": row.n,
        "coverage": row.coverage,
        "run": row.run_id,
    }
