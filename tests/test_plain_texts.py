"""Texts use the words of docs/glossary.md, none of its invented terms, and sentences of at most 30 words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from source_tree import ROOT, nodes
from text_rules import invented_terms, long_sentences

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
FIRST_CHECKED_VERSION = (0, 2, 0)
FROZEN = ("migrations/versions/", "tracker/evaluating/prompt_templates/built_in/cnn_dailymail.jinja")
"""Texts that cannot change: migrations were run, and the digest of a template identifies the runs made with it."""

CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1", re.S | re.M)
SQL = re.compile(r"\s*(?:SELECT|WITH|CREATE|INSERT|UPDATE|DELETE|DROP|ALTER)\b")


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text of a file.

    Attributes:
        line: where it begins.
        content: f-strings have ``{}`` in place of each value.
        is_message: whether it is a string literal that is no docstring.
    """

    line: int
    content: str
    is_message: bool


def literal(node: ast.AST) -> str:
    """Return the text of a string literal or f-string; '' for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
    return ""


def module_texts(path: Path) -> Iterator[Text]:
    """List the docstrings of a module and its string literals that hold a space."""
    every = nodes(path)
    statements = {id(node.value) for node in every if isinstance(node, ast.Expr)}
    parts = {id(part) for node in every if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in every:
        text = literal(node)
        if " " in text.strip() and id(node) not in parts:
            assert isinstance(node, ast.expr)
            yield Text(line=node.lineno, content=text, is_message=id(node) not in statements)


def changelog_texts(changelog: str) -> str:
    """Return the sections of the versions that are checked, with the line breaks of the others."""

    def is_checked(section: str) -> bool:
        version = re.match(r"## \[?(\d+)\.(\d+)\.(\d+)", section)
        return version is not None and tuple(map(int, version.groups())) >= FIRST_CHECKED_VERSION

    sections = re.split(r"^(?=## )", changelog, flags=re.M)
    return "".join(section if is_checked(section) else "\n" * section.count("\n") for section in sections)


def texts(path: Path) -> Iterator[Text]:
    """List the texts of a file."""
    if path.suffix == ".py":
        yield from module_texts(path)
        return
    source = changelog_texts(path.read_text()) if path.name == "CHANGELOG.md" else path.read_text()
    prose = CODE_BLOCK.sub(lambda block: "\n" * block.group().count("\n"), source)
    yield Text(line=1, content=prose, is_message=False)


def areas() -> dict[str, list[Path]]:
    """The files of each folder below the main ones, and the documents beside them."""
    by_area: dict[str, list[Path]] = {name: [ROOT / name] for name in DOCUMENTS}
    for folder in ("tracker", "analyses", "migrations", "benchmarks", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            is_text = path.suffix in (".py", ".md", ".jinja", ".html") and path != ROOT / "docs/glossary.md"
            if is_text and not str(path.relative_to(ROOT)).startswith(FROZEN):
                by_area.setdefault("/".join(path.relative_to(ROOT).parts[:-1][:2]), []).append(path)
    return by_area


AREAS = areas()


@pytest.mark.parametrize("area", AREAS)
def test_texts_use_standard_terms_and_short_sentences(area: str) -> None:
    faults = []
    for path in AREAS[area]:
        for text in texts(path):
            place = path.relative_to(ROOT)
            faults += [f"{place}:{text.line + lines}: {term!r}" for lines, term in invented_terms(text.content)]
            if text.is_message and not SQL.match(text.content):
                faults += [f"{place}:{text.line}: long: {sentence}" for sentence in long_sentences(text.content)]
    assert faults == []


class TestTheChecks:
    """They find what is wrong."""

    def test_terms_are_found_in_any_case_and_across_lines_but_not_in_code(self) -> None:
        assert invented_terms("It Says\nthat") == [(0, "Says")]
        assert invented_terms("first\nwas taken\n  in") == [(1, "taken\n  in")]
        assert invented_terms("`tells` and told-off") == []

    def test_a_sentence_of_31_words_is_found(self) -> None:
        assert long_sentences("word " * 30 + ". Next.") == []
        assert len(long_sentences("word " * 31)) == 1
        assert long_sentences("word " * 20 + "\n\n" + "word " * 20) == []

    def test_docstrings_and_messages_of_a_module_are_found(self, tmp_path: Path) -> None:
        module = tmp_path / "module.py"
        module.write_text('"""A docstring."""\nx = f"A {1} message"\ny = "word"\n\n\ndef f():\n    """Return it."""\n')
        assert [(text.line, text.content, text.is_message) for text in module_texts(module)] == [
            (1, "A docstring.", False),
            (2, "A {} message", True),
            (7, "Return it.", False),
        ]

    def test_a_changelog_is_checked_from_a_version_on(self) -> None:
        changelog = "# Changes\n\n## 0.2.0\n\nNew.\n\n## 0.1.0\n\nOld.\n"
        assert changelog_texts(changelog).split() == ["##", "0.2.0", "New."]
