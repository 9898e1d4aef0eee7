"""The repository's files as tests of its design read them: each module is parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "docs/glossary.md").read_text()
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def parse_module(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a module."""
    return tuple(ast.walk(parse_module(path)))


def modules(*folders: str) -> Iterator[Path]:
    """List the modules of some folders, at any depth."""
    return (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))


def glossary_section(title: str) -> str:
    """Return the text below a heading of the glossary."""
    return GLOSSARY.split(f"\n## {title}\n")[1].split("\n## ")[0]


def glossary_rows(title: str) -> list[list[str]]:
    """Return the cells of the table below a heading of the glossary, without its head."""
    lines = [line for line in glossary_section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
