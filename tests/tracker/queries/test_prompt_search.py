"""The search in questions, on both engines: against a plain scan of all texts, whatever edits came before."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session
from starlette.testclient import TestClient
from store_rows import undo

from tracker.cli.commands.db import command
from tracker.database import transaction
from tracker.ingest.measurement import MetricDescription, ParsedFile, Prompts, ReadOptions, RunDescription, Scores
from tracker.ingest.write.writer import store_file
from tracker.queries.browsing.search import find_prompts, find_prompts_with_text, parse_search
from tracker.queries.sql import tables
from tracker.recording.doctor import find_faults
from tracker.schema.search_index import find_search_faults
from tracker.web.access import Access
from tracker.web.application import create_application

WORDS = (
    "energy", "Energies", "\u00c9nergie", "e\u0301nergie", "x^2", "x", "2", "state-of-the-art", "art", "a/b.c", "C++",
    "\u80fd\u91cf", "\u52a8\u80fd\u91cf", "Python\u7f16\u5199", "\ud55c\uad6d\uc5b4", "5e3", "1e-5", "don't", "=>",
    "\u222b", '"', "*", "AND", "NOT", "NEAR(x", "\\", "%", "_", "\u041c\u043e\u0441\u043a\u0432\u0430", "<b>", "&amp;",
    "http://e.org/a?b=c", ":*", "|", "'",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
QUERIES = TEXTS | TEXTS.map(lambda text: f'"{text}"') | st.text(max_size=8) | TEXTS.map(lambda text: text[:-1])
EDITS = st.lists(st.tuples(st.sampled_from(("insert", "update", "delete", "undo")), TEXTS | st.none()), max_size=8)


def split_words(text: str) -> list[str]:
    """The words of a text, in lower case and without accents; characters of other scripts separate them."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text) if not 0x300 <= ord(c) <= 0x36F).lower()
    return re.findall(r"[a-z0-9\u0400-\u04ff]+", plain)


def contains(text: str, query: str, store: sa.Engine) -> bool:
    """Whether a text matches a search, word by word."""
    terms, words = parse_search(query), split_words(text)
    phrases = [(split_words(content), is_prefix) for content, is_prefix in terms.phrases]
    return bool(terms.phrases or terms.parts) and (
        all(lower(part, store) in lower(text, store) for part in terms.parts)
        and all(any(begins(words[at:], *phrase) for at in range(len(words))) for phrase in phrases)
    )


def lower(text: str, store: sa.Engine) -> str:
    """A text in lower case; SQLite knows the letters of ASCII only."""
    return text.lower() if store.dialect.name == "postgresql" else re.sub("[A-Z]", lambda match: match[0].lower(), text)


def begins(words: list[str], phrase: list[str], is_prefix: bool) -> bool:
    """Whether words begin with a phrase, whose last word may be the beginning of one."""
    *before, last = phrase
    word = words[len(before)] if len(words) > len(before) else None
    return words[: len(before)] == before and (
        word == last or (is_prefix and word is not None and word.startswith(last))
    )


def edit(session: Session, task: int, edits: list[tuple[str, str | None]]) -> None:
    """Insert, change and delete prompts; an undone edit is rolled back."""
    prompt = tables.prompt
    for number, (kind, text) in enumerate(edits):
        part = session.begin_nested()
        keys = session.scalars(sa.select(prompt.c.id).where(prompt.c.task_id == task).order_by(prompt.c.id)).all()
        if kind == "delete" and keys:
            session.execute(sa.delete(prompt).where(prompt.c.id.in_(keys[: 1 + number % 2])))
        elif kind == "update" and keys:
            chosen = prompt.c.id == keys[number % len(keys)]
            session.execute(sa.update(prompt).where(chosen).values(text=text, details=None))
        else:
            rows = [{"task_id": task, "occurrence": 0, "text": content} for content in (text, f"{text} energy")]
            session.execute(sa.insert(prompt), rows)
        if kind == "undo":
            part.rollback()
        else:
            part.commit()


