"""A page for each group of Python modules that people import, rendered from docstrings by mkdocstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = "reference/api"
STABLE = ("tracker", "tracker.formats")
"""Modules whose names stay."""
PACKAGES = ("tracker.statistics", "analyses")
DRAWING = ("presentation", "figures", "tables", "summary", "validation")
"""Modules of analyses that turn a finding into text and pictures."""


def list_pages() -> dict[str, dict[str, list[str]]]:
    """Return the public names of each module, by the package that has a page."""
    pages = {module: {module: read_exports(module)} for module in STABLE}
    pages["tracker.errors"] = {"tracker.errors": read_definitions(_file("tracker.errors"))}
    for module, names in _list_modules():
        pages.setdefault(_page_of(module), {})[module] = names
    return pages


def page_address(page: str) -> str:
    """Return the address of the page of a package."""
    return f"{FOLDER}/{page}.md"


def write_pages() -> dict[str, str]:
    """Return the Markdown of every page by its address."""
    pages = list_pages()
    texts = {page_address(page): write_page(page, modules) for page, modules in pages.items()}
    return {f"{FOLDER}.md": write_overview(pages), **texts}


def write_page(page: str, modules: Mapping[str, list[str]]) -> str:
    """Return the Markdown of a page: a directive of mkdocstrings for each public name."""
    parts = [f"# {page}"]
    for module, names in modules.items():
        if len(modules) > 1:
            parts.append(f"## {module}")
        level = 3 if len(modules) > 1 else 2
        doc = ast.get_docstring(_parse(_file(module))) or ""
        parts.append(doc.partition("\n\nExamples:")[0].partition("\n\nSource:")[0].split("\n\n")[0])
        parts += [f"::: {module}.{name}\n    options:\n      heading_level: {level}" for name in names]
    return "\n\n".join(parts) + "\n"


def write_overview(pages: Mapping[str, Mapping[str, list[str]]]) -> str:
    """Return the Markdown of the page that lists the other ones."""
    lines = [
        "# Python modules",
        "What `tracker` and `tracker.formats` export keeps its names. Everything else can be imported, but may move "
        "between versions. [From Python](python.md) explains how the parts are used together.",
        "| Module | Contents |\n|---|---|\n"
        + "\n".join(f"| [`{page}`](api/{page}.md) | {_first_line(page)} |" for page in pages),
    ]
    return "\n\n".join(lines) + "\n"


def read_exports(module: str) -> list[str]:
    """Return the names in a module's ``__all__``, in their order."""
    for node in _parse(_file(module)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def read_definitions(path: Path) -> list[str]:
    """Return the functions and classes that a module defines and whose names begin with a letter."""
    return [
        node.name
        for node in _parse(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]


def _list_modules() -> Iterator[tuple[str, list[str]]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package.replace(".", "/")).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if (names := read_definitions(path)) and not set(parts) & set(DRAWING):
                yield ".".join(parts), names


def _page_of(module: str) -> str:
    """Return the package whose page has a module: an analysis, or a subject of the shared mathematics."""
    parts = module.split(".")
    if parts[:2] == ["tracker", "statistics"] or parts[:2] == ["analyses", "numerics"]:
        is_folder = (ROOT / "/".join(parts[:3])).is_dir()
        return ".".join(parts[:3] if is_folder else parts[:2])
    return ".".join(parts[:2])


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _file(module: str) -> Path:
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _first_line(module: str) -> str:
    doc = ast.get_docstring(_parse(_file(module))) or ""
    return doc.split("\n", 1)[0]
