"""A benchmark whose every name and text tries to become part of the page that shows it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from tracker.api.store import Store

ATTACK = "window.attacked=true"
SPELLS = (
    f"<script>{ATTACK}</script>",
    f'<img src=x onerror="{ATTACK}">',
    f"</script><script>{ATTACK}</script>",
    f'"><svg onload={ATTACK}>',
    f"<b>x</b><br><a href='javascript:{ATTACK}'>&lt;b&gt; {{{{ 7*7 }}}} %{{x}} {{% raw %}}</a>",
)
BENCHMARK = f"quiz {SPELLS[3]}"
TASKS = tuple(f"task {place} {spell}" for place, spell in enumerate(SPELLS[:3]))
MODELS = tuple(f"model {place} {spell}" for place, spell in enumerate(SPELLS))
N_PROMPTS = 60


def written(path: Path, rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def ingest_into(store: Store, folder: Path, *, benchmark: str = BENCHMARK) -> None:
    """Prompts with texts, and scores of five models; the last lacks one."""
    rng = np.random.default_rng(5)
    keys = [f"p{row}" for row in range(N_PROMPTS)]
    texts = [f"{SPELLS[row % len(SPELLS)]} What is {row} + {row}?" for row in range(N_PROMPTS)]
    tasks = [TASKS[row % len(TASKS)] for row in range(N_PROMPTS)]
    prompts = [["prompt_id", "category", "question"], *zip(keys, tasks, texts, strict=True)]
    difficulty = rng.random(N_PROMPTS)
    right = (rng.random((N_PROMPTS, len(MODELS))) * 0.8 + 0.2 * np.arange(len(MODELS)) / 4 > difficulty[:, None]) * 1
    cells = [[key, *row] for key, row in zip(keys, right.tolist(), strict=True)]
    cells[0][-1] = ""
    files = [
        written(folder / "prompts.csv", [list(row) for row in prompts]),
        written(folder / "scores.csv", [["prompt_id", *MODELS], *cells]),
    ]
    store.ingest(files, benchmark=benchmark, metric="accuracy")
