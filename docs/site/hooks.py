"""Hooks of MkDocs: navigation, generated pages, and links to files outside of docs/."""

from __future__ import annotations

import re
from pathlib import Path

import command_pages
import module_pages
import notebook_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from navigation import ROOT, TOP_LEVEL, make_navigation
from repository_links import rewrite_links

ASSETS = {
    "stylesheets/site.css": Path(__file__).parent / "site.css",
    "images/icon.svg": ROOT / "tracker/web/static/icon.svg",
}


def on_config(config: MkDocsConfig) -> None:
    """Set the navigation."""
    config.nav = make_navigation()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the files outside of docs/."""
    for replaced in ("index.md", "reference/commands.md"):
        file = files.get_file_from_path(replaced)
        assert file is not None, replaced
        files.remove(file)
    paths = {address: ROOT / source for source, address in TOP_LEVEL.items()} | ASSETS
    for address, path in paths.items():
        files.append(File.generated(config, address, abs_src_path=str(path)))
    pages = command_pages.write_pages() | module_pages.write_pages() | notebook_pages.write_pages()
    for address, text in pages.items():
        files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page that is a file of the repository, and drop its comments about tests."""
    address = page.file.src_uri
    source = next((path for path, target in TOP_LEVEL.items() if target == address), f"docs/{address}")
    if page.file.generated_by is not None and source.startswith("docs/") and address != "contents.md":
        return markdown
    targets = TOP_LEVEL | notebook_pages.NOTEBOOKS
    return rewrite_links(re.sub(r"^<!-- .*? -->\n", "", markdown, flags=re.M), source, targets, address)
