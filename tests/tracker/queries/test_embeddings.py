"""Stored vectors as arrays: whose they are, in which order, and what is said where there are none."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_filter, add_scores
from numpy.typing import NDArray

from tracker.database import transaction
from tracker.errors import AmbiguousError, NotFoundError, SelectionError
from tracker.ingest.write.vectors import EncoderName, add_vectors, find_or_add_encoder
from tracker.queries.embeddings import (
    AllEmbeddings,
    Embeddings,
    StoredEmbeddings,
    list_embedded_prompts,
    list_encoders,
    load_embeddings,
)
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.queries.sql import tables

N = 30
E = np.random.default_rng(1).normal(size=(N, 5)).astype(np.float32)


def prompt_ids(engine: sa.Engine, benchmark: str = "b") -> NDArray[np.int64]:
    with engine.connect() as connection:
        requested = (
            sa.select(tables.prompt.c.id)
            .join(tables.task, tables.task.c.id == tables.prompt.c.task_id)
            .join(tables.benchmark, tables.benchmark.c.id == tables.task.c.benchmark_id)
            .where(tables.benchmark.c.name == benchmark)
            .order_by(tables.prompt.c.id)
        )
        return np.array(connection.scalars(requested).all())


def add(engine: sa.Engine, ids: NDArray[np.int64], vectors: NDArray[np.float32], **name: str) -> int:
    encoder = EncoderName(**({"name": "ada-2", "revision": "", "template": "question+choices"} | name))
    with transaction(engine, exclusive=True) as session:
        key = find_or_add_encoder(session, encoder, vectors.shape[1])
        add_vectors(session, key, ids, vectors)
    return key


def load(engine: sa.Engine, encoder: str | None = None, benchmark: str = "b") -> Embeddings:
    with transaction(engine, write=False) as session:
        return load_embeddings(session, Selection(benchmark=benchmark, encoder=encoder))


@pytest.fixture
def questions(store: sa.Engine) -> sa.Engine:
    add_scores(store, np.ones((N, 1)), tasks=["x", "y"] * (N // 2))
    return store


class TestLoaded:
    def test_vectors_come_back_bit_for_bit_in_the_order_of_the_keys(self, questions: sa.Engine) -> None:
        ids = prompt_ids(questions)
        shuffled = np.random.default_rng(2).permutation(N)
        add(questions, ids[shuffled[:20]], E[shuffled[:20]])
        add(questions, ids[shuffled[20:]], E[shuffled[20:]])
        result = load(questions)
        assert result.E.dtype == np.float32
        assert result.E.tobytes() == E.tobytes()
        assert np.array_equal(result.prompt_ids, ids)
        assert result.encoder == "ada-2:question+choices"

    def test_the_vectors_of_another_benchmark_are_left_out(self, questions: sa.Engine) -> None:
        add_scores(questions, np.ones((4, 1)), benchmark="other")
        peer, actual = prompt_ids(questions, "other"), prompt_ids(questions)
        add(questions, np.concatenate([peer, actual[:3]]), E[:7])
        assert load(questions).E.tobytes() == E[4:7].tobytes()
        assert load(questions, benchmark="other").E.tobytes() == E[:4].tobytes()
        with transaction(questions, write=False) as session:
            assert [encoder.n_prompts for encoder in list_encoders(session, find_benchmark(session, "b"))] == [3]

    def test_of_the_prompts_that_a_filter_keeps_there_are_vectors_and_of_no_others(self, questions: sa.Engine) -> None:
        ids = prompt_ids(questions)
        add(questions, ids[:20], E[:20])
        key = add_filter(questions, [True, False, False] * 10)
        with transaction(questions, write=False) as session:
            result = load_embeddings(session, Selection(benchmark="b", filter=key))
        assert result.E.tobytes() == E[:20:3].tobytes()
        assert np.array_equal(result.prompt_ids, ids[:20:3])

    def test_the_digest_follows_vectors_prompts_and_encoder(self, questions: sa.Engine) -> None:
        ids = prompt_ids(questions)
        add(questions, ids[:3], E[:3])
        add(questions, ids[:3], E[:3], revision="2")
        add(questions, ids[1:4], E[:3], revision="3")
        add(questions, ids[:3], E[1:4], revision="4")
        digests = [load(questions, name).digest for name in ("1", "ada-2@2", "ada-2@3", "ada-2@4")]
        assert len(set(digests)) == 4
        assert load(questions, "1").digest == digests[0]


class TestOfPrompts:
    def test_rows_follow_the_prompts_that_are_requested_for(self, questions: sa.Engine) -> None:
        ids = prompt_ids(questions)
        add(questions, ids, E)
        expected = np.array([7, 0, 29, 7])
        assert np.array_equal(load(questions).align(ids[expected]), E[expected])

    def test_prompts_without_a_vector_are_counted(self, questions: sa.Engine) -> None:
        ids = prompt_ids(questions)
        add(questions, ids[5:25], E[5:25])
        with pytest.raises(SelectionError, match=r"10 of 30 prompts have no vector by ada-2.*suffrage embed b"):
            load(questions).align(ids)


class TestChoice:
    @pytest.fixture
    def several(self, questions: sa.Engine) -> sa.Engine:
        ids = prompt_ids(questions)
        add(questions, ids, E, name="org/all:purpose", template="question")
        add(questions, ids, E, name="all-MiniLM-L6-v2", revision="1")
        add(questions, ids, E, name="all-MiniLM-L6-v2", revision="2")
        return questions

    @pytest.mark.parametrize(
        ("output", "key"),
        [
            ("org/all:purpose", 1),
            ("org/all:purpose:question", 1),
            ("1", 1),
            ("all-MiniLM-L6-v2@1", 2),
            ("all-MiniLM-L6-v2@2:question+choices", 3),
            ("3", 3),
        ],
    )
    def test_an_encoder_goes_by_name_revision_label_or_key(self, several: sa.Engine, output: str, key: int) -> None:
        assert load(several, output).encoder_id == key

    def test_a_name_that_fits_several_is_refused_with_the_keys(self, several: sa.Engine) -> None:
        for output in ("minilm", "all-MiniLM-L6-v2", "all-MiniLM-L6-v2:question+choices"):
            with pytest.raises(AmbiguousError, match=r"@1:question\+choices \(key 2\).*Use the key"):
                load(several, output)

    def test_where_none_is_named_there_may_be_only_one(self, several: sa.Engine) -> None:
        with pytest.raises(SelectionError, match=r"vectors by 3 encoders.*Choose one with --encoder"):
            load(several)

    def test_an_unknown_one_is_answered_with_those_there_are(self, several: sa.Engine) -> None:
        with pytest.raises(NotFoundError, match=r"No encoder 'bert'.*all-MiniLM-L6-v2@1"):
            load(several, "bert")

    def test_without_any_vectors_it_is_reported_how_to_make_them(self, questions: sa.Engine) -> None:
        with pytest.raises(SelectionError, match="suffrage embed b --encoder minilm"):
            load(questions)

    def test_what_is_reported_to_run_is_quoted_for_the_shell(self, questions: sa.Engine) -> None:
        add_scores(questions, np.ones((4, 1)), benchmark="two words")
        with pytest.raises(SelectionError, match="suffrage embed 'two words' --encoder minilm"):
            load(questions, benchmark="two words")


def test_the_prompts_that_have_a_vector_are_those_of_the_encoder_and_the_benchmark(questions: sa.Engine) -> None:
    add_scores(questions, np.ones((4, 1)), benchmark="other")
    ids = prompt_ids(questions)
    add(questions, ids[:3], E[:3])
    add(questions, ids[2:9], E[:7], revision="2")
    add(questions, prompt_ids(questions, "other"), E[:4])
    with transaction(questions, write=False) as session:
        benchmark = find_benchmark(session, "b")
        for revision, expected in (("", ids[:3]), ("2", ids[2:9]), ("9", ids[:0])):
            result = list_embedded_prompts(session, benchmark, "ada-2", revision, "question+choices")
            assert result == set(expected.tolist())


@pytest.fixture
def small(sqlite_store: sa.Engine) -> sa.Engine:
    """The same prompts on SQLite only."""
    add_scores(sqlite_store, np.ones((N, 1)), tasks=["x", "y"] * (N // 2))
    return sqlite_store


class TestStored:
    """For small that can do without vectors."""

    @staticmethod
    def stored(engine: sa.Engine, **choices: object) -> StoredEmbeddings:
        with transaction(engine, write=False) as session:
            return StoredEmbeddings.load(session, Selection(benchmark="b", **choices))

    def test_the_only_vectors_are_found(self, small: sa.Engine) -> None:
        key = add(small, prompt_ids(small), E)
        result = self.stored(small)
        assert (result.encoder_id, result.problem, result.digest) == (key, "", load(small).digest)
        assert np.array_equal(result.vectors.E, E)

    def test_where_there_are_none_it_reports_how_to_make_them(self, small: sa.Engine) -> None:
        result = self.stored(small)
        assert (result.vectors, result.encoder_id) == (None, None)
        assert "suffrage embed b --encoder minilm" in result.problem
        assert result.digest == self.stored(small).digest

    def test_where_there_are_several_it_reports_to_choose(self, small: sa.Engine) -> None:
        ids = prompt_ids(small)
        add(small, ids, E)
        second = add(small, ids, E, revision="2")
        result = self.stored(small)
        assert result.vectors is None
        assert "vectors by 2 encoders" in result.problem
        assert self.stored(small, encoder="ada-2@2").encoder_id == second
        assert len({result.digest, self.stored(small, encoder="ada-2@2").digest}) == 2

    def test_an_encoder_that_is_named_must_have_made_some(self, small: sa.Engine) -> None:
        with pytest.raises(SelectionError, match="have no vectors yet"):
            self.stored(small, encoder="minilm")
        add(small, prompt_ids(small), E)
        with pytest.raises(NotFoundError, match="No encoder 'minilm' with vectors of this benchmark"):
            self.stored(small, encoder="minilm")

    def test_a_wrong_filter_is_no_lack_of_vectors(self, small: sa.Engine) -> None:
        add(small, prompt_ids(small), E)
        with pytest.raises(NotFoundError, match="No finding '9' with a filter"):
            self.stored(small, filter=9)


class TestEvery:
    def test_there_are_those_of_each_encoder_whichever_is_named(self, small: sa.Engine) -> None:
        ids = prompt_ids(small)
        add(small, ids, E, name="2")  # a name that is the key of another
        add(small, ids[:9], 2 * E[:9], revision="2")
        with transaction(small, write=False) as session:
            every = [
                AllEmbeddings.load(session, Selection(benchmark="b", encoder=name)) for name in (None, "1", "bert")
            ]
        for outcome in every:
            assert [item.encoder_id for item in outcome.by_encoder] == [1, 2]
            assert np.array_equal(outcome.by_encoder[0].E, E)
            assert np.array_equal(outcome.by_encoder[1].E, 2 * E[:9])
        assert len({result.digest for result in every}) == 1

    def test_without_vectors_there_are_none(self, small: sa.Engine) -> None:
        with transaction(small, write=False) as session:
            nothing = AllEmbeddings.load(session, Selection(benchmark="b"))
            assert nothing.by_encoder == ()
        add(small, prompt_ids(small), E)
        with transaction(small, write=False) as session:
            assert AllEmbeddings.load(session, Selection(benchmark="b")).digest != nothing.digest
