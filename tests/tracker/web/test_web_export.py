"""An export has every page of the server, with links that lead to files, and nothing of the data acts."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient
from web_server import HOSTILE, N_PROMPTS, Get, read

from tracker.cli import suffrage
from tracker.database import transaction
from tracker.errors import OutputError
from tracker.queries.sql import tables
from tracker.web.access import STATIC_POLICY, Access
from tracker.web.application import PAGES, create_application
from tracker.web.export import folder as folder_module
from tracker.web.export.addresses import DROPPED, LIST_FILTERS, NEED_STORE, PROMPT, SEARCH
from tracker.web.export.folder import MARKER, replace_folder
from tracker.web.export.markup import encode_tokens, parse_html, write_html
from tracker.web.templates_environment import make_visible

LABEL = f"{HOSTILE[0]}@1"
SECRET = "a benchmark that is not for everybody"


@pytest.fixture(scope="module")
def url(hostile_store: sa.Engine) -> str:
    return hostile_store.url.render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def exported(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export of the store of hostile names, by the command of docs/how-to/browser.md."""
    folder = tmp_path_factory.mktemp("export") / "site"
    result = CliRunner().invoke(suffrage, ["serve", "--export", str(folder), "--database", url])
    assert result.exit_code == 0, result.output
    assert f"Wrote {folder}: " in result.output
    return folder


def read_data(path: Path) -> Any:
    return orjson.loads(gzip.decompress(path.read_bytes()))


