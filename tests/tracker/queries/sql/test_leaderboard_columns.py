"""Columns of intervals of the view `leaderboard`: those of the leaderboard, on both engines, never out of date."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores, add_task_scores
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.database import transaction
from tracker.errors import SqlError
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.queries.sql import leaderboard_columns
from tracker.queries.sql.leaderboard_columns import COLUMNS, find_benchmark_name, needs_intervals
from tracker.queries.sql.read_only import read_only_sql

QUERY = f"SELECT model, mean, rank, {', '.join(COLUMNS)} FROM leaderboard WHERE benchmark = '{{}}' AND metric = '{{}}'"


def request(store: sa.Engine, statement: str) -> list[tuple[object, ...]]:
    with read_only_sql(store, statement) as result:
        return list(result.rows)


def rows_of_board(store: sa.Engine, **choices: object) -> dict[str, tuple[object, ...]]:
    """The numbers that `suffrage leaderboard` prints."""
    with transaction(store, write=False) as session:
        board = load_leaderboard(session, Selection(**choices), n_resamples=0)
    result = {}
    for row in board.rows:
        ranks = board.rank_intervals.get(row.model)
        stderr = row.stderr_stratified if board.is_stratified else row.stderr_clustered or row.stderr
        ends = (None, None) if ranks is None else (ranks.low, ranks.high)
        result[row.model] = (row.mean, row.rank, stderr, row.low, row.high, *ends)
    return result


def check(store: sa.Engine, benchmark: str, metric: str = "accuracy") -> int:
    view = {name: rest for name, *rest in request(store, QUERY.format(benchmark, metric))}
    expected = rows_of_board(store, benchmark=benchmark, metric=metric)
    assert view.keys() == expected.keys()
    for name, values in expected.items():
        assert [None if value is None else pytest.approx(value) for value in values] == view[name]
    return sum(values[-1] is not None for values in expected.values())


def declare_bounds(store: sa.Engine) -> None:
    with store.begin() as connection:
        connection.execute(sa.text("UPDATE metric SET lower = 0, upper = 1 WHERE name = 'accuracy'"))


def draw(seed: int, n: int = 60, k: int = 4, missing: float = 0.02) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Q = (rng.random((n, k)) < np.linspace(0.2, 0.9, k)).astype(float)
    Q[rng.random((n, k)) < missing] = np.nan
    return Q


@pytest.mark.tampers
def test_they_are_those_of_the_leaderboard_and_follow_each_change(store: sa.Engine) -> None:
    add_scores(store, draw(0), tasks=[f"t{i % 3}" for i in range(60)], benchmark="strata")
    add_scores(store, draw(1, missing=0) * 3, metric="rating", benchmark="strata")
    add_scores(store, draw(2), benchmark="plain")
    add_task_scores(store, draw(3, n=6, missing=0), tasks=list("uvwxyz"), models=["m0", "m1", "m2", "m3"])
    declare_bounds(store)
    assert check(store, "strata") == check(store, "plain") == 4
    assert check(store, "strata", "rating") > 0
    assert check(store, "b") == 0
    before = request(store, QUERY.format("plain", "accuracy"))
    add_scores(store, draw(5, k=2, missing=0), models=["m0", "new"], benchmark="plain", label="again")
    check(store, "plain")
    assert request(store, QUERY.format("plain", "accuracy")) != before
    with store.begin() as connection:
        connection.execute(sa.text("UPDATE run SET status = 'hidden' WHERE label = 'again'"))
    assert request(store, QUERY.format("plain", "accuracy")) == before
    every = request(store, "SELECT * FROM leaderboard")
    assert len(every) == 4 * 4
    assert len(every[0]) == len(request(store, "SELECT benchmark, 1 FROM leaderboard")[0]) + 11 + len(COLUMNS)


@settings(max_examples=3, deadline=None)
@given(
    seed=st.integers(0, 1000), k=st.integers(1, 5), missing=st.sampled_from([0.0, 0.01, 0.2]), has_tasks=st.booleans()
)
def test_every_store_has_the_same_intervals(
    tmp_path_factory: pytest.TempPathFactory, seed: int, k: int, missing: float, has_tasks: bool
) -> None:
    from tracker.database import connect

    engine = connect(f"sqlite:///{tmp_path_factory.mktemp('view')}/suffrage.db")
    tasks = [f"t{i % 4}" for i in range(40)] if has_tasks else None
    add_scores(engine, np.vstack([draw(seed, 39, k, missing), np.ones(k)]), tasks=tasks)
    declare_bounds(engine)
    check(engine, "b")
    engine.dispose()


def test_a_mean_over_other_prompts_has_no_interval(sqlite_store: sa.Engine) -> None:
    """Without bounds, the leaderboard uses the prompts that all models have, and the view those of each model."""
    Q = draw(1, missing=0) * 3
    Q[:2, 0] = np.nan
    add_scores(sqlite_store, Q)
    rows = request(sqlite_store, QUERY.format("b", "accuracy"))
    assert [name for name, _, _, _, low, *_ in rows if low is not None] == ["m0"]


def test_a_statement_without_them_reads_the_permanent_view(store: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    add_scores(store, draw(0))

    def fail(*_: object) -> None:
        raise AssertionError("intervals were computed")

    monkeypatch.setattr(leaderboard_columns, "compute_intervals", fail)
    assert len(request(store, "SELECT model, mean FROM leaderboard")) == 4
    assert request(store, "SELECT count(*) FROM leaderboard") == [(4,)]


def test_the_connection_still_only_reads(store: sa.Engine) -> None:
    add_scores(store, draw(0))
    for statement in ("DELETE FROM run WHERE low = 1 OR id IN (SELECT run_id FROM leaderboard)",
                      "CREATE TEMPORARY TABLE low AS SELECT * FROM leaderboard"):  # fmt: skip
        with pytest.raises(SqlError):
            request(store, statement)


def test_a_leaderboard_that_takes_too_long_has_a_warning(sqlite_store: sa.Engine) -> None:
    add_scores(sqlite_store, draw(0))
    intervals = leaderboard_columns.compute_intervals(sqlite_store, "SELECT * FROM leaderboard", -1.0)
    assert intervals.rows == []
    assert intervals.warnings[0].startswith("No intervals of b: not computed within")


def test_changing_runs_leave_the_columns_out(sqlite_store: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    add_scores(sqlite_store, draw(0))
    changed = leaderboard_columns.IntervalRows(rows=[], state=("another",))
    monkeypatch.setattr(leaderboard_columns, "compute_intervals", lambda *_: changed)
    with read_only_sql(sqlite_store, "SELECT * FROM leaderboard") as result:
        assert "low" not in result.columns
        assert "runs change meanwhile" in result.warnings[0]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("SELECT * FROM leaderboard WHERE benchmark = 'a''b' AND metric = 'm' ORDER BY rank", "a'b"),
        ("select low from leaderboard where benchmark='x'", "x"),
        ("SELECT * FROM leaderboard", None),
        ("SELECT * FROM leaderboard WHERE benchmark = 'x' OR rank = 1", None),
        ("SELECT * FROM leaderboard WHERE NOT benchmark = 'x'", None),
        ("SELECT * FROM leaderboard, run WHERE benchmark = 'x'", None),
        ("SELECT * FROM leaderboard l JOIN run_history h ON true WHERE h.benchmark = 'x'", None),
        ("SELECT * FROM leaderboard WHERE model IN (SELECT model FROM run_history WHERE benchmark = 'x')", None),
        ("SELECT benchmark = 'x', * FROM leaderboard", None),
        ("SELECT * FROM leaderboard WHERE benchmark = 'x' AND benchmark = 'y'", "y"),
    ],
)
def test_only_a_certain_benchmark_is_computed_alone(statement: str, name: str | None) -> None:
    assert find_benchmark_name(statement) == name


def test_other_statements_need_no_intervals() -> None:
    assert not needs_intervals("SELECT * FROM run")
    assert not needs_intervals("SELECT model, rank FROM leaderboard")
    assert needs_intervals("SELECT rank_low FROM leaderboard")
