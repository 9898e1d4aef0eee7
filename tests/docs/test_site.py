"""The site of docs/ that `make docs` writes: what it has a page for, and, as built, its links."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import click
import pytest
from source_tree import modules, parse_module

import tracker
import tracker.formats
from tracker.cli import suffrage

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs/site"))

import command_pages  # noqa: E402
import module_pages  # noqa: E402
import notebook_pages  # noqa: E402
from navigation import TOP_LEVEL, make_navigation  # noqa: E402
from repository_links import rewrite_links  # noqa: E402

PRESENTING = {"presentation", "figures", "tables", "summary", "validation"}
"""Modules of analyses that nobody calls from outside."""


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command and subcommand, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*words, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


def public_names() -> set[str]:
    """What `tracker` and `tracker.formats` export, and the functions and classes of statistics and analyses."""
    names = {f"tracker.{name}" for name in tracker.__all__}
    names |= {f"tracker.formats.{name}" for name in tracker.formats.__all__}
    for path in modules("tracker/statistics", "analyses"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if not PRESENTING & set(parts):
            module = ".".join(parts).removesuffix(".__init__")
            names |= {f"{module}.{node.name}" for node in parse_module(path).body if is_public(node)}
    return names


def is_public(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")


def addresses(entries: list[Any]) -> Iterator[str]:
    """The pages of a navigation."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for below in entry.values():
                yield from addresses(below if isinstance(below, list) else [below])


@pytest.fixture(scope="module")
def command_texts() -> dict[str, str]:
    return command_pages.write_pages()


@pytest.fixture(scope="module")
def module_texts() -> dict[str, str]:
    return module_pages.write_pages()


class TestNotebooks:
    def test_a_page_has_all_texts_code_and_outputs(self) -> None:
        pages = notebook_pages.write_pages()
        assert len(pages) == 3
        for source, address in notebook_pages.NOTEBOOKS.items():
            page = pages[address]
            for cell in json.loads((ROOT / source).read_text())["cells"]:
                text = "".join(cell["source"])
                assert text.split("\n", 1)[-1] in page
                for output in cell.get("outputs", ()):
                    assert "".join(output.get("text", output.get("data", {}).get("text/html", ""))).strip()[:60] in page
            assert page.count("```") % 2 == 0
            assert f"]({Path(source).name})" in page
            assert address in set(addresses(make_navigation()))


class TestPages:
    def test_every_command_has_a_page_with_its_options_and_examples(self, command_texts: dict[str, str]) -> None:
        expected = dict(commands(suffrage))
        pages = {text.split("\n", 1)[0].removeprefix("# suffrage "): text for text in command_texts.values()}
        overview = pages.pop("# Commands")
        assert sorted(pages) == sorted(expected)
        assert len(command_texts) - 1 == len(pages) > 60
        for words, command in expected.items():
            text = pages[words].replace("\\", "")
            for parameter in command.params:
                if isinstance(parameter, click.Option) and not parameter.hidden:
                    assert parameter.opts[0] in text, words
            assert all(example in pages[words] for example in getattr(command, "examples", [])), words
        names = re.findall(r"\(commands/([a-z-]+)\.md\)", overview)
        assert sorted(names) == sorted(suffrage.list_commands(click.Context(suffrage)))

    def test_every_public_function_has_a_place_on_a_page(self, module_texts: dict[str, str]) -> None:
        names = [name for text in module_texts.values() for name in re.findall(r"^::: (\S+)$", text, re.M)]
        assert len(names) == len(set(names))
        expected = public_names()
        assert len(expected) > 300
        assert expected - set(names) == set()

    def test_the_navigation_has_every_page_once(
        self, command_texts: dict[str, str], module_texts: dict[str, str]
    ) -> None:
        written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - {"index.md"}
        top_level = {address for address in TOP_LEVEL.values() if address.endswith(".md")}
        pages = list(addresses(make_navigation()))
        assert sorted(pages) == sorted(
            {*written, *top_level, *notebook_pages.NOTEBOOKS.values(), *command_texts, *module_texts}
        )


