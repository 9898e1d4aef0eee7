"""The order in which findings matter to a reader of a leaderboard."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from tracker.queries.findings.finding_records import FindingRow
from tracker.queries.findings.relevance import sort_by_relevance
from tracker.queries.findings.summary import Summary


def finding(key: int, leader: str = "", stale: str = "", status: str = "complete", name: str = "") -> FindingRow:
    return FindingRow(
        id=key, name=name or f"analysis-{key}", benchmark="b", status=status, summary=Summary("A."), error="",
        main_metrics={}, recorded=datetime.fromtimestamp(key, UTC), stale=stale, selection={}, leader=leader,
    )  # fmt: skip


def test_another_first_model_comes_first_and_stale_findings_last() -> None:
    findings = [
        finding(1, "a"), finding(2, "b"), finding(3), finding(4, "b", stale="a run was added"), finding(5, "b, a"),
        finding(6, "a"), finding(7, status="failed"),
    ]  # fmt: skip
    assert [item.id for item in sort_by_relevance(findings, ["a"])] == [5, 2, 6, 1, 3, 4, 7]
    assert [item.id for item in sort_by_relevance(findings, ["a", "b"])] == [6, 2, 1, 5, 3, 4, 7]


def test_the_latest_finding_of_an_analysis_comes_before_earlier_ones_of_any() -> None:
    findings = [finding(1, "b", name="voting-rules"), finding(2, "a", name="voting-rules"), finding(3, name="trials")]
    assert [item.id for item in sort_by_relevance(findings, ["a"])] == [2, 3, 1]


@given(st.permutations(range(6)))
def test_the_order_of_the_input_does_not_matter(order: list[int]) -> None:
    findings = [finding(key, leader) for key, leader in enumerate(["", "a", "b", "a", "", "c"])]
    expected = sort_by_relevance(findings, ["a"])
    assert sort_by_relevance([findings[place] for place in order], ["a"]) == expected
