"""Models whose files are whole but whose numbers are none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import tracker

torch = pytest.importorskip("torch")


def test_a_model_without_numbers_is_reported_and_its_run_does_not_end(
    sqlite_url: str, tmp_path: Path, language_model_folders: dict[str, Path]
) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "nan"
    shutil.copytree(language_model_folders["gpt2"], folder)
    weights = {name: weight * float("nan") for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "quiz.jsonl").write_text(json.dumps({"text": "Which?", "choices": ["one", "two"], "answer": "A"}))
    with tracker.open(sqlite_url) as store:
        store.prompts_from("quiz", tmp_path / "quiz.jsonl")
        (outcome,) = store.evaluate("quiz", folder)
    assert not outcome.is_complete
    assert "no finite probability" in " ".join(outcome.warnings)