def add_task(session: Session) -> int:
    """A task of a new benchmark."""
    owner = session.execute(
        sa.insert(tables.benchmark).values(name="b", revision="").returning(tables.benchmark.c.id)
    ).scalar_one()
    inserted = sa.insert(tables.task).values(benchmark_id=owner, name="t").returning(tables.task.c.id)
    return int(session.execute(inserted).scalar_one())


def add_prompts(session: Session, texts: list[str]) -> None:
    """Prompts of a new task."""
    task = add_task(session)
    rows = [{"task_id": task, "occurrence": number, "text": text} for number, text in enumerate(texts)]
    session.execute(sa.insert(tables.prompt), rows)


class TestAgainstReference:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # an example leaves nothing in the store
    @given(edits=EDITS, queries=st.lists(QUERIES, min_size=1, max_size=5))
    def test_after_any_edits_it_matches_the_same_prompts_as_a_scan(
        self, store: sa.Engine, edits: list[tuple[str, str | None]], queries: list[str]
    ) -> None:
        with store.execution_options(begin="IMMEDIATE").connect() as connection, connection.begin() as outer:
            session = Session(bind=connection, join_transaction_mode="create_savepoint")
            task = add_task(session)
            edit(session, task, [("insert", "What is the kinetic energy?"), *edits])
            rows = session.execute(sa.select(tables.prompt.c.id, tables.prompt.c.text)).all()
            for query in queries:
                texts = {key: text for key, text in rows if text is not None}
                expected = {key for key, text in texts.items() if contains(text, query, store)}
                if not expected and (part := parse_search(query).whole):
                    part = part.strip('"“”') or part
                    expected = {key for key, text in texts.items() if lower(part, store) in lower(text, store)}
                assert set(find_prompts_with_text(session, [task], query)) == expected, query
                assert {key for key, _, _ in find_prompts(session, query, 50)} == expected, query
            assert find_search_faults(connection) == []
            session.close()
            outer.rollback()


class TestLaws:
    def test_an_import_and_its_undo_are_searched(self, store: sa.Engine) -> None:
        def find(text: str) -> int:
            with transaction(store, write=False) as session:
                assert find_search_faults(session.connection()) == []
                return len(find_prompts(session, text, 50))

        with transaction(store, exclusive=True) as session:
            store_file(session, results([None, "What is g?"]), ReadOptions(benchmark="b"))
        assert (find("who may"), find("what g")) == (0, 1)
        with transaction(store, exclusive=True) as session:  # a text is added to a stored prompt
            store_file(session, results(["Who may sue?", "What is g?"]), ReadOptions(benchmark="b"))
        assert (find("who may"), find("what g")) == (1, 1)
        undo(store)
        assert (find("who may"), find("what g")) == (0, 1)
        undo(store)
        assert find("what g") == 0

    def test_the_best_match_is_first_and_equal_ones_keep_their_order(self, store: sa.Engine) -> None:
        texts = ["heat and much about the weather of all lands", "heat heat", "cold", "heat heat", "a heater"]
        with transaction(store) as session:
            add_prompts(session, texts)
        with transaction(store, write=False) as session:
            first, second, third, last = (key for key, _, _ in find_prompts(session, "heat", 50))
            assert [key for key, _, _ in find_prompts(session, "heat", 2)] == [first, second]
        assert second == first + 2
        assert {third, last} == {first - 1, first + 3}

    @pytest.mark.parametrize(
        ("text", "query", "is_match"),
        [
            ("What is kinetic energy?", "energy KIN", True),
            ("What is kinetic energy?", '"energy kin"', False),
            ("What is kinetic energy?", '"kinetic energy what"', False),
            ("What is kinetic energy?", "NETIC", True),
            ("What is kinetic energy?", "netic energy?", True),
            ("What is kinetic energy?", "netic what", False),
            ("Schr\u00f6dinger's cat", "schrodinger", True),
            ("Schrodinger's cat", "Schr\u00f6dinger", True),
            ("Let x^2 = 3", "x^2", True),
            ("Let 2x = 3", "x^2", False),
            ("Which is right: C or D?", "C++", True),
            ("Which car is right?", "C++", False),
            ("\u7cfb\u7edf\u7684\u80fd\u91cf\u662f\u591a\u5c11?", "\u80fd\u91cf", True),
            ("\u4f7f\u7528Python\u7f16\u5199", "python", True),
            ("\u4f7f\u7528 Python\u7f16\u5199", "\u7f16\u5199 python", True),
            ("Then a => b", "=>", True),
            ("Then a = b", "=>", False),
        ],
    )
    def test_what_matches(self, store: sa.Engine, text: str, query: str, is_match: bool) -> None:
        with transaction(store) as session:
            add_prompts(session, [text])
            assert bool(find_prompts(session, query, 50)) == is_match

    def test_a_search_of_any_length_is_harmless(self, store: sa.Engine) -> None:
        with transaction(store, write=False) as session:
            for text in ("(" * 100_000, "ab cd " * 100_000, '"' * 9, "\ud800 \0x", "\u80fd" * 70_000):
                assert find_prompts(session, text, 50) == []


