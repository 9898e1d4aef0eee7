"""Embedding prompts by MiniLM beside a loop in input order, and loading stored vectors beside the ORM."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session
from sqlmodel import select

from benchmarks._stores import ENGINES, empty_store
from tracker.cli.commands.embed import embed
from tracker.database import transaction
from tracker.evaluating.embeddings.encoders import load_encoder
from tracker.evaluating.embeddings.texts import template_texts
from tracker.ingest.write.vectors import EncoderName, add_vectors, find_or_add_encoder
from tracker.queries.embeddings import load_embeddings
from tracker.queries.prompts import load_prompts
from tracker.queries.selection import Selection
from tracker.schema import Embedding, Encoder

BATCH = 32
N_EMBEDDED, N_STORED, DIMENSIONS = 512, 14_042, 384
SELECTION = Selection(benchmark="simulated")


def measurements() -> Iterator[dict[str, Any]]:
    """One dictionary per measurement."""
    with empty_store("sqlite") as store:
        yield _prepare_store(store)
    for engine in ENGINES:
        with empty_store(engine) as store:
            yield _loaded(store)


def _prepare_store(store: sa.Engine) -> dict[str, Any]:
    """Texts of 8 to 400 words, in an order that has nothing to do with their length, as prompts have them."""
    rng = np.random.default_rng(0)
    words = np.array(["the", "of", "sum", "river", "which", "angle", "seven", "never", "under", "cost", "rises", "in"])
    lengths = np.clip(rng.lognormal(4.2, 0.8, N_EMBEDDED), 8, 400).astype(int)
    _fill(store, [f"{i} {' '.join(rng.choice(words, size=n))}?" for i, n in enumerate(lengths.tolist())])
    with transaction(store, write=False) as session:
        texts = [str(text) for text in template_texts(load_prompts(session, SELECTION), "question", "simulated")]
    encoder = load_encoder("minilm")
    encoder.encode(texts[:BATCH])
    start = time.perf_counter()
    plain = [encoder.encode(texts[first : first + BATCH]) for first in range(0, N_EMBEDDED, BATCH)]
    peer_s = time.perf_counter() - start
    start = time.perf_counter()
    embed(store, "simulated", "minilm", template="question", batch_size=BATCH)
    ours_s = time.perf_counter() - start
    with transaction(store, write=False) as session:
        matrix = load_embeddings(session, SELECTION)
    assert np.abs(matrix.E - np.concatenate(plain)).max() < 1e-5
    return {
        "name": f"{N_EMBEDDED} texts of 8 to 400 words to stored vectors by MiniLM, model loaded and hashed, beside a "
        "loop of encode in input order, nothing stored",
        "ours_s": ours_s,
        "peer_s": peer_s,
        "ratio": peer_s / ours_s,
        "ours_per_s": N_EMBEDDED / ours_s,
        "peer_per_s": N_EMBEDDED / peer_s,
    }


def _loaded(store: sa.Engine) -> dict[str, Any]:
    _fill(store, [None] * N_STORED)
    E = np.random.default_rng(1).normal(size=(N_STORED, DIMENSIONS)).astype(np.float32)
    with transaction(store, exclusive=True) as session:
        key = find_or_add_encoder(session, EncoderName(name="e", revision="", template="question"), DIMENSIONS)
        add_vectors(session, key, np.arange(1, N_STORED + 1), E)
    ours_s = []
    for _ in range(3):
        with transaction(store, write=False) as session:
            start = time.perf_counter()
            tracker_matrix = load_embeddings(session, SELECTION)
            ours_s.append(time.perf_counter() - start)
    with transaction(store, write=False) as session:
        start = time.perf_counter()
        peer_matrix = _by_orm(session)
        peer_s = time.perf_counter() - start
    assert np.array_equal(tracker_matrix.E, peer_matrix)
    assert np.array_equal(tracker_matrix.E, E)
    return {
        "name": f"{store.dialect.name}: {N_STORED:,} vectors of {DIMENSIONS} numbers to an array, beside SQLModel",
        "ours_s": min(ours_s),
        "ours_worst_s": max(ours_s),
        "peer_s": peer_s,
        "ratio": peer_s / min(ours_s),
    }


def _by_orm(session: Session) -> NDArray[np.float32]:
    key = session.scalars(select(Encoder)).one().id
    rows = session.scalars(select(Embedding).where(Embedding.encoder_id == key).order_by(Embedding.prompt_id)).all()
    return np.array([np.frombuffer(row.vector, dtype="<f4") for row in rows])


def _fill(store: sa.Engine, texts: list[str | None]) -> None:
    rows = [{"id": i + 1, "task_id": 1, "occurrence": 0, "hash": f"h{i}", "text": t} for i, t in enumerate(texts)]
    with transaction(store) as session:
        session.execute(sa.text("INSERT INTO benchmark (id, name, revision) VALUES (1, 'simulated', '')"))
        session.execute(sa.text("INSERT INTO task (id, benchmark_id, name) VALUES (1, 1, '')"))
        session.execute(
            sa.text("INSERT INTO prompt (id, task_id, occurrence, content_hash, text) "
                    "VALUES (:id, :task_id, :occurrence, :hash, :text)"),
            rows,
        )  # fmt: skip


if __name__ == "__main__":
    for measurement in measurements():
        print(json.dumps(measurement), flush=True)
