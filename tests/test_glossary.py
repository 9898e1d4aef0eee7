"""Names in the code use the words of docs/glossary.md, and none of the invented terms that it lists."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "docs/glossary.md").read_text()
FOLDERS = ("tracker", "analyses", "migrations", "tests", "benchmarks")
WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def section(title: str) -> str:
    """The text below a heading of the glossary."""
    return GLOSSARY.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


INVENTED = [tuple(term.split()) for term, *_ in rows("Invented terms") for term in term.split(", ")]
MEANINGLESS = set(re.findall(r"`(\w+)`", section("Names that say nothing")))
SHARED = {name.strip("`") for name, *_ in rows("Names that two classes share")}


def words(name: str) -> tuple[str, ...]:
    """The words of an identifier, in lower case: ``TaskMatrix`` and ``task_matrix`` have the same."""
    return tuple(word.lower() for word in WORD.findall(name.replace("_", " ")))


def invented_term(name: str) -> str | None:
    """The term of the glossary's lists that an identifier uses, if any."""
    parts = words(name)
    for term in INVENTED:
        if any(parts[start : start + len(term)] == term for start in range(len(parts))):
            return " ".join(term)
    return name if name.strip("_").lower() in MEANINGLESS else None


def identifiers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every name that a module defines, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case ast.alias(asname=str(alias)):
                yield alias, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


@pytest.fixture(scope="module")
def modules() -> dict[Path, ast.Module]:
    """Every module of the repository, by its path."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return {path.relative_to(ROOT): ast.parse(path.read_text()) for path in paths}


def test_terms_are_found_in_names_of_both_styles() -> None:
    assert INVENTED
    assert MEANINGLESS
    assert invented_term("take_in_prompts") == invented_term("PromptsTakeIn") == "take in"
    assert invented_term("_told") == "told"
    assert invented_term("_one") == "_one"
    assert invented_term("one_sided") is None


def test_no_identifier_uses_an_invented_term(modules: dict[Path, ast.Module]) -> None:
    faults = [
        f"{path}:{line}: {name} uses {term!r}"
        for path, tree in modules.items()
        for name, line in (*((part, 1) for part in path.with_suffix("").parts), *identifiers(tree))
        if (term := invented_term(name))
    ]
    assert faults == []


def test_classes_that_share_a_name_are_explained(modules: dict[Path, ast.Module]) -> None:
    homes = defaultdict(list)
    for path, tree in modules.items():
        if path.parts[0] in ("tracker", "analyses"):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    homes[node.name].append(str(path))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1 and name not in SHARED} == {}
    assert [name for name in SHARED if len(homes[name]) < 2] == []
    assert len(SHARED) <= 5
