"""Every command line and Python cell of the documentation prints what its page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_folders import REAL
from doc_pages import FOLDER, ROOT, PageError, mask, parse_blocks, rewrite, unexplained_blocks
from regenerate import PAGES, regenerate

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
    assert regenerate(page, templates) == text, "run `make docs-outputs` and read the difference"


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_a_block_with_a_command_is_run_or_explained(page: Path) -> None:
    assert unexplained_blocks(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_a_test_that_a_block_names_exists(page: Path) -> None:
    names = [block.comments.get("tested by") for block in parse_blocks(page.read_text(encoding="utf-8"))]
    assert [name for name in names if name and not (ROOT / name).is_file()] == []


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

    def test_blocks_that_are_not_run_stay(self, tmp_path: Path) -> None:
        page = "<!-- not run: needs a GPU -->\n```console\n$ suffrage evaluate mmlu --model x\nsomething\n```\n"
        assert rewrite(page, tmp_path) == page
        assert unexplained_blocks(page) == []

    def test_a_block_without_a_reason_is_found(self) -> None:
        assert unexplained_blocks(self.PAGE) == ["$ suffrage formats list --format csv"]
        assert unexplained_blocks("```sh\nsuffrage doctor\n```\n") == ["suffrage doctor"]
        assert unexplained_blocks("<!-- run in: empty -->\n" + self.PAGE) == []

    def test_a_command_of_another_program_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(PageError, match="pip"):
            rewrite("```console\n$ pip install x\n```\n", tmp_path)

    def test_times_do_not_count_and_numbers_do(self) -> None:
        assert mask("at 2026-01-02 03:04 in 1.5 s") == mask("at 2027-01-02 03:05 in 12 s")
        assert mask("mean 0.5") != mask("mean 0.6")
