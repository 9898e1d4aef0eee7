"""Tables of answers, whose imports have scores and answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

N_PROMPTS, MODELS = 30, ("a", "b", "c")


def write_answers(path: Path, seed: int) -> Path:
    """A table of answers of three models to prompts with reference answers."""
    draw = np.random.default_rng(seed)
    rows = ["model,prompt_id,question,answer,predicted"]
    rows += [
        f"{model},p{n},Question {seed}.{n}?,{'AB'[n % 2]},{'AB'[draw.integers(2)]}"
        for model in MODELS
        for n in range(N_PROMPTS)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path
