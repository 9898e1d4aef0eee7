"""`suffrage demo`: what a newcomer sees, and what it leaves alone."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tracker.cli import main
from tracker.simulation import demo_analyses, item_response
from tracker.simulation.demo_analyses import EXPECTED_FINDINGS, DemoFinding, compute_findings, start_processes
from tracker.simulation.item_response import Design, simulate

SMALL = Design(n_prompts=402, n_easy=50, n_leaked=20, n_groups=12)


def suffrage(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracker.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_demo_runs_twice_in_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a benchmark of a third of the size; `make soak` runs it at full size.

    The first run computes in a thread of this process, where all is imported; the second one analysis in another.
    """
    monkeypatch.setattr(item_response, "simulate", partial(simulate, SMALL))
    monkeypatch.setattr(demo_analyses, "start_processes", partial(ThreadPoolExecutor, 1))
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit, match="0"):
        main(["demo"])
    first = capsys.readouterr().out
    assert "simulated" in first.splitlines()[0]
    assert {path.name for path in tmp_path.iterdir()} == {"suffrage-demo"}
    for message in (
        "$ suffrage ingest suffrage-demo/scores.parquet",
        "--encoder planted-meaning",
        "50 easy prompts",
        "p = ",
        "suffrage ui",
        "Published to MLflow: ",
    ):
        assert message in first
    analyses = re.findall(r"\$ suffrage analyze ([\w-]+)", first)
    filter_position = analyses.index("smart-filtering")
    assert filter_position < analyses.index("filter-baselines")  # which loads its filter
    assert filter_position < analyses.index("filter-stability")
    assert first.count("Expected: ") == len(set(analyses)) == len(EXPECTED_FINDINGS)
    assert "Not run:" not in first
    assert not re.search(r"\bnan\b", first)
    assert not [line for line in first.splitlines() if len(line) > 100]
    assert "\x1b" not in first

    monkeypatch.setattr(demo_analyses, "N_PROCESSES", 1)
    monkeypatch.setattr(demo_analyses, "start_processes", start_processes)
    monkeypatch.setattr(demo_analyses, "compute_findings", compute_comparison)
    with pytest.raises(SystemExit, match="0"):
        main(["demo", "--no-mlflow"])
    second = capsys.readouterr()
    assert "The files exist from an earlier demo." in second.out
    assert second.err.count("nothing changed") == 4
    assert find_sections(second.out, "leaderboard") == find_sections(first, "leaderboard")
    sections = find_sections(second.out, "analyze comparison")
    assert len(sections) == 2
    assert sections == find_sections(first, "analyze comparison")


def compute_comparison(
    pool: ProcessPoolExecutor, url: str, analyses: Sequence[str], of_filters: Sequence[str]
) -> Iterator[list[DemoFinding]]:
    return compute_findings(pool, url, [name for name in (*analyses, *of_filters) if name == "comparison"], ())


def find_sections(output: str, command: str) -> list[str]:
    """The lines that follow each use of a command, up to the next empty line."""
    return re.findall(rf"\$ suffrage {command}.*?\n\n", output, flags=re.DOTALL)


@pytest.mark.soak
def test_its_texts_are_reproducible(tmp_path: Path) -> None:
    first, again = (suffrage("demo", "--no-mlflow", folder=tmp_path) for _ in range(2))
    assert (first.returncode, again.returncode) == (0, 0)
    assert "150 easy prompts" in first.stdout
    assert "Not run:" not in first.stdout
    assert first.stdout.count("Expected: ") == len(EXPECTED_FINDINGS)
    assert find_sections(again.stdout, "") == find_sections(first.stdout, "")


class TestErrors:
    def test_a_folder_with_other_things_is_left_alone(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "thesis.txt").write_text("mine")
        with pytest.raises(SystemExit, match="1"):
            main(["demo", "--folder", str(tmp_path)])
        assert "contains other files. Choose a new folder: suffrage demo --folder NAME" in capsys.readouterr().err
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
        assert "demo is a file. Choose a new folder" in capsys.readouterr().err
        assert (tmp_path / "demo").read_text() == "mine"
