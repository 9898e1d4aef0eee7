"""Tables for papers and web pages: what a reader of them sees is what the store holds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.exporting.document_tables import DOCUMENT_FORMATS, escape_markdown, format_document_table

HOSTILE = ["a|b", "100 %", "x_1^2", r"\input{/etc/passwd}", "$5 & {more}", "<b>*bold*</b>", "two\nlines", "#1 ~ tilde"]


def read_markdown(table: str) -> list[list[str]]:
    """Return the cells of a table, without escapes."""
    rows = [re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1] for line in table.splitlines() if line.startswith("|")]
    return [
        [re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in rows if not row[0].startswith((":-", "-"))
    ]


@given(st.lists(st.text(st.sampled_from("ab|\\*_`[]<>~$ 1")), min_size=1, max_size=4))
def test_markdown_shows_every_text_as_it_is(texts: list[str]) -> None:
    written = format_document_table(["text", "n"], [[text, "1"] for text in texts], "markdown", caption=["A."])
    plain = [" ".join(text.split()) for text in texts]
    for text, line in zip(plain, written.splitlines()[4:], strict=True):
        inside = line.removeprefix("| ").rsplit("|", 2)[0].rstrip()
        assert re.sub(r"\\(.)", r"\1", inside) == text
        assert not re.search(r"(?<!\\)(?:\\\\)*\|", inside)


def test_markdown_has_the_verdict_in_bold_and_numbers_to_the_right() -> None:
    written = format_document_table(
        ["model", "mean"], [["a", "0.5"], ["b", "0.25"]], "markdown", caption=["a is first.", "Over 4 prompts."],
        numeric=["mean"],
    )  # fmt: skip
    head, evidence, table = written.split("\n\n")
    assert (head, evidence) == ("**a is first.**", "Over 4 prompts.")
    assert read_markdown(table) == [["model", "mean"], ["a", "0.5"], ["b", "0.25"]]
    assert re.fullmatch(r"\|:-+\|-+:\|", table.splitlines()[1])


def test_latex_escapes_every_text() -> None:
    rows = [[text, "1"] for text in HOSTILE]
    written = format_document_table(["name & text", "n"], rows, "latex", caption=HOSTILE, numeric=["n"])
    body = written.replace(r"\usepackage", "")
    commands = set(re.findall(r"\\([A-Za-z]+)", body))
    assert commands <= {
        "begin", "end", "centering", "caption", "toprule", "midrule", "bottomrule", "textbackslash", "textasciitilde",
        "ensuremath", "textbar",
    }  # fmt: skip
    rows_written = [line for line in written.splitlines() if line.rstrip().endswith(r"\\")]
    assert len(rows_written) == len(HOSTILE) + 1
    for line in rows_written:
        assert len(re.findall(r"(?<!\\)&", line)) == 1
        assert not re.search(r"(?<!\\)[%#_$]", line)


def test_numbers_have_minus_signs_and_powers_of_ten_as_in_print() -> None:
    rows = [["-0.25", "1.684e-07"], ["–", "1,234"]]
    markdown = format_document_table(["d", "p"], rows, "markdown", caption=["A."], numeric=["d", "p"])
    assert read_markdown(markdown.split("\n\n")[1]) == [["d", "p"], ["−0.25", "1.684×10⁻⁷"], ["–", "1,234"]]
    latex = format_document_table(["d", "p"], rows, "latex", caption=["A."], numeric=["d", "p"])
    assert "$-$0.25" in latex
    assert r"1.684$\times$10$^{-}$$^{7}$" in latex
    assert "-- " in latex


@pytest.mark.parametrize("output_format", DOCUMENT_FORMATS)
def test_a_caption_is_one_paragraph(output_format: str) -> None:
    written = format_document_table(["a"], [["1"]], output_format, caption=["two\n\nlines"])
    assert "two lines" in written


def test_escaped_text_has_no_line_ends() -> None:
    assert escape_markdown("a\n# b*") == r"a # b\*"
