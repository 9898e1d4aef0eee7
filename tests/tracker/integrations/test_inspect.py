"""The hook for Inspect AI stores what `suffrage ingest` stores of the logs: docs/how-to/integrations.md."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stored_contents import contents

import tracker

PROGRAM = Path(__file__).with_name("inspect_program.py")
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="inspect-ai of the extra `inspect` is not installed"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs and stores of the program."""
    folder = tmp_path_factory.mktemp("inspect")
    path = os.pathsep.join([str(Path(tracker.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder)],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-2_000:] + ran.stderr[-4_000:]
    return folder


@pytest.fixture
def cases(folder: Path) -> dict[str, Any]:
    """Logs, statuses and warnings by case."""
    loaded: dict[str, Any] = json.loads((folder / "cases.json").read_text())
    return loaded


@pytest.mark.parametrize(
    ("case", "benchmark", "names"),
    [("together", None, ["choices", "sums"]), ("setting", "mine", ["mine"]), ("failing", None, ["failing"])],
)
def test_each_log_is_stored_as_by_the_command_and_a_later_import_changes_nothing(
    folder: Path, cases: dict[str, Any], tmp_path: Path, case: str, benchmark: str | None, names: list[str]
) -> None:
    url = f"sqlite:///{folder}/{case}.db"
    with tracker.open(url) as store:
        order = store.sql("SELECT path FROM source ORDER BY id")["path"].to_pylist()
        assert sorted(store.sql("SELECT name FROM benchmark")["name"].to_pylist()) == names
    assert sorted(Path(path).name for path in order) == sorted(Path(path).name for path in cases[case]["logs"])
    by_hand = f"sqlite:///{tmp_path}/by_hand.db"
    with tracker.open(by_hand) as store:
        for path in order:
            store.ingest(path, benchmark=benchmark)
    stored = contents(url)
    assert stored == contents(by_hand)
    assert stored["score"]
    with tracker.open(url) as store:
        for path in order:
            assert "nothing changed" in store.ingest(path, benchmark=benchmark)[0].summary()
    assert contents(url) == stored


def test_logs_in_remote_storage_are_stored_too(folder: Path, cases: dict[str, Any]) -> None:
    assert cases["remote"]["logs"][0].startswith("memory://")
    with tracker.open(f"sqlite:///{folder}/remote.db") as store:
        assert store.sql("SELECT count(*) AS n FROM score")["n"].to_pylist() == [4]


def test_a_failure_to_store_never_fails_the_evaluation(folder: Path, cases: dict[str, Any]) -> None:
    assert cases["foreign"]["statuses"] == ["success"]
    (warning,) = cases["foreign"]["warnings"]
    assert f"suffrage ingest {cases['foreign']['logs'][0]}" in warning
    assert (folder / "foreign.db").read_text() == "no store"


def test_failed_tasks_are_stored_after_the_run(cases: dict[str, Any]) -> None:
    assert cases["failing"]["statuses"] == ["error"]
    assert any("ended with an error" in warning for warning in cases["failing"]["warnings"])


def test_without_the_variable_nothing_is_stored(folder: Path, cases: dict[str, Any]) -> None:
    assert cases["disabled"] == {**cases["disabled"], "statuses": ["success"], "warnings": []}
    assert not (folder / "suffrage.db").exists()
