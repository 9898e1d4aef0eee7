"""Tables as users have them: wide, long, transposed, predicted answers, leaderboards, prompts."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracker.errors import BadInputError, UnknownFormatError
from tracker.ingest.files.tabular.cells import MISSING
from tracker.ingest.files.tabular.headings import SYNONYMS
from tracker.ingest.format_registry import load_formats
from tracker.ingest.measurement import Answers, ParsedFile, Prompts, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.detection import parse_file

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(content: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


def read(path: Path, **options: Any) -> ParsedFile:
    return parse_file(path, ReadOptions(**options))


def scores(reading: ParsedFile) -> dict[tuple[str, str, str, int], float]:
    """Every measured score by model, metric, prompt and trial."""
    result = {}
    for block in reading.measurements:
        assert isinstance(block, Scores)
        for key, value in zip(block.prompts.keys, block.values, strict=True):
            if not np.isnan(value):
                assert isinstance(block.trials, int)
                result[block.run.model, block.metric.name, key, block.trials] = float(value)
    return result


def error(path: Path, **options: Any) -> str:
    with pytest.raises(BadInputError) as caught:
        read(path, **options)
    return str(caught.value)


class TestWideTables:
    def test_one_row_per_prompt_and_one_column_per_model(self, write: Write) -> None:
        reading = read(write("prompt_id,org/A,org/B\nq0,1,0\nq1,0,\nq2,1,1\n"), metric="accuracy")
        assert reading.format == "wide-table"
        assert scores(reading) == {
            ("org/A", "accuracy", "q0", 0): 1,
            ("org/A", "accuracy", "q1", 0): 0,
            ("org/A", "accuracy", "q2", 0): 1,
            ("org/B", "accuracy", "q0", 0): 0,
            ("org/B", "accuracy", "q2", 0): 1,
        }

    def test_all_models_share_one_object_of_prompts(self, write: Write) -> None:
        blocks = read(write("id,A,B\n1,1,0\n2,0,1\n")).measurements
        assert blocks[0].prompts is blocks[1].prompts
        assert blocks[0].prompts.lines.tolist() == [2, 3]

    def test_rows_may_be_models(self, write: Write) -> None:
        straight = write("id,A,B\nq1,1,0\nq2,0,1\n")
        turned = write("model,q1,q2\nA,1,0\nB,0,1\n", "turned.csv")
        assert scores(read(straight)) == scores(read(turned, orient="models"))

    @pytest.mark.parametrize("header", ["question_id,A,B", ",A,B", "Unnamed: 0,A,B", "whatever,A,B"])
    def test_the_prompts_column_is_reported_by_its_name_or_because_it_comes_first(
        self, write: Write, header: str
    ) -> None:
        result = scores(read(write(f"{header}\n7,1,0\n8,0,1\n")))
        assert {key for _, _, key, _ in result} == {"7", "8"}
        assert {model for model, *_ in result} == {"A", "B"}

    @pytest.mark.parametrize("mark", [";", "\t"])
    def test_other_delimiters_quotes_and_byte_order_marks(self, write: Write, mark: str) -> None:
        text = f'\ufeff"prompt_id"{mark}"a ""b"", c"\r\n"multi\nline"{mark}1\r\n\r\nlast{mark}0\r\n'
        assert scores(read(write(text))) == {
            ('a "b", c', "score", "multi\nline", 0): 1,
            ('a "b", c', "score", "last", 0): 0,
        }

    def test_gzip_is_transparent(self, write: Write) -> None:
        text = "id,A\n1,1\n2,0\n"
        zipped = write(gzip.compress(text.encode()), "table.csv.gz")
        assert scores(read(zipped)) == scores(read(write(text)))

    @pytest.mark.parametrize("cell", ["", " ", "NA", "n/a", "null", "None", "<NA>", "-"])
    def test_missing_cells_are_no_scores(self, write: Write, cell: str) -> None:
        assert scores(read(write(f"id,A,B\n1,{cell},1\n2,1,0\n"))) == {
            ("A", "score", "2", 0): 1,
            ("B", "score", "1", 0): 1,
            ("B", "score", "2", 0): 0,
        }

    def test_tasks_and_benchmarks_beside_the_models(self, write: Write) -> None:
        reading = read(write("id,task,benchmark,A\n1,x,one,1\n1,y,one,0\n1,x,two,0\n"))
        result = {
            (block.prompts.benchmark, block.prompts.tasks[0], len(block.prompts)) for block in reading.measurements
        }
        assert result == {("one", "x", 2), ("two", "x", 1)}

    def test_texts_may_name_the_prompts(self, write: Write) -> None:
        reading = read(write("question,A,B\nWhy?,1,0\nHow?,0,1\n"))
        assert reading.format == "wide-table"
        assert reading.measurements[0].prompts.text == ["Why?", "How?"]

    def test_a_prompt_twice_with_the_same_scores_is_one_prompt(self, write: Write) -> None:
        result = scores(read(write("id,A,B\n1,1,\n2,0,0\n1,1,1\n")))
        assert result["B", "score", "1", 0] == 1
        assert len(result) == 4

    def test_parquet_integers_floats_booleans_and_texts(self, tmp_path: Path) -> None:
        path = tmp_path / "wide.parquet"
        columns = {
            "prompt_id": pa.array([70, 71, 72]),
            "int": pa.array([1, 0, None]),
            "float": pa.array([0.5, 1.0, None]),
            "bool": pa.array([True, False, None]),
            "texts": pa.array(["1", "0", "NA"]).dictionary_encode(),
        }
        pa.parquet.write_table(pa.table(columns), path)
        result = scores(read(path))
        assert (
            result["int", "score", "70", 0]
            == result["bool", "score", "70", 0]
            == result["texts", "score", "70", 0]
            == 1
        )
        assert result["float", "score", "70", 0] == 0.5
        assert len(result) == 8

    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(
            st.lists(st.none() | st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=3, max_size=3),
            min_size=1,
            max_size=8,
        )
    )
    def test_wide_turned_and_long_tables_report_the_same(self, tmp_path: Path, rows: list[list[float | None]]) -> None:
        Q = {(f"m{m}", f"q{p}"): value for p, row in enumerate(rows) for m, value in enumerate(row)}
        if all(value is None for value in Q.values()):
            return
        names, keys = [f"m{m}" for m in range(3)], [f"q{p}" for p in range(len(rows))]

        def cell(model: str, key: str) -> str:
            value = Q[model, key]
            return "" if value is None else repr(value)

        wide, turned, long = (tmp_path / f"{name}.csv" for name in ("wide", "turned", "long"))
        lines = [",".join([key, *(cell(name, key) for name in names)]) for key in keys]
        wide.write_text("\n".join([f"prompt_id,{','.join(names)}", *lines]))
        lines = [",".join([name, *(cell(name, key) for key in keys)]) for name in names]
        turned.write_text("\n".join([f"model,{','.join(keys)}", *lines]))
        lines = [f"{name},{key},{cell(name, key)}" for name, key in reversed(list(Q))]
        long.write_text("\n".join(["model,prompt_id,score", *lines]))
        expected = {(name, "score", key, 0): value for (name, key), value in Q.items() if value is not None}
        assert scores(read(wide)) == scores(read(turned, orient="models")) == scores(read(long)) == expected


class TestPredictedAnswers:
    TEXT = "prompt_id,A,B,C\n1,x,,\n2, y ,NA,\n3,,z,\n"

    def test_an_empty_cell_is_an_answer_with_nothing_extracted_and_na_is_none(self, write: Write) -> None:
        reading = read(write(self.TEXT), values="predictions", metric="accuracy")
        first, second = reading.measurements
        assert isinstance(first, Answers)
        assert isinstance(second, Answers)
        assert list(first.text) == ["x", "y", None]
        assert first.predicted is not None
        assert first.predicted.all()
        assert second.predicted is not None
        assert second.predicted.tolist() == [True, False, True]
        assert first.scored_as is not None
        assert first.scored_as.name == "accuracy"
        assert "C" in reading.warnings[0]

    def test_words_are_not_ingested_for_scores(self, write: Write) -> None:
        with pytest.raises(UnknownFormatError, match="--values predictions"):
            read(write("prompt_id,A\n1,x\n2,y\n"))

    def test_the_metric_is_exact_match_where_none_is_named(self, write: Write) -> None:
        block = read(write(self.TEXT), values="predictions").measurements[0]
        assert isinstance(block, Answers)
        assert block.scored_as is not None
        assert block.scored_as.name == "exact_match"


class TestLongTables:
    def test_every_column_it_knows(self, write: Write) -> None:
        text = (
            "model,benchmark,task,prompt_id,question,choices,gold,metric,score,predicted,gold_probability,"
            "condition,split,trial,run,few_shot,variant,remark\n"
            'A,demo,t,q1,Why?,"[""yes"", ""no""]",B,accuracy,1,B,0.75,answer-only,test,2,monday,5,shuffled,hm\n'
        )
        reading = read(write(text), probability_kind="letters")
        score, probability, answer = reading.measurements
        assert isinstance(score, Scores)
        assert isinstance(probability, Scores)
        assert isinstance(answer, Answers)
        run = score.run
        assert (run.model, run.benchmark, run.condition, run.variant) == ("A", "demo", "answer_only", "shuffled")
        assert (run.label, run.few_shot, score.trials) == ("monday", 5, 2)
        assert (probability.metric.name, probability.values.tolist()) == ("gold_probability_letters", [0.75])
        assert (list(answer.text), answer.scored_as) == (["B"], None)
        prompts = score.prompts
        assert (prompts.text, prompts.choices, prompts.answer, prompts.split, prompts.tasks) == (
            ["Why?"],
            [["yes", "no"]],
            ["B"],
            ["test"],
            ["t"],
        )
        assert "remark" in reading.warnings[0]

    def test_metrics_in_rows_or_in_columns(self, write: Write) -> None:
        rows = "model,id,metric,value\nA,1,acc,1\nA,1,f1,0.5\nA,2,acc,0\n"
        columns = "model,id,acc,f1\nA,1,1,0.5\nA,2,0,\n"
        assert scores(read(write(rows))) == scores(read(write(columns, "columns.csv")))

    def test_a_file_of_one_model_needs_no_column_for_it(self, write: Write) -> None:
        result = scores(read(write("id,score\n1,1\n2,0\n"), model="mine"))
        assert {model for model, *_ in result} == {"mine"}

    def test_prompts_without_a_name_are_named_by_their_text(self, write: Write) -> None:
        text = "model,question,score\nA,Why?,1\nB,Why?,0\nA,How?,1\n"
        reading = read(write(text))
        assert reading.measurements[0].prompts.text == ["Why?", "How?"]
        assert len(set(reading.measurements[0].prompts.keys)) == 2

    def test_text_may_stand_in_the_first_row_of_a_prompt_only(self, write: Write) -> None:
        reading = read(write("model,id,text,score\nA,1,,1\nB,1,Why?,0\n"))
        assert reading.measurements[0].prompts.text == ["Why?"]

    def test_runs_that_answer_most_prompts_share_their_prompts(self, write: Write) -> None:
        rows = [f"m{m},q{p},{(m + p) % 2}" for m in range(3) for p in range(10) if p != m]
        rows += ["few,q3,1"]
        blocks = read(write("model,id,score\n" + "\n".join(rows))).measurements
        assert len({id(block.prompts) for block in blocks}) == 2
        assert len(blocks[-1].prompts) == 1

    def test_the_same_row_twice_is_one_score(self, write: Write) -> None:
        assert len(scores(read(write("model,id,score\nA,1,1\nA,1,1\nA,2,0\n")))) == 2


class TestLeaderboards:
    def test_one_row_per_model(self, write: Write) -> None:
        text = "model,licence,Average,ARC,MMLU\nA,mit,50,40,60\nB,mit,70,70,\n"
        reading = read(write(text), benchmark="open")
        first, second = reading.measurements
        assert isinstance(first, TaskScores)
        assert isinstance(second, TaskScores)
        assert (list(first.tasks), first.values.tolist()) == (["ARC", "MMLU"], [40, 60])
        assert np.isnan(second.values[1])
        assert reading.warnings[:2] == [
            "skipped averages: Average (--task-columns stores them)",
            "stored as details of the models, not as tasks: licence",
        ]
        assert first.run.settings == {"licence": "mit"}

    def test_a_model_that_is_listed_twice_has_two_runs(self, write: Write) -> None:
        reading = read(write("model,ARC,MMLU\nA,1,2\nA,1,2\nA,1,3\n"))
        assert [block.run.label for block in reading.measurements] == ["", "entry 2"]
        assert "'A' (line 2, line 4) is listed with different scores" in reading.warnings[0]
        assert reading.warnings[1].endswith("skipped duplicate rows of models: 'A' (line 3)")

    def test_one_row_per_model_and_task(self, write: Write) -> None:
        text = "model,task,metric,score,stderr,n\nA,x,acc,0.5,0.1,10\nA,y,acc,0.7,,\nB,x,acc,0.1,0.1,10\n"
        reading = read(write(text))
        first = reading.measurements[0]
        assert isinstance(first, TaskScores)
        assert reading.format == "task-score-table"
        assert (list(first.tasks), first.values.tolist(), first.n_prompts) == (["x", "y"], [0.5, 0.7], [10, None])


class TestPromptTables:
    def test_what_is_not_known_is_kept_as_a_detail(self, write: Write) -> None:
        text = 'id,question,options,answer,category,source\n1,Why?,"[""a"", ""b""]",B,x,web\n2,How?,,,y,\n'
        reading = read(write(text))
        (prompts,) = reading.measurements
        assert isinstance(prompts, Prompts)
        assert (prompts.keys, prompts.text, prompts.tasks) == (["1", "2"], ["Why?", "How?"], ["x", "y"])
        assert (prompts.choices, prompts.answer) == ([["a", "b"], None], ["B", None])
        assert prompts.details == [{"source": "web"}, None]

    def test_options_may_be_a_list_column(self, tmp_path: Path) -> None:
        path = tmp_path / "prompts.parquet"
        pa.parquet.write_table(pa.table({"id": [1], "text": ["Why?"], "choices": [["a", "b"]]}), path)
        (prompts,) = read(path).measurements
        assert isinstance(prompts, Prompts)
        assert prompts.choices == [["a", "b"]]

    def test_text_is_no_answer_even_where_tables_hold_predictions(self, write: Write) -> None:
        assert read(write("id,question,source\n1,Why?,web\n"), values="predictions").format == "prompt-table"

    def test_nameless_columns_without_values_are_what_spreadsheets_leave_behind(self, write: Write) -> None:
        (scores,) = read(write("id,A,,\n1,1,,\n2,0,,\n")).measurements
        assert isinstance(scores, Scores)
        assert scores.values.tolist() == [1, 0]

    def test_zeros_and_ones_under_numbered_columns_are_prompts(self, write: Write) -> None:
        assert read(write("model,q1,q2\nA,1,0\nB,0,0\n")).format == "wide-table"
        assert "it is unclear what the rows and columns are" in error(write("model,x,y\nA,1,0\nB,0,0\n", "other.csv"))

    def test_a_column_labelled_prompt_is_text_where_nothing_else_is(self, write: Write) -> None:
        (prompts,) = read(write("prompt,answer\nWhy?,B\n")).measurements
        assert isinstance(prompts, Prompts)
        assert prompts.text == ["Why?"]


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "options", "words"),
        [
            ("id,A\n1,1\n2,abc\n", {}, "line 3, column 'A': 'abc' is not a number"),
            ("id,A\n1,1\n2,nan\n", {}, "line 3, column 'A': 'nan' is not a finite number"),
            ("id,A\n1,1\n2,-inf\n", {}, "line 3, column 'A': '-inf' is not a finite number"),
            ("id,A\n1,1\n2,1_0\n", {}, "line 3, column 'A': '1_0' is not a number"),
            ("id,A\n1,1\n2,1.5\n", {"metric": "accuracy"}, "line 3, column 'A': 1.5 is outside [0, 1]"),
            ("id,A\n1,1\n2,9\n", {"upper": 5.0}, "line 3, column 'A': 9 is outside [-inf, 5]"),
            ("id,A\n1,1\n1,0\n", {}, "line 3, column 'A': prompt '1' has 0.0 here and 1.0 in line 2"),
            ("id,A\n1,1\n,0\n", {}, "line 3, column 'id': the prompt has no name"),
            ("id,A,A\n1,1,0\n", {}, "line 1: duplicate column 'A'"),
            ("id,A\n1,1,1\n2,0\n3\n", {}, "2 problems, nothing was stored:\n  line 2: 3 fields"),
            ("id,A\n", {}, "has a header but no rows"),
            ("id,,A\n1,1,0\n2,0,1\n", {}, "column 2 has values but no name"),
            ("id|A|B\n1|1|0\n", {}, "has only one column, 'id|A|B'"),
            ("id;A\n1;0,5\n", {}, "column 'A' has '0,5', which is not a number"),
            ("", {}, "is empty"),
            ("id,A,B\n1,1,1\n", {"model": "x"}, "--model applies to files with a single model"),
            ("id,A\n1,\n", {}, "holds no scores"),
            ("model,id,score\nA,1,1\nA,1,0\n", {}, "line 3, column 'score': another score for prompt '1' of 'A'"),
            ("model,id,score\n,1,1\n", {}, "line 2, column 'model': the model has no name"),
            ("model,id,score,condition\nA,1,1,half\n", {}, "line 2, column 'condition': unknown condition 'half'"),
            ("model,id,score,trial\nA,1,1,-1\n", {}, "line 2, column 'trial': -1 is not a trial"),
            ("model,id,score,trial\nA,1,1,0.5\n", {}, "line 2, column 'trial': 0.5 is not a trial"),
            ("model,id,score,gold_probability\nA,1,1,0.5\n", {}, "add --probability-kind letters"),
            ("model,id,score,gold_probability\nA,1,1,2\n", {"probability_kind": "letters"}, "2 is outside [0, 1]"),
            ("model,id,predicted\nA,1,x\nA,1,y\n", {}, "another answer for prompt '1'"),
            ("model,id,score\nA,1,1\nB,1,1\n", {"model": "x"}, "holds 2 models; --model applies"),
            ("model,id,text,score\nA,1,Why?,1\nB,1,How?,1\n", {}, "the text of prompt '1' is 'How?' here"),
            ("id,text,choices\n1,Why?,a|b\n", {}, "line 2, column 'choices': write the options as a JSON list"),
            ("id,text,choices\n1,Why?,\"[1, null]\"\n", {}, "line 2, column 'choices': write the options as"),
            ("id,text\n1,Why?\n1,How?\n", {}, "line 3, column 'text': the text of prompt '1'"),
            ("model,ARC\nA,1\n,2\n", {}, "line 3, column 'model': the model has no name"),
            ("model,ARC\nA,1\nB,x\n", {}, "line 3, column 'ARC': 'x' is not a number"),
            ("model,task,score\nA,x,1\nA,x,2\n", {}, "line 3, column 'score': the task has a different score"),
            ("model,q1,q2\nA,1,0\nA,0,0\n", {"orient": "models"}, "line 3, column 'model': 'A' has different values"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_reported_with_its_place(
        self, write: Write, text: str, options: dict[str, Any], words: str
    ) -> None:
        path = write(text)
        message = error(path, **options)
        assert words in message
        assert str(path) in message

    def test_lines_are_counted_through_quoted_line_breaks_and_blank_lines(self, write: Write) -> None:
        assert "line 3, column 'A': 'x'" in error(write("id,A\r1,1\r2,x\r", "old.csv"))
        assert "line 6, column 'A': 'x'" in error(write('id,A\n"1\n2",1\n\n\n3,x\n4,1\n'))

    def test_thousands_of_bad_rows_give_ten_and_the_count(self, write: Write) -> None:
        text = "id,A\n0,1\n" + "".join(f"{row},bad{row}\n" for row in range(1, 4001))
        message = error(write(text))
        assert "4,000 problems, nothing was stored" in message
        assert "and 3,990 more" in message
        assert message.count("\n") < 15
        assert "line 12, column" in message
        assert "line 13, column" not in message

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_nan_in_parquet_is_refused_and_null_is_missing(self, tmp_path: Path, value: float) -> None:
        path = tmp_path / "table.parquet"
        pa.parquet.write_table(pa.table({"id": [1, 2, 3], "A": pa.array([1.0, value, None])}), path)
        message = error(path)
        assert f"row 2, column 'A': {value} is not a finite number" in message
        assert "row 3" not in message

    def test_names_that_are_floats_beyond_2_to_the_53_are_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "table.parquet"
        names = pa.array([1.0, 2.0**53, 2.0**53 + 2])
        pa.parquet.write_table(pa.table({"prompt_id": names, "gpt-4": [1.0, 0.0, 1.0]}), path)
        message = error(path)
        assert "row 2, column 'prompt_id': 9007199254740992 is a float" in message
        assert "Store the column as integers or texts" in message
        pa.parquet.write_table(pa.table({"prompt_id": names.cast(pa.int64()), "gpt-4": [1.0, 0.0, 1.0]}), path)
        assert [block.prompts.keys[2] for block in read(path).measurements if isinstance(block, Scores)] == [
            "9007199254740994"
        ]

    def test_another_encoding_is_named_with_line_and_byte(self, write: Write) -> None:
        assert "line 3, byte 2: byte 0xe9 is not UTF-8" in error(
            write("id,A\n1,1\né,0\n".encode("latin-1").replace(b"\xe9", b"x\xe9"))
        )
        assert "UTF-16" in error(write("id,A\n1,1\n".encode("utf-16")))
        assert "zero byte" in error(write(b"id,A\n1,1\n" * 200_000 + b"\0,1\n"))

    def test_files_that_end_too_early(self, write: Write, tmp_path: Path) -> None:
        zipped = gzip.compress(b"id,A\n" + b"".join(b"%d,1\n" % row for row in range(5000)))
        assert "gzip data are truncated" in error(write(zipped[:-20], "cut.csv.gz"))
        pa.parquet.write_table(pa.table({"id": [1, 2], "A": [1, 0]}), tmp_path / "whole.parquet")
        cut = (tmp_path / "whole.parquet").read_bytes()[:-30]
        assert "Parquet" in error(write(cut, "cut.parquet"))

    def test_a_file_of_no_format_is_described_without_a_list_of_formats(self, write: Write) -> None:
        with pytest.raises(UnknownFormatError) as caught:
            read(write("hello", "notes.txt"))
        problem, advice = str(caught.value).splitlines()
        assert problem.endswith("notes.txt: no format matches this file (text that starts with 'hello').")
        assert "--format NAME" in advice
        assert "suffrage formats list" in advice


class TestDocumentation:
    def test_every_name_of_a_column_every_word_for_missing_and_every_format_is_documented(self) -> None:
        text = (Path(__file__).parents[3] / "docs/reference/formats.md").read_text()
        for role, synonyms in SYNONYMS.items():
            for synonym in synonyms:
                assert f"`{synonym}`" in text, role
        for word in MISSING[1:]:
            assert f"`{word}`" in text.lower()
        for name in load_formats():
            assert f"`{name}`" in text


class TestRealData:
    def test_mmlu_pro(self, shared: Path) -> None:
        folder = shared / "data" / "mmlu_pro"
        reading = read(folder / "scores_wide.csv.gz", metric="accuracy")
        assert len(reading.measurements) == 29
        assert len(scores(reading)) == 12_032 * 29 - 1713
        (prompts,) = read(folder / "prompts.parquet").measurements
        assert isinstance(prompts, Prompts)
        assert prompts.tasks is not None
        assert (len(prompts), len(set(prompts.tasks))) == (12_032, 14)
        answers = read(folder / "predictions_wide.parquet", values="predictions").measurements
        assert len(answers) == 29

    def test_alpaca_eval_and_the_leaderboards(self, shared: Path) -> None:
        assert len(scores(read(shared / "data" / "alpaca_eval" / "scores_wide.csv.gz"))) == 805 * 58 - 10
        reversed_signs = {"heim_aesthetics_auto", "heim_black_out", "heim_nudity", "heim_quality_auto"}
        for path in sorted((shared / "data" / "leaderboards").glob("*.csv")):
            is_reversed = path.stem.removeprefix("ordinal_") in reversed_signs
            if is_reversed:
                assert "smaller is better in" in error(path)
            options = {"higher_is_better": True, "lower": -200.0, "upper": 200.0} if is_reversed else {}
            reading = read(path, **options)
            assert reading.format == "leaderboard-table", path.name
            assert all(isinstance(block, TaskScores) for block in reading.measurements)

    def test_samples(self, shared: Path) -> None:
        long, wide = (scores(read(shared / "samples" / "tabular" / name)) for name in ("long.csv", "wide.csv"))
        assert (len(long), len(wide)) == (6, 5)
