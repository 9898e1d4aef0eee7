"""The leader of a finding, beside that of the leaderboard, on a small store with gaps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from tracker.database import connect, transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.queries.findings.finding_records import get_finding
from tracker.queries.ranking.leaders import find_leaders
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.mlflow.finding_spec import build_finding_spec
from tracker.recording.pipeline import compute_report, run_analysis

SMALL = Selection(benchmark="small")
N_LARGE, N_SMALL = 90, 30
OPTIONS = {"time_limit": 0.0}


@pytest.fixture
def gappy(sqlite_url: str, tmp_path: Path) -> Iterator[sa.Engine]:
    """Two tasks of 90 and 30 prompts. ``wide`` has the best mean over prompts, ``even`` over tasks; both lack a prompt.

    ``partial`` has the best scores, but only a third of the large task.
    """
    tasks = ["large"] * N_LARGE + ["small"] * N_SMALL
    right = {"wide": (85, 6), "even": (70, 20), "weak": (30, 5)}
    columns = {
        name: [float(i < large) for i in range(N_LARGE)] + [float(i < small) for i in range(N_SMALL)]
        for name, (large, small) in right.items()
    }
    table: dict[str, list[float]] = columns | {"partial": [1.0] * (N_LARGE + N_SMALL)}
    table["wide"][0], table["even"][95] = np.nan, np.nan
    table["partial"][30:N_LARGE] = [np.nan] * 60
    lines = [",".join(["prompt_id", "task", *table])]
    for i, task in enumerate(tasks):
        cells = ("" if np.isnan(column[i]) else f"{column[i]:g}" for column in table.values())
        lines.append(",".join([str(i), task, *cells]))
    file = tmp_path / "scores.csv"
    file.write_text("\n".join(lines))
    engine = connect(sqlite_url)
    ingest_file(engine, file, ReadOptions(benchmark="small", metric="accuracy"))
    yield engine
    engine.dispose()


def test_it_is_recorded_shown_in_mlflow_and_the_selection_holds_the_policy(gappy: sa.Engine) -> None:
    recorded = run_analysis(gappy, "rank-intervals", SMALL, {"n_resamples": 10})
    with transaction(gappy, write=False) as session:
        assert find_leaders(session, SMALL) == ("wide",)
        record = get_finding(session, recorded.finding_id)
        assert record.leader == "wide"
        assert (record.selection["missing"], record.selection["min_coverage"]) == ("bounds", 0.95)
        assert build_finding_spec(session, recorded.finding_id).tags["suffrage.leader"] == "wide"
        assert session.scalars(sa.select(tables.finding.c.leader)).all() == ["wide"]
    assert recorded.report.finding.metrics["n_excluded"] == 1
    assert any("partial (50.0%)" in text for text in (*recorded.report.summary.caveats, *recorded.report.warnings))
    assert "leaderboard" not in recorded.report.summary.headline


@pytest.mark.parametrize("analysis", ["voting-rules", "sensitivity-sweep", "social-choice", "task-subsets"])
def test_a_headline_names_both_leaders_and_the_reason_where_they_differ(gappy: sa.Engine, analysis: str) -> None:
    options = {} if analysis == "task-subsets" else OPTIONS
    report = compute_report(gappy, analysis, SMALL, options)
    assert report.leaders == ("even",)
    assert "even" in report.summary.headline
    assert "over tasks" in report.summary.headline
    assert "leaderboard: wide" in report.summary.headline
    assert len(report.summary.headline.split()) <= 30


def test_weights_are_the_reason_where_they_change_the_leader(gappy: sa.Engine) -> None:
    report = compute_report(
        gappy, "weight-robustness", Selection(benchmark="small", weights="task-equal"), {"n_draws": 50}
    )
    assert report.leaders == ("even",)
    assert "with weights task-equal" in report.summary.headline
    plain = compute_report(gappy, "weight-robustness", SMALL, {"n_draws": 50})
    assert plain.leaders == ("wide",)
    assert "leaderboard" not in plain.summary.headline


def test_the_task_of_which_a_model_has_a_part_only_decides_nothing(gappy: sa.Engine) -> None:
    report = compute_report(gappy, "voting-rules", Selection(benchmark="small", min_coverage=0.4), OPTIONS)
    assert any("partial in large (33.3%)" in text for text in (*report.summary.caveats, *report.warnings))
