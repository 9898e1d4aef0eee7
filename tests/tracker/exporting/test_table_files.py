"""Tables as files: what is read back, and that a file is there whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_filters import filtered

from tracker.errors import OutputError
from tracker.exporting.formats.filter.kept_prompts import build_kept_prompts
from tracker.exporting.output_paths import write_file
from tracker.exporting.table_files import WRITERS
from tracker.ingest.measurement import Prompts, ReadOptions
from tracker.ingest.parsing.detection import parse_file

# What a store holds: neither NUL nor halves of surrogate pairs.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
ROWS = st.lists(
    st.tuples(
        st.none() | TEXTS, st.none() | st.lists(TEXTS, max_size=3), st.none() | st.integers(-9, 9), st.booleans()
    ),
    min_size=1,
    max_size=5,
)


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    kinds = {"text": pa.string(), "list": pa.list_(pa.string()), "number": pa.int64(), "flag": pa.bool_()}
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(list(c), kind) for (name, kind), c in zip(kinds.items(), columns, strict=True)})


class TestFormats:
    @settings(max_examples=60)
    @given(rows=ROWS)
    @example(rows=[("one\rline", ["a\rb"], None, False)])
    @example(rows=[("\r", None, None, False)])
    def test_each_is_read_back_as_it_was(self, rows: list[tuple[object, ...]]) -> None:
        written = table(rows)
        assert pq.read_table(io.BytesIO(WRITERS["parquet"](written))).equals(written)
        lines = WRITERS["jsonl"](written).decode().split("\n")
        assert [json.loads(line) for line in lines[:-1]] == written.to_pylist()
        assert lines[-1] == ""
        cells = list(csv.DictReader(io.StringIO(WRITERS["csv"](written).decode(), newline="")))
        for (text, options, number, flag), cell in zip(rows, cells, strict=True):
            assert cell["text"] == (text or "")
            assert (json.loads(cell["list"]) if cell["list"] else []) == (options or [])
            assert cell["number"] == ("" if number is None else str(number))
            assert cell["flag"] == ("yes" if flag else "no")

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_kept_prompts_can_be_ingested(self, tmp_path: Path, kind: str) -> None:
        built = filtered(
            [True, False, True],
            tasks=["a", "a", "b"],
            texts=['Which,\n"one"?', "out", "Wer? ☂"],
            choices=[["x, y", "[z]"], ["1", "2"], None],
            splits=("test", None, None),
            reasons={"easy": {0: (True, -1), 1: (False, -1)}, "similar": {0: (True, 4), 1: (True, 4)}},
            other_names=(("lm_eval:hash",), (), ()),
        )
        path = tmp_path / f"kept.{kind}"
        path.write_bytes(WRITERS[kind](build_kept_prompts(built)))
        reading = parse_file(path, ReadOptions(benchmark="b"))
        assert reading.format == "prompt-table"
        (prompts,) = reading.measurements
        assert isinstance(prompts, Prompts)
        assert (prompts.keys, prompts.tasks) == (["p0", "p2"], ["a", "b"])
        assert list(prompts.text or ()) == ['Which,\n"one"?', "Wer? ☂"]
        assert prompts.choices == [["x, y", "[z]"], None]
        assert (prompts.answer, prompts.split) == (["A", "A"], ["test", None])
        assert build_kept_prompts(built).select(["reasons", "groups", "other_names"]).to_pylist() == [
            {
                "reasons": ["easy (retained)", "similar (retained)"],
                "groups": ["similar 4"],
                "other_names": ["lm_eval:hash"],
            },
            {"reasons": [], "groups": [], "other_names": []},
        ]


class TestFiles:
    def test_a_file_is_replaced_only_by_force(self, tmp_path: Path) -> None:
        path = tmp_path / "out.csv"
        write_file(path, b"one", force=False)
        with pytest.raises(OutputError, match=r"out\.csv exists already\. .* or replace it with --force\."):
            write_file(path, b"two", force=False)
        assert path.read_bytes() == b"one"
        write_file(path, b"two", force=True)
        assert path.read_bytes() == b"two"
        assert os.listdir(tmp_path) == ["out.csv"]

    def test_others_may_read_it_as_any_file_that_one_makes(self, tmp_path: Path) -> None:
        plain = tmp_path / "plain"
        plain.touch()
        write_file(tmp_path / "out", b"", force=False)
        assert (tmp_path / "out").stat().st_mode == plain.stat().st_mode

    def test_a_link_is_kept_and_what_it_points_to_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "real/out").write_bytes(b"old")
        (tmp_path / "link").symlink_to(tmp_path / "real/out")
        write_file(tmp_path / "link", b"new", force=True)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real/out").read_bytes() == b"new"

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            (".", "is a folder. Name a file: "),
            ("none/out.csv", "There is no folder .*none. Create it: mkdir -p .*none"),
            ("x" * 300, "cannot be written: File name too long. Use another name"),
        ],
    )
    def test_an_unwritable_path_is_an_error_with_its_reason(self, tmp_path: Path, name: str, message: str) -> None:
        with pytest.raises(OutputError, match=message):
            write_file(tmp_path / name, b"", force=True)
        assert os.listdir(tmp_path) == []

    def test_what_cannot_be_finished_leaves_what_was_there(self, tmp_path: Path) -> None:
        path = tmp_path / "out.csv"
        path.write_bytes(b"before")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
        try:
            with pytest.raises(OutputError, match="cannot be written: File too large"):
                write_file(path, b"x" * (1 << 20), force=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert path.read_bytes() == b"before"
        assert os.listdir(tmp_path) == ["out.csv"]
