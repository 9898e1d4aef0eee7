"""Names in the code use the words of docs/glossary.md, and none of the invented terms that it lists."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from source_tree import ROOT, glossary_rows, glossary_section, modules, nodes

FOLDERS = ("tracker", "analyses", "migrations", "tests", "benchmarks")
WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

INVENTED: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
"""The invented terms as words, by their first word."""
for terms, *_ in glossary_rows("Invented terms"):
    for term in terms.split(", "):
        INVENTED[term.split()[0]].append(tuple(term.split()))
MEANINGLESS = set(re.findall(r"`(\w+)`", glossary_section("Names that say nothing")))
SHARED = {name.strip("`") for name, *_ in glossary_rows("Names that two classes share")}


def words(name: str) -> tuple[str, ...]:
    """The words of an identifier, in lower case: ``TaskMatrix`` and ``task_matrix`` have the same."""
    return tuple(word.lower() for word in WORD.findall(name.replace("_", " ")))


@cache
def invented_term(name: str) -> str | None:
    """The term of the glossary's lists that an identifier uses, if any."""
    parts = words(name)
    for start, part in enumerate(parts):
        for term in INVENTED.get(part, ()):
            if parts[start : start + len(term)] == term:
                return " ".join(term)
    return name if name.strip("_").lower() in MEANINGLESS else None


def identifiers(path: Path) -> Iterator[tuple[str, int]]:
    """Every name that a module defines, with its line."""
    for node in nodes(path):
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


def test_terms_are_found_in_names_of_both_styles() -> None:
    assert INVENTED
    assert MEANINGLESS
    assert invented_term("take_in_prompts") == invented_term("PromptsTakeIn") == "take in"
    assert invented_term("_told") == "told"
    assert invented_term("_one") == "_one"
    assert invented_term("one_sided") is None


def test_no_identifier_uses_an_invented_term() -> None:
    faults = [
        f"{path.relative_to(ROOT)}:{line}: {name} uses {term!r}"
        for path in modules(*FOLDERS)
        for name, line in (*((part, 1) for part in path.relative_to(ROOT).with_suffix("").parts), *identifiers(path))
        if (term := invented_term(name))
    ]
    assert faults == []


def test_classes_that_share_a_name_are_explained() -> None:
    homes = defaultdict(list)
    for path in modules("tracker", "analyses"):
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1 and name not in SHARED} == {}
    assert [name for name in SHARED if len(homes[name]) < 2] == []
    assert len(SHARED) <= 5
