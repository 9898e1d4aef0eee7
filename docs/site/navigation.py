"""The navigation of the site: the sections of docs/index.md, in which every page is linked, and the generated pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import command_pages
import module_pages
from notebook_pages import NOTEBOOKS

ROOT = Path(__file__).parents[2]
TOP_LEVEL = {
    "README.md": "index.md",
    "docs/index.md": "contents.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CITATION.cff": "project/CITATION.cff",
    "benchmarks/results.json": "project/results.json",
}
"""Addresses in the site of files that have another path in the repository."""
SECTIONS = ("Tutorials", "How-to guides", "Reference", "Explanation")
LINK = re.compile(r"\]\(([\w/.-]+\.(?:md|ipynb))\)")


def make_navigation() -> list[Any]:
    """Return the navigation, as MkDocs reads it from its settings."""
    sections: list[Any] = [{"Overview": "index.md"}]
    for title in SECTIONS:
        pages = list_pages(title)
        sections.append({title: nest_reference(pages) if title == "Reference" else pages})
    project = [address for address in TOP_LEVEL.values() if re.fullmatch(r"project/.*\.md", address)]
    return [*sections, {"Project": ["contents.md", *project]}]


def list_pages(title: str) -> list[Any]:
    """Return the pages that a section of docs/index.md links to, in its order."""
    text = (ROOT / "docs/index.md").read_text()
    section = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return list(dict.fromkeys(NOTEBOOKS.get(f"docs/{page}", page) for page in LINK.findall(section)))


def nest_reference(pages: list[str]) -> list[Any]:
    """Return the pages of the reference with those of commands, statistics and modules below their overviews."""
    commands: list[Any] = []
    for words, command in command_pages.list_commands():
        address = command_pages.page_address(words)
        if " " in words:
            commands[-1][f"suffrage {words.split()[0]}"].append(address)
        else:
            commands.append({f"suffrage {words}": [address]} if isinstance(command, click.Group) else address)
    names = sorted(path.name for path in (ROOT / "docs/reference/statistics").glob("*.md"))
    statistics = [f"reference/statistics/{name}" for name in names if name != "index.md"]
    modules = [module_pages.page_address(name) for name in module_pages.list_pages()]
    below: dict[str, tuple[str, list[Any]]] = {
        "reference/commands.md": ("Commands", commands),
        "reference/statistics/index.md": (
            "Statistics",
            [path for path in statistics if not path.endswith("/index.md")],
        ),
        "reference/python.md": ("Python", ["reference/api.md", *modules]),
    }
    return [{below[page][0]: [page, *below[page][1]]} if page in below else page for page in pages]
