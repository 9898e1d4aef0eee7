"""Samples of what a filter singled out, for a human to read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_filters import filtered

from tracker.errors import SelectionError
from tracker.exporting.formats.filter.review_sample import draw_review_sample
from tracker.exporting.table_files import WRITERS

FLAGS = st.dictionaries(st.integers(0, 29), st.tuples(st.booleans(), st.integers(-1, 3)), min_size=1)
REASONS = st.dictionaries(st.sampled_from(["easy", "similar", "duplicate", "suspect-label"]), FLAGS, min_size=1)


class TestLaws:
    @settings(max_examples=40)
    @given(reasons=REASONS, n=st.integers(1, 40), seed=st.integers(0, 3))
    def test_each_reason_gives_as_many_as_are_wanted_and_only_prompts_it_applies_to(
        self, reasons: dict[str, dict[int, tuple[bool, int]]], n: int, seed: int
    ) -> None:
        stays = [row % 3 == 0 for row in range(30)]
        drawn = draw_review_sample(filtered(stays, reasons=reasons), n, seed=seed).to_pylist()
        for step, out in reasons.items():
            of_step = [line for line in drawn if line["reason"] == step]
            rows = [int(line["prompt_id"][1:]) for line in of_step]
            assert len(rows) == min(n, len(out))
            assert rows == sorted(set(rows) & set(out))
            for row, line in zip(rows, of_step, strict=True):
                group = out[row][1]
                rest = [f"p{second}" for second in sorted(out) if out[second][1] == group >= 0 and second != row]
                assert (line["removed"], line["retained"]) == (not stays[row], out[row][0])
                assert (line["group"], line["n_others"]) == (None if group < 0 else group, len(rest))
                values = [
                    part.split("]")[0][1:] for part in (line["others"] or "").split("\n\n") if part.startswith("[")
                ]
                assert values == rest[:20]

    @settings(max_examples=20)
    @given(reasons=REASONS, more=FLAGS)
    def test_another_reason_leaves_the_sample_of_the_others_as_it_is(
        self, reasons: dict[str, dict[int, tuple[bool, int]]], more: dict[int, tuple[bool, int]]
    ) -> None:
        stays = [True] * 30
        before = draw_review_sample(filtered(stays, reasons=reasons), 3).to_pylist()
        after = draw_review_sample(filtered(stays, reasons={"contaminated": more, **reasons}), 3).to_pylist()
        assert [line for line in after if line["reason"] != "contaminated"] == before

    def test_the_same_seed_draws_the_same_and_another_does_not(self) -> None:
        built = filtered([False] * 200, reasons={"easy": dict.fromkeys(range(200), (False, -1))})
        first, again, second = (WRITERS["csv"](draw_review_sample(built, 20, seed=seed)) for seed in (0, 0, 1))
        assert first == again
        assert first != second

    def test_every_prompt_is_drawn_as_often(self) -> None:
        built = filtered([False] * 10, reasons={"easy": dict.fromkeys(range(10), (False, -1))})
        times = dict.fromkeys((f"p{row}" for row in range(10)), 0)
        for seed in range(400):
            for name in draw_review_sample(built, 3, seed=seed)["prompt_id"].to_pylist():
                times[name] += 1
        # 400 draws of 3 of 10: 120 each, standard deviation 9.2.
        assert all(abs(n - 120) < 5 * 9.2 for n in times.values())


class TestWords:
    def test_a_reader_finds_options_groups_and_room_for_a_verdict(self) -> None:
        built = filtered(
            [False, True, True],
            reasons={"similar": {0: (False, 7), 1: (True, 7), 2: (True, 7)}},
            texts=["Why?", None, "Why, then?"],
            choices=[["so", "thus"], None, ["so"]],
        )
        assert draw_review_sample(built, 3).to_pylist()[0] == {
            "reason": "similar",
            "removed": True,
            "retained": False,
            "prompt_id": "p0",
            "task": "t",
            "text": "Why?",
            "choices": "A. so\nB. thus",
            "answer": "A",
            "group": 7,
            "n_others": 2,
            "others": "[p1] (its text is not known)\n\n[p2] Why, then?\nA. so",
            "verdict": "",
            "comment": "",
        }

    def test_of_a_large_group_twenty_are_shown(self) -> None:
        built = filtered([True] * 30, reasons={"similar": dict.fromkeys(range(30), (True, 0))})
        line = draw_review_sample(built, 1).to_pylist()[0]
        assert line["n_others"] == 29
        assert line["others"].count("Question") == 20
        assert line["others"].endswith("\n\nand 9 more")

    def test_a_filter_that_singled_nothing_out_has_nothing_to_review(self) -> None:
        with pytest.raises(SelectionError, match="Filter 5 flagged no prompts"):
            draw_review_sample(filtered([True, True]), 3)
