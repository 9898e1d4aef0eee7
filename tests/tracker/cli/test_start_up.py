"""Commands that answer at once load no library that takes long to load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tracker.database import connect
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file

SLOW = ("analyses", "joblib", "matplotlib", "mlflow", "numba", "pandas", "scipy.stats", "sklearn", "statsmodels")
SCHEMA = ("pydantic", "sqlmodel", "tracker.schema")
"""What defines the tables; queries name them in `tracker.queries.sql.tables`."""

RUN = """
import json, sys
from tracker.cli import suffrage
suffrage.main(args={arguments!r}, standalone_mode=False)
print()
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("start-up")
    path = folder / "wide.csv"
    lines = [f"t{i % 3},q{i},{i % 2},{i % 3 // 2}" for i in range(30)]
    path.write_text("\n".join(["task,prompt_id,a,b", *lines]) + "\n")
    url = f"sqlite:///{folder}/store.db"
    engine = connect(url)
    ingest_file(engine, path, ReadOptions(benchmark="quiz", metric="accuracy"))
    engine.dispose()
    return url


@pytest.mark.parametrize(
    "arguments",
    [["leaderboard", "quiz"], ["models", "list"], ["runs", "list"], ["sql", "select 1"]],
    ids=lambda arguments: arguments[0],
)
def test_commands_that_answer_at_once_load_no_slow_library(store: str, arguments: list[str]) -> None:
    code = RUN.format(arguments=[*arguments, "--database", store])
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(finished.stdout.splitlines()[-1]))
    assert not loaded & {*SLOW, *SCHEMA}


def test_commands_close_the_store_as_they_end(store: str) -> None:
    command = [sys.executable, "-m", "tracker.cli", "models", "list", "--database", store]
    subprocess.run(command, capture_output=True, check=True)
    path = Path(store.removeprefix("sqlite:///"))
    assert [file.name for file in path.parent.glob(f"{path.name}*")] == [path.name]
