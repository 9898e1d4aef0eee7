"""Imports warn of models that are near-copies of other ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from tracker.database import connect
from tracker.ingest import near_copies
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file

N_PROMPTS = 240


def rasch(seed: int, n_models: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 0.7, n_models) - np.linspace(-3, 3, N_PROMPTS)[:, None]
    return (rng.random((N_PROMPTS, n_models)) < 1 / (1 + np.exp(-odds))).astype(float)


def flip(column: np.ndarray, seed: int = 9) -> np.ndarray:
    """A copy with 5 % of the scores changed."""
    return np.abs(column - (np.random.default_rng(seed).random(len(column)) < 0.05))


def warnings_of(engine: sa.Engine, folder: Path, benchmark: str = "quiz", **columns: np.ndarray) -> list[str]:
    """What importing a table of these models warns of."""
    path = folder / f"{'-'.join(columns)}.csv"
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [f"q{i}," + ",".join(f"{score:g}" for score in row) for i, row in enumerate(rows)]
    path.write_text("\n".join(["prompt_id," + ",".join(columns), *lines]) + "\n")
    result = ingest_file(engine, path, ReadOptions(benchmark=benchmark, metric="accuracy"))
    return [warning for warning in result.changes.warnings if warning.startswith("near-copies")]


SCORES = rasch(1, 6)
MODELS = {name: SCORES[:, column] for column, name in enumerate(("ada", "bob", "cleo", "dora", "eve", "fay"))}


@pytest.fixture
def quiz(sqlite_url: str, tmp_path: Path) -> sa.Engine:
    """A store with independent models, whose import gives no warning."""
    engine = connect(sqlite_url)
    assert warnings_of(engine, tmp_path, **MODELS) == []
    return engine


def test_a_near_copy_of_a_stored_model_is_reported_with_what_was_compared(quiz: sa.Engine, tmp_path: Path) -> None:
    assert warnings_of(quiz, tmp_path, gail=rasch(2, 1)[:, 0]) == []
    (warning,) = warnings_of(quiz, tmp_path, hal=flip(MODELS["bob"]))
    assert warning.startswith("near-copies on quiz: ")
    assert "hal and bob agree on " in warning
    assert " (compared on 200 of 240 prompts with 8 models). See all: suffrage models related quiz" in warning
    assert "ada" not in warning


def test_near_copies_within_a_file_are_reported_and_long_lists_cut(sqlite_url: str, tmp_path: Path) -> None:
    copies = {f"bob{seed}": flip(MODELS["bob"], seed) for seed in range(3)}
    (warning,) = warnings_of(connect(sqlite_url), tmp_path, **MODELS, **copies)
    assert warning.count(" agree on ") == near_copies.MAX_PAIRS
    assert " and 4 more (compared" in warning


def test_another_run_of_the_same_model_is_no_near_copy(quiz: sa.Engine, tmp_path: Path) -> None:
    assert warnings_of(quiz, tmp_path, bob=flip(MODELS["bob"])) == []


def test_few_models_few_prompts_and_scores_other_than_0_and_1_are_not_compared(sqlite_url: str, tmp_path: Path) -> None:
    engine = connect(sqlite_url)
    bob = MODELS["bob"]
    assert warnings_of(engine, tmp_path, "two", bob=bob, hal=flip(bob)) == []
    few = {name: column[:10] for name, column in MODELS.items()}
    assert warnings_of(engine, tmp_path, "few", **few, hal=bob[:10]) == []
    graded = {name: column / 2 for name, column in MODELS.items()}
    assert warnings_of(engine, tmp_path, "graded", **graded, hal=bob / 2) == []


def test_the_work_is_bounded(quiz: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_copies, "MAX_PROMPTS", 150)
    monkeypatch.setattr(near_copies, "MAX_RUNS", 6)
    (warning,) = warnings_of(quiz, tmp_path, hal=flip(MODELS["fay"]))
    assert " (compared on 150 of 240 prompts with 6 models)" in warning
    assert warnings_of(quiz, tmp_path, ian=flip(MODELS["ada"], 3)) == []
