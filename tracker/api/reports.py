"""The report of a benchmark: asked for, made, and kept in MLflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import SelectionError
from tracker.queries.missing import Policy
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from tracker.reporting.html.contents import Contents, RankIntervals

RANKS = "rank-intervals"
SAID = (
    "The ranks are those that pairwise comparisons on the same prompts leave open, at 95 % for all models together "
    "(paired t, Holm's correction{clustered})."
)


@dataclass(frozen=True, kw_only=True)
class MadeReport:
    """A report.

    Attributes:
        page: the file.
        contents: what it tells.
        notes: what the person who made it should know.
    """

    page: bytes
    contents: Contents
    notes: Sequence[str] = ()


def report(
    engine: sa.Engine, selection: Selection, *, missing: Policy = "unranked", with_prompts: bool = True
) -> MadeReport:
    """The report of a benchmark as one HTML file.

    Args:
        engine: the store.
        selection: which scores to rank.
        missing: what becomes of scores that were not measured.
        with_prompts: whether texts of prompts may be shown.

    Raises:
        SuffrageError: there is no such benchmark, metric, model, task or run, or nothing to rank.
    """
    from tracker.reporting.html.contents import report_contents
    from tracker.reporting.html.page import report_page

    with transaction(engine, write=False) as session:
        contents = report_contents(
            session, selection, missing=missing, questions=explained_questions(), with_prompts=with_prompts
        )
    contents = replace(contents, ranks=rank_intervals(engine, contents.selection, contents.board.unit))
    return MadeReport(page=report_page(contents), contents=contents)


def explained_questions() -> dict[str, str]:
    """The docstring of every analysis that is installed, by name; nothing is imported for it."""
    import ast

    from tracker.recording.discovery import available_analyses

    told = {}
    for name, found in available_analyses().items():
        if found.path is not None and not found.problem:
            told[name] = ast.get_docstring(ast.parse(found.path.read_bytes())) or ""
    return told


def rank_intervals(engine: sa.Engine, selection: Selection, unit: str) -> RankIntervals:
    """Between which ranks the models of a selection lie, or why that is not known."""
    from tracker.recording.pipeline import look
    from tracker.reporting.html.contents import RankIntervals

    if unit != "prompt":
        return RankIntervals(said="Which ranks could be swapped is not told: only scores of whole tasks are stored.")
    try:
        found = look(engine, RANKS, selection, {"n_resamples": 0})
    except SelectionError as error:
        return RankIntervals(said=f"Which ranks could be swapped is not told: {error}")
    ranked = found.rankings[RANKS]
    if ranked.rank_low is None or ranked.rank_high is None:
        return RankIntervals()
    return RankIntervals(
        low=dict(zip(ranked.models, ranked.rank_low.tolist(), strict=True)),
        high=dict(zip(ranked.models, ranked.rank_high.tolist(), strict=True)),
        said=SAID.format(clustered=", errors clustered by task" if found.finding.metrics.get("n_clusters") else ""),
    )
