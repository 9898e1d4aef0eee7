"""Vectors made elsewhere: what files are read, what is refused, what is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import AmbiguousError, BadInputError, ConflictError
from tracker.ingest.files.vector_file import read_vectors
from tracker.ingest.write.vectors import (
    EncoderName,
    VectorIngestResult,
    add_vectors,
    find_or_add_encoder,
    ingest_vectors,
)
from tracker.queries.sql import tables

ADA = EncoderName(name="ada-2", revision="", template="question")
E = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)
KEYS = [f"p{i}" for i in range(40)]


def parquet(path: Path, keys: list[object], vectors: object, **further: object) -> Path:
    pq.write_table(pa.table({"prompt_id": keys, "vector": vectors, **further}), path)
    return path


def npz(path: Path, **arrays: object) -> Path:
    np.savez(path, **arrays)
    return path


def take(engine: sa.Engine, path: Path, encoder: EncoderName = ADA, benchmark: int = 1) -> VectorIngestResult:
    file = read_vectors(path)
    with transaction(engine, exclusive=True) as session:
        return ingest_vectors(session, file, benchmark, "arithmetic", encoder)


def stored(engine: sa.Engine) -> dict[str, bytes]:
    embedding, alias = tables.embedding.c, tables.prompt_alias.c
    query = sa.select(alias.key, embedding.vector).join(tables.prompt_alias, alias.prompt_id == embedding.prompt_id)
    with engine.connect() as connection:
        return {key: bytes(vector) for key, vector in connection.execute(query)}


def n_encoders(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(tables.encoder)) or 0


class TestStored:
    @pytest.mark.parametrize(
        "column",
        [
            pa.array(E.tolist(), pa.list_(pa.float64())),
            pa.array(E.tolist(), pa.large_list(pa.float32())),
            pa.FixedSizeListArray.from_arrays(pa.array(E.ravel()), 6),
        ],
        ids=["list of doubles", "large list", "fixed-size list"],
    )
    def test_a_parquet_file_is_stored_bit_for_bit(self, filled: sa.Engine, tmp_path: Path, column: pa.Array) -> None:
        result = take(filled, parquet(tmp_path / "v.parquet", KEYS, column))
        assert result == VectorIngestResult(n_new=40, n_unchanged=0, dimensions=6)
        assert stored(filled) == {key: row.tobytes() for key, row in zip(KEYS, E, strict=True)}

    def test_an_npz_file_is_stored_as_the_same_vectors(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        path = npz(tmp_path / "v.npz", prompt_ids=np.array(KEYS), embeddings=E.astype(np.float64))
        assert take(filled_file, path).n_new == 40
        assert stored(filled_file) == {key: row.tobytes() for key, row in zip(KEYS, E, strict=True)}

    def test_integers_and_half_precision_are_numbers_too(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        counts = np.arange(1, 241).reshape(40, 6)
        take(filled_file, npz(tmp_path / "i.npz", prompt_id=np.array(KEYS), vector=counts))
        half = EncoderName(name="half", revision="", template="question")
        take(filled_file, npz(tmp_path / "h.npz", prompt_id=np.array(KEYS), vector=E.astype(np.float16)), half)
        with filled_file.connect() as connection:
            rows = connection.execute(sa.select(tables.embedding.c.vector).order_by(tables.embedding.c.id)).scalars()
            vectors_found = [np.frombuffer(row, "<f4") for row in rows]
        assert np.array_equal(vectors_found[:40], counts.astype(np.float32))
        assert np.array_equal(vectors_found[40:], E.astype(np.float16).astype(np.float32))

    def test_the_same_file_again_and_more_prompts_later(self, filled: sa.Engine, tmp_path: Path) -> None:
        some, every = (npz(tmp_path / f"{n}.npz", prompt_id=np.array(KEYS[:n]), vector=E[:n]) for n in (10, 40))
        assert take(filled, some) == VectorIngestResult(n_new=10, n_unchanged=0, dimensions=6)
        assert take(filled, some) == VectorIngestResult(n_new=0, n_unchanged=10, dimensions=6)
        assert take(filled, every) == VectorIngestResult(n_new=30, n_unchanged=10, dimensions=6)
        assert len(stored(filled)) == 40
        assert n_encoders(filled) == 1

    def test_encoders_are_distinguished_by_name_revision_and_template(
        self, filled_file: sa.Engine, tmp_path: Path
    ) -> None:
        path = npz(tmp_path / "v.npz", prompt_id=np.array(KEYS), vector=E)
        for name, revision, template in (("a", "", "question"), ("a", "1", "question"), ("a", "1", "details:reason")):
            assert take(filled_file, path, EncoderName(name=name, revision=revision, template=template)).n_new == 40
        assert n_encoders(filled_file) == 3

    @pytest.mark.tampers
    def test_names_that_are_numbers_are_the_prompts_of_that_name(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        with filled_file.begin() as connection:
            connection.execute(sa.text("UPDATE prompt_alias SET key = substr(key, 2)"))
        take(filled_file, npz(tmp_path / "v.npz", prompt_id=np.arange(40), vector=E))
        assert stored(filled_file) == {str(i): row.tobytes() for i, row in enumerate(E)}

    @pytest.mark.tampers
    def test_prompts_are_found_under_the_names_of_any_one_family_of_files(
        self, filled_file: sa.Engine, tmp_path: Path
    ) -> None:
        with filled_file.begin() as connection:
            connection.execute(
                sa.text(
                    "INSERT INTO prompt_alias (task_id, namespace, key, prompt_id) "
                    "SELECT task_id, 'lm_eval', 'doc ' || key, prompt_id FROM prompt_alias"
                )
            )
        keys = [f"doc {key}" for key in KEYS]
        assert take(filled_file, npz(tmp_path / "v.npz", prompt_id=np.array(keys), vector=E)).n_new == 40


class TestTasks:
    @pytest.fixture
    def twice(self, filled_file: sa.Engine) -> sa.Engine:
        """Each name stands for a prompt in each of two tasks."""
        with filled_file.begin() as connection:
            connection.execute(sa.text("DELETE FROM prompt_alias WHERE task_id = 3"))
            connection.execute(sa.text("UPDATE prompt_alias SET key = 'p' || ((prompt_id - 1) / 3)"))
        return filled_file

    @pytest.mark.tampers
    def test_a_column_task_distinguishes_prompts_of_one_name(self, twice: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "v.npz"
        npz(path, prompt_id=np.array(["p0", "p0"]), task=np.array(["task 0", "task 1"]), vector=E[:2])
        assert take(twice, path).n_new == 2
        with twice.connect() as connection:
            rows = connection.execute(sa.select(tables.embedding.c.prompt_id, tables.embedding.c.vector)).all()
        assert {row.prompt_id: row.vector for row in rows} == {1: E[0].tobytes(), 2: E[1].tobytes()}

    @pytest.mark.tampers
    def test_without_it_the_name_is_refused(self, twice: sa.Engine, tmp_path: Path) -> None:
        with pytest.raises(AmbiguousError, match=r"'p0' is a prompt of 2 tasks\. Add a column task"):
            take(twice, npz(tmp_path / "v.npz", prompt_id=np.array(["p0"]), vector=E[:1]))

    def test_a_prompt_of_another_task_is_unknown(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        path = npz(tmp_path / "v.npz", prompt_id=np.array(["p0"]), task=np.array(["task 1"]), vector=E[:1])
        with pytest.raises(BadInputError, match="arithmetic has no prompt 'p0' in the task 'task 1'"):
            take(filled_file, path)


class TestRefused:
    """All or none: whatever is wrong with one row keeps all out."""

    def test_every_problem_is_listed_with_its_row(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        rows: list[object] = E[:8].tolist()
        rows[1] = [1.0, float("nan"), *[0.5] * 4]
        rows[2] = [1.0, float("-inf"), *[0.5] * 4]
        rows[3] = [0.0] * 6
        rows[4] = [1.0, 2.0]
        rows[5] = None
        rows[6] = [1e300, *[0.5] * 5]
        rows[7] = [1.0, None, *[0.5] * 4]
        with pytest.raises(BadInputError) as refused:
            take(filled_file, parquet(tmp_path / "v.parquet", KEYS[:8], rows))
        message = str(refused.value)
        assert "7 problems, nothing was stored" in message
        for part in (
            "row 2, column 'vector': the vector contains NaN, infinity",
            "row 3, column 'vector': the vector contains NaN, infinity",
            "row 4, column 'vector': the vector is zero",
            "row 5, column 'vector': 2 numbers; most rows have 6",
            "row 6, column 'vector': no vector",
            "row 7, column 'vector': the vector contains NaN, infinity, null or a number beyond float32",
            "row 8, column 'vector': the vector contains NaN",
        ):
            assert part in message

    def test_unknown_and_repeated_prompts_keep_all_out(self, filled: sa.Engine, tmp_path: Path) -> None:
        path = npz(tmp_path / "v.npz", prompt_id=np.array(["p0", "zz", "p1", "p0"]), vector=E[:4])
        with pytest.raises(BadInputError) as refused:
            take(filled, path)
        assert "2 problems, nothing was stored" in str(refused.value)
        assert "row 2: arithmetic has no prompt 'zz'" in str(refused.value)
        assert "row 4: duplicate prompt 'p0', also in row 1" in str(refused.value)
        assert stored(filled) == {}
        assert n_encoders(filled) == 0

    def test_prompts_of_another_benchmark_are_unknown(
        self, filled_file: sa.Engine, more: Callable[..., list[int]], tmp_path: Path
    ) -> None:
        more(filled_file, "geometry", n_tasks=1)
        path = npz(tmp_path / "v.npz", prompt_id=np.array(["p0"]), vector=E[:1])
        take(filled_file, path, benchmark=2)
        with filled_file.connect() as connection:
            assert connection.scalar(sa.select(tables.embedding.c.prompt_id)) == 41

    def test_others_than_those_stored_are_a_conflict_and_leave_them(self, filled: sa.Engine, tmp_path: Path) -> None:
        take(filled, npz(tmp_path / "v.npz", prompt_id=np.array(KEYS[:9]), vector=E[:9]))
        before = stored(filled)
        changed = E.copy()
        changed[[2, 5]] += 1
        with pytest.raises(
            ConflictError, match=r"2 of 9 vectors differ from the stored ones of ada-2:question \(prompts"
        ):
            take(filled, npz(tmp_path / "w.npz", prompt_id=np.array(KEYS), vector=changed))
        assert stored(filled) == before

    def test_another_length_is_a_conflict(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        take(filled_file, npz(tmp_path / "v.npz", prompt_id=np.array(KEYS[:9]), vector=E[:9]))
        with pytest.raises(ConflictError, match="have 6 numbers, these have 5"):
            take(filled_file, npz(tmp_path / "w.npz", prompt_id=np.array(KEYS[9:]), vector=E[9:, :5]))

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("v.csv", b"prompt_id,vector\np0,1\n", "neither a Parquet nor an npz file"),
            ("v.npz", b"PK\x03\x04 and then nothing", "not a readable npz file"),
            ("v.parquet", b"PAR1 and then nothing", "not a readable Parquet file"),
            ("v.parquet", b"", "is empty"),
        ],
    )
    def test_other_files_are_named(self, tmp_path: Path, name: str, content: bytes, words: str) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInputError, match=words):
            read_vectors(tmp_path / name)

    def test_a_missing_file_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match=r"none\.npz: does not exist"):
            read_vectors(tmp_path / "none.npz")

    @pytest.mark.parametrize(
        ("arrays", "words"),
        [
            ({"vector": E}, "no column prompt_id for the prompts. Its columns: vector"),
            ({"prompt_id": np.array(KEYS)}, "no column vector for the vectors"),
            ({"prompt_id": np.array(KEYS), "vector": E[:, 0]}, "holds float, not lists of numbers"),
            (
                {"prompt_id": np.array(KEYS[:5]), "vector": E},
                r"have the wrong shapes: prompt_id \(5,\), vector \(40, 6\)",
            ),
            ({"prompt_id": np.array(KEYS), "vector": E[:, :, None]}, "have the wrong shapes"),
            ({"prompt_id": np.array(KEYS[:0]), "vector": E[:0]}, "holds no rows"),
            ({"prompt_id": np.array(KEYS), "vector": E[:, :0]}, "have the wrong shapes"),
            ({"prompt_id": np.array(KEYS, dtype=object), "vector": E}, "not a readable npz file of plain arrays"),
            ({"prompt_id": np.array(["", *KEYS[1:]]), "vector": E}, "does not name a prompt"),
        ],
    )
    def test_arrays_that_do_not_fit_are_explained(self, tmp_path: Path, arrays: dict[str, object], words: str) -> None:
        with pytest.raises(BadInputError, match=words):
            read_vectors(npz(tmp_path / "v.npz", **arrays))


class TestAsTheyAreMade:
    def test_a_prompt_that_has_a_vector_keeps_it(self, filled: sa.Engine) -> None:
        for vectors in (E[:3], E[3:6]):
            with transaction(filled, exclusive=True) as session:
                key = find_or_add_encoder(session, ADA, 6)
                add_vectors(session, key, np.array([3, 1, 2]), vectors)
        assert stored(filled) == {"p2": E[0].tobytes(), "p0": E[1].tobytes(), "p1": E[2].tobytes()}
        assert n_encoders(filled) == 1
