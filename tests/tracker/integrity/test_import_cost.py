"""What the checksums cost an import: printed, since no test depends on the time (`pytest -m soak -s`)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from tracker.connections.schema_versions import downgrade, upgrade
from tracker.database import transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.integrity import recorder
from tracker.integrity.verification import find_content_faults

N_REPEATS = 12
OPTIONS = ReadOptions(benchmark="b")


@pytest.fixture(params=["MMLU-Pro", "5 x 12,000"])
def files(request: pytest.FixtureRequest, tmp_path: Path, shared: Path) -> list[Path]:
    """Files with prompts and scores."""
    if request.param == "MMLU-Pro":
        return [shared / "data/mmlu_pro/prompts.parquet", shared / "data/mmlu_pro/scores_wide.csv.gz"]
    scores = np.random.default_rng(0).integers(0, 2, (5, 12_000))
    lines = [",".join(["model", *(f"q{number}" for number in range(12_000))])]
    lines += [",".join([f"org/model-{number}", *map(str, row)]) for number, row in enumerate(scores)]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    return [tmp_path / "wide.csv"]


def read_clocks() -> np.ndarray:
    """Seconds of the clock, and of the processor in this process."""
    return np.array([time.perf_counter(), os.times().user])


@pytest.mark.soak
def test_the_cost_of_the_checksums(
    store: sa.Engine, files: list[Path], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    seconds: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    option = recorder.OPTION
    for repeat in range(2 * N_REPEATS):
        is_recorded = repeat % 2 == 1
        downgrade(store, "base")
        upgrade(store)
        monkeypatch.setattr(recorder, "OPTION", option if is_recorded else "no option")
        with transaction(store, write=False) as session:
            session.execute(sa.text("SELECT 1"))
        begun = read_clocks()
        for path in files:
            ingest_file(store, path, OPTIONS)
        seconds[is_recorded].append(read_clocks() - begun)
        with store.connect() as connection:
            assert (not list(find_content_faults(connection))) == is_recorded
    for clock, name in enumerate(("s", "s of processor")):
        with_checksums, without = (min(times[clock] for times in seconds[kind]) for kind in (True, False))
        print(
            f"\n{request.node.callspec.id}: {with_checksums:.2f} {name} with checksums, {without:.2f} without, "
            f"{with_checksums / without - 1:+.1%}"
        )
