"""Storage of prompt vectors, from files or computed by encoders.

Nothing here commits; the caller that opened the transaction does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import ConflictError
from tracker.ingest.files.tabular.table import TableProblems
from tracker.ingest.files.vector_file import VectorFile
from tracker.ingest.resolve.prompt_rows import advise_on_names, find_prompt_rows
from tracker.ingest.resolve.prompt_texts import make_storable
from tracker.ingest.write.bulk_rows import fetch_raw_rows
from tracker.ingest.write.undo_log import undo_log
from tracker.schema import Embedding, Encoder

EMBEDDING: sa.Table = Embedding.__table__  # type: ignore[attr-defined]
ENCODER: sa.Table = Encoder.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class EncoderName:
    """Identity of an encoder.

    Attributes:
        name: such as all-MiniLM-L6-v2.
        revision: version of its weights; '' if unknown.
        template: text of the prompt that is encoded.
    """

    name: str
    revision: str
    template: str

    @property
    def label(self) -> str:
        """Return its label, such as ``all-MiniLM-L6-v2@1:question+choices``."""
        return f"{self.name}{'@' if self.revision else ''}{self.revision}:{self.template}"


@dataclass(frozen=True, kw_only=True)
class VectorIngestResult:
    """Changes made by importing a file of vectors.

    Attributes:
        n_new: number of new vectors.
        n_unchanged: number of vectors equal to stored ones.
        dimensions: length of the vectors.
    """

    n_new: int
    n_unchanged: int
    dimensions: int


def find_or_add_encoder(session: Session, encoder: EncoderName, dimensions: int) -> int:
    """Return the key of an encoder, which is added if it is new.

    Raises:
        ConflictError: its stored vectors have another length.
    """
    texts = {part: make_storable(getattr(encoder, part)) for part in ("name", "revision", "template")}
    stored = sa.select(ENCODER.c.id, ENCODER.c.dimensions).where(*(ENCODER.c[part] == v for part, v in texts.items()))
    log = undo_log(session)
    is_new = log is not None and session.execute(stored).first() is None
    _insert_missing(session, ENCODER, [{**texts, "dimensions": dimensions}])
    row = session.execute(stored).one()
    if log is not None and is_new:
        log.add_rows("encoder", [(row.id,)])
    if row.dimensions != dimensions:
        raise ConflictError(
            f"The stored vectors of {encoder.label} have {row.dimensions} numbers, these have {dimensions}. Set "
            "another --revision or another name."
        )
    return int(row.id)


def add_vectors(session: Session, encoder_id: int, prompt_ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
    """Store vectors; prompts that already have one of this encoder keep it.

    Args:
        session: an open write transaction; exclusive on PostgreSQL.
        encoder_id: key of the encoder.
        prompt_ids: ``(n,)`` distinct keys.
        vectors: ``(n, n_dimensions)``.
    """
    order = np.argsort(prompt_ids)
    stored = np.ascontiguousarray(vectors[order], dtype="<f4")
    rows = [
        {"encoder_id": encoder_id, "prompt_id": prompt, "vector": vector.tobytes()}
        for prompt, vector in zip(prompt_ids[order].tolist(), stored, strict=True)
    ]
    if (log := undo_log(session)) is not None:
        log.add_vectors(encoder_id, prompt_ids)
    _insert_missing(session, EMBEDDING, rows)


def ingest_vectors(
    session: Session, file: VectorFile, benchmark_id: int, benchmark: str, encoder: EncoderName
) -> VectorIngestResult:
    """Store the vectors of a file in one transaction.

    Args:
        session: an open write transaction; exclusive on PostgreSQL.
        file: the vectors.
        benchmark_id: key of the benchmark.
        benchmark: its name, for messages.
        encoder: identity of the encoder.

    Raises:
        BadInputError: a prompt is unknown or a duplicate.
        AmbiguousError: a name means prompts of several tasks, and the file has no tasks.
        ConflictError: stored vectors of this encoder differ in value or length.
    """
    problems = TableProblems(file.table)
    prompt_ids = find_prompt_rows(session, benchmark_id, benchmark, file.keys, file.tasks, problems)
    problems.check(advise_on_names(benchmark))
    key = find_or_add_encoder(session, encoder, file.vectors.shape[1])
    query = sa.select(EMBEDDING.c.prompt_id, EMBEDDING.c.vector).where(EMBEDDING.c.encoder_id == key)
    stored = dict(fetch_raw_rows(session, query))
    known = [row for row, prompt in enumerate(prompt_ids.tolist()) if prompt in stored]
    vectors = np.frombuffer(b"".join(stored[prompt] for prompt in prompt_ids[known].tolist()), dtype="<f4")
    different = np.flatnonzero((vectors.reshape(len(known), -1) != file.vectors[known]).any(axis=1)) if known else ()
    if len(different):
        few = ", ".join(repr(file.keys[known[at]]) for at in different[:3])
        raise ConflictError(
            f"{file.path}: {len(different):,} of {len(known):,} vectors differ from the stored ones of {encoder.label} "
            f"(prompts {few}{', ...' if len(different) > 3 else ''}). Set another --revision or another "
            "--encoder name."
        )
    fresh = np.setdiff1d(np.arange(len(prompt_ids)), known)
    add_vectors(session, key, prompt_ids[fresh], file.vectors[fresh])
    return VectorIngestResult(n_new=len(fresh), n_unchanged=len(known), dimensions=file.vectors.shape[1])


def _insert_missing(session: Session, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    connection = session.connection()
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert
    else:
        from sqlalchemy.dialects.postgresql import insert  # type: ignore[assignment]
    connection.execute(insert(table).on_conflict_do_nothing(), rows)
