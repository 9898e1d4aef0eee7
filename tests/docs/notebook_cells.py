"""Execute the cells of notebooks in the process, and put their outputs into the notebooks."""

from __future__ import annotations

import ast
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from doc_folders import FOLDERS
from doc_pages import mask
from doc_programs import working_folder
from pictures import SHARED

TEMPLATES = {"lm_eval_folder": "harness"}
"""Folder of files that a notebook begins with, by its name."""
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def prepare(path: Path, folder: Path) -> None:
    """Put the files that a notebook begins with into a folder."""
    if path.stem in TEMPLATES:
        FOLDERS[TEMPLATES[path.stem]](folder, SHARED)


def execute(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a notebook with the outputs of its cells as they are now.

    The value of the last line of a cell is shown as HTML if it has any, a figure as its size, else as its text.

    Args:
        notebook: as in the file.
        folder: where the cells run.
    """
    namespace: dict[str, Any] = {}
    cells = []
    with working_folder(folder):
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                cell = cell | {"outputs": _run("".join(cell["source"]), namespace), "execution_count": None}
            cells.append(cell | {"id": f"cell-{number}"})
    return {"cells": cells, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}


def _run(source: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "cell", "exec"), namespace)
        value = None if last is None else eval(compile(last, "cell", "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(True)}
        html = getattr(value, "_repr_html_", lambda: None)()
        if html is not None:
            data = {"text/html": html.splitlines(True), "text/plain": [f"<{type(value).__name__}>"]}
        outputs.append({"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None})
    return outputs


def format_notebook(notebook: dict[str, Any]) -> str:
    """Return the text of the file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def comparable(text: str) -> str:
    """Return the text of a notebook without what differs from run to run."""
    return mask(text)
