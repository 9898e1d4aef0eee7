"""Files that expand to very much end with an error, in little memory, and leave the store as it was.

Each is read by a process whose peak of memory is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bombs import ingested_bombs, npz_of_zeros, packed, parquet_of_equal_texts

MAX_MEGABYTES = 500
PROGRAM = """
import json, sys, time
from pathlib import Path
from tracker.database import connect
from tracker.errors import SuffrageError
from tracker.ingest.files.vector_file import read_vectors
from tracker.ingest.measurement import ReadOptions

from tracker.ingest.pipeline import ingest_file
engine = connect("sqlite:///store.db")
for path in map(Path, sys.argv[2:]):
    start = time.monotonic()
    try:
        if sys.argv[1] == "vectors":
            read_vectors(path)
        else:
            ingest_file(engine, path, ReadOptions(benchmark="b", model=None if "csv" in path.name else "m"))
        outcome = "accepted"
    except SuffrageError as error:
        outcome = str(error)
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps([path.name, outcome[:3000], round(peak), round(time.monotonic() - start, 1)]), flush=True)
"""


def read_in_a_process(folder: Path, files: dict[str, bytes], kind: str = "results") -> dict[str, tuple[str, int]]:
    """The error and the peak of memory in megabytes of each file; the peak includes those before it."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    paths = [str(folder / name) for name in files]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind, *paths], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {name: (outcome, peak) for name, outcome, peak, _ in map(json.loads, done.stdout.splitlines())}


@pytest.mark.soak
def test_every_bomb_is_rejected_in_little_memory(tmp_path: Path) -> None:
    results = read_in_a_process(tmp_path, ingested_bombs())
    assert {name: outcome for name, (outcome, _) in results.items() if outcome == "accepted"} == {}
    assert max(peak for _, peak in results.values()) <= MAX_MEGABYTES, results


@pytest.mark.soak
def test_so_is_every_bomb_of_vectors(tmp_path: Path) -> None:
    files = {
        "zeros.npz": npz_of_zeros(),
        "texts.parquet": parquet_of_equal_texts(),
        "zeros.npz.gz": packed(bytes(1_000_000), 2000, b"PK"),
    }
    results = read_in_a_process(tmp_path, files, "vectors")
    assert {name: outcome for name, (outcome, _) in results.items() if outcome == "accepted"} == {}
    assert max(peak for _, peak in results.values()) <= MAX_MEGABYTES, results
