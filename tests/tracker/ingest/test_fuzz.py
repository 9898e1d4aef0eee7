"""Thousands of mutated files of every format and reader, each read within limits on memory and time.

Worker processes read the files; after an error the store has the same rows as before. `SUFFRAGE_TEST_FUZZ_FILES` sets
the number of files, and `make soak` prints what was measured.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

N_FILES = int(os.environ.get("SUFFRAGE_TEST_FUZZ_FILES", "10000"))
MAX_MEGABYTES, MAX_SECONDS = 500, 20
WORKER = Path(__file__).parent / "fuzz_worker.py"


def run_worker(folder: Path, seed: int, n_files: int) -> dict[str, object]:
    """Run a process that mutates and reads files; return what it measured."""
    folder.mkdir(parents=True)
    samples = Path(os.environ.get("SUFFRAGE_SHARED", Path(__file__).parents[4] / "shared")) / "samples"
    words = [sys.executable, str(WORKER), str(folder), str(seed), str(n_files), str(samples)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def check(results: list[dict[str, object]]) -> None:
    assert [fault for result in results for fault in result["faults"]] == []
    assert max(result["megabytes"] for result in results) <= MAX_MEGABYTES
    assert sum(result["rejected"] for result in results) > 0
    assert sum(result["accepted"] for result in results) > 0


def test_some_mutated_files_end_with_an_error_or_are_stored_whole(tmp_path: Path) -> None:
    check([run_worker(tmp_path / "work", 1, 40)])


@pytest.mark.soak
def test_ten_thousand_mutated_files_end_with_an_error_or_are_stored_whole(tmp_path: Path) -> None:
    results = []
    for part, start in enumerate(range(0, N_FILES, 500)):
        seed = random.randrange(2**32)
        results.append(run_worker(tmp_path / str(part), seed, min(500, N_FILES - start)))
        print(json.dumps({"seed": seed, **results[-1]}), flush=True)
    check(results)
    assert max(result["seconds"] for result in results) <= 10 * MAX_SECONDS  # far from it, whatever the machine does
