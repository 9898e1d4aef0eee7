"""The store whose pages are timed: MMLU-Pro with predictions of 29 models, or a simulated benchmark of this size."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from tracker.database import transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.pipeline import run_analysis

SHARED = Path(os.environ.get("SUFFRAGE_SHARED", Path(__file__).parents[2] / "shared"))
N_PROMPTS, N_MODELS, N_TASKS, N_DIMENSIONS = 12_032, 29, 14, 384
LETTERS = "ABCDEFGHIJ"
ANALYSES = ("rank-intervals", "prompt-correlation", "weight-robustness")


def fill_store(store: sa.Engine) -> None:
    """Import prompts and predictions, add random vectors, and record three findings."""
    with tempfile.TemporaryDirectory() as folder:
        prompts, predictions = _find_files(Path(folder))
        ingest_file(store, prompts, ReadOptions(benchmark="mmlu_pro"))
        options = ReadOptions(benchmark="mmlu_pro", metric="accuracy", values="predictions")
        ingest_file(store, predictions, options)
    _add_vectors(store)
    for name in ANALYSES:
        run_analysis(store, name, Selection(benchmark="mmlu_pro"), {"seed": 0})


def _find_files(folder: Path) -> tuple[Path, Path]:
    """The files of prompts and of predictions: real ones if they are there, else simulated."""
    real = SHARED / "data" / "mmlu_pro"
    if real.is_dir():
        return real / "prompts.parquet", real / "predictions_wide.parquet"
    rng = np.random.default_rng(0)
    vocabulary = np.array(["".join(rng.choice(list("abcdefghilmnoprstu"), 3 + i % 7)) for i in range(8_000)])
    chances = 1 / np.arange(1, len(vocabulary) + 1)
    chances /= chances.sum()
    texts = [" ".join(rng.choice(vocabulary, 10 + n % 70, p=chances)) + "?" for n in range(N_PROMPTS)]
    options = [json.dumps(rng.choice(vocabulary, 10).tolist()) for _ in range(N_PROMPTS)]
    keys = rng.integers(0, len(LETTERS), N_PROMPTS)
    answers = np.array(list(LETTERS))[keys]
    names = list(range(N_PROMPTS))
    columns = {
        "prompt_id": names, "category": [f"task {n % N_TASKS}" for n in names], "question": texts, "choices": options,
        "answer": answers.tolist(),
    }  # fmt: skip
    pq.write_table(pa.table(columns), folder / "prompts.parquet")
    ease = rng.normal(size=N_PROMPTS)
    predictions = {"prompt_id": names}
    for number in range(N_MODELS):
        is_right = rng.random(N_PROMPTS) < 1 / (1 + np.exp(-ease - number / 8 + 1))
        guesses = np.array(list(LETTERS))[rng.integers(0, len(LETTERS), N_PROMPTS)]
        predictions[f"model {number}"] = np.where(is_right, answers, guesses).tolist()
    pq.write_table(pa.table(predictions), folder / "predictions.parquet")
    return folder / "prompts.parquet", folder / "predictions.parquet"


def _add_vectors(store: sa.Engine) -> None:
    """Random vectors, by which a prompt has similar ones."""
    rng = np.random.default_rng(1)
    with transaction(store) as session:
        inserted = sa.insert(tables.encoder).values(
            name="random", revision="", template="question", dimensions=N_DIMENSIONS
        )
        encoder = session.execute(inserted.returning(tables.encoder.c.id)).scalar_one()
        rows = [
            {"encoder_id": encoder, "prompt_id": key, "vector": rng.normal(size=N_DIMENSIONS).astype("<f4").tobytes()}
            for key in session.scalars(sa.select(tables.prompt.c.id).order_by(tables.prompt.c.id))
        ]
        session.execute(sa.insert(tables.embedding), rows)
