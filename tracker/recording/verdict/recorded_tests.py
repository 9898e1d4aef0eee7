"""The first place among all recorded tests of a benchmark."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlalchemy.orm import Session

from tracker.queries.findings.looks import NOT_COUNTED, UNRECORDED, ReportMetrics, describe_looks, list_looks
from tracker.queries.ranking.leaderboard_result import Leaderboard
from tracker.queries.resolution import find_benchmark
from tracker.recording.finding import VerdictLine
from tracker.recording.registry import discover_tests
from tracker.statistics.resampling import ALPHA

ANALYSIS, TEST = "rank-intervals", "first place"
"""The analysis that records the test of the leaderboard."""
TOPIC = "recorded tests"
"""Topic of the line of the verdict."""


@dataclass(frozen=True, kw_only=True)
class FirstPlaceTest:
    """The test of the first place beside the recorded tests.

    Attributes:
        looks: how many tests came before, and what Holm over all leaves; '' without a test.
        line: if the first place is no longer significant then; None otherwise.
    """

    looks: str = ""
    line: VerdictLine | None = None


def adjust_first_place(session: Session, board: Leaderboard) -> FirstPlaceTest:
    """Adjust the p-value of the first place for the recorded tests of its benchmark.

    Args:
        session: the store.
        board: the leaderboard.

    Raises:
        NotFoundError: the benchmark does not exist.
    """
    declared, pvalue = discover_tests(), board.first_holm
    if pvalue is None or ANALYSIS not in declared:
        return FirstPlaceTest()
    benchmark, k = find_benchmark(session, board.benchmark), len(board.rank_intervals)
    metrics = {"first.holm": pvalue, "n_pairs": float(k * (k - 1) // 2)}
    looks, key = list_looks(session, benchmark.id, declared), UNRECORDED
    for look in looks:
        is_this = (look.analysis, look.test, look.n_tests) == (ANALYSIS, TEST, metrics["n_pairs"])
        if is_this and math.isclose(look.pvalue, pvalue, rel_tol=1e-9):
            key = look.findings[0]
    if key == UNRECORDED:
        current = ReportMetrics(key=key, analysis=ANALYSIS, about=(), metrics=metrics)
        looks = list_looks(session, benchmark.id, declared, current)
    holm = next(look.holm for look in looks if key in look.findings and look.test == TEST)
    if key == UNRECORDED:
        sentence = describe_looks(looks, key, board.benchmark)
    else:
        sentence = (
            f"Looks: {board.benchmark} has {len(looks)} recorded test{'s' * (len(looks) != 1)}, this one among them. "
            f"Holm over all leaves p = {holm:.2g} ({TEST}). {NOT_COUNTED}"
        )
    if pvalue > ALPHA or holm <= ALPHA:
        return FirstPlaceTest(looks=sentence)
    text = f"With Holm over {len(looks)} tests another model may be first: p = {holm:.2g}, alone {pvalue:.2g}."
    return FirstPlaceTest(looks=sentence, line=VerdictLine(topic=TOPIC, text=text, leader_changes="maybe"))
