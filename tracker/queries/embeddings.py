"""Load embeddings of prompts."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import AmbiguousError, NotFoundError, SelectionError
from tracker.queries.filtering.prompt_filter import load_selected_filter
from tracker.queries.resolution import BenchmarkKey, find_benchmark, select_tasks
from tracker.queries.scores import read_prompts
from tracker.queries.selection import AnalysisInput, OptionalInput, Selection, SelectionOption, restricts_split
from tracker.queries.sql import tables
from tracker.queries.sql.arrow import read_arrow

SHORT_NAMES: Mapping[str, str] = {"minilm": "all-MiniLM-L6-v2"}
"""Short names of encoders."""


@dataclass(frozen=True, kw_only=True)
class StoredEncoder:
    """An encoder with vectors of a benchmark's prompts.

    Attributes:
        id: its key.
        name, revision, template: identify the encoder.
        dimensions: length of its vectors.
        n_prompts: number of the benchmark's prompts with a vector.
    """

    id: int
    name: str
    revision: str
    template: str
    dimensions: int
    n_prompts: int

    @property
    def label(self) -> str:
        """Label such as ``all-MiniLM-L6-v2@1:question+choices``."""
        revision = f"@{self.revision}" if self.revision else ""
        return f"{self.name}{revision}:{self.template}"

    @property
    def names(self) -> set[str]:
        """All names by which the encoder can be selected."""
        short = {name for name, long in SHORT_NAMES.items() if long == self.name}
        plain = self.label.removesuffix(f":{self.template}")
        return {str(self.id), self.name, plain, self.label, f"{self.name}:{self.template}", *short}


@dataclass(frozen=True, kw_only=True)
class Embeddings(OptionalInput):
    """Vectors of a benchmark's prompts, by one encoder.

    Attributes:
        E: ``(n, n_dimensions)`` float32, one row per prompt that has a vector and that the filter, if any, keeps.
        prompt_ids: ``(n,)`` int64, ascending.
        encoder_id: key of the encoder.
        encoder: its label.
        benchmark: of the prompts.
    """

    SELECTION_OPTION: ClassVar[SelectionOption | None] = "encoder"

    E: NDArray[np.float32]
    prompt_ids: NDArray[np.int64]
    encoder_id: int
    encoder: str
    benchmark: str

    @staticmethod
    def is_chosen(selection: Selection) -> bool:
        """Return whether a selection names an encoder."""
        return selection.encoder is not None

    @classmethod
    def load(cls, session: Session, selection: Selection) -> Embeddings:
        """Load the vectors of a selection; see `load_embeddings`."""
        return load_embeddings(session, selection)

    @property
    def digest(self) -> str:
        """SHA-256 of vectors, prompts and encoder."""
        hashed = hashlib.sha256(self.encoder.encode())
        hashed.update(self.prompt_ids.tobytes() + np.ascontiguousarray(self.E).tobytes())
        return hashed.hexdigest()

    def align(self, prompt_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of some prompts, in their order.

        Args:
            prompt_ids: ``(m,)`` int64 keys.

        Returns:
            ``(m, n_dimensions)`` float32.

        Raises:
            SelectionError: some prompts have no vector.
        """
        without = ~np.isin(prompt_ids, self.prompt_ids)
        if without.any():
            raise SelectionError(
                f"{int(without.sum()):,} of {len(prompt_ids):,} prompts have no vector by {self.encoder}. Compute "
                "them with the same --encoder and --template as the others: suffrage embed "
                f"{shlex.quote(self.benchmark)} … Or choose --tasks that have vectors."
            )
        return self.E[np.searchsorted(self.prompt_ids, prompt_ids)]


