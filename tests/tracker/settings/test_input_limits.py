"""Limits on files: where they come from, and what they reject (docs/reference/limits.md)."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tracker
from tracker.cli import suffrage
from tracker.database import connect
from tracker.errors import BadInputError, SettingsError
from tracker.ingest.files.file_contents import read_bytes
from tracker.ingest.files.json_files import find_excess, iterate_json_lines, read_json
from tracker.ingest.files.json_stream import measure_depth, stream_parts
from tracker.ingest.files.yaml_text import parse_yaml
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.settings.input_limits import InputLimits, current_limits, parse_limits, use_limits
from tracker.settings.text_files import MAX_BYTES, read_text_file

TABLE = "model,prompt_id,score\n"


def test_a_limit_is_raised_by_option_environment_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wide.csv").write_text("model,a,b,c\nm,1,0,1\nn,0,1,1\n")
    words = ["ingest", "wide.csv", "--benchmark", "b", "--orient", "models", "--no-mlflow"]
    monkeypatch.setenv("SUFFRAGE_LIMITS", "columns=3")
    refused = CliRunner().invoke(suffrage, words)
    assert refused.exit_code == 1
    assert "--limits columns=6" in refused.output
    assert CliRunner().invoke(suffrage, [*words, "--limits", "columns=6"]).exit_code == 0
    monkeypatch.delenv("SUFFRAGE_LIMITS")
    (tmp_path / "suffrage.toml").write_text('limits = "columns=7, value=2MB"\n')
    assert current_limits() == InputLimits(columns=7, value=2_000_000)


def test_a_limit_is_raised_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wide.csv").write_text("model,a,b,c\nm,1,0,1\nn,0,1,1\n")
    row = '{"q": "Is it?", "o": ["yes", "no"], "a": "B"}'
    (tmp_path / "rows.jsonl").write_text(row + "\n")
    fields = {"text": "q", "choices": "o", "answer": "a"}
    monkeypatch.setenv("SUFFRAGE_LIMITS", "columns=3, value=5")
    with tracker.open(f"sqlite:///{tmp_path}/store.db") as store:
        for limits in (None, "columns=3,value=5"):
            with pytest.raises(BadInputError, match="the limit is"):
                store.ingest(tmp_path / "wide.csv", benchmark="b", orient="models", limits=limits)
            with pytest.raises(BadInputError, match="the limit is"):
                store.prompts_from("quiz", tmp_path / "rows.jsonl", fields=fields, answer_is="letter", limits=limits)
        assert store.ingest(tmp_path / "wide.csv", benchmark="b", orient="models", limits="columns=6")
        assert store.prompts_from(
            "quiz", tmp_path / "rows.jsonl", fields=fields, answer_is="letter", limits="value=200"
        ).summary()
        with pytest.raises(SettingsError, match="in limits is not valid"):
            store.ingest(tmp_path / "wide.csv", limits="colums=3")
    assert current_limits() == InputLimits(columns=3, value=5)


@pytest.mark.parametrize("text", ["colums=3", "columns", "columns=", "columns=-1", "columns=1e3", "=3", "columns=3x"])
def test_a_wrong_limit_is_an_error(text: str) -> None:
    with pytest.raises(SettingsError, match="--limits"):
        parse_limits(text, "--limits")


def reject_ingest(path: Path) -> None:
    engine = connect("sqlite:///store.db")
    try:
        ingest_file(engine, path, ReadOptions(benchmark="b"))
    finally:
        with engine.connect() as connection:
            assert connection.scalar(sa.text("SELECT count(*) FROM model")) == 0
        engine.dispose()


@pytest.mark.parametrize(
    ("limits", "name", "content", "read"),
    [
        (InputLimits(bytes=10), "a.csv", b"x" * 11, read_bytes),
        (InputLimits(bytes=10), "a.csv.gz", gzip.compress(b"x" * 11), read_bytes),
        (InputLimits(expansion=1), "a.csv.gz", gzip.compress(b"x" * 9_000_000), read_bytes),
        (InputLimits(value=10), "a.jsonl", b'{"a": "123456"}\n', lambda path: list(iterate_json_lines(path))),
        (InputLimits(value=3), "a.csv", TABLE.encode() + b"m,long,1\n", reject_ingest),
        (InputLimits(name=3), "a.csv", TABLE.encode() + b"long,p,1\n", reject_ingest),
        (InputLimits(name=1), "a.csv", TABLE.encode() + b"m," + b"p" * 51 + b",1\n", reject_ingest),
        (InputLimits(columns=2), "a.csv", TABLE.encode() + b"m,p,1\n", reject_ingest),
        (InputLimits(runs=2), "a.csv", TABLE.encode() + b"m,p,1\nn,p,1\no,p,0\n", reject_ingest),
        (InputLimits(nesting=3), "a.json", b"[[[[]]]]", read_json),
        (InputLimits(nesting=3), "a.jsonl", b'{"a": [[[]]]}\n', lambda path: list(iterate_json_lines(path))),
        (InputLimits(members=3), "a.yaml", b"[1, 2, 3]", lambda path: parse_yaml(path, path.read_bytes())),
        (InputLimits(nesting=3), "a.yaml", b"- - - - 1", lambda path: parse_yaml(path, path.read_bytes())),
        (InputLimits(value=3), "a.json", b"[12345]", lambda path: list(stream_parts([path.read_bytes()], path))),
        (InputLimits(nesting=2), "a.json", b"[[[]]]", lambda path: list(stream_parts([path.read_bytes()], path))),
    ],
    ids=range(15),
)
def test_a_file_beyond_a_limit_is_rejected_with_the_option_that_raises_it(
    limits: InputLimits, name: str, content: bytes, read: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with use_limits(limits), pytest.raises(BadInputError, match=r"If you trust the file, raise it: --limits \w+="):
        read(path)


def test_aliases_that_expand_are_counted(tmp_path: Path) -> None:
    text = "a: &a0 [x, x]\n" + "".join(f"b{i}: &a{i + 1} [*a{i}, *a{i}, *a{i}]\n" for i in range(30))
    with pytest.raises(BadInputError, match="values"):
        parse_yaml(tmp_path / "a.yaml", text)
    assert parse_yaml(tmp_path / "a.yaml", "a: &x [1]\nb: *x\n") == {"a": [1], "b": [1]}


@pytest.mark.parametrize(
    "text", ["!!bool x", "!!int ''", "2001-99-99", "!!float x", "{[1]: 2}", "!!python/name:os", "\0"]
)
def test_every_value_that_yaml_cannot_read_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="is not valid YAML"):
        parse_yaml(tmp_path / "a.yaml", text)


NESTED = st.recursive(
    st.one_of(st.integers(), st.text('[]{}"\\,ab', max_size=5)),
    lambda parts: st.one_of(
        st.lists(parts, max_size=3), st.dictionaries(st.text('[]{}"\\', max_size=3), parts, max_size=3)
    ),
)


def depth(value: object) -> int:
    parts = value if isinstance(value, list) else value.values() if isinstance(value, dict) else None
    return 0 if parts is None else 1 + max(map(depth, parts), default=0)


@given(NESTED)
def test_depth_is_that_of_the_parsed_value(value: object) -> None:
    import json

    data = json.dumps(value).encode()
    assert measure_depth(data) == depth(value)
    assert (find_excess(data, InputLimits(nesting=2)) is None) == (depth(value) <= 2)


def test_a_template_or_settings_file_has_at_most_256_kilobytes(tmp_path: Path) -> None:
    path = tmp_path / "a.jinja"
    path.write_bytes(b"x" * MAX_BYTES)
    assert len(read_text_file(path)) == MAX_BYTES
    path.write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(OSError, match="larger than 256 kB"):
        read_text_file(path)