class Elements(HTMLParser):
    """The start tags of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.starts: list[tuple[str, dict[str, str | None]]] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.starts.append((tag, dict(attributes)))


def list_tokens(exported: Path) -> Iterator[tuple[Path, list[Any]]]:
    """Every list of tokens that a script turns into elements, with the page that it is for."""
    for path in exported.rglob("*-rows-*.json.gz"):
        page = path.with_name(f"{path.name.partition('-rows-')[0]}.html")
        yield from ((page, row) for row in read_data(path)["rows"])
    for path in (exported / "prompts").iterdir():
        yield from ((exported / "prompt.html", piece) for piece in read_data(path)["pieces"])


def list_links(exported: Path) -> Iterator[tuple[Path, str]]:
    """Every link, of pages and of data, with the page that it is on."""
    for page in exported.rglob("*.html"):
        for _, attributes in Elements(page).starts:
            yield from ((page, attributes[name]) for name in ("href", "src", "action") if attributes.get(name))
    for page, tokens in list_tokens(exported):
        starts = [token for token in tokens if isinstance(token, list) and len(token) == 2]
        yield from ((page, start[1]["href"]) for start in starts if "href" in start[1])


class TestLinks:
    def test_every_link_is_relative_and_leads_to_a_file(self, exported: Path) -> None:
        files = {path.relative_to(exported).as_posix() for path in exported.rglob("*") if path.is_file()}
        prompts = {key for path in (exported / "prompts").iterdir() for key in read_data(path)["prompts"]}
        links = {(page.relative_to(exported), link) for page, link in list_links(exported)}
        assert len(links) > 500
        for page, link in links:
            address = urlsplit(link)
            assert not address.scheme, (page, link)
            assert not address.netloc, (page, link)
            assert not address.path.startswith("/"), (page, link)
            target = os.path.normpath(page.parent / address.path) if address.path else page.as_posix()
            assert target in files, (page, link)
            if target == "prompt.html" and address.query:
                assert parse_qs(address.query)["id"][0] in prompts, (page, link)

    def test_every_page_of_the_server_has_a_file(self, exported: Path) -> None:
        names = {path.relative_to(exported).as_posix() for path in exported.rglob("*.html")}
        assert names >= {
            "index.html", "search.html", "prompt.html", "findings.html", "finding/1.html", "finding/1/table-1.html",
            "benchmark/1.html", "benchmark/1/tasks.html", "benchmark/1/runs.html", "benchmark/1/prompts.html",
            "benchmark/1/compare.html", "benchmark/1/compare-2.html", "benchmark/1/verdict.html",
            *(f"{kind}/{key}.html" for kind in ("model", "run") for key in range(1, 7)),
        }  # fmt: skip
        assert any((exported / "finding/1").glob("figure-*.png"))
        assert not any("sql" in name for name in names)

    def test_every_special_route_is_a_route_of_the_server(self) -> None:
        paths = {re.sub(r":\w+}", "}", route.path) for route in PAGES}
        assert {PROMPT, SEARCH, *NEED_STORE, *LIST_FILTERS, *DROPPED} <= paths

    def test_a_link_without_a_file_is_a_text_and_leaves_navigation(self, exported: Path) -> None:
        run = (exported / "run/1.html").read_text()
        assert ">Responses<" not in run
        assert 'href="../benchmark/1/history.html"' in run
        assert "<span>compare</span>" in (exported / "model/1.html").read_text()

    def test_names_of_files_are_fixed_words_and_numbers(self, exported: Path) -> None:
        for path in exported.rglob("*"):
            for part in PurePosixPath(path.relative_to(exported).as_posix()).parts:
                assert part.replace("-", "").replace(".", "").isalnum(), part
                assert part.isascii()


class TestNothingActs:
    def test_pages_have_a_policy_and_no_element_that_data_brought(self, exported: Path) -> None:
        for page in exported.rglob("*.html"):
            starts = Elements(page).starts
            policies = [
                attributes["content"] for tag, attributes in starts if "http-equiv" in attributes and tag == "meta"
            ]
            assert policies == [STATIC_POLICY], page
            assert [tag for tag, _ in starts].count("script") == 2, page
            names = {name for _, attributes in starts for name in attributes}
            assert not {name for name in names if name.startswith(("on", "hx-"))} | (names & {"style"}), page
            assert "\u202e" not in page.read_text(), page

    def test_data_has_no_element_that_data_brought(self, exported: Path) -> None:
        tags, names = set(), set()
        for _, tokens in list_tokens(exported):
            for token in tokens:
                if isinstance(token, list):
                    tags.add(token[0])
                    names |= set(token[1]) if len(token) == 2 else set()
        assert not tags & {"script", "img", "iframe", "object", "base", "i", "b", "style", "form"}
        assert not {name for name in names if name.startswith(("on", "hx-"))} | (names & {"style", "src"})


class TestContents:
    def test_data_files_are_those_of_the_server(self, exported: Path, get: Get) -> None:
        for name in ("index", "benchmark/1/tasks", "benchmark/1/runs", "findings", "finding/1", "run/2", "model/3"):
            data = read(get, f"/{name}.json")
            assert orjson.loads((exported / f"{name}.json").read_bytes()) == data, name
            for suffix in ("json", "csv"):
                assert (exported / f"{name}.{suffix}").read_bytes() == get(f"/{name}.{suffix}").content, name
        exported_rows = orjson.loads((exported / "benchmark/1.json").read_bytes())["rows"]
        assert exported_rows == read(get, "/benchmark/1.json")["rows"]

    def test_a_prompt_has_the_elements_of_the_page_of_the_server(self, exported: Path, get: Get) -> None:
        part = read_data(exported / "prompts/1.json.gz")
        assert sorted(part["prompts"]) == sorted(str(key) for key in range(100, N_PROMPTS + 1))
        tokens = [token for piece in part["prompts"]["105"] for token in part["pieces"][piece]]
        main = get("/prompt/105").text.partition('tabindex="-1">')[2].partition("</main>")[0]
        expected = encode_tokens(parse_html(main))
        texts = [token for token in tokens if isinstance(token, str) and token.strip()]
        assert texts == [token for token in expected if isinstance(token, str) and token.strip()]
        assert [token for token in tokens if token == 0] == [token for token in expected if token == 0]

    def test_lists_have_every_row_and_its_columns(self, exported: Path, get: Get) -> None:
        rows = [row for page in (1, 2) for row in get(f"/benchmark/1/prompts.json?page={page}").json()["rows"]]
        data, part = (read_data(exported / f"benchmark/1/prompts-{name}.json.gz") for name in ("columns", "rows-0"))
        for column, name in {
            "prompt": "id",
            "mean": "mean",
            "discrimination": "discrimination",
            "task": "task",
        }.items():
            assert data["columns"][column] == [row[name] for row in rows]
        assert (len(part["rows"]), len(part["texts"])) == (N_PROMPTS, N_PROMPTS)
        assert all(row["text"] == text for row, text in zip(rows, part["texts"], strict=True))

    def test_the_search_covers_names_and_questions(self, exported: Path) -> None:
        kinds = read_data(exported / "search-columns.json.gz")["columns"]["kind"]
        texts = read_data(exported / "search-rows-0.json.gz")["texts"]
        assert (kinds.count("benchmark"), kinds.count("model"), kinds.count("prompt")) == (1, 6, N_PROMPTS)
        assert {LABEL, *HOSTILE} - {HOSTILE[4]} <= set(texts)

    def test_neighbours_in_rank_are_compared(self, exported: Path, get: Get) -> None:
        ranked = get("/benchmark/1/compare.json").json()["available"]
        pages = (exported / "benchmark/1").glob("compare*.html")
        titles = {unescape(page.read_text().partition("<h1>")[2].partition("</h1>")[0]) for page in pages}
        names = [make_visible(name) for name in ranked]
        expected = {f"Compare {names[a]} and {names[b]} on {LABEL}" for a, b in [*combinations(range(5), 2), (4, 5)]}
        assert titles == expected

    def test_sections_that_the_server_sends_later_are_in_their_page(self, exported: Path) -> None:
        assert "What could change the first place</h2>" in (exported / "benchmark/1.html").read_text()
        assert "Nearest relatives</h2>" in (exported / "model/3.html").read_text()

    def test_forms_keep_the_fields_that_a_script_answers(self, exported: Path) -> None:
        names = {attributes.get("name") for tag, attributes in Elements(exported / "benchmark/1.html").starts
                 if tag in ("input", "select")}  # fmt: skip
        assert names == {"q", "family", "model"}


class TestScope:
    def test_other_benchmarks_leave_no_trace(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.benchmark).values(name=SECRET))
            session.execute(sa.update(tables.task).values(name=sa.literal(SECRET) + tables.task.c.name))
            session.execute(sa.update(tables.prompt).values(text=SECRET))
            key = session.execute(
                sa.insert(tables.benchmark).values(name="public", revision="").returning(tables.benchmark.c.id)
            ).scalar_one()
            session.execute(
                sa.insert(tables.run).values(
                    benchmark_id=key, model_id=1, condition="full", variant="", label="", settings={}, limited=False,
                    status="complete", n_scores=0, checksum="1" * 32, ingested=sa.func.current_timestamp(),
                )
            )  # fmt: skip
        folder, url = tmp_path / "site", filled_file.url.render_as_string(hide_password=False)
        result = CliRunner().invoke(suffrage, ["serve", "--export", str(folder), "public", "--database", url])
        assert result.exit_code == 0, result.output
        assert SECRET in TestClient(create_application(filled_file, Access())).get("http://localhost/model/1").text
        contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
        contents += [gzip.decompress(content) for content in contents if content.startswith(b"\x1f\x8b")]
        assert b"public" in (folder / "model/1.html").read_bytes()
        assert not any(SECRET.encode() in content for content in contents)

    @pytest.mark.parametrize(
        ("words", "code", "message"),
        [
            (["--export", "site", "nothing"], 1, "nothing"),
            (["mmlu"], 2, "--export FOLDER mmlu"),
            (["--export", "site", "--port", "80"], 2, "--port is for the server"),
            (["--export", "site", "--mlflow-url", "http://a.example"], 2, "--mlflow-url is for the server"),
            (["--export", "none/site"], 1, "mkdir -p none"),
            (["--export", "full"], 1, "full has files that no export wrote: notes.txt. Choose another folder"),
            (["--export", "full/notes.txt"], 1, "is a file"),
        ],
    )
    def test_what_cannot_be_exported_is_explained(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, message: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "full").mkdir()
        (tmp_path / "full/notes.txt").write_text("mine")
        result = CliRunner().invoke(suffrage, ["serve", *words, "--database", url])
        text = f"{result.output}{result.exception}"
        assert (result.exit_code, message in text) == (code, True), text
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["full", "notes.txt"]


class TestReplacement:
    @staticmethod
    def write(folder: Path, text: str) -> None:
        with replace_folder(folder) as unfinished:
            (unfinished / "page.html").write_text(text)

    @pytest.mark.parametrize("can_exchange", [True, False])
    def test_an_export_is_replaced(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool) -> None:
        if not can_exchange:
            monkeypatch.setattr(folder_module, "_exchange", lambda *_: False)
        folder = tmp_path / "si[t]e"
        folder.mkdir()
        for text in ("first", "second"):
            self.write(folder, text)
            assert (folder / "page.html").read_text() == text
            assert [path.name for path in tmp_path.iterdir()] == [folder.name]

    def test_files_that_no_export_wrote_stay(self, tmp_path: Path) -> None:
        self.write(tmp_path / "site", "first")
        (tmp_path / "site/CNAME").write_text("example.org")
        with pytest.raises(OutputError, match="files that no export wrote: CNAME"):
            self.write(tmp_path / "site", "second")
        assert (tmp_path / "site/page.html").read_text() == "first"

    def test_an_error_leaves_the_earlier_export(self, tmp_path: Path) -> None:
        self.write(tmp_path / "site", "first")
        with suppress(RuntimeError), replace_folder(tmp_path / "site") as unfinished:
            (unfinished / "page.html").write_text("half")
            raise RuntimeError
        assert (tmp_path / "site/page.html").read_text() == "first"
        assert [path.name for path in tmp_path.iterdir()] == ["site"]

    def test_a_folder_moved_by_a_swap_that_was_killed_is_put_back(self, tmp_path: Path) -> None:
        self.write(tmp_path / "site", "first")
        (tmp_path / "site").rename(tmp_path / ".site.export-999999999-x-replaced")
        (tmp_path / ".site.export-999999999-x").mkdir()
        with suppress(RuntimeError), replace_folder(tmp_path / "site"):
            raise RuntimeError
        assert (tmp_path / "site/page.html").read_text() == "first"
        assert [path.name for path in tmp_path.iterdir()] == ["site"]

    @pytest.mark.soak
    def test_a_kill_leaves_the_earlier_export(self, exported: Path, url: str, tmp_path: Path) -> None:
        folder = tmp_path / "site"
        command = [sys.executable, "-m", "tracker.cli", "serve", "--export", str(folder), "--database", url]
        subprocess.run(command, check=True, capture_output=True)
        (folder / "index.html").write_text("old")
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 60
            while not any(tmp_path.glob(".site.export-*/benchmark")):
                assert time.monotonic() < deadline
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
        assert (folder / "index.html").read_text() == "old"
        assert (folder / MARKER).exists()
        assert len(list(tmp_path.iterdir())) == 2
        subprocess.run(command, check=True, capture_output=True)
        assert [path.name for path in tmp_path.iterdir()] == ["site"]
        assert {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == {
            path.relative_to(exported): path.read_bytes() for path in exported.rglob("*") if path.is_file()
        }


class TestMarkup:
    @pytest.mark.parametrize("path", ["/", "/benchmark/1", "/prompt/1", "/finding/1", "/benchmark/1/compare"])
    def test_pages_are_written_as_they_were_read(self, get: Get, path: str) -> None:
        tokens = parse_html(get(path).text)
        assert parse_html(write_html(tokens)) == tokens

    @pytest.mark.parametrize("text", ["a < b", "<p class=x>", '<p a="1', "<p/ x>"])
    def test_anything_else_is_rejected(self, text: str) -> None:
        with pytest.raises(ValueError, match="not HTML of a template"):
            parse_html(text)


def test_tables_of_data_files_are_complete(exported: Path) -> None:
    for path in exported.rglob("*.csv"):
        rows = list(csv.reader(io.StringIO(path.read_text())))
        assert len({len(row) for row in rows}) <= 1, path