@dataclass(frozen=True, kw_only=True)
class StoredEmbeddings(AnalysisInput):
    """Vectors of a benchmark's prompts, or the reason why there are none: for an analysis that does not require them.

    Attributes:
        vectors: the vectors; None without any.
        problem: why there are none, and how to compute them; '' if there are vectors.
    """

    SELECTION_OPTION: ClassVar[SelectionOption | None] = "encoder"

    vectors: Embeddings | None
    problem: str = ""

    @classmethod
    def load(cls, session: Session, selection: Selection) -> StoredEmbeddings:
        """Load the vectors of a selection as `load_embeddings` does; a named encoder must have vectors."""
        benchmark = find_benchmark(session, selection.benchmark)
        try:
            encoder = _chosen_encoder(session, benchmark, selection)
        except SelectionError as error:
            if selection.encoder is not None:
                raise
            return cls(vectors=None, problem=str(error))
        return cls(vectors=_vectors(session, benchmark, encoder, selection))

    @property
    def encoder_id(self) -> int | None:
        """The encoder of the vectors; None without vectors."""
        return self.vectors.encoder_id if self.vectors else None

    @property
    def digest(self) -> str:
        """The digest of the vectors, or of the reason."""
        return self.vectors.digest if self.vectors else hashlib.sha256(self.problem.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class AllEmbeddings(AnalysisInput):
    """Vectors of a benchmark's prompts by each encoder.

    Attributes:
        by_encoder: in the order of the encoders' keys.
    """

    by_encoder: tuple[Embeddings, ...]

    @classmethod
    def load(cls, session: Session, selection: Selection) -> AllEmbeddings:
        """Load the vectors by every encoder, ignoring the selection's encoder."""
        benchmark = find_benchmark(session, selection.benchmark)
        encoders = list_encoders(session, benchmark)
        return cls(by_encoder=tuple(_vectors(session, benchmark, encoder, selection) for encoder in encoders))

    @property
    def digest(self) -> str:
        """SHA-256 of all of them."""
        return hashlib.sha256("\n".join(embeddings.digest for embeddings in self.by_encoder).encode()).hexdigest()


def load_embeddings(session: Session, selection: Selection) -> Embeddings:
    """Load the vectors of a benchmark's prompts by the encoder that a selection names, or by the only one.

    Raises:
        NotFoundError: the benchmark has no vectors by that encoder, or the filter does not exist.
        AmbiguousError: the name matches several encoders.
        SelectionError: the benchmark has no vectors, or several encoders and none is named; or the filter belongs to
            another benchmark.
    """
    benchmark = find_benchmark(session, selection.benchmark)
    encoder = _chosen_encoder(session, benchmark, selection)
    return _vectors(session, benchmark, encoder, selection)


def _chosen_encoder(session: Session, benchmark: BenchmarkKey, selection: Selection) -> StoredEncoder:
    encoders = list_encoders(session, benchmark)
    if not encoders:
        raise SelectionError(
            f"The prompts of {benchmark.label} have no vectors yet. Compute them: suffrage embed "
            f"{shlex.quote(benchmark.label)} --encoder minilm. Or import vectors with --from-file."
        )
    fitting = [encoder for encoder in encoders if selection.encoder is None or selection.encoder in encoder.names]
    labels = [f"{encoder.label} (key {encoder.id})" for encoder in fitting or encoders]
    if not fitting:
        raise NotFoundError("encoder with vectors of this benchmark", selection.encoder, labels)
    if len(fitting) > 1 and selection.encoder is None:
        raise SelectionError(
            f"{benchmark.label} has vectors by {len(fitting)} encoders: {', '.join(labels)}. Choose one with --encoder."
        )
    if len(fitting) > 1:
        raise AmbiguousError(f"Several encoders have the name {selection.encoder!r}: {', '.join(labels)}. Use the key.")
    return fitting[0]


def _vectors(session: Session, benchmark: BenchmarkKey, encoder: StoredEncoder, selection: Selection) -> Embeddings:
    only = load_selected_filter(session, benchmark, selection)
    stored = read_arrow(
        session,
        "SELECT embedding.prompt_id, embedding.vector FROM embedding "
        "JOIN prompt ON prompt.id = embedding.prompt_id JOIN task ON task.id = prompt.task_id "
        "WHERE embedding.encoder_id = ? AND task.benchmark_id = ?",
        (encoder.id, benchmark.id),
    )
    ids = np.array(stored.column(0).to_pylist(), dtype=np.int64)
    vectors = np.frombuffer(b"".join(stored.column(1).to_pylist()), dtype="<f4").reshape(len(ids), encoder.dimensions)
    order = np.argsort(ids)
    if only is not None:
        order = order[only.align(ids[order])[0]]
    if restricts_split(selection.split):
        tasks = select_tasks(session, benchmark, Selection(benchmark=selection.benchmark))
        selected, _ = read_prompts(session, tasks, split=selection.split)
        order = order[np.isin(ids[order], selected)]
    return Embeddings(
        E=vectors[order].astype(np.float32),
        prompt_ids=ids[order],
        encoder_id=encoder.id,
        encoder=encoder.label,
        benchmark=benchmark.label,
    )


def list_embedded_prompts(
    session: Session, benchmark: BenchmarkKey, name: str, revision: str, template: str
) -> set[int]:
    """Return the prompts of a benchmark with a vector by an encoder; none if the encoder is not stored."""
    encoder, embedding = tables.encoder.c, tables.embedding.c
    return set(
        session.scalars(
            sa.select(embedding.prompt_id)
            .join(tables.encoder, encoder.id == embedding.encoder_id)
            .join(tables.prompt, tables.prompt.c.id == embedding.prompt_id)
            .join(tables.task, tables.task.c.id == tables.prompt.c.task_id)
            .where(tables.task.c.benchmark_id == benchmark.id)
            .where(encoder.name == name, encoder.revision == revision, encoder.template == template)
        )
    )


def list_encoders(session: Session, benchmark: BenchmarkKey) -> list[StoredEncoder]:
    """List the encoders with vectors of a benchmark's prompts, in the order of the keys."""
    encoder, embedding = tables.encoder.c, tables.embedding.c
    rows = session.execute(
        sa.select(encoder.id, encoder.name, encoder.revision, encoder.template, encoder.dimensions, sa.func.count())
        .join(tables.embedding, embedding.encoder_id == encoder.id)
        .join(tables.prompt, tables.prompt.c.id == embedding.prompt_id)
        .join(tables.task, tables.task.c.id == tables.prompt.c.task_id)
        .where(tables.task.c.benchmark_id == benchmark.id)
        .group_by(encoder.id, encoder.name, encoder.revision, encoder.template, encoder.dimensions)
        .order_by(encoder.id)
    ).all()
    names = ("id", "name", "revision", "template", "dimensions", "n_prompts")
    return [StoredEncoder(**dict(zip(names, row, strict=True))) for row in rows]
