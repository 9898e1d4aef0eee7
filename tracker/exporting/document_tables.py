"""Tables for papers and web pages: LaTeX and Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal, get_args

DocumentFormat = Literal["latex", "markdown"]
DOCUMENT_FORMATS: tuple[DocumentFormat, ...] = get_args(DocumentFormat)

_MARKDOWN_MARKS = re.compile(r"([\\`*_\[\]<>|~$])")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LATEX_SIGNS = str.maketrans({
    "–": "--", "−": "$-$", "×": r"$\times$", "…": r"\ldots{}", "±": r"$\pm$", "≤": r"$\le$", "≥": r"$\ge$",
    **{chr(sign): f"$^{{{chr(plain)}}}$" for plain, sign in SUPERSCRIPTS.items()},
})  # fmt: skip
_NUMBER = re.compile(r"(-?)(\d[\d.,]*)(?:e([+-]\d+))?")


def format_document_table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    output_format: DocumentFormat,
    *,
    caption: Sequence[str],
    numeric: Collection[str] = (),
) -> str:
    r"""Return a table with its caption, for a paper or a web page.

    LaTeX needs the package booktabs. Every text is escaped, so that names show as they are.

    Args:
        names: of the columns.
        rows: at least one; a text for each column.
        output_format: ``latex`` or ``markdown``.
        caption: sentences that say what the table shows, the verdict first. In Markdown, the first is bold.
        numeric: names of the columns of numbers, which are aligned to the right.

    Examples:
        >>> print(format_document_table(["model", "mean"], [["a_b", "0.5"]], "markdown", caption=["a_b is first."],
        ...     numeric=["mean"]))
        **a\_b is first.**
        <BLANKLINE>
        | model   |   mean |
        |:--------|-------:|
        | a\_b    |    0.5 |
    """
    sentences = [_join_lines(sentence) for sentence in caption]
    cells = [
        [_format_number(cell) if name in numeric else _join_lines(cell) for name, cell in zip(names, row, strict=True)]
        for row in rows
    ]
    alignment = ["right" if name in numeric else "left" for name in names]
    if output_format == "latex":
        return _format_latex(names, cells, alignment, sentences)
    from tabulate import tabulate

    head, *evidence = [escape_markdown(sentence) for sentence in sentences]
    table = tabulate(
        [[escape_markdown(cell) for cell in row] for row in cells],
        [escape_markdown(name) for name in names],
        tablefmt="pipe",
        colalign=alignment,
        disable_numparse=True,
    )
    return "\n\n".join(filter(None, (f"**{head}**", " ".join(evidence), table)))


def escape_markdown(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return _MARKDOWN_MARKS.sub(r"\\\1", _join_lines(text))


def _format_latex(
    names: Sequence[str], cells: Sequence[Sequence[str]], alignment: Sequence[str], caption: Sequence[str]
) -> str:
    from tabulate import tabulate

    def escape(text: str) -> str:
        """Return a text as a cell of a table, whose escapes are those of a caption too."""
        row: str = tabulate([[text]], tablefmt="latex_booktabs", disable_numparse=True).splitlines()[2]
        return row.removesuffix(r"\\").strip().translate(_LATEX_SIGNS)

    table: str = tabulate(cells, names, tablefmt="latex_booktabs", colalign=alignment, disable_numparse=True)
    return "\n".join((
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(' '.join(caption))}}}",
        table.translate(_LATEX_SIGNS),
        r"\end{table}",
    ))  # fmt: skip


def _format_number(cell: str) -> str:
    """Return a number with a minus sign and a power of ten as in print."""
    if (match := _NUMBER.fullmatch(cell)) is None:
        return _join_lines(cell)
    sign, digits, power = match.groups()
    exponent = "" if power is None else f"×10{str(int(power)).translate(SUPERSCRIPTS)}"
    return f"{'−' * len(sign)}{digits}{exponent}"


def _join_lines(text: str) -> str:
    return " ".join(text.split())
