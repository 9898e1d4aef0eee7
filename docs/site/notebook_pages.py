"""A page for each notebook: its texts, its code and what its cells print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOTEBOOKS = {f"docs/notebooks/{path.name}": f"notebooks/{path.stem}.md" for path in ROOT.glob("docs/notebooks/*.ipynb")}
"""Address in the site of the page of each notebook."""


def write_pages() -> dict[str, str]:
    """Return the Markdown of every page by its address."""
    return {address: write_page(ROOT / source) for source, address in sorted(NOTEBOOKS.items())}


def write_page(path: Path) -> str:
    """Return a notebook as Markdown: the text under its title links to the file."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title, *parts = [part for cell in cells for part in _write_cell(cell)]
    heading, _, text = title.partition("\n")
    return "\n\n".join([heading, f"[Download the notebook]({path.name})", text.strip(), *parts]) + "\n"


def _write_cell(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "text/html" in data:  # a blank line would end the block of HTML
            yield re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
        else:
            text = "".join(output["text"] if "text" in output else data["text/plain"])
            yield f"```text\n{text.rstrip()}\n```"