class TestErrors:
    @pytest.mark.tampers
    @pytest.mark.parametrize("damage", ["table", "trigger"])
    def test_a_faulty_index_is_reported_and_made_anew(self, store: sa.Engine, damage: str) -> None:
        on_prompt = "" if store.dialect.name == "sqlite" else " ON prompt"
        with transaction(store) as session:
            add_prompts(session, ["What is heat?"])
            drop = "DROP TABLE prompt_search" if damage == "table" else f"DROP TRIGGER prompt_reindexed{on_prompt}"
            session.execute(sa.text(drop))
        has_checksum = store.dialect.name == "sqlite" or damage == "trigger"  # definitions of tables have one on SQLite
        assert [fault.about for fault in find_faults(store)] == ["search", *(["content"] if has_checksum else [])]
        if damage == "table":
            page = TestClient(create_application(store, Access(hosts=("testserver",)))).get("/search?q=heat")
            assert (page.status_code, "Run: suffrage db upgrade" in page.text) == (503, True)
        url = store.url.render_as_string(hide_password=False)
        assert CliRunner().invoke(command, ["upgrade", "--database", url]).exit_code == 0
        assert list(find_faults(store)) == []
        with transaction(store) as session:
            session.execute(sa.update(tables.prompt).values(text="What is cold?"))
            assert [len(find_prompts(session, text, 50)) for text in ("heat", "cold")] == [0, 1]

    @pytest.mark.tampers
    def test_an_index_without_a_prompt_is_reported(self, store: sa.Engine) -> None:
        with store.begin() as connection:
            add_prompts(Session(bind=connection), ["What is heat?"])
            table = "prompt_search_docsize" if store.dialect.name == "sqlite" else "prompt_search"
            connection.exec_driver_sql(f"DELETE FROM {table}")
            assert find_search_faults(connection) == ["the search index is wrong for 1 prompts"]


def results(texts: list[str | None]) -> ParsedFile:
    """A model's scores on prompts; a digest of their own, so that each is another file."""
    prompts = Prompts(keys=["1", "2"], tasks=["law", "physics"], text=texts)
    return ParsedFile(
        path=Path(f"{texts}.csv"), files=(), format="made", harness="h", digest=f"{hash(tuple(texts)):064x}"[-64:],
        identity=f"{hash(tuple(texts)):064x}"[-64:],
        measurements=[
            Scores(
                run=RunDescription(model=f"m{len(list(filter(None, texts)))}"),
                metric=MetricDescription(name="accuracy", higher_is_better=True, lower=0.0, upper=1.0),
                prompts=prompts, values=np.array([1.0, 0.0]),
            )
        ],
    )  # fmt: skip