def test_warnings_of_the_build_are_errors() -> None:
    """With --quiet, MkDocs counts no warnings, so that strict would have no effect."""
    (recipe,) = re.findall(r"^docs: .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert re.search(r"mkdocs build$", recipe, re.M)
    assert "\nstrict: true\n" in (ROOT / "mkdocs.yml").read_text()


TARGETS = {"README.md": "index.md", "docs/index.md": "contents.md"}


class TestLinks:
    @pytest.mark.parametrize(
        ("source", "page", "text", "expected"),
        [
            ("README.md", "index.md", "[a](docs/how-to/b.md#c)", "[a](how-to/b.md#c)"),
            ("docs/how-to/b.md", "how-to/b.md", "[a](../../README.md)", "[a](../index.md)"),
            ("docs/how-to/b.md", "how-to/b.md", "![a](../figures/c.png)", "![a](../figures/c.png)"),
            ("docs/index.md", "contents.md", "[a](../README.md) [b](#c)", "[a](index.md) [b](#c)"),
            ("docs/a.md", "a.md", "[a](https://example.org/b)", "[a](https://example.org/b)"),
            ("docs/a.md", "a.md", "```text\n[a](index.md)\n```\n", "```text\n[a](index.md)\n```\n"),
        ],
    )
    def test_links_between_files_become_links_between_pages(
        self, source: str, page: str, text: str, expected: str
    ) -> None:
        assert rewrite_links(text, source, TARGETS, page) == expected


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does, with warnings as errors; 16 s of processor time."""
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, str]:
    """The HTML of every page by its address."""
    return {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}


@cache
def read_anchors(path: Path) -> set[str]:
    """What links to a page may name."""
    return set(re.findall(r'\bid="?([^"\s>]+)', path.read_text()))


class TestBuiltSite:
    """Only one test builds the site in the ordinary run: workers do not share what they have built."""

    @staticmethod
    def list_links(pages: dict[str, str]) -> list[tuple[str, str]]:
        """Each page with what it links to or loads, but addresses of other hosts."""
        link = re.compile(r'<(?:a|link|img|script)\b[^>]*?\b(?:href|src)="?([^"\s>]+)')
        links = {(page, target.replace("&amp;", "&")) for page, text in pages.items() for target in link.findall(text)}
        return sorted((page, target) for page, target in links if not re.match(r"[a-z]+:", target))

    @staticmethod
    def is_broken(site: Path, page: str, target: str) -> bool:
        parts = urlsplit(urljoin(f"http://site/{page}", target))
        path = site / unquote(parts.path).lstrip("/")
        if not path.is_file():
            return True
        return bool(parts.fragment) and path.suffix == ".html" and unquote(parts.fragment) not in read_anchors(path)

    def test_every_link_leads_to_a_file_and_a_heading(self, site: Path, pages: dict[str, str]) -> None:
        del pages["404.html"]  # its links begin at the root of a server
        broken = [f"{page}: {target}" for page, target in self.list_links(pages) if self.is_broken(site, page, target)]
        assert broken == []
        assert len(pages) > 150
        assert len(self.list_links(pages)) > 10_000
        wrong = ["../nothing.html", "commands.html#nothing"]
        assert all(self.is_broken(site, "reference/commands.html", target) for target in wrong)

    @pytest.mark.soak
    def test_it_requests_nothing_from_other_hosts(self, site: Path, pages: dict[str, str]) -> None:
        loaded = re.compile(
            r'<(?:script|img|iframe|link rel="?(?:stylesheet|preconnect|icon))\b[^>]*(?:src|href)="?https?:'
        )
        assert [page for page, text in pages.items() if loaded.search(text)] == []
        styles = "".join(path.read_text() for path in site.rglob("*.css"))
        assert not re.search(r"(?:url\(|@import)\s*[\"']?https?:", styles)
        assert not any('class="mermaid"' in text for text in pages.values())  # the theme would load a library for it

    @pytest.mark.soak
    def test_the_inventory_has_every_public_function(self, site: Path) -> None:
        inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
        names = {line.split(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}
        assert public_names() - names == set()

    @pytest.mark.soak
    def test_every_command_has_a_page(self, pages: dict[str, str]) -> None:
        missing = [
            words
            for words, _ in commands(suffrage)
            if f"suffrage {words}</h1>" not in re.sub(r"<a class=\"?headerlink.*?</a>", "", pages.get(
                f"reference/commands/{words.replace(' ', '-')}.html", ""
            ))
        ]  # fmt: skip
        assert missing == []
