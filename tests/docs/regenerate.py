"""Put the output that the program prints now, and the figures it draws, into every page: `make docs-outputs`."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from doc_folders import FOLDERS, REAL
from doc_pages import FOLDER, rewrite
from doc_programs import ROOT, run_line, working_folder
from notebook_cells import execute, format_notebook, prepare
from pictures import SHARED, load_figure
from stand_ins import STAND_INS

from tracker.recording.mlflow.client import open_client
from tracker.recording.mlflow.tracking_store import mlflow_store

DRAWN = re.compile(r"<!-- drawn by: (?:(.+); )?suffrage show (\d+) --save FOLDER: (\S+) -->\n!\[[^\]]*\]\((\S+)\)")
"""A figure of a finding: commands to run after those of the page, the finding, its file, and the file of the page."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.ipynb"))]


def regenerate(page: Path, templates: Path, *, draw: bool = False) -> str | None:
    """Return a page with its outputs as they are now; None for one that runs nothing or lacks its real data.

    Args:
        page: the file.
        templates: where the folders that pages begin with are built.
        draw: replace the figures of the page too.
    """
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        with tempfile.TemporaryDirectory(dir=templates) as folder:
            prepare(page, Path(folder))
            return format_notebook(execute(json.loads(text), Path(folder)))
    match = FOLDER.search(text)
    if match is None or (match[1] in REAL and not SHARED.is_dir()):
        return None
    template = templates / match[1]
    if not template.exists():
        template.mkdir(parents=True)
        FOLDERS[match[1]](template, SHARED)
    if not (templates / "mlflow.db").exists():
        with open_client(mlflow_store(f"sqlite:///{templates / 'mlflow.db'}")):
            pass
    with tempfile.TemporaryDirectory(dir=templates) as folder, STAND_INS.get(match[1], nullcontext)() as addresses:
        shutil.copytree(template, folder, symlinks=True, dirs_exist_ok=True)
        shutil.copy(templates / "mlflow.db", folder)
        rewritten = rewrite(text, Path(folder), addresses)
        if draw:
            _draw(page, text, Path(folder))
        return rewritten


def _draw(page: Path, text: str, folder: Path) -> None:
    """Replace the figures of a page by those of its findings, in the folder where its commands have run."""
    for commands, key, name, path in DRAWN.findall(text):
        with working_folder(folder):
            for command in filter(None, commands.split("; ")):
                run_line(command)
        (page.parent / path).write_bytes(load_figure(int(key), name, folder / "suffrage.db"))


def main() -> None:
    """Rewrite the pages named on the command line, or all."""
    pages = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    with tempfile.TemporaryDirectory() as templates:
        for page in pages:
            name, text = page.relative_to(ROOT), regenerate(page, Path(templates), draw=True)
            if text is None:
                continue
            changed = text != page.read_text(encoding="utf-8")
            page.write_text(text, encoding="utf-8")
            print(f"{'changed  ' if changed else 'unchanged'}  {name}")


if __name__ == "__main__":
    main()
