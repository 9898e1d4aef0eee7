"""The notebooks of docs/notebooks run from a fresh folder, and show what they print now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from doc_programs import ROOT
from notebook_cells import TEMPLATES, comparable, execute, format_notebook, prepare

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.soak if path.stem in TEMPLATES else ()) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_a_notebook_shows_what_its_cells_print(path: Path, tmp_path: Path) -> None:
    prepare(path, tmp_path)
    text = path.read_text(encoding="utf-8")
    executed = format_notebook(execute(json.loads(text), tmp_path))
    assert comparable(executed) == comparable(format_notebook(json.loads(text)))


def test_there_is_one_for_each_job_and_each_is_small() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["leaderboard", "lm_eval_folder", "own_results"]
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert len(cells) <= 16
        assert path.stat().st_size < 60_000
        assert any("plot()" in "".join(cell["source"]) for cell in cells)


@pytest.mark.soak
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_a_kernel(path: Path, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    prepare(path, tmp_path)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    assert counts == list(range(1, len(counts) + 1))
    assert counts
