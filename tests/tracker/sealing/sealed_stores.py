"""A store of two benchmarks with scores, several trials and answers, and the output of commands on it."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from tracker.cli import main
from tracker.database import transaction
from tracker.queries.resolution import find_benchmark
from tracker.recording.sealing.loading import list_sealed_runs, load_rows
from tracker.recording.sealing.sealing import SealResult, seal

N_PROMPTS, MODELS, N_TRIALS = 30, "abcde", 2


def write_results(path: Path, *, seed: int, models: Sequence[str] = MODELS, n_prompts: int = N_PROMPTS) -> Path:
    """A table of scores and answers of some models, with two trials of every prompt; a few answers are missing."""
    chance = random.Random(seed)
    rows = []
    for place, model in enumerate(models):
        for prompt in range(n_prompts):
            for trial in range(N_TRIALS):
                score = int(chance.random() < 0.35 + 0.1 * place + 0.3 * (prompt % 3 == 0))
                answer = ("", "yes", "no, it's \u201cthree\u201d\nlines")[chance.randrange(3)]
                rows.append([model, f"p{prompt}", f"task {prompt % 3}", score, trial, answer, chance.random()])
    lines = ["model,prompt_id,task,score,trial,predicted,confidence"]
    for model, prompt, task, score, trial, answer, confidence in rows:
        lines.append(f"{model},{prompt},{task},{score},{trial},{json.dumps(answer, ensure_ascii=False)},{confidence!r}")
    path.write_text("\n".join(lines) + "\n")
    return path


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command writes to stdout; it must succeed."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(words)
    written = capsys.readouterr()
    assert end.value.code in (0, None), (words, written.err)
    return written.out


def seal_benchmark(engine: sa.Engine, name: str, folder: Path | str) -> SealResult:
    """Move the rows of a benchmark into files."""
    with transaction(engine, write=False) as session:
        benchmark = find_benchmark(session, name)
    return seal(engine, benchmark, str(folder))


def load_benchmark(engine: sa.Engine, name: str) -> int:
    """Copy the rows of a benchmark back; returns the number of runs."""
    return load_rows(engine, sealed_runs(engine, name)).n_runs


def unseal_benchmark(engine: sa.Engine, name: str) -> None:
    """Copy the rows of a benchmark back for good."""
    load_rows(engine, sealed_runs(engine, name), for_good=True)


def sealed_runs(engine: sa.Engine, name: str) -> list[int]:
    """The sealed runs of a benchmark."""
    with transaction(engine, write=False) as session:
        return list_sealed_runs(session, find_benchmark(session, name).id)


def count_rows(engine: sa.Engine) -> tuple[int, int]:
    """Numbers of scores and answers in the tables."""
    with engine.connect().execution_options(sealed_rows_ignored=True) as connection:
        tables = ("score", "answer")
        n_scores, n_answers = (connection.scalar(sa.text(f"SELECT count(*) FROM {table}")) for table in tables)
        return int(n_scores or 0), int(n_answers or 0)
