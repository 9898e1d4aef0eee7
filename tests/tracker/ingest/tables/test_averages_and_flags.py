"""Averages of other columns and flags of the models are no tasks, whatever their headings are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.measurement import ParsedFile, ReadOptions, TaskScores
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.tables.scores.averages import find_averages


def read(folder: Path, columns: dict[str, Any], digits: int = 2, **options: Any) -> ParsedFile:
    n_rows = len(next(iter(columns.values())))
    lines = [",".join(["model", *columns])]
    for row in range(n_rows):
        cells = (values[row] for values in columns.values())
        texts = [cell if isinstance(cell, str) else f"{cell:.{digits}f}" for cell in cells]
        lines.append(",".join([f"org/m{row}", *texts]))
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return parse_file(path, ReadOptions(benchmark="b", **options))


def tasks(parsed: ParsedFile) -> list[str]:
    first = parsed.measurements[0]
    assert isinstance(first, TaskScores)
    return list(first.tasks)


def draw(n_rows: int, n_columns: int, seed: int, digits: int = 2) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(60, 12, (n_rows, 1)), rng.normal(0, 8, n_columns)
    return np.round(np.clip(ability + difficulty + rng.normal(0, 5, (n_rows, n_columns)), 0, 100), digits)


def nested_table(n_rows: int = 12) -> dict[str, Any]:
    """A leaderboard with a flag, a total, averages of areas, averages of parts of an area, and the parts."""
    parts = draw(n_rows, 9, seed=3) / 100
    names = ["読解", "翻訳", "検索", "計算", "論理", "倫理", "毒性", "偏見", "真実"]
    columns: dict[str, Any] = dict(zip(names, parts.T, strict=True))
    areas = {"応用": parts[:, :3].mean(axis=1), "推論": parts[:, 3:5].mean(axis=1)}
    return {
        "JA": ["0", "1", *["0"] * (n_rows - 3), ""],
        "GLP_AVG": np.mean(list(areas.values()), axis=0),
        **areas,
        **dict(list(columns.items())[:5]),
        "ALT": parts[:, 5:].mean(axis=1),
        **dict(list(columns.items())[5:]),
    }


class TestNestedLeaderboard:
    def test_parts_are_tasks_and_averages_and_flags_are_not(self, tmp_path: Path) -> None:
        parsed = read(tmp_path, nested_table(), digits=6)
        assert tasks(parsed) == ["読解", "翻訳", "検索", "計算", "論理", "倫理", "毒性", "偏見", "真実"]
        assert any("'GLP_AVG', '応用', '推論', 'ALT': averages of other columns" in text for text in parsed.warnings)
        second, last = parsed.measurements[1], parsed.measurements[11]
        assert isinstance(second, TaskScores)
        assert isinstance(last, TaskScores)
        assert (second.run.settings["JA"], "JA" in last.run.settings) == ("1", False)

    def test_named_columns_are_tasks(self, tmp_path: Path) -> None:
        chosen = ("JA", "応用", "読解")
        assert tasks(read(tmp_path, nested_table(), digits=6, task_columns=chosen)) == list(chosen)


class TestAverages:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(12, 30), st.integers(3, 9), st.integers(0, 10_000), st.sampled_from([1, 2, 4]))
    def test_distinct_tasks_are_no_averages(self, n_rows: int, n_columns: int, seed: int, digits: int) -> None:
        assert find_averages(draw(n_rows, n_columns, seed, digits)) == []

    @settings(max_examples=25, deadline=None)
    @given(st.integers(30, 60), st.integers(3, 8), st.integers(0, 10_000), st.data())
    def test_weighted_means_of_any_columns_are_found(self, n_rows: int, n: int, seed: int, data: st.DataObject) -> None:
        T = draw(n_rows, n, seed)
        weights = np.array(data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), dtype=float)
        weights[data.draw(st.integers(0, n - 1))] = 0.0
        place = data.draw(st.integers(0, n))
        mean = np.round(T @ (weights / weights.sum()), 2)
        (average,) = find_averages(np.insert(T, place, mean, axis=1))
        assert (average.column, average.is_certain) == (place, True)

    def test_scores_as_large_as_a_float_are_compared(self) -> None:
        T = draw(12, 5, seed=1)
        T = np.column_stack([T, T.mean(axis=1)]) / 128 * np.finfo(float).max
        assert [average.column for average in find_averages(T)] == [5]

    def test_too_few_rows_are_an_error_with_both_readings(self, tmp_path: Path) -> None:
        columns = {"A": [50.2, 60.1, 70.4, 62.1], "B": [53.4, 58.3, 75.2, 69.3], "C": [51.8, 59.2, 72.8, 65.7]}
        with pytest.raises(BadInputError) as caught:
            read(tmp_path, columns, digits=1)
        message = str(caught.value)
        assert "'C' equals the mean of 'A', 'B' in each row: an average, or a task. Nothing was stored." in message
        assert "--ignore-columns C" in message
        assert "--task-columns A --task-columns B --task-columns C" in message
        assert tasks(read(tmp_path, columns, digits=1, ignore_columns=("C",))) == ["A", "B"]


class TestFlags:
    def test_a_few_flags_are_an_error_with_both_readings(self, tmp_path: Path) -> None:
        columns = {"Zero": ["0", "1", "1"], "Reading": [50.2, 60.1, 70.3], "Logic": [53.4, 58.3, 71.8]}
        with pytest.raises(BadInputError, match="'Zero' holds 0 and 1 beside other scores: flags of the models"):
            read(tmp_path, columns)
        assert tasks(read(tmp_path, columns, ignore_columns=("Zero",))) == ["Reading", "Logic"]

    @pytest.mark.parametrize(
        ("flag", "cells"),
        [
            ("GSM8K", [".5", ".25", ".71", ".33", ".9", ".7"]),
            ("P3", ["0", "1", "1", "0.5", "1", "0"]),
        ],
        ids=["named like a task", "among scores that are mostly 0 or 1"],
    )
    def test_a_task_may_hold_zeros_and_ones_only(self, tmp_path: Path, flag: str, cells: list[str]) -> None:
        columns = {"first": cells, flag: ["0", "1", "1", "0", "1", "0"], "second": cells[::-1]}
        assert flag in tasks(read(tmp_path, columns))
