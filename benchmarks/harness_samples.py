"""Time and memory from samples of lm-evaluation-harness to committed scores.

Suffrage reads the file twice, once for its checksum. It resolves prompts, keeps texts, options and answers, checks
bounds, duplicates and reference answers, and commits to SQLite. One peer runs `json.loads` on every line, then
SQLModel's `add_all` of the scores. The other is pandas' `read_json(lines=True)`, which stores nothing.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks._costs import in_own_process
from benchmarks._stores import empty_store
from tracker.database import transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.schema import Benchmark, Metric, Model, Prompt, Run, Score, Task

MEGABYTES = int(os.environ.get("SUFFRAGE_BENCHMARK_MEGABYTES", "300"))
N_FEW_SHOT, N_OPTIONS = 5, 4
WORDS = [
    f"{start}{end}"
    for start in ("ma", "ter", "in", "fo", "cal", "ver", "sta", "pro", "lu", "gen")
    for end in ("tion", "ment", "r", "s", "ding", "ly", "ble", "ture", "d", "nce")
]


def measurements() -> Iterator[dict[str, Any]]:
    """One line per question."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples_exam_2026-01-02T03-04-05.678901.jsonl"
        n_rows = write_samples(path, MEGABYTES * 1_000_000)
        megabytes = path.stat().st_size / 1e6
        seconds, memory = in_own_process(partial(ingested, path))
        facts = {"n_prompts": n_rows, "megabytes": round(megabytes), "ours_s": round(seconds, 2)}
        facts |= {"ours_mb_per_s": round(megabytes / seconds, 1), "ours_peak_mb": round(memory)}
        for peer, task in (
            ("json.loads of each line, then SQLModel add_all of the scores", _by_hand),
            ("pandas.read_json(lines=True), nothing stored", _by_pandas),
        ):
            peer_seconds, their_memory = in_own_process(partial(task, path))
            yield {
                "name": "samples of lm-evaluation-harness to committed scores, sqlite",
                **facts,
                "peer": peer,
                "peer_s": round(peer_seconds, 2),
                "peer_peak_mb": round(their_memory),
                "ratio": round(peer_seconds / seconds, 1),
            }


def write_samples(path: Path, n_bytes: int) -> int:
    """SIMULATED samples of a multiple-choice task with few-shot examples, in the shape of today's version; how many."""
    chance = random.Random(0)
    texts = [" ".join(chance.choices(WORDS, k=chance.randint(60, 160))) for _ in range(400)]
    n_examples = [f"Question: {text}\nAnswer: {chance.choice(WORDS)}\n\n" for text in texts]
    n_rows = written = 0
    with path.open("w") as file:
        while written < n_bytes:
            line = json.dumps(_sample(n_rows, chance, texts, n_examples)) + "\n"
            written += file.write(line)
            n_rows += 1
    return n_rows


def _sample(number: int, chance: random.Random, texts: list[str], n_examples: list[str]) -> dict[str, Any]:
    question = f"{chance.choice(texts)} {number}?"
    options = [" ".join(chance.choices(WORDS, k=6)) for _ in range(N_OPTIONS)]
    context = "".join(chance.choices(n_examples, k=N_FEW_SHOT)) + f"Question: {question}\nAnswer:"
    answers = [[str(-chance.expovariate(0.2)), "False"] for _ in options]
    gold = chance.randrange(N_OPTIONS)
    return {
        "doc_id": number,
        "doc": {"question": question, "choices": options, "answer": gold, "subject": "exam"},
        "target": str(gold),
        "arguments": {
            f"gen_args_{place}": {"arg_0": context, "arg_1": f" {option}"} for place, option in enumerate(options)
        },
        "resps": [[answer] for answer in answers],
        "filtered_resps": answers,
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "doc_hash": f"{chance.getrandbits(256):064x}",
        "prompt_hash": f"{chance.getrandbits(256):064x}",
        "target_hash": f"{chance.getrandbits(256):064x}",
        "acc": float(chance.random() < 0.6),
        "acc_norm": float(chance.random() < 0.6),
    }


def ingested(path: Path) -> float:
    """Seconds from the file to committed scores."""
    with empty_store("sqlite") as engine:
        begun = time.perf_counter()
        result = ingest_file(engine, path, ReadOptions(model="org/model"))
        spent = time.perf_counter() - begun
        assert result.changes.n_scores == 3 * result.changes.n_prompts_new
        return spent


def _by_hand(path: Path) -> float:
    with empty_store("sqlite") as engine:
        begun = time.perf_counter()
        with transaction(engine) as session:
            benchmark, model, metrics = Benchmark(name="b"), Model(name="m"), [Metric(name="acc"), Metric(name="norm")]
            session.add_all([benchmark, model, *metrics])
            session.flush()
            task, run = Task(benchmark_id=benchmark.id, name="exam"), Run(benchmark_id=benchmark.id, model_id=model.id)
            session.add_all([task, run])
            session.flush()
            rows = [json.loads(line) for line in path.open()]
            prompts = [
                Prompt(task_id=task.id, text=row["doc"]["question"], choices=row["doc"]["choices"]) for row in rows
            ]
            session.add_all(prompts)
            session.flush()
            session.add_all(
                Score(run_id=run.id, metric_id=metric.id, prompt_id=prompt.id, trial=0, value=row[name])
                for row, prompt in zip(rows, prompts, strict=True)
                for metric, name in zip(metrics, ("acc", "acc_norm"), strict=True)
            )
        spent = time.perf_counter() - begun
        with engine.connect() as connection:
            assert connection.scalar(sa.text("SELECT count(*) FROM score")) == 2 * len(rows)
        return spent


def _by_pandas(path: Path) -> float:
    import pandas as pd

    begun = time.perf_counter()
    rows = pd.read_json(path, lines=True)
    assert len(rows[["acc", "acc_norm"]].dropna())
    return time.perf_counter() - begun


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
