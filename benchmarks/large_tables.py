"""What every analysis costs on large simulated tables, and the error with which it ends.

Scores of 0 and 1 and random vectors of 64 numbers for each prompt, in a SQLite store. Each row is one command
`suffrage analyze` with default options, in a separate process with all cores; its time includes start, reading
packed scores and recording. `drift`, `trials`, `tradeoff` and `sensitivity-sweep` have costs of other things than
prompts and models and are left out. Each command has `--limit-hours` of SUFFRAGE_BENCHMARK_SECONDS (600), so that a
loop that would take longer ends it with the expected time; it is stopped after twice as long, and gets at most
SUFFRAGE_BENCHMARK_GB (20) of memory. SUFFRAGE_BENCHMARK_TABLES=10000x100,100000x1000 names other sizes, and
SUFFRAGE_BENCHMARK_ANALYSES=comparison,mixed-model fewer analyses.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scaling import write_table

SIZES = os.environ.get("SUFFRAGE_BENCHMARK_TABLES", "10000x100,10000x1000,100000x100")
MAX_SECONDS = float(os.environ.get("SUFFRAGE_BENCHMARK_SECONDS", "600"))
MAX_BYTES = int(float(os.environ.get("SUFFRAGE_BENCHMARK_GB", "20")) * 1e9)
N_DIMENSIONS = 64
ALL_ANALYSES = (
    "rank-intervals", "comparison", "weight-robustness", "voting-rules", "social-choice", "task-subsets",
    "prompt-weighting", "prompt-clusters", "prompt-correlation", "mixed-model", "benchmark-growth",
    "semantic-similarity", "smart-filtering", "filter-stability", "filter-baselines",
)  # fmt: skip
ANALYSES = os.environ.get("SUFFRAGE_BENCHMARK_ANALYSES", ",".join(ALL_ANALYSES)).split(",")
OPTIONS = {
    "comparison": ("--model-a", "model-0", "--model-b", "model-1"),
    "smart-filtering": ("--models", "model-0,model-1,model-2,model-3"),
}


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each size and analysis."""
    for size in SIZES.split(","):
        n_prompts, n_models = map(int, size.split("x"))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _fill(folder, n_prompts, n_models)
            for analysis in ANALYSES:
                limit = ["--limit-hours", f"{MAX_SECONDS / 3_600:g}"]
                command = ["analyze", analysis, "b", "--no-mlflow", *limit, *OPTIONS.get(analysis, ())]
                yield {"name": f"{analysis}, {n_prompts:,} × {n_models:,}", **_measure(command, folder)}


def _fill(folder: Path, n_prompts: int, n_models: int) -> None:
    write_table(folder / "scores.parquet", n_prompts, n_models)
    _succeed(["ingest", "scores.parquet", "--benchmark", "b", "--metric", "accuracy", "--no-mlflow"], folder)
    vectors = np.random.default_rng(0).normal(size=(n_prompts, N_DIMENSIONS)).astype(np.float32)
    np.savez(folder / "vectors.npz", prompt_id=np.array([f"q{n}" for n in range(n_prompts)]), vector=vectors)
    _succeed(["embed", "b", "--from-file", "vectors.npz", "--encoder", "random"], folder)
    _succeed(["leaderboard", "b"], folder)  # packs the scores


def _succeed(arguments: list[str], folder: Path) -> None:
    subprocess.run(_command(arguments), cwd=folder, check=True, capture_output=True)


def _command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-c", "from tracker.cli import main; main()", *arguments]


def _measure(arguments: list[str], folder: Path) -> dict[str, Any]:
    output = folder / "output.txt"
    with output.open("wb") as file:
        started = time.perf_counter()
        process = subprocess.Popen(
            _command(arguments),
            cwd=folder,
            stdout=file,
            stderr=file,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES)),
        )
        status, peak = None, 0
        while status is None:
            try:
                status = process.wait(0.2)
            except subprocess.TimeoutExpired:
                peak = max(peak, _resident(process.pid))
                if time.perf_counter() - started > 2 * MAX_SECONDS:
                    process.kill()
        seconds = time.perf_counter() - started
    row = {"ours_s": round(seconds, 1), "ours_mb": round(peak / 1024)}
    if seconds > 2 * MAX_SECONDS:
        return row | {"note": f"stopped after {seconds:.0f} s"}
    if status:
        text = " ".join(output.read_text(encoding="utf-8").split())
        return row | {"note": text[text.rfind("Error: ") :][:300]}
    return row


def _resident(pid: int) -> int:
    """High-water mark of a process's memory in kB; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.split("VmHWM:")[1].split()[0]) if "VmHWM:" in status else 0


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
