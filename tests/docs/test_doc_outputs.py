"""Every command line and Python cell of the documentation prints what its page shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from doc_folders import MODELS, REAL
from doc_pages import FOLDER, mask, parse_blocks, rewrite, unexplained_blocks
from doc_programs import ROOT, PageError
from pictures import PICTURES
from regenerate import DRAWN, PAGES, regenerate

DRAWN_ALONE = re.compile(rf"<!-- drawn by: make picture-({'|'.join(PICTURES)}) -->\n!\[[^\]]*\]\((\S+)\)")
"""A picture that `pictures` draws, and its file."""
RUN = [page for page in PAGES if FOLDER.search(page.read_text(encoding="utf-8"))]


def identify(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the folders that pages begin with are built, each once."""
    return tmp_path_factory.mktemp("templates")


@pytest.mark.parametrize("page", RUN, ids=identify)
def test_a_page_shows_what_the_program_prints(page: Path, templates: Path, request: pytest.FixtureRequest) -> None:
    text = page.read_text(encoding="utf-8")
    (name,) = FOLDER.findall(text)
    if name in REAL:
        request.getfixturevalue("shared")  # skips the page where there is no folder of real data
    if name in MODELS:
        for package in ("torch", "sentence_transformers"):
            pytest.importorskip(package, reason=f"{package} of the extra `models` is not installed")
    assert regenerate(page, templates) == text, "run `make docs-outputs` and read the difference"


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_a_block_with_a_command_is_run_or_explained(page: Path) -> None:
    assert unexplained_blocks(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_a_test_that_a_block_names_exists_and_names_the_page(page: Path) -> None:
    blocks = parse_blocks(page.read_text(encoding="utf-8"))
    names = {block.comments["tested by"] for block in blocks if "tested by" in block.comments}
    assert {name: problem for name in names if (problem := find_problem(name, page))} == {}


def find_problem(name: str, page: Path) -> str | None:
    """Why `PATH::TEST` does not name a test of a page: its text, or that of its module, must name the page."""
    path, _, parts = name.partition("::")
    if not (ROOT / path).is_file():
        return "no such file"
    source = (ROOT / path).read_text(encoding="utf-8")
    scope: list[ast.stmt] = ast.parse(source).body
    for part in parts.split("::"):
        nodes = [node for node in scope if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == part]
        if not nodes:
            return f"no test {part!r}"
        scope = nodes[0].body
    return None if identify(page) in source else f"it does not name {identify(page)}"


def test_every_picture_names_what_draws_it() -> None:
    pictures, drawn = set(), set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        pictures |= {(identify(page), path) for path in re.findall(r"!\[[^\]]*\]\((\S+\.png)\)", text)}
        drawn |= {(identify(page), path) for *_, path in DRAWN.findall(text)}
        drawn |= {(identify(page), path) for name, path in DRAWN_ALONE.findall(text) if name == Path(path).stem}
    assert pictures == drawn
    files = {path.stem for path in (ROOT / "docs/figures").glob("*.png")}
    assert files == {Path(path).stem for _, path in pictures}
    assert files >= set(PICTURES)


def test_most_pages_with_commands_run() -> None:
    """Guards against pages that lose their first line and are then not compared."""
    assert len(RUN) >= 10


class TestTheChecks:
    """They find what is wrong."""

    PAGE = "# Page\n\n```console\n$ suffrage formats list --format csv\nnothing\n```\n"

    def test_a_wrong_output_is_replaced(self, tmp_path: Path) -> None:
        new = rewrite(self.PAGE, tmp_path)
        assert "nothing\n" not in new
        assert "lm-eval" in new
        assert rewrite(new, tmp_path) == new

    def test_lines_that_are_left_out_become_an_ellipsis(self, tmp_path: Path) -> None:
        page = self.PAGE.replace("```console", "<!-- lines: 1, 3 -->\n```console")
        body = parse_blocks(rewrite(page, tmp_path))[0].body.splitlines()
        assert body[1].startswith("format,")
        assert body[2] == body[4] == "…"

    def test_cells_share_names_and_their_output_is_compared(self, tmp_path: Path) -> None:
        page = "```python\nx = 2\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n4\n```\n"
        assert rewrite(page, tmp_path) == page.replace("4", "3")

    def test_an_error_is_output_too(self, tmp_path: Path) -> None:
        page = rewrite("```console\n$ suffrage leaderboard nothing\n```\n", tmp_path)
        assert "Error: " in page

    def test_blocks_of_another_test_stay(self, tmp_path: Path) -> None:
        page = "<!-- tested by: a.py::test -->\n```console\n$ suffrage evaluate mmlu --model x\nsomething\n```\n"
        assert rewrite(page, tmp_path) == page
        assert unexplained_blocks(page) == []

    def test_a_named_test_must_exist_and_name_the_page(self) -> None:
        page, module = ROOT / "docs/index.md", "tests/docs/test_doc_outputs.py"
        assert find_problem(f"{module}::TestTheChecks::test_an_error_is_output_too", page) is None
        assert find_problem("tests/docs/nothing.py::test", page) == "no such file"
        assert find_problem(f"{module}::TestTheChecks::test_nothing", page) == "no test 'test_nothing'"
        assert find_problem("tests/test_glossary.py", page) == "no test ''"

    def test_a_cell_that_fails_without_showing_it_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(PageError, match="KeyError"):
            rewrite("```python\n{}[1]\n```\n", tmp_path)

    def test_addresses_of_stand_ins_do_not_reach_the_page(self, tmp_path: Path) -> None:
        page = "```console\n$ suffrage ui --tracking-uri http://host/x\n```\n"
        lines = rewrite(page, tmp_path, {"http://host/x": "http://127.0.0.1:9"}).splitlines()
        assert "http://host/x" in lines
        assert not any("127.0.0.1" in line for line in lines)

    def test_a_block_without_a_reason_is_found(self) -> None:
        assert unexplained_blocks(self.PAGE) == ["$ suffrage formats list --format csv"]
        assert unexplained_blocks("```sh\nsuffrage doctor\n```\n") == ["suffrage doctor"]
        assert unexplained_blocks("```sh\nmlflow server\n```\n") == ["mlflow server"]
        assert unexplained_blocks("<!-- run in: empty -->\n" + self.PAGE) == []

    def test_a_command_of_another_program_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(PageError, match="make"):
            rewrite("```console\n$ make x\n```\n", tmp_path)

    @pytest.mark.parametrize("command", ["pip install x", "pip install 'suffrage[models]'", "pip install '.[nothing]'"])
    def test_a_page_installs_the_checkout_and_its_extras_only(self, command: str, tmp_path: Path) -> None:
        rewrite("```console\n$ pip install '.[models]'\n```\n", tmp_path)
        with pytest.raises(PageError, match="pages install"):
            rewrite(f"```console\n$ {command}\n```\n", tmp_path)

    def test_times_do_not_count_and_numbers_do(self) -> None:
        assert mask("at 2026-01-02 03:04 in 1.5 s") == mask("at 2027-01-02 03:05 in 12 s")
        assert mask("mean 0.5") != mask("mean 0.6")
