"""Known data sets: every shape in which they are published gives the same prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from published_files import (
    anli_hub,
    anli_lines,
    csv_file,
    flat_question,
    hellaswag,
    ingest_prompts,
    json_lines,
    mmlu_row,
    stem_and_options,
    stored_prompts,
)

from tracker.errors import BadInputError, NotFoundError
from tracker.ingest.datasets.preset import load_presets

CONTENT = ("task", "split", "text", "choices", "answer", "details", "content_hash", "key", "namespace")

Result = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def result(engine: sa.Engine) -> Result:
    """What is stored of a source, in the order of tasks, splits and names."""

    def take(source: Path, preset: str, **how: Any) -> list[dict[str, Any]]:
        benchmark = f"{preset}_{len(str(source))}_{source.name}".replace("@", "_")
        ingest_prompts(engine, benchmark, source, preset=preset, **how)
        rows = [{name: row[name] for name in CONTENT} for row in stored_prompts(engine, benchmark)]
        return sorted(rows, key=lambda row: (row["task"], row["split"] or "", row["key"]))

    return take


def parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    return path


class TestAnli:
    def test_folders_of_rounds_are_tasks_and_files_are_splits(self, result: Result, tmp_path: Path) -> None:
        for round_, split in (("R1", "train"), ("R1", "test"), ("R3", "dev")):
            json_lines(tmp_path / "anli" / round_ / f"{split}.jsonl", anli_lines(f"{round_}{split}"))
        rows = result(tmp_path / "anli", "anli")
        assert {(row["task"], row["split"]) for row in rows} == {("R1", "train"), ("R1", "test"), ("R3", "dev")}
        first = next(row for row in rows if row["key"] == "R1test-0")
        assert first["text"] == "A lamp stood there R1test 0.\nLight 0"
        assert first["choices"] == ["True", "Neither", "False"]
        assert first["details"] == {
            "premise": "A lamp stood there R1test 0.", "hypothesis": "Light 0", "reason": "because 0",
        }  # fmt: skip
        assert [row["answer"] for row in rows if row["task"] == "R3"] == ["A", "B", "C"]

    def test_the_hub_s_columns_give_the_same_prompts(self, result: Result, tmp_path: Path) -> None:
        json_lines(tmp_path / "anli" / "R2" / "test.jsonl", anli_lines("a"))
        parquet(tmp_path / "hub" / "plain_text" / "test_r2-00000-of-00001.parquet", anli_hub("a"))
        assert result(tmp_path / "anli", "anli") == result(tmp_path / "hub", "anli")

    def test_one_file_of_a_round_knows_its_round(self, result: Result, tmp_path: Path) -> None:
        file = json_lines(tmp_path / "R2" / "dev.jsonl", anli_lines("a"))
        assert {(row["task"], row["split"]) for row in result(file, "anli")} == {("R2", "dev")}

    def test_an_unpublished_label_is_no_answer(self, result: Result, tmp_path: Path) -> None:
        rows = [row | {"label": -1} for row in anli_hub("a")]
        assert {row["answer"] for row in result(json_lines(tmp_path / "test_r1.jsonl", rows), "anli")} == {None}


class TestHellaSwag:
    def test_lines_and_columns_of_the_hub_give_the_same_prompts(self, result: Result, tmp_path: Path) -> None:
        for split, name in (("train", "train"), ("val", "val"), ("test", "test")):
            rows = hellaswag(split, labelled=split != "test")
            json_lines(tmp_path / "lines" / f"hellaswag_{name}.jsonl", rows)
            rows = hellaswag(split, as_text=True, labelled=split != "test")
            long = {"val": "validation"}.get(name, name)
            parquet(tmp_path / "hub" / "data" / f"{long}-00000-of-00001.parquet", rows)
        lines = result(tmp_path / "lines", "hellaswag")
        assert lines == result(tmp_path / "hub", "hellaswag")
        assert {row["split"] for row in lines} == {"train", "validation", "test"}
        by_key = {row["key"]: row for row in lines}
        assert by_key["validation-2"]["answer"] == "C"
        assert by_key["test-2"]["answer"] is None
        assert by_key["train-1"]["text"] == "Dough train 1 rises. they"
        assert by_key["train-1"]["details"] == {
            "activity_label": "Baking bread", "ctx": "Dough train 1 rises. they", "source_id": "kitchen~1",
            "split_type": "indomain",
        }  # fmt: skip

    def test_a_file_whose_name_reports_no_split_is_requested_for_it_row_by_row(
        self, result: Result, tmp_path: Path
    ) -> None:
        rows = [*hellaswag("val"), *hellaswag("train")]
        assert {row["split"] for row in result(json_lines(tmp_path / "all.jsonl", rows), "hellaswag")} == {
            "validation", "train",
        }  # fmt: skip

    def test_a_label_beyond_the_endings_is_reported_with_its_line(self, result: Result, tmp_path: Path) -> None:
        rows = [row | {"label": 4} if row["ind"] == 1 else row for row in hellaswag("val")]
        with pytest.raises(BadInputError, match=r"val.jsonl, line 2: the label 4 is not the index of one of 4 endings"):
            result(json_lines(tmp_path / "val.jsonl", rows), "hellaswag")


class TestCommonsenseQa:
    def test_lines_and_columns_of_the_hub_give_the_same_prompts(self, result: Result, tmp_path: Path) -> None:
        rows = [stem_and_options(n, answer) for n, answer in enumerate("AEC")]
        lines = result(json_lines(tmp_path / "dev_rand_split.jsonl", rows), "commonsense_qa")
        hub = result(parquet(tmp_path / "dev.parquet", [flat_question(row) for row in rows]), "commonsense_qa")
        assert lines == hub
        assert [row["answer"] for row in lines] == ["A", "E", "C"]
        assert lines[0]["choices"] == [f"place {label} 0" for label in "ABCDE"]
        assert lines[0]["details"] == {"question_concept": "thing"}
        assert {row["split"] for row in lines} == {"dev"}

    def test_the_test_split_has_no_answers(self, result: Result, tmp_path: Path) -> None:
        rows = [stem_and_options(n, None) for n in range(2)]
        file = json_lines(tmp_path / "test_rand_split_no_answers.jsonl", rows)
        assert [(row["split"], row["answer"]) for row in result(file, "commonsense_qa")] == [("test", None)] * 2


class TestArc:
    def test_questions_without_four_options_are_left_out_and_counted(self, engine: sa.Engine, tmp_path: Path) -> None:
        rows = [stem_and_options(n, "B", labels) for n, labels in enumerate(("ABCD", "ABCDE", "ABC", "ABCD", "ABCDE"))]
        file = json_lines(tmp_path / "ARC-Easy-Test.jsonl", rows)
        result = ingest_prompts(engine, "arc", file)
        assert result.skipped == {"with 5 options": 2, "with 3 options": 1}
        assert [(row["task"], row["split"], row["key"]) for row in stored_prompts(engine, "arc")] == [
            ("ARC-Easy", "test", "q0"), ("ARC-Easy", "test", "q3"),
        ]  # fmt: skip

    def test_those_of_splits_that_are_not_ingested_are_not_counted(self, engine: sa.Engine, tmp_path: Path) -> None:
        for split in ("train", "test"):
            file = tmp_path / f"ARC-Easy-{split}.jsonl"
            json_lines(file, [stem_and_options(n, "B", labels) for n, labels in enumerate(("ABCD", "ABC"), len(split))])
        result = ingest_prompts(engine, "arc", tmp_path, splits=["test"])
        assert (result.n_prompts, result.skipped) == (1, {"with 3 options": 1})

    def test_of_the_same_file_in_two_formats_the_lines_are_read(self, engine: sa.Engine, tmp_path: Path) -> None:
        json_lines(tmp_path / "ARC-Easy-Dev.jsonl", [stem_and_options(0, "B", "ABCD")])
        csv_file(tmp_path / "ARC-Easy-Dev.csv", [["questionID", "question"], ["q0", "Where? (A) here (B) there"]])
        assert ingest_prompts(engine, "arc", tmp_path).n_prompts == 1

    def test_labels_that_are_numbers_become_letters(self, result: Result, tmp_path: Path) -> None:
        rows = [stem_and_options(0, "3", "1234"), stem_and_options(1, "D", "ABCD")]
        lines = result(json_lines(tmp_path / "ARC-Challenge" / "ARC-Challenge-Dev.jsonl", rows), "arc")
        assert [row["answer"] for row in lines] == ["C", "D"]
        hub = parquet(tmp_path / "ARC-Challenge" / "dev-0.parquet", [flat_question(row) for row in rows])
        assert result(hub, "arc") == lines
        assert {row["task"] for row in lines} == {"ARC-Challenge"}

    def test_an_answer_that_is_no_label_is_reported_with_its_line(self, result: Result, tmp_path: Path) -> None:
        rows = [stem_and_options(0, "E", "ABCD")]
        with pytest.raises(BadInputError, match=r"line 1: the answer 'E' is not one of the labels A, B, C, D"):
            result(json_lines(tmp_path / "arc.jsonl", rows), "arc")


class TestCnnDailyMail:
    def test_the_article_is_the_text_and_the_highlights_are_the_answer(self, result: Result, tmp_path: Path) -> None:
        rows = [{"article": "Rain fell.\nMuch of it.", "highlights": "It rained .\nA lot .", "id": "a1"}]
        header = [["id", "article", "highlights"], *[[row["id"], row["article"], row["highlights"]] for row in rows]]
        prompts = result(csv_file(tmp_path / "csv" / "test.csv", header), "cnn_dailymail")
        assert prompts == result(parquet(tmp_path / "test.parquet", rows), "cnn_dailymail")
        assert (prompts[0]["text"], prompts[0]["answer"], prompts[0]["choices"], prompts[0]["key"]) == (
            "Rain fell.\nMuch of it.", "It rained .\nA lot .", None, "a1",
        )  # fmt: skip


class TestMmlu:
    def test_files_without_header_and_columns_of_the_hub_give_the_same_prompts(
        self, result: Result, tmp_path: Path
    ) -> None:
        for split, folder in (("test", "test"), ("dev", "dev"), ("val", "val")):
            file = tmp_path / "data" / folder / f"high_school_tests_{split}.csv"
            csv_file(file, [mmlu_row(n, "ABCD"[n % 4]) for n in range(3)])
        (tmp_path / "data" / "README.txt").write_text("passed over")
        lines = result(tmp_path / "data", "mmlu")
        for split in ("test", "dev", "validation"):
            rows = [
                {
                    "question": row[0],
                    "subject": "high_school_tests",
                    "choices": row[1:5],
                    "answer": "ABCD".index(row[5]),
                }
                for row in (mmlu_row(n, "ABCD"[n % 4]) for n in range(3))
            ]
            parquet(tmp_path / "hub" / "all" / f"{split}-00000-of-00001.parquet", rows)
        hub = result(tmp_path / "hub", "mmlu")
        assert lines == hub
        assert len(lines) == 9
        assert {row["task"] for row in lines} == {"high_school_tests"}
        assert {row["split"] for row in lines} == {"test", "dev", "validation"}
        assert lines[0]["choices"][-1] == "none"

    def test_a_folder_of_a_subject_gives_the_task_where_files_are_only_splits(
        self, result: Result, tmp_path: Path
    ) -> None:
        file = csv_file(tmp_path / "mmlu" / "virology" / "test.csv", [mmlu_row(1)])
        assert result(file, "mmlu")[0]["task"] == "virology"
        assert result(tmp_path / "mmlu", "mmlu")[0]["task"] == "virology"

    def test_the_same_bytes_under_another_name_are_of_another_subject(self, engine: sa.Engine, tmp_path: Path) -> None:
        for subject in ("virology", "astronomy"):
            ingest_prompts(engine, "mmlu", csv_file(tmp_path / f"{subject}_test.csv", [mmlu_row(1)]))
        assert [row["task"] for row in stored_prompts(engine, "mmlu")] == ["virology", "astronomy"]

    def test_options_that_are_letters_make_the_answer_a_text(self, result: Result, tmp_path: Path) -> None:
        file = csv_file(tmp_path / "x_test.csv", [["Which grade?", "B", "A", "C", "F", "A"]])
        assert result(file, "mmlu")[0]["answer"] == "B"

    def test_equal_questions_of_a_subject_are_two_prompts(self, result: Result, tmp_path: Path) -> None:
        file = csv_file(tmp_path / "x_test.csv", [mmlu_row(1), mmlu_row(1), mmlu_row(2)])
        rows = result(file, "mmlu")
        assert len({row["key"] for row in rows}) == 3
        assert len({row["content_hash"] for row in rows}) == 2

    def test_a_row_of_another_length_is_reported_with_its_line(self, result: Result, tmp_path: Path) -> None:
        file = csv_file(tmp_path / "x_test.csv", [mmlu_row(1), mmlu_row(2)[:5]])
        with pytest.raises(BadInputError, match=r"line 3: 5 fields; the header has 6"):
            result(file, "mmlu")


class TestEveryPreset:
    @pytest.mark.parametrize("name", sorted(load_presets()))
    def test_every_preset_names_the_fields_that_a_strange_file_lacks(
        self, name: str, result: Result, tmp_path: Path
    ) -> None:
        file = json_lines(tmp_path / "strange.jsonl", [{"colour": "red", "size": 3}])
        with pytest.raises(BadInputError, match=r"strange\.jsonl, line 1: "):
            result(file, name)

    def test_a_preset_that_is_none_is_answered_with_those_near(self, result: Result, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match="Did you mean 'hellaswag'"):
            result(tmp_path, "hellaswg")
