"""Tables for reading: no number is cut and no name lost, however narrow the terminal."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from command_runner import run
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tracker.cli.text_table import format_text_table

NAMES = ["rank", "model", "mean", "run"]
ROWS = [["1", "Meta-Llama-3.1-70B-Instruct", "0.6280", "7"], ["–", "🦙/模型-β", "0.7011", "26"]]


def table(width: int | None, drop_order: list[str] | None = None) -> tuple[list[str], list[str]]:
    printed, omitted = format_text_table(
        NAMES, ROWS, numeric={"rank", "mean", "run"}, width=width, drop_order=drop_order or []
    )
    return printed.splitlines(), omitted


class TestWidth:
    def test_without_a_terminal_a_row_is_a_line(self) -> None:
        lines, omitted = table(None)
        assert lines[2] == "   1   Meta-Llama-3.1-70B-Instruct   0.6280     7"
        assert len(lines) == 4
        assert omitted == []

    def test_names_are_folded_after_a_dash(self) -> None:
        lines, omitted = table(42)
        assert lines[2:4] == ["   1   Meta-Llama-3.1-70B-    0.6280     7", "       Instruct"]
        assert omitted == []

    def test_less_important_columns_make_room_and_are_named(self) -> None:
        lines, omitted = table(34, ["run"])
        assert omitted == ["run"]
        assert max(map(cell_len, lines)) <= 34

    def test_what_does_not_fit_sticks_out_whole(self) -> None:
        lines, _ = table(5)
        assert "0.6280" in "\n".join(lines)

    def test_a_column_without_a_word_goes_first(self) -> None:
        printed, omitted = format_text_table(
            ["a", "label", "b"], [["x" * 30, "", "y" * 30]], width=40, drop_order=["b"]
        )
        assert "label" not in printed
        assert omitted == []


class TestLeaderboard:
    @pytest.mark.parametrize(("width", "omitted"), [(80, {"run", "stderr"}), (100, {"run"}), (140, set())])
    def test_keeps_the_columns_that_explain_a_rank(
        self, filled_file: sa.Engine, monkeypatch: pytest.MonkeyPatch, width: int, omitted: set[str]
    ) -> None:
        monkeypatch.setattr("tracker.cli.output.terminal_width", lambda: width)
        printed = run(filled_file, "leaderboard", "arithmetic")
        _, head, line, *_ = printed.stdout.splitlines()  # below the leader
        assert cell_len(line) <= width
        assert {"rank", "ranks", "model", "mean", "low", "high", "coverage"} <= set(head.split())
        assert omitted & set(head.split()) == set()
        assert ("Columns omitted to fit the terminal: " in printed.stderr) == bool(omitted)


class TestLaws:
    @given(
        rows=st.lists(
            st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"])), min_size=2, max_size=2),
            min_size=1,
            max_size=5,
        ),
        width=st.integers(1, 120),
    )
    def test_every_letter_is_printed(self, rows: list[list[str]], width: int) -> None:
        printed, _ = format_text_table(["x", "y"], rows, width=width)
        for row in rows:
            assert all(letter in printed for cell in row for letter in cell)
