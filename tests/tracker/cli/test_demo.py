"""`suffrage demo`: what a newcomer sees, and what it leaves alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracker.cli import main


def suffrage(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracker.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_demonstration_runs_from_nothing_and_again(tmp_path: Path) -> None:
    first = suffrage("demo", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "simulated" in first.stdout.splitlines()[0]
    assert {path.name for path in tmp_path.iterdir()} == {"suffrage-demo"}
    for message in (
        "$ suffrage ingest suffrage-demo/scores.parquet",
        "--encoder planted-meaning",
        "150 easy prompts",
        "p = ",
        "suffrage ui",
    ):
        assert message in first.stdout
    query = re.findall(r"\$ suffrage analyze ([\w-]+)", first.stdout)
    built = query.index("smart-filtering")
    assert built < query.index("filter-baselines")  # which looks at its filter
    assert built < query.index("filter-stability")
    assert "Not run:" not in first.stdout
    assert not [line for line in first.stdout.splitlines() if len(line) > 100]
    assert "\x1b" not in first.stdout

    heard, warnings = begun_again(tmp_path)
    assert "were there already" in heard
    assert warnings.count("ingested before, nothing changed") == 4
    assert "observed" in heard
    assert answers(heard)
    assert answers(first.stdout)[: len(answers(heard))] == answers(heard)


def begun_again(folder: Path) -> tuple[str, str]:
    """What a second demonstration prints until it has answered a question by chance; it is stopped then."""
    command = [sys.executable, "-m", "tracker.cli", "demo", "--no-mlflow"]
    with (
        (folder / "remarks").open("w") as warnings,
        subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=warnings,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        ) as process,
    ):
        assert process.stdout is not None
        heard = ""
        for line in process.stdout:
            if "  observed " in heard and line.startswith("$ "):
                break
            heard += line
        process.kill()
    return heard, (folder / "remarks").read_text()


def answers(message: str) -> list[str]:
    """Every line from the leaderboard on, but for the findings' own numbers."""
    lines = message.partition("$ suffrage leaderboard")[2].splitlines()
    return [re.sub(r"suffrage show \d+", "suffrage show", line) for line in lines]


@pytest.mark.soak
def test_its_texts_are_reproducible(tmp_path: Path) -> None:
    first, again = (suffrage("demo", "--no-mlflow", folder=tmp_path) for _ in range(2))
    assert (first.returncode, again.returncode) == (0, 0)
    assert answers(again.stdout) == answers(first.stdout)
    assert len(re.findall(r"observed .*", again.stdout)) > 10


class TestErrors:
    def test_a_folder_with_other_things_is_left_alone(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "thesis.txt").write_text("mine")
        with pytest.raises(SystemExit, match="1"):
            main(["demo", "--folder", str(tmp_path)])
        assert "holds other things. Give a new folder: suffrage demo --folder NAME" in capsys.readouterr().err
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]

    def test_a_folder_of_another_seed_is_left_alone(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "SIMULATED.txt").write_text("was written by `suffrage demo --seed 1`.\n")
        with pytest.raises(SystemExit, match="1"):
            main(["demo", "--folder", str(tmp_path)])
        assert "another seed" in capsys.readouterr().err

    def test_a_file_in_the_folders_place_is_named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "demo").write_text("mine")
        with pytest.raises(SystemExit, match="1"):
            main(["demo", "--folder", str(tmp_path / "demo")])
        assert "demo is a file. Give a new folder" in capsys.readouterr().err
        assert (tmp_path / "demo").read_text() == "mine"
