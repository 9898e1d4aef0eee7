"""Data sets without a preset: fields by `--map`, answers in any of four ways."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from published_files import csv_file, ingest_prompts, json_lines, stored_prompts

from tracker.errors import BadInputError, SelectionError
from tracker.ingest.datasets.choices import parse_choices
from tracker.ingest.datasets.reference_parser import NOTATIONS, Guess, parse_reference
from tracker.ingest.datasets.row import RowError, get_value, split_named

OPTIONS = ["red", "green", "blue"]


def row(answer: Any, number: int = 0, options: Sequence[str] = OPTIONS) -> dict[str, Any]:
    return {"q": f"Colour {number}?", "o": list(options), "a": answer}


FIELDS = {"text": "q", "choices": "o", "answer": "a"}


def answers(engine: sa.Engine, rows: Sequence[Mapping[str, Any]], folder: Path, **how: Any) -> list[str | None]:
    file = json_lines(folder / "colours.jsonl", rows)
    ingest_prompts(engine, "colours", file, **{"fields": FIELDS, **how})
    return [prompt["answer"] for prompt in stored_prompts(engine, "colours")]


class TestFields:
    def test_nested_and_several_fields_play_one_part_and_the_rest_is_kept(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        rows = [
            {"doc": {"passage": "It rained."}, "q": "Wet?", "no": 7, "first": "yes", "second": "no", "gold": "no",
             "kind": "weather", "part": "val", "hard": True, "empty": None},
        ]  # fmt: skip
        fields = {
            "text": "doc.passage,q", "choices": "first,second", "answer": "gold", "task": "kind", "split": "part",
            "id": "no",
        }  # fmt: skip
        ingest_prompts(engine, "b", json_lines(tmp_path / "a.jsonl", rows), fields=fields)
        (result,) = stored_prompts(engine, "b")
        assert (result["text"], result["choices"], result["answer"]) == ("It rained.\nWet?", ["yes", "no"], "B")
        assert (result["task"], result["split"], result["namespace"], result["key"]) == (
            "weather",
            "validation",
            "",
            "7",
        )
        assert result["details"] == {"doc": {"passage": "It rained."}, "hard": True}

    def test_without_a_map_the_names_of_the_fields_report_and_it_is_reported(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        file = csv_file(tmp_path / "dev.csv", [["id", "question", "answer", "subject"], ["x", "2 + 2?", "4", "sums"]])
        outcome = ingest_prompts(engine, "b", file)
        assert outcome.warnings[0] == (
            "fields chosen by their names: id=id, task=subject, text=question, answer=answer; change them with --map"
        )
        (result,) = stored_prompts(engine, "b")
        assert (result["task"], result["key"], result["split"], result["answer"]) == ("sums", "x", "dev", "4")

    def test_of_several_right_answers_the_first_is_gold_and_all_are_kept(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        rows = [{"q": "Capital?", "a": ["Rome", "Roma"]}]
        ingest_prompts(engine, "b", json_lines(tmp_path / "a.jsonl", rows), fields={"text": "q", "answer": "a"})
        (result,) = stored_prompts(engine, "b")
        assert (result["answer"], result["details"]) == ("Rome", {"accepted_answers": ["Rome", "Roma"]})

    @pytest.mark.parametrize("shape", ["json", "splits"])
    def test_a_json_file_is_a_list_or_a_list_for_each_split(
        self, engine: sa.Engine, tmp_path: Path, shape: str
    ) -> None:
        rows = [row("green")]
        file = tmp_path / "colours.json"
        file.write_text(json.dumps(rows if shape == "json" else {"train": rows, "val": [row("blue", 1)]}))
        ingest_prompts(engine, "b", file, fields=FIELDS)
        assert {prompt["split"] for prompt in stored_prompts(engine, "b")} == (
            {None} if shape == "json" else {"train", "validation"}
        )

    def test_a_gzipped_table_with_tabs_is_read(self, engine: sa.Engine, tmp_path: Path) -> None:
        import gzip

        file = tmp_path / "test.tsv.gz"
        file.write_bytes(gzip.compress(b"question\tanswer\nWhy?\tSo\n"))
        ingest_prompts(engine, "b", file)
        assert [(prompt["text"], prompt["answer"], prompt["split"]) for prompt in stored_prompts(engine, "b")] == [
            ("Why?", "So", "test"),
        ]  # fmt: skip

    def test_options_may_be_fewer_in_some_rows_but_none_may_be_missing_between(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        fields = {"text": "q", "choices": "A,B,C", "answer": "a"}
        rows = [["q", "A", "B", "C", "a"], ["One?", "x", "y", "", "B"], ["Two?", "x", "y", "z", "C"]]
        ingest_prompts(engine, "b", csv_file(tmp_path / "a.csv", rows), fields=fields)
        assert [(prompt["choices"], prompt["answer"]) for prompt in stored_prompts(engine, "b")] == [
            (["x", "y"], "B"), (["x", "y", "z"], "C"),
        ]  # fmt: skip
        rows[1] = ["One?", "x", "", "y", "C"]
        with pytest.raises(BadInputError, match="line 2: the option in the field 'B' is empty, but"):
            ingest_prompts(engine, "c", csv_file(tmp_path / "a.csv", rows), fields=fields)


class TestAnswers:
    @pytest.mark.parametrize(
        ("written", "method"),
        [(["B", "c"], "letter"), (["green", "blue"], "text"), ([0, 2], "index"), (["1", "3"], "index1")],
    )
    def test_answers_in_any_method_become_letters_and_the_method_is_reported(
        self, engine: sa.Engine, tmp_path: Path, written: list[Any], method: str
    ) -> None:
        rows = [row(answer, n) for n, answer in enumerate(written)]
        file = json_lines(tmp_path / "colours.jsonl", rows)
        result = ingest_prompts(engine, "guessed", file, fields=FIELDS)
        ingest_prompts(engine, "said", file, fields=FIELDS, answer_is=method)
        assert result.warnings == (f"answers read as --answer-is {method}, the only notation that fits all of them",)
        assert {prompt["answer"] for prompt in stored_prompts(engine, "guessed")} <= {"A", "B", "C"}
        assert [prompt["answer"] for prompt in stored_prompts(engine, "guessed")] == [
            prompt["answer"] for prompt in stored_prompts(engine, "said")
        ]

    def test_numbers_that_fit_from_0_and_from_1_are_requested_about(self, engine: sa.Engine, tmp_path: Path) -> None:
        with pytest.raises(SelectionError, match=r"could be index .* or index1 .*line 1. Choose with --answer-is"):
            answers(engine, [row(1), row(2, 1)], tmp_path)
        assert answers(engine, [row(1), row(2, 1)], tmp_path, answer_is="index") == ["B", "C"]

    def test_one_zero_resolves_that_numbers_count_from_0(self, engine: sa.Engine, tmp_path: Path) -> None:
        assert answers(engine, [row(1), row(0, 1)], tmp_path) == ["B", "A"]

    def test_answers_that_no_method_reads_are_reported_with_their_places(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        with pytest.raises(SelectionError, match=r"not letter: 'grey' at colours.jsonl, line 2"):
            answers(engine, [row("B"), row("grey", 1)], tmp_path)

    def test_an_answer_that_is_not_what_it_is_reported_to_be_is_reported_with_its_line(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        with pytest.raises(BadInputError, match=r"line 2: the answer 3 is not the index of the option, counted from 0"):
            answers(engine, [row(0), row(3, 1)], tmp_path, answer_is="index")
        assert stored_prompts(engine, "colours") == []

    @settings(max_examples=40)
    @given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    def test_the_guess_is_the_only_method_that_reads_all_answers_or_none(self, places: list[int]) -> None:
        choices = parse_choices(["w", "x", "y", "z"])
        guess = Guess()
        for number, place in enumerate(places):
            guess.add(place, choices, f"line {number}")
        fits = [
            method
            for method in NOTATIONS
            if all(parse_reference(method, place, choices) is not None for place in places)
        ]
        if len(fits) == 1:
            assert guess.notation() == fits[0] == "index"
        else:
            assert fits == ["index", "index1"]
            with pytest.raises(SelectionError):
                guess.notation()


class TestShapes:
    @pytest.mark.parametrize(
        "value",
        [
            ["x", "y"],
            '["x", "y"]',
            {"text": ["x", "y"], "label": ["A", "B"]},
            [{"text": "x", "label": "A"}, {"text": " y", "label": "B"}],
            [{"text": "x"}, {"text": "y"}],
            {"A": "x", "B": "y"},
        ],
    )
    def test_options_of_every_shape_are_the_same(self, value: Any) -> None:
        result = parse_choices(value)
        assert (result.texts, result.labels) == (("x", "y"), ("A", "B"))

    @pytest.mark.parametrize("value", ["x", 3, ["x"], [], ["x", None], {"text": ["x", "y"], "label": ["A"]}, [[], 1]])
    def test_what_is_no_list_of_options_is_refused(self, value: Any) -> None:
        with pytest.raises(RowError):
            parse_choices(value)

    @pytest.mark.parametrize(
        ("names", "split"),
        [
            (["hellaswag_val"], "validation"),
            (["train_rand_split"], "train"),
            (["test-00000-of-00001"], "test"),
            (["data-00000", "dev_r3"], "dev"),
            (["contest", "latest"], ""),
            (["ARC-Easy-Dev", "test"], "dev"),
        ],
    )
    def test_names_report_splits_as_whole_words(self, names: list[str], split: str) -> None:
        assert split_named(names) == split

    def test_a_field_with_a_dot_in_its_name_goes_before_a_nested_one(self) -> None:
        assert get_value({"a.b": 1, "a": {"b": 2}}, "a.b") == 1
        assert get_value({"a": {"b": {"c": 3}}}, "a.b.c") == 3


class TestErrors:
    @pytest.mark.parametrize(
        ("how", "words"),
        [
            ({"fields": {"txt": "q"}}, "--map txt=…: unknown part. Choose from: text, choices"),
            ({"fields": {"choices": "o"}}, r"No field looks like the question; .*line 1 has q, o, a"),
            ({"fields": {"text": "q", "id": "a,o"}}, "--map id=… accepts one field"),
            ({"fields": {"text": "q", "answer": "anwser"}}, "--map answer=anwser: no such field."),
            ({"fields": {"text": "q"}, "answer_is": "number"}, "Choose from: letter, text, index, index1"),
            ({"preset": "anli", "answer_is": "letter"}, "Omit --preset"),
        ],
    )
    def test_choices_that_do_not_go_together_are_refused(
        self, engine: sa.Engine, tmp_path: Path, how: dict[str, Any], words: str
    ) -> None:
        file = json_lines(tmp_path / "a.jsonl", [row("red")])
        with pytest.raises(SelectionError, match=words):
            ingest_prompts(engine, "b", file, **how)

    def test_all_rows_that_are_wrong_are_reported_at_once_and_nothing_is_stored(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        rows = [row("red"), {"o": OPTIONS}, row("red", 2) | {"q": " "}, row("red", 3) | {"o": "red, green"}]
        rows.append(row(["red", "green"], 4))
        with pytest.raises(BadInputError) as caught:
            answers(engine, rows, tmp_path, answer_is="text")
        assert caught.value.problems == [
            "colours.jsonl, line 2: no field 'q'; it has o",
            "colours.jsonl, line 3: the field 'q' is empty",
            'colours.jsonl, line 4: the options are not a JSON list of texts, such as ["Paris", "Rome"]',
            "colours.jsonl, line 5: 2 correct options; exactly one is needed",
        ]
        assert stored_prompts(engine, "colours") == []

    def test_a_name_that_two_prompts_bear_is_reported_with_both_places(self, engine: sa.Engine, tmp_path: Path) -> None:
        rows = [row("red") | {"n": 1}, row("red", 1) | {"n": 1}]
        with pytest.raises(BadInputError, match=r"line 2: the name '1' also belongs to another prompt, at .*line 1"):
            answers(engine, rows, tmp_path, fields=FIELDS | {"id": "n"})

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("a.jsonl", b'{"q": "x"}\n{"q": ', "line 2: the JSON is invalid or truncated"),
            ("a.jsonl", b"[1]\n", "line 1: is not a JSON object"),
            ("a.json", b'{"q": "x"}', "is not a JSON list of objects"),
            ("a.json", b'[{"q": "x"}, 3]', "entry 2: is not a JSON object"),
            ("a.csv", b"q,a\nx,y,z\n", "line 2: 3 fields; the header has 2"),
            ("a.csv", b"q,q\nx,y\n", "line 1: two columns have the same name"),
            ("a.csv", b"q,a\n\xff\xfe,y\n", "byte 0xff is not UTF-8 text"),
            ("a.csv", b"\xff\xfeq\x00", "is UTF-16 text"),
            ("a.parquet", b"PAR1 no", "is not a readable Parquet file"),
            ("a.arrow", b"no arrow", "is not a readable Arrow file"),
            ("a.jsonl", b"\n", "holds no rows"),
            ("a.txt", b"q", r"its file type is not supported. Supported: \.jsonl"),
        ],
    )
    def test_a_file_that_cannot_be_read_is_reported_with_its_place(
        self, engine: sa.Engine, tmp_path: Path, name: str, content: bytes, words: str
    ) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInputError, match=words):
            ingest_prompts(engine, "b", tmp_path / name, fields={"text": "q"})

    def test_a_folder_without_files_of_prompts_is_refused(self, engine: sa.Engine, tmp_path: Path) -> None:
        (tmp_path / "readme.txt").write_text("x")
        with pytest.raises(BadInputError, match="holds no files of the types"):
            ingest_prompts(engine, "b", tmp_path)

    def test_halves_of_surrogate_pairs_are_stored_as_replacements(self, engine: sa.Engine, tmp_path: Path) -> None:
        file = tmp_path / "a.jsonl"
        file.write_text('{"q": "half \\ud800"}\n')
        ingest_prompts(engine, "b", file, fields={"text": "q"}, test_fraction=None)
        assert stored_prompts(engine, "b")[0]["text"] == "half �"
