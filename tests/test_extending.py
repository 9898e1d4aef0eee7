"""docs/how-to/extending.md is true: the package it shows can be installed, and does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs/how-to/extending.md").read_text()
FILES = dict(re.findall(r"^`(\w+\.\w+)` .+?```\w+\n(.+?)```", DOCUMENT, re.M | re.S))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has installed the package of the document."""
    source, target = tmp_path_factory.mktemp("discriminating"), tmp_path_factory.mktemp("site")
    for name, content in FILES.items():
        (source / name).write_text(content)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", str(target), str(source)], check=True)
    return target


def suffrage(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracker.cli", *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(site), str(ROOT)))}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_inputs_in_its_table_exist() -> None:
    inputs = re.findall(r"^  \| (?:a subclass of )?`(\w+)` \| `\.([\w.]+)` \|", DOCUMENT, re.M)
    assert len(inputs) > 10
    missing = [
        f"{module}.{name}" for name, module in inputs if not hasattr(import_module(f"tracker.queries.{module}"), name)
    ]
    assert missing == []


def test_it_shows_four_files() -> None:
    assert list(FILES) == ["pyproject.toml", "discriminating_prompts.py", "scores_file.py", "test_scores_file.py"]


def test_its_format_takes_about_forty_lines_and_imports_public_names_only() -> None:
    code = FILES["scores_file.py"]
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    assert set(re.findall(r"from (tracker[\w.]*)", code + FILES["test_scores_file.py"])) == {"tracker.formats"}


def test_the_test_of_its_format_passes(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(site))
    names: dict[str, Any] = {}
    exec(compile(FILES["test_scores_file.py"], "test_scores_file.py", "exec"), names)
    names["test_it_keeps_the_promises_of_a_format"](tmp_path)


def test_its_format_is_recognised_and_its_analysis_runs(site: Path, tmp_path: Path) -> None:
    (tmp_path / "large.scores").write_text("q1 = 1\nq2 = 1\nq3 = 0.5\n")
    (tmp_path / "small.scores").write_text("q1 = 1\nq2 = 0\nq3 = 0.25\n")
    used = suffrage(site, tmp_path, "ingest", ".", "--benchmark", "exam", "--no-mlflow")
    assert used.returncode == 0, used.stderr
    assert "(scores-file)" in used.stderr
    assert "Count prompts that discriminate between models." in suffrage(site, tmp_path, "analyze", "--help").stdout
    query = suffrage(site, tmp_path, "analyze", "discriminating-prompts", "exam", "--at-least", "0.25", "--no-mlflow")
    assert query.returncode == 0, query.stderr
    assert "2 of 3 prompts discriminate between the models." in query.stdout
    kept = suffrage(site, tmp_path, "sql", "select value from prompt_value order by prompt_id", "--format", "csv")
    assert kept.stdout.split() == ["value", "0.0", "1.0", "0.25"]


def test_damage_of_a_file_of_its_format_is_reported(site: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.scores").write_text("q1 = 1\nq2 = good\n")
    refused = suffrage(site, tmp_path, "ingest", "bad.scores", "--benchmark", "exam", "--no-mlflow")
    assert refused.returncode == 1
    assert "bad.scores: line 2: 'good' is not a number." in refused.stderr


def test_what_is_sound_of_a_damaged_file_of_its_format_can_be_stored(site: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.scores").write_text("q1 = 1\nq2 = good\nq3 = 0\n")
    words = ("ingest", "bad.scores", "--benchmark", "exam", "--no-mlflow")
    refused = suffrage(site, tmp_path, *words)
    assert "What could be read: 2 prompts, 2 scores\n  bad, score: mean 0.5 of 2\n" in refused.stderr
    stored = suffrage(site, tmp_path, *words, "--partial")
    assert stored.returncode == 0, stored.stderr
    kept = suffrage(site, tmp_path, "sql", "select status, n_scores from run", "--format", "csv")
    assert kept.stdout.split() == ["status,n_scores", "partial,2"]


def test_its_format_is_listed_with_the_package_that_brings_it(site: Path, tmp_path: Path) -> None:
    listing = suffrage(site, tmp_path, "formats", "--format", "csv").stdout.splitlines()
    assert (
        'scores-file,"One model\'s scores, a line `prompt = score` each",names that end in .scores,discriminating 0.1'
        in listing
    )
