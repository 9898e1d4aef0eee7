"""Erased responses: no text is left in any file, scores stay, and no import brings a text back
(docs/how-to/erase-responses.md)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums
from tracker.queries.sql import tables
from tracker.recording.erasure.purging import purge
from tracker.recording.erasure.responses import ErasureSelection, erase_responses
from tracker.schema import metadata
from tracker.schema.erased_texts import is_mark, is_same_response, make_mark

ANSWER = metadata.tables["answer"]
SECRET = "my number is 555-0199, ask for Jane"
PROMPTS = 'prompt_id,text,choices,gold_answer\n1,Who?,,x\n2,Which?,"[""red"", ""blue""]",A\n'
FILE = "model,prompt_id,score,predicted\n" + "".join(
    f"{model},{prompt},{score},{answer}\n"
    for model, prompt, score, answer in (("m", 1, 0, f'"{SECRET}"'), ("m", 2, 1, "A"), ("n", 1, 1, "x of n"))
)
OPTIONS = ReadOptions(benchmark="b", metric="accuracy")
DAY = date(2026, 11, 23)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    """A store with answers on each engine in turn."""
    engine = connect(request.getfixturevalue(f"{request.param}_url"))
    for name, content in (("prompts.csv", PROMPTS), ("answers.csv", FILE)):
        (tmp_path / name).write_text(content)
        ingest_file(engine, tmp_path / name, OPTIONS)
    yield engine
    engine.dispose()


def texts(engine: sa.Engine) -> list[Any]:
    with transaction(engine, write=False) as session:
        assert verify_checksums(session) == []
        query = sa.select(ANSWER.c.text).order_by(ANSWER.c.run_id, ANSWER.c.prompt_id)
        return list(session.scalars(query))


def erase(engine: sa.Engine, *arguments: str) -> Any:
    url = engine.url.render_as_string(hide_password=False)
    return CliRunner().invoke(suffrage, ["responses", "erase", *arguments, "--database", url])


def scores(engine: sa.Engine) -> list[Any]:
    with transaction(engine, write=False) as session:
        return [*map(tuple, session.execute(sa.select(tables.score).order_by(*tables.score.primary_key)))]


def test_texts_become_marks_and_scores_stay(store: sa.Engine) -> None:
    before = scores(store)
    done = erase(store, "b", "--models", "m", "--yes")
    assert "Erased 1 text of 1 run." in done.stderr
    assert "To keep: 1 answers that are an option of their prompt." in done.stderr
    erased, option, kept = texts(store)
    assert is_mark(erased)
    assert erased.startswith("response erased on 20")
    assert (option, kept) == ("A", "x of n")
    assert scores(store) == before
    again = erase(store, "b", "--models", "m", "--yes")
    assert "Erased 0 texts" in again.stderr
    assert texts(store)[0] == erased


def test_many_texts_of_one_run_are_erased_at_once(store: sa.Engine, tmp_path: Path) -> None:
    lines = [f"o,{prompt},1,text {prompt}" for prompt in range(3, 30)]
    (tmp_path / "more.csv").write_text("\n".join(["model,prompt_id,score,predicted", *lines]) + "\n")
    ingest_file(store, tmp_path / "more.csv", OPTIONS)
    assert "Erased 27 texts of 1 run." in erase(store, "b", "--models", "o", "--yes").stderr
    assert sum(map(is_mark, texts(store))) == 27


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        (["--match", "Jane"], {0}), (["--match", "jane"], set()), (["b"], {0, 2}), (["--runs", "2"], {2}),
        (["--prompts", "1"], {0, 2}), (["--prompts", "2"], set()), (["--match", "A"], {1}),
        (["b", "--models", "n"], {2}),
    ],
)  # fmt: skip
def test_a_selection_erases_its_texts_alone(store: sa.Engine, arguments: list[str], places: set[int]) -> None:
    before = texts(store)
    dry = erase(store, *arguments, "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert texts(store) == before
    assert erase(store, *arguments, "--yes").exit_code == 0
    after = texts(store)
    assert {place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new} == places


@pytest.mark.parametrize("on_conflict", ["rerun", "skip", "update"])
def test_no_import_brings_a_text_back(store: sa.Engine, tmp_path: Path, on_conflict: Any) -> None:
    erase(store, "b", "--yes")
    before = texts(store)
    (tmp_path / "again.csv").write_text(FILE + "n,2,0,B\n")
    ingest_file(store, tmp_path / "again.csv", OPTIONS, on_conflict=on_conflict)
    assert sorted(texts(store)) == sorted([*before, "B"])
    source = connect(f"sqlite:///{tmp_path / 'source.db'}")
    for name in ("prompts.csv", "answers.csv"):
        ingest_file(source, tmp_path / name, OPTIONS)
    ingest_file(store, tmp_path / "source.db", on_conflict=on_conflict)
    assert sorted(texts(store)) == sorted([*before, "B"])
    source.dispose()


def test_no_byte_of_a_text_is_left_in_the_files(sqlite_url: str, tmp_path: Path) -> None:
    engine = connect(sqlite_url)
    for name, content in (
        ("first.csv", FILE), ("second.csv", FILE.replace(SECRET, "changed")),
        ("third.csv", FILE.replace("x of n", "y")),
    ):  # fmt: skip
        (tmp_path / name).write_text(content)
        ingest_file(engine, tmp_path / name, OPTIONS, on_conflict="update")
    (tmp_path / "first.csv").write_text(FILE + f'k,1,1,"{SECRET}"\n')
    ingest_file(engine, tmp_path / "first.csv", OPTIONS, on_conflict="update")
    files = list(tmp_path.glob("store.db*"))
    assert any(SECRET.encode() in path.read_bytes() for path in files)
    assert erase(engine, "b", "--yes").exit_code == 0
    for path in tmp_path.glob("store.db*"):
        assert SECRET.encode() not in path.read_bytes(), path
        assert b"x of n" not in path.read_bytes(), path
    with transaction(engine, write=False) as session:
        records = session.scalars(sa.select(metadata.tables["undo_record"].c.changes)).all()
    assert all(SECRET not in str(_unpacked(record)) for record in records)
    engine.dispose()


def _unpacked(record: bytes) -> Any:
    from tracker.ingest.write.undo_log import UndoLog

    return UndoLog.from_bytes(record).replaced


def test_a_reader_is_named_as_the_reason_why_files_are_not_rewritten(sqlite_url: str, tmp_path: Path) -> None:
    engine = connect(sqlite_url)
    (tmp_path / "a.csv").write_text(FILE)
    ingest_file(engine, tmp_path / "a.csv", OPTIONS)
    with transaction(engine) as session:
        erase_responses(session, ErasureSelection(run_ids=[1]), DAY)
    reader = sqlite3.connect(str(engine.url.database))
    reader.execute("PRAGMA busy_timeout=0")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM answer").fetchone()
    with engine.connect() as connection:
        connection.connection.dbapi_connection.execute("PRAGMA busy_timeout=100")  # type: ignore[union-attr]
    with pytest.raises(RuntimeError, match=r"may still hold them.*run the same command again"):
        purge(engine)
    reader.close()
    purge(engine)
    engine.dispose()


def test_marks_compare_as_the_texts_that_they_replace() -> None:
    mark = make_mark("text", DAY)
    assert is_same_response(mark, "text")
    assert is_same_response("text", make_mark("text", date(2020, 1, 1)))
    assert is_same_response(mark, make_mark("text", date(2020, 1, 1)))
    assert not is_same_response(mark, "another")
    assert not is_same_response("text", "another")
    assert not is_same_response(mark, None)
    assert not is_mark("response erased on Monday")


def test_nothing_is_erased_without_a_selection_or_a_confirmation(store: sa.Engine) -> None:
    before = texts(store)
    assert erase(store, "--yes").exit_code == 2
    assert erase(store, "b").exit_code == 2
    assert erase(store, "b", "--runs", "x", "--yes").exit_code == 2
    assert texts(store) == before
